"""A session in a store: its state, its commits, its checkpoints, its forks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import cache, cached_property
from types import GeneratorType, MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from session.changes import ReadChange, write_change, written_text
from session.checkpoints import is_item, write_items
from session.errors import RecordError, StoreBusy, StoreError, shown
from session.events import SessionId, ToolInvoked
from session.history import (
    Kept,
    KeptChange,
    Rewound,
    Slices,
    announced,
    called,
    is_present,
    last_version,
    require_version,
    taken_over,
)
from session.locks import Held, ProcessLock, running_loop
from session.replay import NEWEST, Replay, Warm
from session.slices import Routes, Slice, added, items_of, require_made, type_name
from session.state import State
from session.stores.base import Store
from session.stores.chain import (
    Checkpoint,
    StoredChange,
    StoredSession,
    chain_hash,
    damaged,
    deleted,
    refuse_copy,
    replaced,
)

T = TypeVar("T")

_BATCH = 256  # changes that are counted at a time
CHECKPOINT = 64
"""After how many changes a checkpoint is written at the earliest."""


class Stored(Replay):
    """A session in a store; callers of methods that change it hold the session's lock.

    Attributes:
        is_unsettled: Whether the answer to a commit was lost: nothing is written until that is settled.
    """

    def __init__(
        self,
        store: Store,
        begun: StoredSession,
        limit: int | None,
    ) -> None:
        """Open what the store has, or prepare to begin.

        Raises:
            StoreError: The store cannot be read. Where this process keeps the session warm, and in an event
                loop, it is not read before the first look.
        """
        super().__init__(store, begun.session_id, limit)
        self.is_unsettled = False
        self._begun = begun
        self._next: StoredSession  # the head as it will be; whether it is says the version of the slices
        self._hold: GeneratorType[None, None, None] | None = None  # suspended while it has the store's lock
        self.looking = ProcessLock()
        if begun.version:
            self._look_at(begun)
        elif self._kept() is None and running_loop() is None:
            self._look_at(store.head(begun.session_id) or begun)

    if not TYPE_CHECKING:  # a checker would take every name for one of this class

        def __getattr__(self, name: str) -> StoredSession:
            """The record of the session in the store, at the first look."""
            if name != "head":
                raise AttributeError(name)
            found = self.store.head(self._session_id) or self._begun
            with self.looking.lock:
                if name not in vars(self):  # another thread may have looked, and made changes since
                    self._look_at(found)
            return self.head

    def _look_at(self, head: StoredSession) -> None:
        self._next, warm = head, self._kept()
        if warm is not None and warm.head == head:
            vars(self)["_tail"], self._named = warm.tail, warm.named
        super()._look_at(head)

    async def run_in_worker(self, function: Callable[[], T]) -> T:
        """Call a function off the event loop, in order; see ``Session.run_in_worker``."""
        from session.pool import POOL  # noqa: PLC0415 - synchronous programs need none

        return await POOL.run((self.store.place, str(self._session_id)), function)

    # Writing

    def begin(self, timeout: float | None) -> None:
        """Take the store's lock.

        Raises:
            StoreError: The store cannot be reached.
            TransactionError: A transaction of another session of this store is open in this thread.
        """
        if self.is_unsettled:
            raise StoreError(
                "it is not known whether the last change was written: call session.refresh() when the store "
                "can be reached",
                outcome="unknown",
            )
        self._hold = hold = self._holding(timeout)  # type: ignore[assignment]  # it is made by a function
        next(hold)

    def _holding(self, timeout: float | None) -> Generator[None, None, None]:
        with self.store.lock(self._session_id, timeout):
            yield

    def end(self) -> None:
        """Let go of the store's lock, where it was taken."""
        if self._hold is not None and self._hold.gi_suspended:
            next(self._hold, None)
        self._hold = None

    def settle(self, version: int) -> None:
        """Note that the slices in memory are those of a version: Ctrl-C may have come between the two."""
        if self._next.version == version:
            self.head = self._next

    def newest(self, slices: Slices) -> StoredSession:
        """The session as the store has it.

        Raises:
            StoreError: The store cannot be read, or has lost changes.
        """
        head, version = self.store.head(self._session_id), last_version(slices)
        self.settle(version)
        if head is None and not version:
            return self.head
        if head is None:
            raise self._let_go(deleted(self._session_id))
        is_same = head.version != version or head.hash == self.head.hash
        if version and not (is_same and head.created_at == self.head.created_at):
            raise self._let_go(replaced(self._session_id))
        if head.version < version:
            raise StoreError(damaged(head.version + 1), version=head.version + 1)
        return head

    def _let_go(self, error: StoreError) -> StoreError:
        """The store has this session no more: who opens its id from now on gets what the store has."""
        known = self.store.states.get(str(self._session_id))
        if known is not None and known.past is self:
            self.store.states.pop(str(self._session_id), None)
        return error

    def take_over(self, version: int, head: StoredSession) -> Generator[ReadChange, None, None]:
        """The changes of other writers after a version; each that was given out is part of this session then.

        Raises:
            StoreError: One is damaged or cannot be read, or they are of another session.
        """
        if version and [each.hash for each in self.store.changes(self._session_id, version, version)] != [
            self.head.hash
        ]:
            raise self._let_go(replaced(self._session_id))
        self._next = taken = self.head
        self.head = head
        self._forget()
        try:
            for change in self._read(version + 1, head.version):
                self._next = head.grown(change.version, change.hash, change.at)
                yield change
                taken = self._next
        finally:
            if taken.version != head.version:
                self.head = taken

    def fork(self, version: int, session_id: SessionId, tags: Mapping[str, str]) -> StoredSession:
        """Begin another session in the store with the history up to a version; returns it.

        Raises:
            VersionError: There is no such version.
            StoreError: The store has a session of that identity, or does not take it.
        """
        head = self.head
        require_version(version, head.version)
        sources: list[tuple[SessionId, int]] = []
        for source, last in (*head.forked_from, (head.session_id, version)):
            sources.append((source, min(last, version)))
            if last >= version:
                break
        if head.version:
            self.require_same()
        at = self.store.changes(self._session_id, version, version) if version else ()
        now = datetime.now(UTC)
        hash_ = at[0].hash if at else b""
        fork = StoredSession(session_id, version, hash_, now, now, tags, tuple(sources))
        if head.version:
            self.store.copy(self._session_id, fork)
        else:  # there is nothing of it in the store, and the fork begins as every session does
            refuse_copy(head, fork, self.store.head(session_id))
        return fork

    def find_call(self, key: str, newest: int) -> ToolInvoked | None:
        """The call with a key on the branch that ends with a version; see ``Session.find_call``."""
        versions = self.store.with_key(self._session_id, key)
        rewinds = self.store.rewinds(self._session_id) if versions else ()
        for version in versions:
            if is_present(version, newest, rewinds):
                (change,) = self._read(version, version)
                return called(change.change(is_lenient=True).events)
        return None

    def claim(self, name: str, _version: int) -> bool:
        """Record a name in the store; see ``Session.claim``."""
        return self.store.claim(self._session_id, name)

    def require_known(self, kinds: Iterable[type]) -> None:
        """Refuse a set of slices that lacks one that the store has.

        Raises:
            StoreError: That is so.
        """
        unknown = self.names_at(self.head.version) - {type_name(kind) for kind in kinds}
        if unknown:
            raise StoreError(
                f"the session has a slice that is unknown here, {min(unknown)}: import its module and "
                "register its reducers first"
            )

    def require_readable(self, kind: type, items: Iterable[Any]) -> None:
        """Refuse new items of a slice that could not be read back from a checkpoint.

        Raises:
            StoreError: That is so.
        """
        for item in items:
            if not is_item(kind, item):
                raise StoreError(f"the slice {kind.__qualname__} contains {shown(item)}, which is not one")
            try:
                written_text(self.records.write(item))
            except RecordError as error:
                raise error.inside(kind.__qualname__) from error.__cause__
            except RecursionError as error:
                raise StoreError(f"an item of the slice {kind.__qualname__} is nested too deep") from error

    def record(self, entry: KeptChange, before: Slices, after: Slices, stays: Callable[[type], bool]) -> None:
        """Write a change.

        Raises:
            StoreError: The store does not take it, or a value cannot be stored.
        """
        changed = list[str]()
        for kind, slice_ in after.items():
            if not stays(kind) and slice_ is not before.get(kind):
                self.require_place(kind, self.head.version)
                changed.append(type_name(kind))
        text = write_change(entry, sorted(changed), self._session_id, self.records)
        hash_ = chain_hash(self.head.hash, text)
        head = self.head.grown(entry.version, hash_, entry.at)
        parts = entry.parts if entry.restores else []
        rewinds = [part.version for part in parts if isinstance(part, Rewound)]
        rewound_to = rewinds[-1] if rewinds else None
        change = StoredChange(entry.version, text, hash_, entry.key, rewound_to)
        tail = self._tail
        tail.count += 1
        tail.size += len(text)
        # A rewind would have to be replayed from its version: what it restored is written with it.
        is_due = bool(rewinds) or (tail.count >= CHECKPOINT and tail.size >= tail.least)
        checkpoint = self._checkpoint(change, after, stays) if is_due else None
        self._next = head
        try:
            self.store.append(head, change, expected=entry.version - 1, checkpoint=checkpoint)
        except BaseException as error:
            self._next = self.head
            self.is_unsettled = isinstance(error, StoreError) and error.outcome == "unknown"
            self._forget()
            raise
        if self._named[0] == entry.version - 1:
            self._named[1].update(changed)
            self._named = (entry.version, self._named[1])
        if checkpoint is not None:
            tail.count, tail.size, tail.least = 0, 0, len(checkpoint.text)

    def keep_warm(self, slices: Slices, registered: Routes) -> None:
        """Let the session be opened again, by this process, without reading what it has just committed."""
        known = {
            kind: each for kind, each in slices.items() if type(each) is tuple and kind is not KeptChange
        }
        warm = Warm(self.head, known, registered, attrs.evolve(self._tail), self._named)
        self.store.keep_warm(str(self._session_id), warm)

    def _forget(self) -> None:
        """Forget what was said of the store's changes: it is looked up again."""
        vars(self).pop("_tail", None)

    @cached_property
    def _tail(self) -> _Tail:
        """The changes in the store after its newest checkpoint."""
        tail, last, warm = _Tail(), self.head.version, self._kept()
        with self.store.reading():
            newest = self.store.checkpoints(self._session_id, last, NEWEST)
            if (
                warm is not None
                and self._has(warm.head, last)
                and (not newest or newest[0].version <= warm.head.version)
            ):
                tail = _Tail(warm.tail.count, warm.tail.size, warm.tail.least)
                for change in self._read(warm.head.version + 1, last):
                    tail.count += 1
                    tail.size += change.size
                return tail
            if newest:
                tail.least = len(newest[0].text)
            for first in range(newest[0].version + 1 if newest else 1, last + 1, _BATCH):
                found = self._sound(first, min(first + _BATCH - 1, last))
                tail.count += len(found)
                tail.size += sum(len(each.text) for each in found)
        return tail

    def _checkpoint(self, change: StoredChange, after: Slices, stays: Callable[[type], bool]) -> Checkpoint:
        """The slices of a change as text; of one that was not read here, what the newest checkpoint says."""
        names = self.names_at(self.head.version)
        known = {type_name(kind): kind for kind in after if not stays(kind)}
        resolved = {name: kind for name, kind in known.items() if name in names or after[kind] != ()}
        is_whole = names <= resolved.keys()
        newest = [] if is_whole else self._checkpoints(self.head.version, 1)
        carried = newest[0][1] if newest else {}
        slices = {
            name: {
                "at": change.version,
                "items": write_items(resolved[name], items_of(after[resolved[name]]), self.records),
            }
            if name in resolved
            else carried.get(name, {"at": 0, "items": []})
            for name in sorted(names | resolved.keys())
        }
        text = written_text({"slices": slices})
        return Checkpoint(change.version, text, chain_hash(change.hash, text))


