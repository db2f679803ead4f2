"""Values to JSON that says itself what they are, and back: what a store and a snapshot hold.

A record names its type and the type's format, unless the hint of the field that holds it does. Only
registered types are built from it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import partial
from types import MappingProxyType
from typing import Any

import attrs

from session.codec import (
    AS_TEXT,
    Field,
    Proof,
    fields_of,
    format_of,
    is_record,
    parts_of,
    require_plain,
    text_of,
    type_name,
)
from session.errors import RecordError, SnapshotError, StoreError, each_item, each_value, shown
from session.events import PromptExecuted, PromptRendered, SessionEvent, ToolFailed, ToolInvoked
from session.hints import spelled

__all__ = ["Records", "Unread", "Upcasters"]

Upcasters = Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]
"""By the name of a type and its old format, ``module:Name@1``: makes of its fields those of the next format.

The fields may say ``"!"`` anew, where the type has another name now."""

EVENTS = (ToolInvoked, ToolFailed, PromptRendered, PromptExecuted)
"""The events that every session may have."""

_KIND = "!"
_ITEMS = {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}
_BASES: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    tuple: tuple,
    list: list,
    Mapping: dict,
}
_TEXTS = {kind.__name__: (kind, read) for kind, read in AS_TEXT.items()}


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

    def __init__(
        self, upcasters: Upcasters | None = None, types: Iterable[type] = EVENTS, *, is_strict: bool = False
    ) -> None:
        """Register the first types.

        Args:
            upcasters: See ``Upcasters``.
            types: The types; see ``learn``.
            is_strict: Whether what is read must be what the hints of its fields say.
        """
        self.upcasters: Upcasters = upcasters or {}
        self._is_strict = is_strict
        self._known: dict[str, type] = {}
        self._names: dict[type, str] = {}
        self._unnamed: set[type] = set()  # records whose form needs no name where a hint has it
        self._proofs: dict[type, Proof] = {}
        self.learn(types)

    def learn(self, types: Iterable[type]) -> None:
        """Register types, and those that the hints of their fields name."""
        found = list(types)
        while found:
            kind = found.pop()
            if kind in self._names or not (is_record(kind) or issubclass(kind, Enum)):
                continue
            try:
                require_plain(kind)
                found += parts_of(kind) if is_record(kind) else ()
            except (SnapshotError, NameError, TypeError):
                continue  # a class that is no record, or whose hints cannot be read: its values are refused
            name = type_name(kind)
            self._names[kind] = name if format_of(kind) == 1 else f"{name}@{format_of(kind)}"
            self._known[name] = kind
            if is_record(kind) and format_of(kind) == 1:
                self._unnamed.add(kind)
            # Each program has another __main__: a class of one of them is found by the rest of its name.
            self._known.setdefault(f"__main__:{kind.__qualname__}", kind)

    def types(self) -> Iterable[type]:
        """The registered types."""
        return tuple(self._names)

    def known(self, name: str) -> type | None:
        """The registered type of a name."""
        return self._known.get(name)

    def type_of(self, data: Any) -> type | None:
        """The registered type of a record or a plain value, as JSON has it; None where it has none."""
        if not isinstance(data, dict):
            return type(data)
        name = data.get(_KIND)
        if not isinstance(name, str):
            return dict if name is None else None
        if name == "plain":
            return type(self.read(data.get("is")))
        if f"{name}@1" in self.upcasters or name in self.upcasters:
            try:
                return type(self.read(dict(data)))
            except StoreError:
                return None
        return self._known.get(name.partition("@")[0])

    # Writing

    def write(self, value: Any, *, is_open: bool = False) -> Any:
        """A value as JSON has it.

        Args:
            value: The value.
            is_open: Whether a record of a type that is not registered is written as its fields alone.

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
            return each_item(value, lambda item: self.write(item, is_open=is_open))
        if kind.__name__ in _ITEMS and kind is _ITEMS[kind.__name__]:
            items = [self.write(item, is_open=is_open) for item in value]
            return {_KIND: kind.__name__, "items": items if kind is tuple else sorted(items, key=json.dumps)}
        if kind is float and math.isfinite(value):
            return value
        if kind in AS_TEXT:
            return {_KIND: kind.__name__, "is": text_of(value)}
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
        written = self._written(value, kind, is_open=is_open, is_named=is_named)
        if kind not in self._proofs:
            self._proofs[kind] = Proof(kind)
        why = None if is_open else self._proofs[kind].refusal(value)
        if why is not None:
            raise RecordError(f"a {type_name(kind)} cannot be stored: {why}")
        return written

    def _written(self, value: Any, kind: type, *, is_open: bool, is_named: bool = True) -> dict[str, Any]:
        written: dict[str, Any] = {_KIND: self._names[kind]} if is_named else {}
        if isinstance(value, Enum):
            written["is"] = self.write(value.value)
            return written
        for field in fields_of(kind):
            item = getattr(value, field.name)
            if item is field.default or not field.is_stored:
                continue
            if field.written is not None and item is not None:
                item = field.written(item)
            if type(item) in field.plain:
                written[field.argument] = item
                continue
            try:
                written[field.argument] = self._write_field(item, field, is_open=is_open)
            except RecordError as error:
                raise error.inside(f".{field.name}") from error.__cause__
        return written

    def _write_field(self, item: Any, field: Field, *, is_open: bool) -> Any:
        if type(item) is str and field.text is None:
            return item
        if type(item) is str or field.misfits(item):
            raise RecordError(f"expected {spelled(field.hint)}, got {shown(item)}")
        if field.text is not None and type(item) is field.text[0]:
            return text_of(item)
        if field.is_tuple and type(item) is tuple:
            return each_item(item, lambda each: self._write_part(each, field, is_open=is_open))
        if field.is_tuple and type(item) is list:
            return {_KIND: "list", "items": self.write(item, is_open=is_open)}
        return self._write_part(item, field, is_open=is_open)

    def _write_part(self, item: Any, field: Field, *, is_open: bool) -> Any:
        if field.of is None:
            return self.write(item, is_open=is_open or field.is_open)
        return self.write_as(item, field.of, is_open=is_open)

    def _write_dict(self, value: Mapping[Any, Any], *, is_open: bool) -> dict[str, Any]:
        if all(type(key) is str and key != _KIND for key in value):
            return each_value(value, lambda item: self.write(item, is_open=is_open))
        return self._write_pairs(value, is_open=is_open)

    def _write_pairs(self, value: Mapping[Any, Any], *, is_open: bool) -> dict[str, Any]:
        pairs = [[self.write(key), self.write(item, is_open=is_open)] for key, item in value.items()]
        return {_KIND: "dict", "items": pairs}

    def _write_unknown(self, value: Any, kind: type, *, is_open: bool) -> Any:
        if isinstance(value, SessionEvent) and is_record(kind):
            self.learn((kind,))
            if kind in self._names:
                return self._write_known(value, kind, is_open=is_open)
        if is_open:
            if isinstance(value, Enum):
                return self.write(value.value, is_open=True)
            if isinstance(value, Mapping):
                return self._write_dict(dict(value), is_open=True)
            names = (
                [field.name for field in fields_of(kind) if field.is_stored]
                if is_record(kind)
                else getattr(kind, "model_fields", None)
            )
            if names is not None:  # of pydantic, where it is not a record
                return {name: self.write(getattr(value, name), is_open=True) for name in names}
        if self._is_strict:  # what is read is compared: an equal value of a plainer type will do
            for base, plain in _BASES.items():
                if isinstance(value, base) and kind is not base:
                    return self.write(plain(value), is_open=is_open)
        if is_record(kind):
            remedy = "" if self._is_strict else ", or pass the class to session.register_types"
            raise RecordError(
                f"a {type_name(kind)} cannot be written here: give its field an exact type hint{remedy}"
            )
        name = type_name(kind).removeprefix("builtins:")
        given = shown(value) if kind is float else f"a {name}"
        raise RecordError(f"{given} has no JSON form: use text, numbers, lists or records")

    # Reading

    def read(self, data: Any, *, is_open: bool = False, is_lenient: bool = False) -> Any:
        """The value of a JSON form.

        Args:
            data: What ``write`` returned.
            is_open: As there.
            is_lenient: Whether a value of a type that is not registered is read as ``Unread``.

        Raises:
            StoreError: It names a type that is not registered, or a newer format, or is not a value of it.
        """
        kind = type(data)
        if kind is list:
            return each_item(data, lambda item: self.read(item, is_open=is_open, is_lenient=is_lenient))
        if kind is not dict:
            return data
        name = data.get(_KIND)
        if name is None:
            return each_value(data, lambda item: self.read(item, is_open=is_open, is_lenient=is_lenient))
        if type(name) is not str:
            raise RecordError(f"{shown(name)} is not the name of a type")
        if name in _ITEMS or name == "dict":
            items = self.read(_part(data, "items", list), is_open=is_open, is_lenient=is_lenient)
            found = _built(name, _ITEMS.get(name, dict), items)
            if len(found) != len(items):
                raise RecordError(f"something is in the {name} twice")
            return found
        if name in _TEXTS:
            return _built(name, _TEXTS[name][1], _part(data, "is", str))
        return self._read_known(data, name, is_open=is_open, is_lenient=is_lenient)

    def read_as(
        self, data: Any, kind: type | None, *, is_open: bool = False, is_lenient: bool = False
    ) -> Any:
        """The same for what ``write_as`` wrote."""
        if type(data) is dict and kind is not None and _KIND not in data:
            if kind in self._unnamed and not self.upcasters:
                return self._read_fields(data, kind, is_open=is_open, is_lenient=is_lenient)
            if is_record(kind):
                return self._read_known(data, type_name(kind), is_open=is_open, is_lenient=is_lenient)
        return self.read(data, is_open=is_open, is_lenient=is_lenient)

    def _read_known(self, data: dict[str, Any], name: str, *, is_open: bool, is_lenient: bool) -> Any:
        while name in self.upcasters or f"{name}@1" in self.upcasters:
            fields = {key: item for key, item in data.items() if key != _KIND}
            bare, _, number = name.partition("@")
            data = _built(name, self.upcasters[name if number else f"{name}@1"], fields)
            name = data.setdefault(_KIND, f"{bare}@{int(number or 1) + 1}")
        bare, _, number = name.partition("@")
        kind: Any = self._known.get(bare)
        if kind is None:
            if is_open or is_lenient:
                fields = {key: item for key, item in data.items() if key != _KIND}
                kept = self.read(fields, is_open=True)
                return kept if is_open else Unread(bare, kept)
            raise RecordError(
                f"{shown(bare)} is not known here: import its module and register a reducer for it, or pass "
                "the class to session.register_types"
            )
        known = format_of(kind)
        if number not in {"" if known == 1 else str(known), str(known)}:
            newer = number.isdigit() and int(number) > known
            remedy = "use a newer release" if newer else "give the store an upcaster for it"
            raise RecordError(f"{bare} is stored in format {number or 1}; known here is {known}: {remedy}")
        if issubclass(kind, Enum):
            return _built(bare, kind, self.read(data.get("is")))
        return self._read_fields(data, kind, is_open=is_open, is_lenient=is_lenient)

    def _read_fields(self, data: dict[str, Any], kind: Any, *, is_open: bool, is_lenient: bool) -> Any:
        values: dict[str, Any] = {}
        for field in fields_of(kind):
            if not field.is_stored or field.argument not in data:
                continue
            item = data[field.argument]
            if type(item) in field.plain:
                values[field.argument] = item
            else:
                try:
                    values[field.argument] = self._read_field(
                        item, field, is_open=is_open, is_lenient=is_lenient
                    )
                except RecordError as error:
                    raise error.inside(f".{field.name}") from error.__cause__
        if len(values) != len(data) - (_KIND in data):
            unknown = min(str(name) for name in data.keys() - values.keys() - {_KIND})
            raise RecordError(f"a {type_name(kind)} has no {shown(unknown)}")
        try:
            return kind(**values)
        except (RecursionError, MemoryError):
            raise
        except Exception as error:
            if is_open:  # where any value may be: its fields, where its type refuses them
                return values
            raise RecordError(f"a {type_name(kind)} is refused by its type: {error}") from error

    def _read_field(self, item: Any, field: Field, *, is_open: bool, is_lenient: bool) -> Any:
        kind = type(item)
        if kind is str:
            value = item if field.text is None else _from_text(item, field.text[1], field.hint)
        elif field.misfits(item):
            raise RecordError(f"expected {spelled(field.hint)}, got {shown(item)}")
        else:
            read = partial(
                self.read_as, kind=field.of, is_open=is_open or field.is_open, is_lenient=is_lenient
            )
            value = tuple(each_item(item, read)) if field.is_tuple and kind is list else read(item)
        if self._is_strict and not field.fits(value):
            given = shown(item) if kind not in {list, dict} else f"a {kind.__name__}"
            raise RecordError(f"expected {spelled(field.hint)}, got {given}")
        return value


def _from_text(text: str, read: Callable[[str], Any], hint: Any) -> Any:
    try:
        return read(text)
    except (ValueError, ArithmeticError) as error:
        raise RecordError(f"expected {spelled(hint)}, got {shown(text)}") from error


def _part(data: dict[str, Any], name: str, kind: type) -> Any:
    item = data.get(name)
    if len(data) != 2 or not isinstance(item, kind):
        raise RecordError(f"a {shown(data[_KIND])} has another form than it must have")
    return item


def _built(name: str, build: Callable[..., Any], argument: Any) -> Any:
    """What a constructor makes of what is stored.

    Raises:
        StoreError: It refuses it.
    """
    try:
        return build(argument)
    except (RecursionError, MemoryError):
        raise
    except Exception as error:
        raise RecordError(f"a {name} is refused by its type: {error}") from error
