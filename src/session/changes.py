"""A change as the text that a store keeps: writing and reading it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from types import NoneType
from typing import Any, Final
from uuid import uuid4

import attrs

from session.checkpoints import Reading, write_items
from session.errors import RecordError, StoreError, shown
from session.events import (
    CARRIERS,
    SessionEvent,
    SessionId,
    ToolInvoked,
    session_id_of,
    value_of,
)
from session.history import (
    Change,
    KeptChange,
    Reset,
    Restored,
    Rewound,
    RolledBack,
    key_of,
)
from session.records import Records, Unread
from session.slices import type_name

FORMAT = 1
DEEPEST: Final = 128
"""The most levels of a stored text, so that it can be read wherever the reader is called from."""
NOT_STORED: Final = "the change cannot be stored"
_REWOUND, _ROLLED_BACK, _RESET, _PLAIN = "rewound", "rolled back", "reset", "plain"
_RESTORED: Final[Mapping[str, type]] = {_REWOUND: Rewound, _ROLLED_BACK: RolledBack, _RESET: Reset}
_CALLED: Final = type_name(ToolInvoked)
_SAID: Final = ("actor", "call_id")
_TEXT_OR_NONE: Final = (str, NoneType)


def write_change(entry: KeptChange, slices: Iterable[str], owner: SessionId, records: Records) -> str:
    """A change as JSON text; what can be derived is written once.

    Raises:
        StoreError: A value cannot be stored.
    """
    written: dict[str, Any] = {"at": entry.at.replace(tzinfo=None).isoformat()}
    names = list(slices)
    if names:
        written["slices"] = names
    try:
        parts = [_write_part(event, owner, records) for event in entry.events()]
        for name, said in (("actor", entry.actor), ("call_id", entry.call_id)):
            if said is not None and type(said) is not str:
                raise StoreError(f"{NOT_STORED}: its {name} must be text, got {shown(said)}")
            if said != next((part[name] for part in parts if name in part), None):
                written[name] = said
        if not any(isinstance(part, SessionEvent) for part in entry.parts):
            written["id"] = uuid4().hex[:12]  # no two changes have one text
        written["parts"] = parts
    except RecursionError as error:
        raise StoreError(f"{NOT_STORED}: it is nested more than {DEEPEST} levels deep") from error
    return written_text(written)


@attrs.define
class ReadChange:
    """A change whose text was read, and whose values were not yet.

    Attributes:
        version: Its place in the history.
        at: When it was committed.
        slices: The names of the slices that it replaced.
        parts: What was dispatched and published, as JSON has it.
        hash: What the store chains it by; empty where it is not from a store.
    """

    version: int
    at: datetime
    slices: frozenset[str]
    parts: list[dict[str, Any]]
    size: int
    _said: Mapping[str, Any]
    _owner: SessionId
    _records: Records
    hash: bytes = b""

    @property
    def restores(self) -> bool:
        """True if slices were replaced as a whole: by a rewind, a rollback or a reset."""
        return any(part.get("!") in _RESTORED for part in self.parts)

    def reduced_parts(self) -> Iterator[tuple[type, Callable[[], Any]]]:
        """The values to reduce, in order: the registered type of each value and event, and what reads it."""
        for index, part in enumerate(self.parts):
            restored = _RESTORED.get(str(part.get("!")))
            if restored is not None:
                yield restored, partial(self.part, index)
                continue
            carried = part.get("value")
            event_type = self._records.type_of(part)
            if carried is not None and issubclass(event_type or object, CARRIERS):
                value_type = self._records.type_of(carried)
                if value_type is not None:
                    yield value_type, partial(self._value, index)
            if event_type is not None:
                yield event_type, partial(self.part, index)

    def _value(self, index: int) -> Any:
        """The value of an event, without the event."""
        return self._records.read(self.parts[index]["value"])

    def part(self, index: int, *, is_lenient: bool = False) -> Any:
        """A value or an event.

        Raises:
            StoreError: It cannot be read; the text names the version.
        """
        with Reading(f"version {self.version}", self.version):
            return self._read_part(self.parts[index], is_lenient=is_lenient)

    def _read_part(self, part: dict[str, Any], *, is_lenient: bool) -> Any:
        kind = part.get("!")
        if kind == _REWOUND:
            if type(part["version"]) is not int:
                raise TypeError("it restores a version that is not a number")
            return Rewound({}, version=part["version"])
        if kind == _ROLLED_BACK:
            source, taken = session_id_of(part["session_id"]), datetime.fromisoformat(part["created_at"])
            if not isinstance(part["slices"], dict):
                raise TypeError("the slices of a rollback are not an object")
            return RolledBack(part["slices"], session_id=source, created_at=taken)
        if kind == _RESET:
            return Reset({})
        if kind == _PLAIN:
            return self._records.read(part["is"])
        if kind == _CALLED:  # files of format 1 also say whether the call id was used before
            part = {**part} if "params" in part else {**part, **self._carried(part.get("value"))}
            part.pop("is_id_reused", None)
        if issubclass(self._records.type_of(part) or object, SessionEvent):
            part = {"session_id": self._owner, **part}
        return self._records.read(part, unknown=Unread if is_lenient else None)

    def _carried(self, value: Any) -> dict[str, Any]:
        """A call's value, which is its arguments too: read, so that it is read once.

        As JSON has it where it cannot be read, so that the error names its place, and where it is of a type
        that would be read again.
        """
        with suppress(RecordError):
            read = self._records.read(value)
            value = value if isinstance(read, (dict, list)) else read
        return {"params": value, "value": value}

    def change(self, *, is_lenient: bool = False) -> Change:
        """The change as callers see it.

        Raises:
            StoreError: A value cannot be read.
        """
        events = tuple([self.part(index, is_lenient=is_lenient) for index in range(len(self.parts))])
        by = (*self.said(), bool(self.slices) or self.restores, key_of(events))
        return Change(self.version, self.at, events, *by)

    def said(self) -> tuple[str | None, str | None]:
        """Who made the change, and the id of the call."""
        actor, call_id = (
            self._said.get(name, next((part[name] for part in self.parts if name in part), None))
            for name in _SAID
        )
        return actor, call_id


def read_change(
    text: str, version: int, owner: SessionId, records: Records, hash_: bytes = b""
) -> ReadChange:
    """Read the text of a change.

    Raises:
        StoreError: It is not one, or has a newer format.
    """
    try:
        said = json.loads(text)
        if said.get("format", FORMAT) == FORMAT:
            parts = [_named(part) for part in said["parts"]]
            at = datetime.fromisoformat(said["at"]).replace(tzinfo=UTC)
            slices = frozenset(_texts(said.get("slices", [])))
            return ReadChange(version, at, slices, parts, len(text), _named(said), owner, records, hash_)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StoreError(f"version {version} is not a change that can be read", version=version) from error
    raise StoreError(
        f"version {version} is stored in format {shown(said['format'])}; this release reads {FORMAT}: use a "
        "newer one",
        version=version,
    )


def _texts(names: list[str]) -> list[str]:
    """Names."""
    if type(names) is not list or not all(type(name) is str for name in names):
        raise TypeError
    return names


def _named(part: Any) -> dict[str, Any]:
    """A part of a change."""
    if (
        type(part) is not dict
        or type(part.get("!", "")) is not str
        or type(part.get("actor")) not in _TEXT_OR_NONE
        or type(part.get("call_id")) not in _TEXT_OR_NONE
    ):
        raise TypeError
    return part


def change_of(text: str, version: int, owner: SessionId, records: Records) -> Change:
    """The change in a string; values of types that are not registered are ``Unread``."""
    return read_change(text, version, owner, records).change(is_lenient=True)


def _write_part(part: Any, owner: SessionId, records: Records) -> dict[str, Any]:
    if isinstance(part, Restored):
        return _write_restored(part, records)
    try:
        written = records.write(part)
    except RecordError as error:
        raise error.inside(type(part).__qualname__) from error.__cause__
    if not isinstance(written, dict):
        return {"!": _PLAIN, "is": written}
    if isinstance(part, SessionEvent):
        if part.session_id == owner:
            del written["session_id"]
        value = value_of(part)
        if value is not None and type(part) is ToolInvoked and part.params is value:
            written.pop("params")
    return written


def _write_restored(part: Restored, records: Records) -> dict[str, Any]:
    if isinstance(part, Rewound):
        return {"!": _REWOUND, "version": part.version}
    if isinstance(part, RolledBack):
        return {
            "!": _ROLLED_BACK,
            "session_id": str(part.session_id),
            "created_at": part.created_at.isoformat(),
            "slices": {type_name(kind): write_items(kind, items, records) for kind, items in part.items()},
        }
    return {"!": _RESET}


def written_text(
    written: Any,
    what: str = NOT_STORED,
    *,
    separators: tuple[str, str] | None = (",", ":"),
    indent: int | None = None,
) -> str:
    """Write JSON text that can be read wherever this is called from.

    Raises:
        StoreError: It is nested too deep, or a number is too long.
    """
    too_deep = f"{what}: it is nested more than {DEEPEST} levels deep"
    try:
        text = json.dumps(written, separators=separators, allow_nan=False, indent=indent)
    except (ValueError, RecursionError) as error:
        raise StoreError(too_deep if isinstance(error, RecursionError) else f"{what}: {error}") from error
    # Each level has a bracket of its own: few strings have enough of them to be nested too deep.
    if text.count("[") + text.count("{") > DEEPEST:
        level, depth = [written], 0
        while level:
            depth += 1
            if depth > DEEPEST:
                raise StoreError(too_deep)
            inner = [each.values() if type(each) is dict else each for each in level]
            level = [each for items in inner for each in items if type(each) in (dict, list)]
    return text
