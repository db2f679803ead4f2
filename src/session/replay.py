"""Reading a session's slices from a store: from a checkpoint, by reducing the later changes again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType
from typing import Any

import attrs

from session.changes import ReadChange, read_change
from session.checkpoints import Reading, read_items, slices_of, write_items
from session.codec import is_found
from session.errors import StoreError
from session.events import SessionId
from session.history import (
    Change,
    KeptChange,
    Restored,
    Rewound,
    Slices,
    is_log,
    last_version,
    require_version,
)
from session.records import Records
from session.slices import LateLog, Route, Routes, Slice, is_grown, items_of, routes_of, type_name
from session.stores.base import Store
from session.stores.chain import (
    StoredChange,
    StoredSession,
    chain_hash,
    damaged,
    deleted,
    replaced,
    verified,
)

_NONE: Mapping[int, Any] = MappingProxyType({})
_BATCH = 32
NEWEST = 3  # checkpoints that are read: one more than are needed, as one may be damaged
_REMEMBERED = 512  # changes whose text was read
_MOST_REMEMBERED = 4_000_000  # their characters


@attrs.frozen(eq=False)
class Warm:
    """The data of a session that stays in memory after a commit, for when it is opened again.

    Attributes:
        head: The session as it was then.
        slices: Its slices, without those that grow.
        registered: The routes to the reducers that made them.
        tail: What the store has after its newest checkpoint.
        named: The names of the slices that the session has, and the version that has them.
    """

    head: StoredSession
    slices: Mapping[type, tuple[Any, ...]]
    registered: Routes
    tail: Any
    named: tuple[int, set[str]]

    def is_of(self, head: StoredSession) -> bool:
        """True if the session that now has this head is still the same, or may be."""
        own = self.head
        is_later = head.version > own.version or (head.version == own.version and head.hash == own.hash)
        return is_later and head.created_at == own.created_at


class Replay:
    """The slices of a session, as its store has them.

    Attributes:
        store: The store.
        records: What writes and reads the session's values.
        head: The session as it was when this last looked.
        limit: How many events of each type its logs keep.
    """

    head: StoredSession
    warm: Warm | None

    def __init__(self, store: Store, session_id: SessionId, limit: int | None) -> None:
        self.store = store
        self.records = Records()
        self.limit = limit
        self._session_id = session_id
        self._remembered: dict[int, ReadChange] = {}
        self._remembered_size = 0
        self._named: tuple[int, set[str]] = (0, set())

    def _kept(self) -> Warm | None:
        """The slices that this process keeps warm of the session."""
        return self.store.warm.get(str(self._session_id))

    def _look_at(self, head: StoredSession) -> None:
        """Begin with what the store has of the session."""
        warm = self._kept()
        self.warm = warm if warm is not None and warm.is_of(head) else None
        self.head = head  # the last: others who find it find the rest

    def another(self, head: StoredSession) -> Replay:
        """The same of another session of the store, whose values are of the types that are known here."""
        other = Replay(self.store, head.session_id, self.limit)
        other.records = self.records
        other._look_at(head)
        return other

    def changes_after(self, version: int, slices: Slices) -> tuple[Change, ...]:
        """The changes after a version; see ``Session.history``."""
        newest = last_version(slices)
        require_version(version, newest)
        with self.store.reading():
            return tuple(change.change() for change in self._read(version + 1, newest))

    def slice_at(self, kind: type, version: int, registered: Routes) -> Slice:
        """A slice of a version.

        Raises:
            StoreError: A change is damaged, or cannot be read or reduced here; or reducing gives something
                else than it gave before.
        """
        self.records.learn((kind,))
        if is_log(kind) or is_grown(kind, registered):
            return LateLog(cache(partial(self._late, kind, version, registered, self.head)))
        warm = self._warm(kind, version, registered)
        if warm is not None and version == self.head.version and warm.head.hash == self.head.hash:
            return warm.slices[kind]
        with self.store.reading():
            if version < self.head.version:
                self.require_same()
            return self._place(kind, version, registered)

    def _place(self, kind: type, version: int, registered: Routes) -> Slice:
        """A slice of a version; refused if it is empty because its class was moved."""
        slice_ = self._slice_at(kind, version, registered)
        if not slice_:
            self.require_place(kind, version)
        return slice_

    def names_at(self, version: int) -> set[str]:
        """The names of the slices that the session has at a version, without the event logs."""
        if self._named[0] != version:
            with self.store.reading():
                taken, names = self._find_names(version)
                changes = self._read(taken + 1, version)
                self._named = (version, {*names, *(name for change in changes for name in change.slices)})
        return self._named[1]

    def _find_names(self, version: int) -> tuple[int, Iterable[str]]:
        """The names at an earlier version, which is as late as can be known without reading much."""
        if 0 < self._named[0] < version:
            return self._named
        warm = self.warm
        if warm is not None and 0 < warm.named[0] <= version and self._has(warm.head, version):
            return warm.named
        newest = self._checkpoints(version, 1)
        return newest[0] if newest else (0, ())

    def require_place(self, kind: type, version: int) -> None:
        """Refuse a slice that the store has under another place of its class."""
        names = self.names_at(version)
        for name in () if type_name(kind) in names else sorted(names):
            self._require_found(kind, name)

    def _require_found(self, kind: type, name: str) -> None:
        """Refuse a name that differs from that of a class only by its module, and has no class itself."""
        if not name.endswith(f":{kind.__qualname__}") or name == type_name(kind) or is_found(name):
            return
        if self.records.known(name) in {None, kind}:
            raise StoreError(
                f"the store has {name}, whose class cannot be found, and not {type_name(kind)}: if the class "
                f"was moved, call session.register_types({kind.__name__}, written_as={name!r}) first; if "
                "that is another class, import its module first"
            )

    def _warm(self, kind: type, version: int, registered: Routes) -> Warm | None:
        """The warm slices, if one has this version or an earlier one that the same reducers made."""
        warm = self.warm
        if warm is None or kind not in warm.slices or version < warm.head.version:
            return None
        if _find_routes(kind, registered) != _find_routes(kind, warm.registered):
            return None
        return warm

    def _late(self, kind: type, version: int, registered: Routes, head: StoredSession) -> tuple[Any, ...]:
        """The items of a slice of a version, of the session that had this head."""
        with self.store.reading():
            for last in self.store.changes(self._session_id, head.version, head.version):
                if last.hash != head.hash:
                    raise self._refusal(StoreError(damaged(head.version), version=head.version))
            if version < head.version:
                self.require_same()
            read = self._log if is_log(kind) else self._place
            return items_of(read(kind, version, registered))

    def _slice_at(self, kind: type, version: int, registered: Routes) -> Slice:
        slice_: Slice
        name = type_name(kind)
        warm = self._warm(kind, version, registered)
        if warm is not None and self._has(warm.head, version):
            start, slice_, known = warm.head.version, warm.slices[kind], _NONE
        else:
            taken, start, items, known = self._start(name, version)
            with Reading(f"the checkpoint of version {taken}", taken):
                slice_ = read_items(kind, items, self.records)
        # What a rewind restores: else each would be replayed from the beginning.
        restored = {to for at, to in self.store.rewinds(self._session_id) if start < at <= version}
        known_at: dict[int, Slice] = {start: slice_}
        for change in self._read(start + 1, version):
            if name in change.slices or change.restores:
                slice_, is_reduced = self._reduce(kind, slice_, change, registered, known_at)
                if not is_reduced and name in change.slices:
                    raise StoreError(
                        f"version {change.version} changed {kind.__qualname__} by a reducer that is not "
                        "registered here: register it, as PlanningToolsSection does for a plan",
                        version=change.version,
                    )
            if change.version in known and not self._is_written(
                kind, slice_, known[change.version], change.version
            ):
                raise StoreError(
                    f"the reducers of {kind.__qualname__} have changed since version {start}: they compute "
                    f"another slice for version {change.version} than was written; use the release that "
                    "wrote it, or accept the current reducers with store.drop_checkpoints(session_id)",
                    version=change.version,
                )
            if change.version in restored:
                known_at[change.version] = slice_
        return slice_

    def _is_written(self, kind: type, slice_: Slice, items: object, version: int) -> bool:
        """True if a slice is what a checkpoint has, which may be in an older format."""
        written = write_items(kind, items_of(slice_), self.records)
        if written == items:
            return True
        with Reading(f"the checkpoint of version {version}", version):
            known = read_items(kind, items, self.records)
        return written == write_items(kind, known, self.records)

    def _has(self, head: StoredSession, version: int) -> bool:
        """True if a head is one that the session had before a version, whose changes are read next."""
        at = self.store.changes(self._session_id, head.version, min(version, head.version + _BATCH))
        return bool(at) and at[0].hash == head.hash

    def _start(self, name: str, version: int) -> tuple[int, int, Any, Mapping[int, Any]]:
        """The place to begin reducing a slice."""
        found = self._checkpoints(version, 2)
        newest = [slices.get(name, {"at": taken, "items": []}) for taken, slices in found]
        if not newest:
            return 0, 0, [], {}
        is_checked = len(newest) == 2 and newest[0]["at"] == found[0][0] and not self._is_rewind(found[0][0])
        place, known = (1, {found[0][0]: newest[0]["items"]}) if is_checked else (0, {})
        return found[place][0], newest[place]["at"], newest[place]["items"], known

    def _is_rewind(self, version: int) -> bool:
        return any(change.restores for change in self._read(version, version))

    def reduced(self, slices: Slices, change: ReadChange, registered: Routes) -> Slices:
        """The slices after a change of another writer; without those that cannot be reduced here."""
        after = dict(slices)
        for kind, slice_ in slices.items():
            name = type_name(kind)
            if kind is KeptChange or not (is_log(kind) or name in change.slices or change.restores):
                continue
            try:
                after[kind], is_reduced = self._reduce(kind, slice_, change, registered)
            except StoreError:
                is_reduced = False
            if not is_reduced and name in change.slices:
                del after[kind]
        return after

    def _reduce(
        self,
        kind: type,
        slice_: Slice,
        change: ReadChange,
        registered: Routes,
        known: Mapping[int, Slice] = _NONE,
    ) -> tuple[Slice, bool]:
        """A slice after a change, and whether a reducer or a restored version made it."""
        is_reduced = False
        for event_type, read in change.reduced_parts():
            if issubclass(event_type, Restored):
                if not is_log(kind):
                    slice_, is_reduced = self._restore(kind, change, read(), registered, known), True
                continue
            for route in routes_of(event_type, registered, self.limit):
                if route.slice_type is kind:
                    with Reading(f"version {change.version}", change.version):
                        slice_, is_reduced = route.apply(slice_, read()), True
        return slice_, is_reduced

    def _restore(
        self,
        kind: type,
        change: ReadChange,
        restored: Restored,
        registered: Routes,
        known: Mapping[int, Slice],
    ) -> Slice:
        if not isinstance(restored, Rewound):
            with Reading(f"version {change.version}", change.version):
                return read_items(kind, restored.state.get(type_name(kind), []), self.records)
        if not 0 <= restored.version < change.version:
            raise StoreError(damaged(change.version), version=change.version)
        if restored.version in known:
            return known[restored.version]
        return self._slice_at(kind, restored.version, registered)

    def _log(self, kind: type, version: int, registered: Routes) -> Slice:
        """The entries of an event log up to a version."""
        log: Slice = ()
        for change in self._read(1, version, remember=False):
            log, is_reduced = self._reduce(kind, log, change, registered)
            for part in () if is_reduced else change.parts:
                self._require_found(kind, str(part.get("!")))
        return log

    def _checkpoints(self, version: int, limit: int) -> list[tuple[int, Mapping[str, Any]]]:
        """The newest checkpoints up to a version: their versions and slices. Damaged ones are omitted."""
        found: list[tuple[int, Mapping[str, Any]]] = []
        for checkpoint in self.store.checkpoints(self._session_id, version, NEWEST):
            at = self.store.changes(self._session_id, checkpoint.version, checkpoint.version)
            is_own = checkpoint.version != self.head.version or [self.head.hash] == [each.hash for each in at]
            if at and is_own and checkpoint.check == chain_hash(at[0].hash, checkpoint.text):
                found.append((checkpoint.version, slices_of(checkpoint.text, checkpoint.version)))
                if len(found) == limit:
                    break
        return found

    def _read(self, first: int, last: int, *, remember: bool = True) -> Iterator[ReadChange]:
        """The changes from a version to another, which are sound."""
        while first <= last:
            if first in self._remembered:
                yield self._remembered[first]
                first += 1
                continue
            end = min(last, first + _BATCH - 1)
            for each in self._sound(first, end):
                owner = self.head.owner(each.version)
                read = read_change(each.text, each.version, owner, self.records, each.hash)
                if remember:
                    self._remembered_size += read.size
                    if len(self._remembered) >= _REMEMBERED or self._remembered_size > _MOST_REMEMBERED:
                        self._remembered.clear()
                        self._remembered_size = read.size
                    self._remembered[each.version] = read
                yield read
            first = end + 1

    def _sound(self, first: int, last: int) -> Sequence[StoredChange]:
        """The changes from a version to another, which are as they were written."""
        try:
            return self._verified(first, last)
        except StoreError as error:
            if error.version is None:  # it cannot be read now
                raise
            raise self._refusal(error) from error

    def _verified(self, first: int, last: int) -> Sequence[StoredChange]:
        stored, before = self.store.changes(self._session_id, max(first - 1, 1), last), b""
        if first > 1:
            if not stored:
                raise StoreError(damaged(first - 1), version=first - 1)
            before, stored = stored[0].hash, stored[1:]
        changes = verified(stored, first, last, before)
        if last == self.head.version and changes[-1].hash != self.head.hash:
            raise StoreError(damaged(last), version=last)
        return changes

    def require_same(self) -> None:
        """Refuse if the store has this session no more; who reads the newest version need not ask.

        Raises:
            StoreError: It was deleted, or another has its id now.
        """
        error = self._explain_loss()
        if error is not None:
            raise error

    def _refusal(self, damage: StoreError) -> StoreError:
        """The error for missing changes: the session may be gone, or be another one."""
        return self._explain_loss() or damage

    def _explain_loss(self) -> StoreError | None:
        head = self.store.head(self._session_id)
        if head is None:
            return deleted(self._session_id)
        return None if head.created_at == self.head.created_at else replaced(self._session_id)


def _find_routes(kind: type, registered: Routes) -> list[tuple[type, Route]]:
    """The routes that make a slice."""
    routes = ((event, route) for event, found in registered.items() for route in found)
    return [(event, route) for event, route in routes if route.slice_type is kind]
