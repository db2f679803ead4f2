"""What a session needs of a store: text and hashes, in order, under one lock for each session."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from hashlib import blake2b
from threading import Event
from types import MappingProxyType
from typing import Any
from weakref import WeakValueDictionary

import attrs

from session.changes import change_of
from session.errors import StaleVersion, StoreError, shown
from session.events import SessionId, session_id_of
from session.history import Change
from session.locks import ProcessLock
from session.records import Records, Upcasters

__all__ = [
    "NESTED",
    "Checkpoint",
    "Store",
    "StoredChange",
    "StoredSession",
    "Watch",
    "chained",
    "damaged",
    "locked",
    "no_session",
    "refuse_copy",
    "stale",
    "verified",
]

NESTED = (
    "a transaction of another session of this store is open in this thread, and they would wait for each "
    "other: end it first"
)

_POLLED = 0.05
"""How many seconds a watch waits before it looks again."""
_BATCH = 256


def chained(before: bytes, text: str) -> bytes:
    """The hash of a text and of all that was before it."""
    return blake2b(before + text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@attrs.frozen
class StoredChange:
    """One change as a store keeps it.

    Attributes:
        version: Its place in the session's history: 1 for the first.
        text: What it was, as JSON.
        hash: ``chained`` of the hash before and the text.
        call_ids: The ids of the calls in it, to find it by; empty where it was read.
        rewound_to: The version that it restored, where it is a rewind.
    """

    version: int
    text: str = attrs.field(repr=False)
    hash: bytes
    call_ids: tuple[str, ...] = ()
    rewound_to: int | None = None


@attrs.frozen
class Checkpoint:
    """The slices of a version: what could be replayed, so that it need not be.

    Attributes:
        version: The version.
        text: The slices, as JSON.
        check: ``chained`` of the change's hash and the text.
    """

    version: int
    text: str = attrs.field(repr=False)
    check: bytes


def _frozen(tags: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(dict(tags))


@attrs.frozen
class StoredSession:
    """What a store says of a session.

    Attributes:
        session_id: Its identity.
        version: How many changes it has.
        hash: The hash of the last one; empty for none.
        created_at: When it began.
        changed_at: When it was changed last, in UTC.
        tags: Words to find it by.
        forked_from: For a fork, the sessions that its first versions came from, oldest first: an identity,
            and the last version that came from there.
    """

    session_id: SessionId
    version: int
    hash: bytes = attrs.field(repr=False)
    created_at: datetime
    changed_at: datetime
    tags: Mapping[str, str] = attrs.field(factory=dict, converter=_frozen)
    forked_from: tuple[tuple[SessionId, int], ...] = ()

    def owner(self, version: int) -> SessionId:
        """The session in which a version was made."""
        return next((source for source, last in self.forked_from if version <= last), self.session_id)

    def about(self) -> str:
        """What does not change with a commit, as JSON."""
        return json.dumps(
            {
                "created_at": self.created_at.isoformat(),
                "tags": dict(self.tags),
                "forked_from": [[str(source), last] for source, last in self.forked_from],
            },
            separators=(",", ":"),
        )

    @classmethod
    def of(cls, session_id: str, version: int, hash_: bytes, changed_at: str, about: str) -> StoredSession:
        """Read what a store keeps of a session.

        Raises:
            StoreError: It cannot be read.
        """
        try:
            said = json.loads(about)
            return cls(
                session_id=session_id_of(session_id),
                version=version,
                hash=hash_,
                created_at=datetime.fromisoformat(said["created_at"]),
                changed_at=datetime.fromisoformat(changed_at),
                tags={str(key): str(word) for key, word in said["tags"].items()},
                forked_from=tuple((session_id_of(source), int(last)) for source, last in said["forked_from"]),
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise StoreError(f"the record of session {shown(session_id)} is damaged") from error


class Store(ABC):
    """Where sessions are kept; it deals in text alone.

    A session locks, takes over what other writers appended, and appends its own change: ``lock`` and
    ``append`` are its way to write. Everything but ``lock`` may be called by any thread at any time.

    Further stores implement the abstract methods. One that cannot lock leaves ``lock`` as it is: then
    ``append`` alone keeps writers apart, and the later one is refused with ``StaleVersion``.
    """

    def __init__(self, upcasters: Upcasters | None = None) -> None:
        """Begin without sessions.

        Args:
            upcasters: What to do with records of an older format, by ``module:Name@1``: functions that take
                the fields of that format and return those of the next.
        """
        self.upcasters = dict(upcasters or {})
        self.states: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self.opening = ProcessLock()

    def records(self, session_id: SessionId) -> Records:
        """What reads the records of a session: it knows the types that are registered with it here."""
        opened = self.states.get(str(session_id))
        return Records(self.upcasters) if opened is None else opened.past.records

    def lock(self, _session_id: SessionId) -> AbstractContextManager[None]:
        """Keep other writers of a session away within a ``with`` block.

        Raises:
            StoreError: It is locked for longer than the store waits.
            TransactionError: This thread is inside the block of another session of this store.
        """
        return nullcontext()

    @abstractmethod
    def head(self, session_id: SessionId) -> StoredSession | None:
        """What there is of a session; None where it has no change."""

    @abstractmethod
    def append(
        self,
        head: StoredSession,
        change: StoredChange | None,
        *,
        expected: int,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Write a change, durably, or nothing.

        Args:
            head: The session as it is with the change.
            change: The change; None for what changes no version.
            expected: The version that the session has before it.
            checkpoint: A checkpoint to keep with it.

        Raises:
            StaleVersion: It has another version.
            StoreError: The store does not take it; ``outcome`` says what is known of it.
        """

    @abstractmethod
    def changes(self, session_id: SessionId, first: int, last: int) -> Sequence[StoredChange]:
        """The changes from a version to another, both included, in order."""

    @abstractmethod
    def checkpoints(self, session_id: SessionId, last: int, most: int) -> Sequence[Checkpoint]:
        """The newest checkpoints up to a version, newest first."""

    @abstractmethod
    def drop_checkpoints(self, session_id: SessionId) -> None:
        """Forget the checkpoints of a session: it is replayed by the reducers of today from its beginning."""

    @abstractmethod
    def calls(self, session_id: SessionId, call_id: str) -> Sequence[int]:
        """The versions in which there is a call with an id, in order."""

    @abstractmethod
    def rewinds(self, session_id: SessionId) -> Sequence[tuple[int, int]]:
        """The rewinds of a session, in order: their versions, and the version that each restored."""

    @abstractmethod
    def claim(self, session_id: SessionId, name: str) -> bool:
        """Record a name, durably; False where it was recorded before."""

    @abstractmethod
    def copy(self, source: SessionId, fork: StoredSession) -> None:
        """Begin a session with the changes, checkpoints and claims of another, up to the fork's version.

        Raises:
            StoreError: There is a session of the fork's identity, or not so many changes.
        """

    @abstractmethod
    def sessions(self) -> Sequence[StoredSession]:
        """All sessions, the one that was changed last first."""

    @abstractmethod
    def delete(self, session_id: SessionId) -> bool:
        """Delete a session; False where there was none. Its forks stay whole."""

    def close(self) -> None:  # noqa: B027 - not every store holds something
        """Let go of what the store holds open."""

    def verify(self, session_id: SessionId) -> int:
        """Check every hash of a session: of its changes, its head and its checkpoints.

        Returns:
            How many versions it has.

        Raises:
            StoreError: Something is damaged; ``version`` says where. Or there is no such session.
        """
        head = self.head(session_id)
        if head is None:
            raise no_session(session_id)
        hashes, before = {0: b""}, b""
        for first in range(1, head.version + 1, _BATCH):
            last = min(first + _BATCH - 1, head.version)
            for change in verified(self.changes(session_id, first, last), first, last, before):
                before = hashes[change.version] = change.hash
        if before != head.hash:
            raise StoreError(damaged(head.version), version=head.version)
        for checkpoint in self.checkpoints(session_id, head.version, head.version + 1):
            if checkpoint.check != chained(hashes.get(checkpoint.version, b""), checkpoint.text):
                message = f"the checkpoint of version {checkpoint.version} is damaged: drop the checkpoints"
                raise StoreError(message, version=checkpoint.version)
        return head.version

    def watch(self, session_id: SessionId, after: int | None = None, timeout: float | None = None) -> Watch:
        """Iterate over the changes of a session as they are committed, by this process or another.

        Args:
            session_id: The session, which may begin later.
            after: The version to begin after; None for the one of now.
            timeout: End after so many seconds without a change; None to wait for ever.
        """
        return Watch(self, session_id_of(session_id), after, timeout)

    def awatch(
        self, session_id: SessionId, after: int | None = None, timeout: float | None = None
    ) -> AsyncIterator[Change]:
        """The same for ``async for``; the store is asked off the event loop."""
        return _awatched(self.watch(session_id, after, timeout))


