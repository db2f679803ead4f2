"""The history of a session in a store: what is committed there, and the slices that follow from it.

A slice is read when it is asked for: from a checkpoint, by reducing the changes after it again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from contextvars import copy_context
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any, TypeVar

import attrs

from session.changes import ReadChange, read_change, read_items, write_change, write_items
from session.codec import type_name
from session.errors import StoreError, shown
from session.events import SessionId, ToolInvoked
from session.history import (
    Change,
    Entry,
    Restored,
    Rewound,
    Slices,
    called,
    invoked,
    is_log,
    is_present,
    last_version,
)
from session.kept import require_version
from session.records import Records
from session.routes import Routes, routes_of
from session.slices import LateLog, Slice, items_of
from session.stores.base import (
    Checkpoint,
    Store,
    StoredChange,
    StoredSession,
    chained,
    damaged,
    refuse_copy,
    verified,
)

__all__ = ["Stored", "StoredSlices"]

T = TypeVar("T")

CHECKPOINT = 128
"""After how many changes a checkpoint is written at the earliest."""
_BATCH = 256
_REMEMBERED = 512  # changes whose text was read


class Stored:
    """A session in a store; whoever calls a method that changes it holds the session's lock.

    Attributes:
        store: The store.
        records: What writes and reads the session's values.
        limit: How many events of each type its logs keep.
        is_unsettled: Whether the answer to a commit was lost: nothing is written until that is settled.
    """

    def __init__(
        self,
        store: Store,
        session_id: SessionId,
        created_at: datetime,
        tags: Mapping[str, str],
        limit: int | None,
    ) -> None:
        """Open what the store has, or prepare to begin.

        Raises:
            StoreError: The store cannot be read.
        """
        self.store = store
        self.records = Records(store.upcasters)
        self.limit = limit
        self.is_unsettled = False
        self._session_id = session_id
        begun = StoredSession(session_id, 0, b"", created_at, created_at, tags)
        self.head: StoredSession = store.head(session_id) or begun
        self._lock: AbstractContextManager[None] | None = None
        self._remembered: dict[int, ReadChange] = {}
        self._worker: ThreadPoolExecutor | None = None
        self._process = 0  # where the worker is: a forked child has no threads

    async def off_loop(self, function: Callable[[], T]) -> T:
        """Call a function in the session's worker thread; see ``Session.off_loop``."""
        import asyncio  # noqa: PLC0415 - whoever awaits has it

        if self._worker is None or self._process != os.getpid():
            self._worker = ThreadPoolExecutor(1, thread_name_prefix=f"session {self._session_id}")
            self._process = os.getpid()
        run = partial(copy_context().run, function)
        return await asyncio.get_running_loop().run_in_executor(self._worker, run)

    # Writing

    def begin(self, slices: Slices) -> StoredSession:
        """Take the store's lock; returns the session as it is there now.

        Raises:
            StoreError: The store cannot be reached, or has lost changes.
            TransactionError: A transaction of another session of this store is open in this thread.
        """
        if self.is_unsettled:
            raise StoreError(
                "it is not known whether the last change was written: call session.refresh() when the store "
                "can be reached",
                outcome="unknown",
            )
        lock = self.store.lock(self._session_id)
        lock.__enter__()
        self._lock = lock
        try:
            return self.newest(slices)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Let go of the store's lock."""
        lock, self._lock = self._lock, None
        if lock is not None:
            lock.__exit__(None, None, None)

    def newest(self, slices: Slices) -> StoredSession:
        """The session as the store has it.

        Raises:
            StoreError: The store cannot be read, or has lost changes.
        """
        head, version = self.store.head(self._session_id), last_version(slices)
        if head is None and not version:
            return self.head
        if head is None:
            raise StoreError(f"session {shown(str(self._session_id))} was deleted from the store")
        if head.version < version:
            raise StoreError(damaged(head.version + 1), version=head.version + 1)
        if head.version == version != 0 and head.hash != self.head.hash:
            raise self._replaced()
        return head

    def _replaced(self) -> StoreError:
        return StoreError(f"another session is in the place of {shown(str(self._session_id))}: open it anew")

    def take_over(self, version: int, head: StoredSession) -> Iterator[ReadChange]:
        """The changes of other writers after a version.

        Raises:
            StoreError: One is damaged, or they are of another session.
        """
        if version and [each.hash for each in self.store.changes(self._session_id, version, version)] != [
            self.head.hash
        ]:
            raise self._replaced()
        self.head = head
        vars(self).pop("_tail", None)
        return self._read(version + 1, head.version)

    def fork(self, version: int, session_id: SessionId, tags: Mapping[str, str]) -> None:
        """Begin another session in the store with the history up to a version.

        Raises:
            VersionError: There is no such version.
            StoreError: The store has a session of that identity, or does not take it.
        """
        head = self.head
        require_version(version, head.version)
        sources = list[tuple[SessionId, int]]()
        for source, last in (*head.forked_from, (head.session_id, version)):
            sources.append((source, min(last, version)))
            if last >= version:
                break
        at = self.store.changes(self._session_id, version, version) if version else ()
        now = datetime.now(UTC)
        hash_ = at[0].hash if at else b""
        fork = StoredSession(session_id, version, hash_, now, now, tags, tuple(sources))
        if head.version:
            self.store.copy(self._session_id, fork)
        else:  # there is nothing of it in the store, and the fork begins as every session does
            refuse_copy(head, fork, self.store.head(session_id))

    def calls(self, call_id: str, slices: Slices) -> tuple[ToolInvoked, ...]:
        """The calls with an id on the present branch; see ``Session.calls``."""
        newest = last_version(slices)
        versions = [each for each in self.store.calls(self._session_id, call_id) if each <= newest]
        rewinds = self.store.rewinds(self._session_id) if versions else ()
        return tuple(
            event
            for version in versions
            if is_present(version, newest, rewinds)
            for change in self._read(version, version)
            for event in invoked(change.change(is_lenient=True).events, call_id)
        )

    def claim(self, name: str, _version: int) -> bool:
        """Record a name in the store; see ``Session.claim``."""
        return self.store.claim(self._session_id, name)

    def require_known(self, kinds: Iterable[type]) -> None:
        """Refuse a set of slices that lacks one that the store has.

        Raises:
            StoreError: That is so.
        """
        unknown = self._tail.names - {type_name(kind) for kind in kinds}
        if unknown:
            raise StoreError(
                f"the session has a slice that is not known here, {min(unknown)}: import its module and "
                "register its reducers first"
            )

    def record(self, entry: Entry, before: Slices, after: Slices, stays: Callable[[type], bool]) -> None:
        """Write a change.

        Args:
            entry: The change.
            before: The slices before it.
            after: The slices that it makes.
            stays: Says of a slice whether it is in no checkpoint.

        Raises:
            StoreError: The store does not take it, or a value cannot be stored.
        """
        is_restored = any(isinstance(part, Restored) for part in entry.parts)
        kinds = after.keys() | before.keys() if is_restored else after.keys()
        changed = [
            type_name(kind)
            for kind in kinds
            if not stays(kind) and after.get(kind, ()) is not before.get(kind, ())
        ]
        text = write_change(entry, sorted(changed), self._session_id, self.records)
        hash_ = chained(self.head.hash, text)
        head = attrs.evolve(self.head, version=entry.version, hash=hash_, changed_at=entry.at)
        rewinds = [part.version for part in entry.parts if isinstance(part, Rewound)]
        rewound_to = rewinds[-1] if rewinds else None
        call_ids = tuple(sorted(called(entry.parts)))
        change = StoredChange(entry.version, text, hash_, call_ids, rewound_to)
        tail = self._tail
        tail.names.update(changed)
        tail.count += 1
        tail.size += len(text)
        # A rewind would have to be replayed from its version: what it restored is written with it.
        is_due = bool(rewinds) or (tail.count >= CHECKPOINT and tail.size >= tail.least)
        checkpoint = self._checkpoint(change, after, stays) if is_due else None
        try:
            self.store.append(head, change, expected=entry.version - 1, checkpoint=checkpoint)
        except BaseException as error:
            self.is_unsettled = isinstance(error, StoreError) and error.outcome == "unknown"
            vars(self).pop("_tail")  # to be counted anew
            raise
        self.head = head
        if checkpoint is not None:
            tail.count, tail.size, tail.least = 0, 0, len(checkpoint.text)

    @cached_property
    def _tail(self) -> _Tail:
        """What the store has after its newest checkpoint."""
        newest = self._checkpoints(self.head.version, 1)
        tail = _Tail()
        first = 1
        if newest:
            (version, slices), text = newest[0], self.store.checkpoints(self._session_id, newest[0][0], 1)
            first, tail.least = version + 1, len(text[0].text)
            tail.names.update(slices)
        for change in self._read(first, self.head.version):
            tail.count += 1
            tail.size += change.size
            tail.names.update(change.slices)
        return tail

    def _checkpoint(self, change: StoredChange, after: Slices, stays: Callable[[type], bool]) -> Checkpoint:
        """The slices of a change as text; of one that was not read here, what the newest checkpoint says."""
        resolved = {type_name(kind): kind for kind in after if not stays(kind)}
        newest = self._checkpoints(self.head.version, 1)
        carried = newest[0][1] if newest else {}
        slices = {
            name: {"at": change.version, "items": write_items(items_of(after[resolved[name]]), self.records)}
            if name in resolved
            else carried.get(name, {"at": 0, "items": []})
            for name in sorted(self._tail.names | resolved.keys())
        }
        text = json.dumps({"slices": slices}, separators=(",", ":"), allow_nan=False)
        return Checkpoint(change.version, text, chained(change.hash, text))

    # Reading

    def changes_after(self, version: int, slices: Slices) -> tuple[Change, ...]:
        """The changes after a version; see ``Session.history``."""
        newest = last_version(slices)
        require_version(version, newest)
        return tuple(change.change() for change in self._read(version + 1, newest))

    def slices_at(
        self, version: int, registered: Routes, views: frozenset[type], without_past: Slices
    ) -> StoredSlices:
        """The slices of a version; see ``StoredSlices``."""
        return StoredSlices(self, version, registered, views, without_past)

    def slice_at(self, kind: type, version: int, registered: Routes) -> Slice:
        """A slice of a version.

        Args:
            kind: The type of its items.
            version: The version.
            registered: The routes to reducers.

        Raises:
            StoreError: A change is damaged, or cannot be read or reduced here; or reducing gives something
                else than it gave before.
        """
        self.records.learn((kind,))
        if is_log(kind):
            return LateLog(_Once(lambda: self._log(kind, version, registered)))
        name = type_name(kind)
        start, items, known = self._start(name, version)
        slice_: Slice = read_items(kind, items, self.records)
        for change in self._read(start + 1, version):
            if name in change.slices or change.restores:
                slice_, is_reduced = self._reduced(kind, slice_, change, registered)
                if not is_reduced and name in change.slices:
                    raise StoreError(
                        f"version {change.version} changed {kind.__qualname__} by a reducer that is not "
                        "registered here: register it, as PlanningToolsSection does for a plan",
                        version=change.version,
                    )
            if change.version in known and not self._is_written(kind, slice_, known[change.version]):
                raise StoreError(
                    f"the reducers of {kind.__qualname__} have changed since version {start}: they give "
                    f"another slice for version {change.version} than was written; use the release that "
                    "wrote it, or accept the reducers of today with store.drop_checkpoints(session_id)",
                    version=change.version,
                )
        return slice_

    def _is_written(self, kind: type, slice_: Slice, items: object) -> bool:
        """Whether a slice is what a checkpoint has, which may be in an older format."""
        known = read_items(kind, items, self.records)
        return write_items(items_of(slice_), self.records) == write_items(known, self.records)

    def _start(self, name: str, version: int) -> tuple[int, Any, dict[int, Any]]:
        """Where to begin reducing a slice, its items there, and what must come out on the way, by version."""
        found = self._checkpoints(version, 2)
        newest = [slices.get(name, {"at": taken, "items": []}) for taken, slices in found]
        if not newest:
            return 0, [], {}
        is_checked = len(newest) == 2 and newest[0]["at"] == found[0][0] and not self._is_rewind(found[0][0])
        if not is_checked:
            return newest[0]["at"], newest[0]["items"], {}
        return newest[1]["at"], newest[1]["items"], {found[0][0]: newest[0]["items"]}

    def _is_rewind(self, version: int) -> bool:
        return any(change.restores for change in self._read(version, version))

    def reduced(self, slices: Slices, change: ReadChange, registered: Routes) -> Slices:
        """The slices after a change of another writer; without those that cannot be reduced here."""
        after = dict(slices)
        for kind, slice_ in slices.items():
            name = "" if is_log(kind) else type_name(kind)
            if kind is Entry or not (is_log(kind) or name in change.slices or change.restores):
                continue
            try:
                after[kind], is_reduced = self._reduced(kind, slice_, change, registered)
            except StoreError:
                is_reduced = False
            if not is_reduced and name in change.slices:
                del after[kind]
        return after

    def _reduced(
        self, kind: type, slice_: Slice, change: ReadChange, registered: Routes
    ) -> tuple[Slice, bool]:
        """A slice after a change, and whether a reducer or a restored version made it."""
        is_reduced = False
        for event_type, read in change.reduced_parts():
            if issubclass(event_type, Restored):
                if not is_log(kind):
                    slice_, is_reduced = self._restored(kind, change, read(), registered), True
                continue
            for route in routes_of(event_type, registered, self.limit):
                if route.slice_type is kind:
                    slice_, is_reduced = route.apply(slice_, read()), True
        return slice_, is_reduced

    def _restored(self, kind: type, change: ReadChange, restored: Restored, registered: Routes) -> Slice:
        if not isinstance(restored, Rewound):
            return read_items(kind, restored.state.get(type_name(kind), []), self.records)
        if not 0 <= restored.version < change.version:
            raise StoreError(damaged(change.version), version=change.version)
        return self.slice_at(kind, restored.version, registered)

    def _log(self, kind: type, version: int, registered: Routes) -> tuple[Any, ...]:
        """The entries of an event log up to a version."""
        log: Slice = ()
        for change in self._read(1, version, remember=False):
            log, _ = self._reduced(kind, log, change, registered)
        return items_of(log)

    def _checkpoints(self, version: int, most: int) -> list[tuple[int, Mapping[str, Any]]]:
        """The newest checkpoints up to a version: their versions and slices. A damaged one is left out."""
        found = list[tuple[int, Mapping[str, Any]]]()
        for checkpoint in self.store.checkpoints(self._session_id, version, most + 1):
            at = self.store.changes(self._session_id, checkpoint.version, checkpoint.version)
            if at and checkpoint.check == chained(at[0].hash, checkpoint.text):
                found.append((checkpoint.version, json.loads(checkpoint.text)["slices"]))
        return found[:most]

    def _read(self, first: int, last: int, *, remember: bool = True) -> Iterator[ReadChange]:
        """The changes from a version to another, which are sound."""
        while first <= last:
            if first in self._remembered:
                yield self._remembered[first]
                first += 1
                continue
            end = min(last, first + _BATCH - 1)
            stored = self.store.changes(self._session_id, max(first - 1, 1), end)
            before = b""
            if first > 1:
                if not stored:
                    raise StoreError(damaged(first - 1), version=first - 1)
                before, stored = stored[0].hash, stored[1:]
            changes = verified(stored, first, end, before)
            if end == self.head.version and changes[-1].hash != self.head.hash:
                raise StoreError(damaged(end), version=end)
            for each in changes:
                read = read_change(each.text, each.version, self.head.owner(each.version), self.records)
                if remember:
                    if len(self._remembered) >= _REMEMBERED:
                        self._remembered.clear()
                    self._remembered[each.version] = read
                yield read
            first = end + 1


