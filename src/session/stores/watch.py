"""Watching a session in a store: its changes, as they are committed by whichever process."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import partial
from threading import Event
from typing import Protocol

from session.changes import change_of
from session.errors import StoreError, shown
from session.events import SessionId
from session.history import Change, require_version
from session.records import Records
from session.stores.chain import StoredChange, StoredSession, damaged, replaced, sound

POLLED = 0.05
"""The seconds that a watch waits before it looks again, if nothing wakes it."""
_BATCH = 256


class Watched(Protocol):
    """The methods that a watch needs of a store."""

    def head(self, session_id: SessionId) -> StoredSession | None:
        """The record of a session."""
        ...

    def changes(self, session_id: SessionId, first: int, last: int) -> Sequence[StoredChange]:
        """The changes from a version to another."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """Let all that is read be of one moment."""
        ...

    def records(self, session_id: SessionId) -> Records:
        """The reader of a session's records."""
        ...

    def listen(self, watch: Watch) -> float:
        """Wake a watch at each change; returns after how many seconds it looks anyway."""
        ...


class Watch:
    """Iterates over changes from a cursor: nothing is buffered, so a slow reader lags and loses nothing.

    Attributes:
        version: The version of the last change that was given out.
        session_id: The session.
        closed: Whether it was closed.
        on_wake: Called by ``wake``, beside what it does for the thread that iterates.
    """

    on_wake: Callable[[], object] | None = None

    def __init__(
        self, store: Watched, session_id: SessionId, after: int | None, timeout: float | None
    ) -> None:
        """Begin after a version; see ``Store.watch``.

        Raises:
            VersionError: The session has no such version.
            StoreError: The store cannot be read.
        """
        self._store = store
        self.session_id = session_id
        self._timeout = timeout
        self.closed = False
        self._woken = Event()
        self._found: list[StoredChange] = []  # newest first; each is read when it is given out
        self._damage: StoreError | None = None  # what is wrong with the change after those
        self._hash: bytes | None = None  # of the last change that was read
        head = store.head(session_id)
        newest = 0 if head is None else head.version
        self._began = None if head is None else head.created_at
        if after is not None:
            require_version(after, newest)
        self.version: int = newest if after is None else after

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
        while not self.closed:
            polled = self.listen()
            self._woken.clear()
            found = self.poll()
            if found is not None:
                return found
            left = polled if until is None else min(polled, until - time.monotonic())
            if left <= 0:
                break
            self._woken.wait(left)
        raise StopIteration

    @property
    def timeout(self) -> float | None:
        """After how many seconds without a change it ends."""
        return self._timeout

    def close(self) -> None:
        """End the iteration, from whichever thread."""
        self.closed = True
        self.wake()

    def wake(self) -> None:
        """Look at once whether there is a change, from whichever thread."""
        self._woken.set()
        on_wake = self.on_wake
        if on_wake is not None:
            with suppress(RuntimeError):  # its event loop is closed
                on_wake()

    def listen(self) -> float:
        """Be woken from now on; returns after how many seconds to look anyway."""
        return self._store.listen(self)

    def poll(self) -> Change | None:
        """The next change, if there is one already."""
        if not self._found:
            if self._damage is not None:
                raise self._damage
            with self._store.reading():
                is_new = self._look()
            return self.poll() if is_new else None
        stored, records = self._found[-1], self._store.records(self.session_id)
        found = change_of(stored.text, stored.version, self._owner(stored.version), records)
        self._found.pop()
        self.version = found.version
        return found

    def _look(self) -> bool:
        """Read the changes that continue what was given out; returns whether there is one, or damage."""
        head = self._store.head(self.session_id)
        if head is None and self.version:
            raise StoreError(f"session {shown(str(self.session_id))} was deleted")
        if head is None:
            return False
        if self.version and self._began not in {None, head.created_at}:
            raise replaced(self.session_id)
        self._began = head.created_at
        if head.version == self.version:
            return False
        if head.version < self.version:
            raise StoreError(damaged(head.version + 1), version=head.version + 1)
        first, last = self.version + 1, min(head.version, self.version + _BATCH)
        stored, before = self._store.changes(self.session_id, max(first - 1, 1), last), b""
        if first > 1:
            before, stored = (stored[0].hash if stored else b""), stored[1:]
            if self._hash not in {None, before}:
                raise replaced(self.session_id)
        found, self._damage = sound(stored, first, last, before)
        self._hash = found[-1].hash if found else before
        self._found = list(found)[::-1]
        self._owner = head.owner
        return True


async def awatched(begin: Callable[[], Watch]) -> AsyncIterator[Change]:
    """The changes of a watch for ``async for``; the store is asked off the event loop, also to begin."""
    import asyncio  # noqa: PLC0415 - code that iterates has it

    watch, woken, loop = await asyncio.to_thread(begin), asyncio.Event(), asyncio.get_running_loop()
    watch.on_wake = partial(loop.call_soon_threadsafe, woken.set)
    until = None if watch.timeout is None else time.monotonic() + watch.timeout
    try:
        while not watch.closed:
            polled = watch.listen()
            woken.clear()
            found = await asyncio.to_thread(watch.poll)
            if found is not None:
                yield found
                until = None if watch.timeout is None else time.monotonic() + watch.timeout
                continue
            left = polled if until is None else min(polled, until - time.monotonic())
            if left <= 0:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(woken.wait(), left)
    finally:
        watch.on_wake = None
        watch.close()