class Watch:
    """Iterates over changes from a cursor: nothing is buffered, so a slow reader lags and loses nothing.

    Attributes:
        version: The version of the last change that was given out.
    """

    def __init__(self, store: Store, session_id: SessionId, after: int | None, timeout: float | None) -> None:
        """Begin after a version; see ``Store.watch``."""
        self._store = store
        self._session_id = session_id
        self._timeout = timeout
        self._closed = Event()
        self._found: list[Change] = []
        self._hash: bytes | None = None  # of the last change that was read
        head = store.head(session_id) if after is None else None
        self.version: int = (0 if head is None else head.version) if after is None else after

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Change]:
        return self

    def __next__(self) -> Change:
        """The next change, as soon as there is one.

        Raises:
            StopIteration: It was closed, or the time is over.
            StoreError: The store cannot be read, or the session was deleted.
        """
        until = None if self._timeout is None else time.monotonic() + self._timeout
        while not self._closed.is_set():
            found = self.poll()
            if found is not None:
                return found
            left = _POLLED if until is None else min(_POLLED, until - time.monotonic())
            if left <= 0:
                break
            self._closed.wait(left)
        raise StopIteration

    @property
    def timeout(self) -> float | None:
        """After how many seconds without a change it ends."""
        return self._timeout

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed.is_set()

    def close(self) -> None:
        """End the iteration, from whichever thread."""
        self._closed.set()

    def poll(self) -> Change | None:
        """The next change, if there is one already."""
        if not self._found:
            head = self._store.head(self._session_id)
            if head is None and self.version:
                raise StoreError(f"session {shown(str(self._session_id))} was deleted")
            if head is None or head.version == self.version:
                return None
            if head.version < self.version:
                raise StoreError(damaged(head.version + 1), version=head.version + 1)
            stored = self._sound(self.version + 1, min(head.version, self.version + _BATCH))
            records = self._store.records(self._session_id)
            self._found = [
                change_of(each.text, each.version, head.owner(each.version), records)
                for each in reversed(stored)
            ]
        found = self._found.pop()
        self.version = found.version
        return found

    def _sound(self, first: int, last: int) -> Sequence[StoredChange]:
        """The changes from a version to another, which continue what was given out."""
        stored, before = self._store.changes(self._session_id, max(first - 1, 1), last), b""
        if first > 1:
            before, stored = (stored[0].hash if stored else b""), stored[1:]
            if self._hash not in {None, before}:
                raise StoreError(f"another session is in the place of {shown(str(self._session_id))}")
        found = verified(stored, first, last, before)
        self._hash = found[-1].hash
        return found


