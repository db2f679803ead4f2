"""A store in memory, for tests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from os import getpid
from threading import get_ident
from typing import Any

import attrs

from session.events import SessionId
from session.locks import Ending, Held, ProcessLock, scoped
from session.stores.base import Store
from session.stores.chain import (
    Checkpoint,
    StoredChange,
    StoredSession,
    check_timeout,
    nested_error,
    no_session_error,
    refuse_copy,
    stale_error,
)


@attrs.define
class _Kept:
    """A session in memory."""

    head: StoredSession
    changes: list[StoredChange] = attrs.field(factory=list)
    checkpoints: list[Checkpoint] = attrs.field(factory=list)


class MemoryStore(Store):
    """Keeps sessions in memory, as the same text that a file would have."""

    def __init__(self, *, timeout: float = 5.0) -> None:
        """Make an empty store.

        Args:
            timeout: How many seconds a writer waits for another.

        Raises:
            ValueError: ``timeout`` is not seconds of 0 to 1,000,000.
        """
        super().__init__()
        self._timeout = check_timeout(timeout)
        self._turn = ProcessLock()  # of the threads that write
        self._writer: tuple[int, int] | None = None  # a process and a thread
        self._guard = ProcessLock()
        self._kept: dict[str, _Kept] = {}
        self._claims: dict[str, dict[str, int]] = {}

    @scoped
    def lock(self, _session_id: SessionId, timeout: float | None = None) -> Iterator[None]:
        """Keep other writers away; see ``Store.lock``."""
        here = (getpid(), get_ident())
        if self._writer == here:
            raise nested_error()
        forget = partial(setattr, self, "_writer", None)
        with Held(self._turn, self._timeout if timeout is None else timeout), Ending(forget):
            self._writer = here
            yield

    def reading(self) -> AbstractContextManager[Any]:
        """Read everything in the block at one moment; see ``Store.reading``."""
        return self._guard.lock

    def head(self, session_id: SessionId) -> StoredSession | None:
        """The record of a session; see ``Store.head``."""
        kept = self._kept.get(str(session_id))
        return None if kept is None else kept.head

    def append(
        self,
        head: StoredSession,
        change: StoredChange | None,
        *,
        expected: int,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        """Write a change; see ``Store.append``."""
        with self._guard.lock:
            kept = self._kept.get(str(head.session_id))
            known = 0 if kept is None else kept.head.version
            if known != expected:
                raise stale_error(expected, known)
            if kept is None:
                kept = _Kept(head)
            # What is behind the head was cut short by Ctrl-C.
            kept.changes[expected:] = [] if change is None else [change]
            while kept.checkpoints and kept.checkpoints[-1].version > expected:
                kept.checkpoints.pop()
            if checkpoint is not None:
                kept.checkpoints.append(checkpoint)
            kept.head = head
            self._kept[str(head.session_id)] = kept

    def changes(self, session_id: SessionId, first: int, last: int) -> Sequence[StoredChange]:
        """The changes from a version to another; see ``Store.changes``."""
        kept = self._kept.get(str(session_id))
        return [] if kept is None else kept.changes[max(first - 1, 0) : min(last, kept.head.version)]

    def checkpoints(self, session_id: SessionId, last: int, limit: int) -> Sequence[Checkpoint]:
        """The newest checkpoints up to a version; see ``Store.checkpoints``."""
        kept = self._kept.get(str(session_id))
        found = [each for each in kept.checkpoints if each.version <= last] if kept is not None else []
        return found[::-1][:limit]

    def drop_checkpoints(self, session_id: SessionId) -> None:
        """Forget the checkpoints of a session; see ``Store.drop_checkpoints``."""
        kept = self._kept.get(str(session_id))
        if kept is not None:
            kept.checkpoints.clear()

    def with_key(self, session_id: SessionId, key: str) -> Sequence[int]:
        """The versions that have a key; see ``Store.with_key``."""
        changes = reversed(self._changes(session_id))
        return [each.version for each in changes if each.idempotency_key == key]

    def rewinds(self, session_id: SessionId) -> Sequence[tuple[int, int]]:
        """The rewinds of a session; see ``Store.rewinds``."""
        changes = self._changes(session_id)
        return [(each.version, each.rewound_to) for each in changes if each.rewound_to is not None]

    def claim(self, session_id: SessionId, name: str) -> bool:
        """Record a name; see ``Store.claim``."""
        with self.lock(session_id), self._guard.lock:
            claims = self._claims.setdefault(str(session_id), {})
            head = self.head(session_id)
            is_new = name not in claims
            claims.setdefault(name, 0 if head is None else head.version)
            return is_new

    def copy(self, source: SessionId, fork: StoredSession) -> None:
        """Begin a session with the changes of another; see ``Store.copy``."""
        with self.lock(source), self._guard.lock:
            kept = self._kept.get(str(source))
            if kept is None:
                raise no_session_error(source)
            refuse_copy(kept.head, fork, self.head(fork.session_id))
            checkpoints = [each for each in kept.checkpoints if each.version <= fork.version]
            claims = self._claims.get(str(source), {})
            early = {name: version for name, version in claims.items() if version <= fork.version}
            self._claims[str(fork.session_id)] = early | self._claims.get(str(fork.session_id), {})
            self._kept[str(fork.session_id)] = _Kept(fork, kept.changes[: fork.version], checkpoints)

    def claims(self, session_id: SessionId) -> Sequence[tuple[str, int]]:
        """The claims of a session; see ``Store.claims``."""
        return list(self._claims.get(str(session_id), {}).items())

    def restore(
        self,
        head: StoredSession,
        changes: Iterable[StoredChange],
        checkpoints: Iterable[Checkpoint],
        claims: Iterable[tuple[str, int]],
    ) -> None:
        """Begin a session that another store has; see ``Store.restore``."""
        with self.lock(head.session_id), self._guard.lock:
            refuse_copy(head, head, self.head(head.session_id))
            kept = _Kept(head, list(changes), list(checkpoints)[::-1])
            self._claims[str(head.session_id)] = dict(claims) | self._claims.get(str(head.session_id), {})
            self._kept[str(head.session_id)] = kept

    def sessions(self, limit: int | None = None) -> Sequence[StoredSession]:
        """The sessions that were changed last; see ``Store.sessions``."""
        with self._guard.lock:
            heads = [kept.head for kept in self._kept.values()]
        return sorted(heads, key=lambda head: head.changed_at, reverse=True)[:limit]

    def delete(self, session_id: SessionId) -> bool:
        """Delete a session; see ``Store.delete``."""
        with self.lock(session_id), self._guard.lock:
            was_there = self._kept.pop(str(session_id), None) is not None
            self._claims.pop(str(session_id), None)
        super().delete(session_id)
        return was_there

    def _changes(self, session_id: SessionId) -> list[StoredChange]:
        kept = self._kept.get(str(session_id))
        return [] if kept is None else kept.changes[: kept.head.version]