@attrs.define
class _Tail:
    """The changes after the newest checkpoint."""

    count: int = 0
    size: int = 0
    least: int = 0


class StoredState(State):
    """The state of a session in a store: ``slices`` has those that were asked for."""

    __slots__ = ("_is_committing",)

    past: Stored

    def __init__(self, past: Stored, begun: StoredSession) -> None:
        super().__init__(begun.session_id, past, begun.created_at, begun.tags)
        self._is_committing = False
        del self.slices  # they are looked up

    if not TYPE_CHECKING:  # a checker would take every name for one of this class

        def __getattr__(self, name: str) -> Slices:
            """The slices, at the first look at them."""
            if name != "slices":
                raise AttributeError(name)
            stored = self.past
            version = stored.head.version
            first: dict[type, Any] = {KeptChange: (taken_over(version),)}
            warm = stored.warm
            if warm is not None and warm.head.version == version and warm.registered is self.registered:
                first |= {
                    kind: slice_
                    for kind, slice_ in warm.slices.items()
                    if not (kind in self.private or kind in self.views)
                }
            with stored.looking.lock:
                try:  # another thread may have looked, and made changes since
                    return object.__getattribute__(self, name)
                except AttributeError:
                    self.slices = first
            return first

    @property
    def store(self) -> Store:
        """The store that keeps its changes."""
        return self.past.store

    @property
    def created_at(self) -> datetime:
        """When the session began."""
        return self.past.head.created_at

    @property
    def tags(self) -> Mapping[str, str]:
        """The session's tags."""
        return MappingProxyType(dict(self.past.head.tags))

    def learn(self, types: Iterable[type]) -> None:
        """Let values of these types be built; see ``Session.register_types``."""
        self.past.records.learn(types)

    def copy_to(self, other: State) -> None:
        """Give another state the same routes, guards, views, types and announcements as well."""
        with self.lock, other.lock:
            super().copy_to(other)
            if isinstance(other, StoredState):
                other.past.records.learn_from(self.past.records)

    def _past_at(self, version: int) -> tuple[Slices, Kept]:
        """The present slices, and a history that begins with them."""
        return {**self.slices, **self.kept()}, Kept(self.past.limit, None, version)

    def fork(self, session_id: SessionId, version: int, tags: Mapping[str, str]) -> State:
        """The state of a new session with the history up to a version; see ``Session.fork``."""
        fork = self.past.fork(version, session_id, tags)
        twin = state_in(self.store, fork, None)
        self.copy_to(twin)
        if last_version(twin.slices) != fork.version:  # it was open in this process already, and empty
            with Held(twin):
                twin.refresh()
        return twin

    def resolved(self, kind: type) -> Slice | None:
        """A slice that was not asked for before, read from the store; None if the store does not have it."""
        slices = self.slices
        if kind in slices or kind in self.private or kind in self.views:
            return slices.get(kind)
        version = last_version(slices)
        slice_ = self.past.slice_at(kind, version, self.registered) if version else ()
        with suppress(StoreBusy), Held(self, 0):  # a reader never waits
            if self.slices is slices:
                self.slices = {**slices, kind: slice_}
        return slice_

    def require_readable(self, kind: type, old: Slice, new: Slice) -> None:
        """Refuse new items of a slice that could not be read back."""
        self.past.require_readable(kind, added(old, new))

    def begin(self, timeout: float | None) -> None:
        """Take the store's lock and take over what other writers committed. The caller holds the lock."""
        self.past.begin(timeout)
        self.catch_up()
        for kind in self._all_kinds():
            self.resolved(kind)

    def end(self) -> None:
        """Let go of the store's lock; take over a commit that Ctrl-C has cut short, if the store has it."""
        self.past.end()
        if self._is_committing:
            with suppress(Exception):  # the next transaction does it
                self.catch_up()
            self._is_committing = False

    def refresh(self) -> None:
        """Take over what other writers committed; see ``Session.refresh``. The caller holds the lock."""
        super().refresh()
        self.past.is_unsettled = False

    def catch_up(self) -> None:
        """Take over what other writers committed, outside of transactions. The caller holds the lock."""
        stored, version = self.past, last_version(self.slices)
        head = stored.newest(self.slices)
        if head.version == version:
            return
        for each in self.announcements:  # what it was before
            self.resolved(each.slice_type)
        with closing(stored.take_over(version, head)) as changes:
            for change in changes:
                before = self.slices
                after = stored.reduced(before, change, self.registered)
                entry = taken_over(change.version)
                after[KeptChange] = (entry,)
                if change.slices or change.restores:
                    entry.actor, entry.call_id = change.said()
                    known = [each for each in self.announcements if each.slice_type in after]
                    self.taken += announced(known, before, after, entry, "store", self.session_id, self.hears)
                self.slices = after

    async def run_in_worker(self, function: Callable[[], T]) -> T:
        """Call a function that changes the session; see ``Session.run_in_worker``."""
        if self.open is not None and self.open.is_held():
            return function()
        return await self.past.run_in_worker(function)

    def _record(self, entry: KeptChange, before: Slices, slices: Slices) -> None:
        """Write a change, and make its slices visible."""
        past, self._is_committing = self.past, True
        try:
            past.record(entry, before, slices, self.stays)
        except StoreError:  # the store knows; of anything else only the store can say what it cut short
            self._is_committing = False
            raise
        entry.parts = []  # they are in the store
        self.slices = slices
        past.settle(entry.version)
        self._is_committing = False
        past.keep_warm(slices, self.registered)

    def slices_at(self, version: int) -> Callable[[type], Slice | None]:
        """The reader of a version's slices; see ``Session.at``."""
        past, stay = self.past, self.without_past()
        require_version(version, last_version(self.slices))
        registered, views = self.registered, frozenset(self.views)

        @cache
        def read(kind: type) -> Slice | None:
            if kind in views:
                return None
            return stay[kind] if kind in stay else past.slice_at(kind, version, registered)

        return read

    def elsewhere(self, head: StoredSession) -> Callable[[type], Slice | None]:
        """The reader of another session of the same store; see ``Session.read_other``."""
        registered, past = self.registered, self.past.another(head)
        return cache(lambda kind: past.slice_at(kind, head.version, registered))

    def emptied(self) -> Slices:
        """Every slice that is known here, empty, but for those that are never taken back."""
        return dict.fromkeys(self._kinds(), ())

    def restorable(self, version: int) -> dict[type, tuple[Any, ...]]:
        """The slices of a version that a rewind restores, as far as they are known here."""
        read = self.slices_at(version)
        return {kind: items_of(read(kind) or ()) for kind in self._kinds()}

    def require_restorable(self, slices: Mapping[type, tuple[Any, ...]]) -> None:
        """Refuse slices of a snapshot that no reducer makes, or that could not be read back."""
        require_made(slices, self.registered)
        for kind, items in slices.items():
            self.past.require_readable(kind, items)

    def kept(self) -> Slices:
        """All slices that a snapshot has."""
        kinds = self._kinds()
        self.past.require_known(kinds)
        return {kind: self.items(kind) for kind in kinds}

    def _kinds(self) -> list[type]:
        """The types of the slices that are known here, but for those that are never taken back."""
        return [kind for kind in self._all_kinds() if not self.stays(kind)]

    def _all_kinds(self) -> set[type]:
        routed = {route.slice_type for routes in self.registered.values() for route in routes}
        return routed | self.slices.keys()


def state_in(store: Store, begun: StoredSession, limit: int | None) -> StoredState:
    """The state of a session in a store: the one that is open in this process, or a new one."""
    with store.opening.lock:
        known: StoredState | None = store.states.get(str(begun.session_id))
        if known is None:
            known = StoredState(Stored(store, begun, limit), begun)
            store.states[str(begun.session_id)] = known
    return known