@attrs.define
class _Tail:
    """What is after the newest checkpoint.

    Attributes:
        count: How many changes.
        size: How many characters they have.
        least: How many they must have before the next checkpoint: as many as the one before, so that
            checkpoints never take more room than changes.
        names: The slices that the session has.
    """

    count: int = 0
    size: int = 0
    least: int = 0
    names: set[str] = attrs.field(factory=set)


class StoredSlices:
    """The slices of a version, each read when it is asked for."""

    def __init__(
        self, stored: Stored, version: int, registered: Routes, views: frozenset[type], without_past: Slices
    ) -> None:
        """Take a version of a session.

        Args:
            stored: The session.
            version: The version.
            registered: The routes to reducers.
            views: What is made of other slices.
            without_past: The slices that are what they are now.
        """
        self._stored = stored
        self._version = version
        self._registered = registered
        self._views = views
        self._read: Slices = dict(without_past)

    def get(self, kind: type, default: Any = None) -> Any:
        """A slice; the default for a view."""
        if kind in self._views:
            return default
        if kind not in self._read:
            self._read[kind] = self._stored.slice_at(kind, self._version, self._registered)
        return self._read[kind]


class _Once:
    """A function that is called once: its result is kept."""

    def __init__(self, function: Callable[[], tuple[Any, ...]]) -> None:
        self._function = function
        self._known: tuple[Any, ...] | None = None

    def __call__(self) -> tuple[Any, ...]:
        if self._known is None:
            self._known = self._function()
        return self._known