async def _awatched(watch: Watch) -> AsyncIterator[Change]:
    import asyncio  # noqa: PLC0415 - whoever iterates has it

    until = None if watch.timeout is None else time.monotonic() + watch.timeout
    try:
        while not watch.closed:
            found = await asyncio.to_thread(watch.poll)
            if found is not None:
                yield found
                until = None if watch.timeout is None else time.monotonic() + watch.timeout
            elif until is not None and time.monotonic() >= until:
                return
            else:
                await asyncio.sleep(_POLLED)
    finally:
        watch.close()


def verified(changes: Sequence[StoredChange], first: int, last: int, before: bytes) -> Sequence[StoredChange]:
    """The changes, when they are those from a version to another and each continues the chain.

    Args:
        changes: What a store returned.
        first: The version that the first must have.
        last: That of the last.
        before: The hash before the first.

    Raises:
        StoreError: One is missing or damaged.
    """
    for version, change in enumerate(changes, start=first):
        if change.version != version or change.hash != chained(before, change.text):
            raise StoreError(damaged(version), version=version)
        before = change.hash
    if len(changes) != last - first + 1:
        missing = first + len(changes)
        raise StoreError(damaged(missing), version=missing)
    return changes


def damaged(version: int) -> str:
    """What to say of a version that is missing or is not what was written."""
    return (
        f"version {version} is damaged in the store; what is before it can be read with session.at(), and "
        f"forked with session.fork(at={version - 1})"
    )


def locked(seconds: float) -> StoreError:
    """What to raise when another writer holds the lock."""
    return StoreError(f"another writer has held the store's lock for longer than {seconds:g} s: try again")


def stale(expected: int, known: int) -> StaleVersion:
    """What to raise when a change was made for another version than the newest."""
    return StaleVersion(f"the session has version {known} by now, not {expected}: refresh it and try again")


def no_session(session_id: SessionId) -> StoreError:
    """What to raise when there is no such session."""
    return StoreError(f"the store holds no session {shown(str(session_id))}")


def refuse_copy(source: StoredSession, fork: StoredSession, there: StoredSession | None) -> None:
    """Refuse a fork of what is not there, or to where something is.

    Raises:
        StoreError: That is so.
    """
    if there is not None:
        raise StoreError(
            f"the store holds a session {shown(str(fork.session_id))} already: give the fork another id"
        )
    if source.version < fork.version:
        raise stale(fork.version, source.version)
