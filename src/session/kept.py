"""The history of a session in memory: its changes, and for some of them the slices before."""

from __future__ import annotations

from typing import Any

from session.errors import VersionError, shown
from session.events import ToolInvoked, value_of
from session.history import (
    REPLAYED,
    Base,
    Change,
    KeptChange,
    Restored,
    Rewound,
    Slices,
    called,
    is_log,
    is_present,
    last_version,
    taken_over,
)
from session.slices import Route, Routes, routes_of


class Kept:
    """The changes of a session in memory. Callers of methods that change it hold the session's lock.

    Attributes:
        limit: How many changes are kept; None for all.
    """

    __slots__ = ("_based_on", "_claims", "_entries", "_first", "_keys", "_rewinds", "limit")

    def __init__(self, limit: int | None, entries: list[KeptChange] | None = None, first: int = 0) -> None:
        """Start a history, or continue that of another session."""
        self.limit = limit
        self._entries: list[KeptChange] = [] if entries is None else entries
        self._first = first
        self._keys: dict[str, list[int]] = {}
        self._rewinds: list[tuple[int, int]] = []
        self._claims: dict[str, int] = {}
        for entry in self._entries:
            self._index(entry)
        self._based_on: Routes | None = None  # the routes that the newest base has

    def record(self, entry: KeptChange, before: Slices, registered: Routes) -> None:
        """Keep a change."""
        entries, version = self._entries, entry.version
        if entries and entries[-1].version != version - 1:
            self._forget(entries[-1])  # its commit was interrupted
            self._rewinds = [each for each in self._rewinds if each[0] < version]
            self._based_on = None
            entries.pop()
        if version % REPLAYED == 1 or self._based_on is not registered:
            entry.base = self._base(before, registered)
        entries.append(entry)
        self._based_on = registered
        if entry.key is not None or entry.restores:
            self._index(entry)

    def _index(self, entry: KeptChange) -> None:
        if entry.key is not None:
            self._keys.setdefault(entry.key, []).append(entry.version)
        if entry.restores:
            for part in entry.parts:
                if isinstance(part, Rewound):
                    self._rewinds.append((entry.version, part.version))

    def find_call(self, key: str, newest: int) -> ToolInvoked | None:
        """The call with a key on the branch that ends with a version; see ``Session.find_call``."""
        for version in reversed(self._keys.get(key, ())):
            if is_present(version, newest, self._rewinds):
                return called(self._entries[version - self._entries[0].version].parts)
        return None

    def claim(self, name: str, version: int) -> bool:
        """Record a name; see ``Session.claim``."""
        is_new = name not in self._claims
        self._claims.setdefault(name, version)
        return is_new

    def changes_after(self, version: int, slices: Slices) -> tuple[Change, ...]:
        """The changes after a version; see ``Session.history``."""
        return tuple(entry.change() for entry in self._split(version, slices)[1])

    def fork(self, version: int, slices: Slices) -> Kept:
        """A history of its own with the changes and claims up to a version, as far as they are kept."""
        entries = self._split(version, slices)[0]
        fork = Kept(self.limit, entries, version - len(entries))
        fork._claims = {name: at for name, at in self._claims.items() if at <= version}
        return fork

    def slices_at(self, version: int, slices: Slices) -> Slices:
        """The slices of a version; see ``Session.at``."""
        earlier, later = self._split(version, slices)
        if not later:
            return slices
        base, again = later[0].base, list[KeptChange]()
        while base is None:
            again.append(earlier.pop())
            base = again[-1].base
        found = self._reduced(base, [part for entry in reversed(again) for part in entry.parts])
        if version:
            known = again[:1] or earlier[-1:]
            found[KeptChange] = (known[0] if known else taken_over(version),)
        return found

    def _split(self, version: int, slices: Slices) -> tuple[list[KeptChange], list[KeptChange]]:
        """The changes up to a version, as far as they are kept, and those after it."""
        newest = last_version(slices)
        require_version(version, newest)
        first = self._entries[0].version if self._entries else self._first + 1
        oldest = first - 1 if self.limit is None else max(first - 1, newest - self.limit)
        if version < oldest:
            kept = "" if self.limit is None else f": the session keeps its last {self.limit} changes"
            raise VersionError(f"version {version} is no longer kept{kept}; ask for {oldest} or later")
        place = version - first + 1
        return self._entries[:place], self._entries[place : newest - first + 1]

    def _base(self, slices: Slices, registered: Routes) -> Base:
        """The slices as they are, without the tuples that readers had built of the logs.

        Where the history is bounded, this is also when the oldest changes go.
        """
        if self.limit is not None:
            for entry in self._entries[: -self.limit - REPLAYED]:
                self._forget(entry)
            del self._entries[: -self.limit - REPLAYED]
        kept = {
            kind: slice_ if isinstance(slice_, tuple) else slice_.alike()
            for kind, slice_ in slices.items()
            if kind is not KeptChange
        }
        return Base(kept, registered)

    def _forget(self, entry: KeptChange) -> None:
        if entry.key is not None:
            versions = [each for each in self._keys.pop(entry.key, ()) if each != entry.version]
            if versions:
                self._keys[entry.key] = versions

    def _reduced(self, base: Base, parts: list[Any]) -> Slices:
        slices, last, routes = dict(base.slices), None, dict[type, tuple[Route, ...]]()
        for part in parts:
            if isinstance(part, Restored):
                slices = part.over(slices, is_log)
                continue
            value = value_of(part)
            for each in (part,) if value is None or value is last else (value, part):
                if type(each) not in routes:
                    routes[type(each)] = routes_of(type(each), base.routes, self.limit)
                for route in routes[type(each)]:
                    slices[route.slice_type] = route.apply(slices.get(route.slice_type, ()), each)
            last = part
        return slices


def require_version(version: object, newest: int) -> None:
    """Refuse a version that a session does not have.

    Raises:
        VersionError: It is one.
    """
    if type(version) is not int or not 0 <= version <= newest:
        raise VersionError(f"the session has the versions 0 to {newest}, got {shown(version)}")
