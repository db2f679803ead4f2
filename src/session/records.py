"""Values to JSON that names their types, and back: for stores and snapshots.

A record names its type and format, unless a field's hint does. Only registered types are built from it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import date, time
from enum import Enum
from functools import cache, partial
from itertools import repeat
from types import MappingProxyType
from typing import Any

import attrs

from session.codec import (
    AS_TEXT,
    Field,
    columns_of,
    compared,
    fields_of,
    format_of,
    is_record,
    parts_of,
    require_plain,
    require_same,
    spelled,
)
from session.errors import RecordError, SnapshotError, each_item, each_value, shown
from session.events import PromptExecuted, PromptRendered, SessionEvent, ToolFailed, ToolInvoked
from session.json_form import NoJsonForm, opened
from session.slices import type_name

EVENTS = (ToolInvoked, ToolFailed, PromptRendered, PromptExecuted)
"""The events that every session may have."""

_KIND = "!"
_ITEMS: dict[str, Any] = {"tuple": tuple, "set": set, "frozenset": frozenset}
_TEXTS = {kind.__name__: (kind, read) for kind, read in AS_TEXT.items()}
_TYPES: dict[str, type] = {"dict": dict, **_ITEMS, **{kind.__name__: kind for kind in AS_TEXT}}

Unknown = Callable[[str, Mapping[str, Any]], Any]
"""Makes a value of a type that is not registered, of its name and its fields."""


@attrs.frozen
class Unread:
    """A value of a type that is not registered here.

    Attributes:
        name: The name of its type, ``module:Name``.
        fields: Its fields, as they are written.
    """

    name: str
    fields: Mapping[str, Any]


class Records:
    """Writes and reads the records of one session; it knows the events of this package."""

    def __init__(self, types: Iterable[type] | None = None) -> None:
        self._known: dict[str, type] = {}
        self._names: dict[type, str] = {}
        self._unnamed: set[type] = set()  # records whose form needs no name where a hint has it
        self._fields: dict[type, dict[str, Field]] = {}  # those that are written, of each record
        self._compared: dict[type, tuple[str, ...]] = {}
        if types is None:
            self.learn_from(_of_events())
        else:
            self.learn(types)

    def learn(self, types: Iterable[type]) -> None:
        """Register types, and those that the hints of their fields name."""
        found, learned = list(types), dict[type, str]()
        while found:
            kind = found.pop()
            name, number = type_name(kind), format_of(kind)
            written = name if number == 1 else f"{name}@{number}"
            if not (is_record(kind) or issubclass(kind, Enum)):
                continue
            if written in (self._names.get(kind), learned.get(kind)):
                continue
            try:
                require_plain(kind)
                found += parts_of(kind) if is_record(kind) else ()
            except (SnapshotError, NameError, TypeError):
                continue  # a class that is not a record, or without readable hints: its values are refused
            learned[kind] = written
            self._known[name] = kind
            if is_record(kind):
                self._fields[kind] = {each.argument: each for each in fields_of(kind) if each.is_stored}
                self._compared[kind] = compared(kind)
                if number == 1:
                    self._unnamed.add(kind)
            # Each program has another __main__: a class of one of them is found by the rest of its name.
            for module in (kind.__module__, "__main__"):
                self._known.setdefault(f"{module}:{kind.__qualname__}", kind)
        self._names.update(learned)  # last: what is in it is not learned again

    def learn_from(self, other: Records) -> None:
        """Register the types that are registered with another."""
        for name, known in vars(other).items():
            vars(self)[name].update(known)

    def known(self, name: str) -> type | None:
        """The registered type of a name."""
        return self._known.get(name)

    def type_of(self, data: Any) -> type | None:
        """The registered type of a record or a plain value, as JSON has it; None without one."""
        if not isinstance(data, dict):
            return type(data)
        name = data.get(_KIND)
        if not isinstance(name, str):
            return dict if name is None else None
        if name == "plain":
            return type(self.read(data.get("is")))
        return _TYPES.get(name) or self._known.get(name.partition("@")[0])

    # Writing

    def write(self, value: Any, *, is_open: bool = False) -> Any:
        """A value as JSON has it.

        Raises:
            StoreError: A part of it has no JSON form, or is not of a registered type.
        """
        kind = type(value)
        if kind is str or kind is int or kind is bool or value is None:
            return value
        if kind in self._names:
            return self._write_known(value, kind, is_open=is_open)
        if kind is dict or kind is MappingProxyType:
            return self._write_dict(value, is_open=is_open)
        if kind is list:
            return each_item(value, partial(self.write, is_open=is_open))
        if kind.__name__ in _ITEMS and kind is _ITEMS[kind.__name__]:
            try:
                items = [self.write(item, is_open=is_open and kind is tuple) for item in value]
            except RecordError:
                if not is_open or kind is tuple:
                    raise
                items = [self.write(item, is_open=True) for item in value]  # which may be no set any more
                return sorted(items, key=json.dumps)
            return {_KIND: kind.__name__, "items": items if kind is tuple else sorted(items, key=json.dumps)}
        if kind is float and math.isfinite(value):
            return value
        if kind in AS_TEXT:
            return {_KIND: kind.__name__, "is": _as_text(value)}
        return self._write_unknown(value, kind, is_open=is_open)

    def write_as(self, value: Any, kind: type | None, *, is_open: bool = False) -> Any:
        """The same for a value that is probably of a class: where it is, its type need not be named."""
        found = type(value)
        if found is kind and found in self._unnamed:
            return self._write_known(value, found, is_open=is_open, is_named=False)
        if found is dict and kind is not None and is_record(kind):
            return self._write_pairs(value, is_open=is_open)
        return self.write(value, is_open=is_open)

    def _write_known(self, value: Any, kind: type, *, is_open: bool, is_named: bool = True) -> dict[str, Any]:
        written: dict[str, Any] = {_KIND: self._names[kind]} if is_named else {}
        if isinstance(value, Enum):
            written["is"] = self.write(value.value)
            return written
        for argument, field in self._fields[kind].items():
            item = getattr(value, field.name)
            if item is field.default:
                continue
            if field.written is not None and item is not None:
                item = field.written(item)
            found = type(item)
            if found in field.plain or (found is str and item in field.words):
                written[argument] = item
                continue
            try:
                written[argument] = self._write_field(item, field, is_open=is_open)
            except RecordError as error:
                raise error.inside(f".{field.name}") from error.__cause__
        if self._compared[kind] and not is_open:
            require_same(value, kind, self._compared[kind])
        return written

    def _write_field(self, item: Any, field: Field, *, is_open: bool) -> Any:
        kind = type(item)
        is_items = field.is_tuple and kind is tuple
        if is_items and not item:
            return []
        if field.text is not None and kind is field.text[0]:
            return _as_text(item)
        if field.words and item in field.words:
            return item
        is_text = kind is str and field.text is not None
        if (
            is_text
            or (field.only is not None and kind not in field.only)
            or (field.is_tuple and kind is list)
        ):
            raise _unexpected_error(field, item)
        of: Any = field.of
        if is_items and of in self._unnamed and (columns := columns_of(item, of, is_json=False)) is not None:
            names = repeat(tuple(self._fields[of]))
            return [*map(dict, map(zip, names, zip(*columns, strict=True)))]
        write = partial(self.write_as, kind=of, is_open=is_open or field.is_open)
        return each_item(item, write) if is_items else write(item)

    def _write_dict(self, value: Mapping[Any, Any], *, is_open: bool) -> Any:
        if all(type(key) is str and key != _KIND for key in value):
            return each_value(value, partial(self.write, is_open=is_open))
        return self._write_pairs(value, is_open=is_open)

    def _write_pairs(self, value: Mapping[Any, Any], *, is_open: bool) -> Any:
        items = [self.write(item, is_open=is_open) for item in value.values()]
        try:
            pairs = [[self.write(key), item] for key, item in zip(value, items, strict=True)]
        except RecordError:
            if not is_open:
                raise
            return [[self.write(key, is_open=True), item] for key, item in zip(value, items, strict=True)]
        return {_KIND: "dict", "items": pairs}

    def _write_unknown(self, value: Any, kind: type, *, is_open: bool) -> Any:
        if isinstance(value, SessionEvent) and is_record(kind):
            self.learn((kind,))
            if kind in self._names:
                return self._write_known(value, kind, is_open=is_open)
        if is_open:
            with suppress(NoJsonForm):
                if (inner := opened(value)) is not value:  # which NaN is
                    return self.write(inner, is_open=True)
            has_text = any("__str__" in vars(each) or "__repr__" in vars(each) for each in kind.__mro__[:-1])
            if has_text and not callable(value):
                with suppress(Exception):  # which may fail
                    return str(value)
        if is_record(kind):
            raise RecordError(
                f"a {type_name(kind)} cannot be written here: give its field an exact type hint, or pass "
                "the class to session.register_types"
            )
        given = shown(value) if kind is float else f"a {type_name(kind).removeprefix('builtins:')}"
        raise RecordError(f"{given} has no JSON form: use text, numbers, lists or records")

    # Reading

    def read(self, data: Any, *, unknown: Unknown | None = None) -> Any:
        """The value of a JSON form.

        Raises:
            StoreError: It names a type that is not registered, or a newer format, or is not a value of it.
        """
        kind = type(data)
        if kind is list:
            return each_item(data, partial(self.read, unknown=unknown))
        if kind is not dict:
            return data
        name = data.get(_KIND)
        if name is None:
            return each_value(data, partial(self.read, unknown=unknown))
        if type(name) is not str:
            raise RecordError(f"{shown(name)} is not the name of a type")
        if name in _ITEMS or name == "dict":
            items = self.read(_part(data, "items", list), unknown=unknown)
            try:
                found = _build(name, _ITEMS.get(name, dict), items)
            except RecordError:
                if unknown is not fields_alone:
                    raise
                return items  # of a type that is not registered, without a hash
            if len(found) != len(items):
                raise RecordError(f"the {name} has a duplicate")
            return found
        if name in _TEXTS:
            return _build(name, _TEXTS[name][1], _part(data, "is", str))
        return self._read_known(data, name, unknown)

    def read_as(self, data: Any, kind: type | None, *, unknown: Unknown | None = None) -> Any:
        """The same for what ``write_as`` wrote."""
        if type(data) is dict and kind is not None and _KIND not in data:
            if kind in self._unnamed:
                return self._read_fields(data, kind, unknown)
            if is_record(kind):
                return self._read_known(data, type_name(kind), unknown)
        return self.read(data, unknown=unknown)

    def _read_known(self, data: dict[str, Any], name: str, unknown: Unknown | None) -> Any:
        bare, _, number = name.partition("@")
        kind: Any = self._known.get(bare)
        if kind is None and unknown is not None:
            fields = {key: item for key, item in data.items() if key != _KIND}
            return unknown(bare, self.read(fields, unknown=fields_alone))
        if kind is None:
            raise RecordError(
                f"{shown(bare)} is unknown here: import its module and register a reducer for it, or pass "
                "the class to session.register_types"
            )
        known = format_of(kind)
        if (number or "1") != str(known):
            remedy = "use the release that wrote it, or rename the current class"
            raise RecordError(
                f"{bare} is stored in format {number or 1}; this program has format {known}: {remedy}"
            )
        if issubclass(kind, Enum):
            return _build(bare, kind, self.read(data.get("is")))
        return self._read_fields(data, kind, unknown)

    def _read_fields(self, data: dict[str, Any], kind: Any, unknown: Unknown | None) -> Any:
        values, fields = data.copy(), self._fields[kind]
        for name, item in data.items():
            field = fields.get(name)
            if field is None:
                del values[name]
                continue
            if type(item) in field.plain or (field.words and item in field.words):
                continue
            try:
                values[name] = self._read_field(item, field, unknown)
            except RecordError as error:
                raise error.inside(f".{field.name}") from error.__cause__
        if len(values) != len(data) - (_KIND in data):
            unexpected = min(str(name) for name in data.keys() - values.keys() - {_KIND})
            raise RecordError(f"a {type_name(kind)} has no {shown(unexpected)}")
        try:
            return kind(**values)
        except (RecursionError, MemoryError):
            raise
        except Exception as error:
            if unknown is fields_alone:  # where any value may be: its fields, where its type refuses them
                return values
            raise RecordError(f"a {type_name(kind)} is refused by its type: {error}") from error

    def _read_field(self, item: Any, field: Field, unknown: Unknown | None) -> Any:
        is_items = field.is_tuple and type(item) is list
        if is_items and not item:
            return ()
        if type(item) is str and field.text is not None:
            try:
                return field.text[1](item)
            except (ValueError, ArithmeticError) as error:
                raise _unexpected_error(field, item) from error
        of: Any = field.of
        if is_items and of in self._unnamed and (columns := columns_of(item, of, is_json=True)) is not None:
            with suppress(Exception):  # what its type has against one of them is said below
                return tuple(map(of, *columns))
        read = partial(self.read_as, kind=of, unknown=fields_alone if field.is_open else unknown)
        value = tuple(each_item(item, read)) if is_items else read(item)
        if field.only is not None and type(value) not in field.only:
            raise _unexpected_error(field, item)
        return value


def fields_alone(_name: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """The value to read if any value may be here, and its type is not registered."""
    return fields


def _unexpected_error(field: Field, item: Any) -> RecordError:
    given = f"a {type(item).__name__}" if isinstance(item, (list, dict)) else shown(item)
    return RecordError(f"expected {spelled(field.hint)}, got {given}")


def _as_text(value: Any) -> str:
    return value.isoformat() if isinstance(value, (date, time)) else str(value)


def _part(data: dict[str, Any], name: str, kind: type) -> Any:
    item = data.get(name)
    if len(data) != 2 or not isinstance(item, kind):
        raise RecordError(f"a {shown(data[_KIND])} is malformed")
    return item


def _build(name: str, build: Callable[..., Any], argument: Any) -> Any:
    """The record that a constructor makes of what is stored."""
    try:
        return build(argument)
    except (RecursionError, MemoryError):
        raise
    except Exception as error:
        raise RecordError(f"a {name} is refused by its type: {error}") from error


@cache
def _of_events() -> Records:
    """The codec that knows the events of this package: they are looked into once."""
    return Records(EVENTS)
