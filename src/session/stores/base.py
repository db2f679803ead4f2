"""The interface of stores: text and hashes, in order, under one lock for each session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Hashable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from session.checkpoints import slices_of
from session.errors import StoreError
from session.events import SessionId, session_id_of
from session.history import Change
from session.locks import ProcessLock
from session.records import Records
from session.stores.chain import (
    Checkpoint,
    StoredChange,
    StoredSession,
    chain_hash,
    damaged,
    no_session_error,
    verified,
)
from session.stores.watch import POLLED, Watch, awatched

_WARM = 1_000
"""The number of sessions used last that stay in memory."""
_BATCH = 256  # changes that are read at a time
_PAGE = 8  # and checkpoints, which may be long


class Store(ABC):
    """A place that keeps sessions, as text.

    A session locks, takes over what other writers appended, and appends its own change: ``lock`` and
    ``append`` are its way to write. Everything but ``lock`` may be called by any thread at any time.

    A store of your own implements the abstract methods, and calls ``super().__init__()``. One that cannot
    lock leaves ``lock`` as it is: then only ``append`` keeps writers apart, and the later one is refused
    with ``StaleVersion``. ``planning.testing.StoreSuite`` has the tests that it must pass.
    """

    def __init__(self) -> None:
        self.states: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self.opening = ProcessLock()
        self.warm: dict[str, Any] = {}  # what is kept of sessions after their commits

    @property
    def place(self) -> Hashable:
        """The place that the store writes to: calls of a session there are made in order, by any store."""
        return id(self)

    def records(self, session_id: SessionId) -> Records:
        """The reader of a session's records: it knows the types that are registered with it here."""
        opened = self.states.get(str(session_id))
        return Records() if opened is None else opened.past.records

    def keep_warm(self, key: str, warm: object) -> None:
        """Keep in memory what a session has, until so many others were used since.

        Without a lock: this is called by those who hold what others may wait for.
        """
        self.warm.pop(key, None)
        self.warm[key] = warm
        if len(self.warm) > _WARM:
            with suppress(RuntimeError, StopIteration):  # another thread did it
                self.warm.pop(next(iter(self.warm)), None)

    def lock(
        self,
        session_id: SessionId,  # noqa: ARG002 - a store that cannot lock needs neither
        timeout: float | None = None,  # noqa: ARG002
    ) -> AbstractContextManager[None]:
        """Keep other writers of a session away within a ``with`` block.

        Args:
            session_id: The session.
            timeout: How many seconds to wait for another writer; None for as long as the store waits.

        Raises:
            StoreBusy: Another writer takes longer: ``locked_error``.
            TransactionError: This thread is inside the block of a session of this store: ``nested_error``.
        """
        return nullcontext()

    def reading(self) -> AbstractContextManager[None]:
        """Let all that this thread reads within a ``with`` block be of one moment.

        Nothing is written within the block, and a block inside another is part of it. Stores that always read
        one moment need not override this.

        Raises:
            StoreError: The store cannot be read.
        """
        return nullcontext()

    def listen(self, _watch: Watch) -> float:
        """Call ``wake`` of a watch at each change of its session from now on, where the store hears of them.

        Returns:
            After how many seconds the watch looks anyway.
        """
        return POLLED

    @abstractmethod
    def head(self, session_id: SessionId) -> StoredSession | None:
        """The session's record; None if it has no change."""

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
            StaleVersion: It has another version: ``stale_error``.
            StoreError: The store does not take it; ``outcome`` says what is known of it.
        """

    @abstractmethod
    def changes(self, session_id: SessionId, first: int, last: int) -> Sequence[StoredChange]:
        """The changes from a version to another, both included, in order."""

    @abstractmethod
    def checkpoints(self, session_id: SessionId, last: int, limit: int) -> Sequence[Checkpoint]:
        """The newest checkpoints up to a version, newest first."""

    @abstractmethod
    def drop_checkpoints(self, session_id: SessionId) -> None:
        """Forget the checkpoints of a session: it is replayed by the reducers of today from its beginning."""

    @abstractmethod
    def with_key(self, session_id: SessionId, key: str) -> Sequence[int]:
        """The versions whose change has an idempotency key, newest first."""

    @abstractmethod
    def rewinds(self, session_id: SessionId) -> Sequence[tuple[int, int]]:
        """The rewinds of a session, in order: their versions, and the version that each restored."""

    @abstractmethod
    def claim(self, session_id: SessionId, name: str) -> bool:
        """Record a name, durably; False where it was recorded before."""

    @abstractmethod
    def copy(self, source: SessionId, fork: StoredSession) -> None:
        """Begin a session with the changes, checkpoints and claims of another, up to the fork's version.

        A name that was claimed under the fork's id before stays claimed.

        Raises:
            StoreError: There is no such session (``no_session_error``), one of the fork's id, or not so many
                changes (``refuse_copy``).
        """

    @abstractmethod
    def sessions(self, limit: int | None = None) -> Sequence[StoredSession]:
        """The sessions that were changed last, newest first; at most ``limit``, None for all.

        One whose record is damaged is listed with its ``damage``.
        """

    @abstractmethod
    def delete(self, session_id: SessionId) -> bool:
        """Delete a session; False if there was none. Its forks stay whole.

        A store of your own calls this at the end: from then on its id is that of a new session, even
        while the old one is open here.
        """
        self.states.pop(str(session_id), None)
        return False

    def claims(self, session_id: SessionId) -> Sequence[tuple[str, int]]:  # noqa: ARG002 - as lock
        """The claims of a session: each name, and the version at which it was recorded. For ``copy_session``.

        Raises:
            StoreError: The store does not implement it, or cannot be read.
        """
        raise _lacks(self, "claims")

    def restore(
        self,
        head: StoredSession,  # noqa: ARG002
        changes: Iterable[StoredChange],  # noqa: ARG002 - what the stores that implement it take
        checkpoints: Iterable[Checkpoint],  # noqa: ARG002
        claims: Iterable[tuple[str, int]],  # noqa: ARG002
    ) -> None:
        """Begin a session with all that another store has of it, or write nothing. For ``copy_session``.

        Args:
            head: The session.
            changes: Its changes, in order; they are read while they are written, and may raise.
            checkpoints: Its checkpoints, newest first; read in the same way.
            claims: Its claims, as ``claims`` returns them.

        Raises:
            StoreError: The store does not implement it, has a session of that id, or does not take it.
        """
        raise _lacks(self, "restore")

    def close(self) -> None:  # noqa: B027 - not every store holds something
        """Let go of what the store holds open."""

    def verify(self, session_id: SessionId) -> int:
        """Check all that is kept of a session: the hash of every change and of every checkpoint.

        Returns:
            How many versions it has.

        Raises:
            StoreError: Something is damaged; ``version`` says where. Or there is no such session.
        """
        with self.reading():
            head = self.head(session_id)
            if head is None:
                raise no_session_error(session_id)
            before = b""
            for first in range(1, head.version + 1, _BATCH):
                last = min(first + _BATCH - 1, head.version)
                for change in verified(self.changes(session_id, first, last), first, last, before):
                    before = change.hash
            if before != head.hash:
                raise StoreError(damaged(head.version), version=head.version)
            last = head.version
            while found := self.checkpoints(session_id, last, _PAGE):
                for checkpoint in found:
                    last = checkpoint.version
                    at = self.changes(session_id, last, last)
                    if checkpoint.check != chain_hash(at[0].hash if at else b"", checkpoint.text):
                        message = f"the checkpoint of version {last} is damaged: drop the checkpoints"
                        raise StoreError(message, version=last)
                    slices_of(checkpoint.text, last)
                last -= 1
            return head.version

    def watch(self, session_id: SessionId, after: int | None = None, timeout: float | None = None) -> Watch:
        """Iterate over the changes of a session as they are committed, by this process or another.

        Args:
            session_id: The session, which may begin later.
            after: The version to begin after; None for the one of now.
            timeout: End after so many seconds without a change; None to wait for ever.

        Raises:
            VersionError: The session has no such version.
            StoreError: The store cannot be read.
        """
        return Watch(self, session_id_of(session_id), after, timeout)

    def awatch(
        self, session_id: SessionId, after: int | None = None, timeout: float | None = None
    ) -> AsyncIterator[Change]:
        """Watch with ``async for``; the store is asked off the event loop.

        What is wrong is raised, and ``after=None`` is the version of the moment, when the iteration begins.
        """
        return awatched(partial(self.watch, session_id, after, timeout))


def _lacks(store: Store, method: str) -> StoreError:
    kind = type(store).__name__
    return StoreError(
        f"{kind} does not implement {method}: its sessions cannot be copied to or from another store"
    )
