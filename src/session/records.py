"""Values to JSON that says itself what they are, and back: what a store keeps of a session.

A snapshot is read by the type hints of its classes; a record names its type and the type's format, for events
hold values of which no hint says anything. Only registered types are built from it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import partial
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import attrs

from session.codec import (
    AS_TEXT,
    Field,
    Proof,
    fields_of,
    format_of,
    is_record,
    require_plain,
    text_of,
    type_name,
)
from session.errors import SnapshotError, StoreError, shown
from session.events import PromptExecuted, PromptRendered, SessionEvent, ToolFailed, ToolInvoked

__all__ = ["Records", "Unread", "Upcasters"]

Upcasters = Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]
"""By the name of a type and its old format, ``module:Name@1``: makes of its fields those of the next format.

The fields may say ``"!"`` anew, where the type has another name now."""

_KIND = "!"
_ITEMS = {"tuple": tuple, "list": list, "set": set, "frozenset": frozenset}
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


@attrs.frozen
class _Plan:
    """How a field is written and read.

    Attributes:
        name: Its name.
        argument: The constructor's argument for it, under which it is written.
        default: None, False or True, where that is the field's default: it is not written.
        text: Reads it where its hint is one of the types that are written as text; and that type.
        is_text: Whether its hint is that type alone, or None.
        is_name: Whether it is a name of an event of this package: always text.
        of: The record type that its hint names, or that of a tuple's items: such a value needs no name.
        is_tuple: Whether its hint is a tuple.
        is_open: Whether a value of any type may be there: of one that is not registered, its fields are kept.
        written: Makes of its value the one to write.
    """

    name: str
    argument: str
    default: Any
    text: tuple[type, Callable[[str], Any]] | None
    is_text: bool
    is_name: bool
    of: type | None
    is_tuple: bool
    is_open: bool
    written: Callable[[Any], Any] | None


class Records:
    """Writes and reads the records of one session; it knows the events of this package."""

    def __init__(self, upcasters: Upcasters | None = None) -> None:
        self.upcasters: Upcasters = upcasters or {}
        self._known: dict[str, type] = {}
        self._names: dict[type, str] = {}
        self._plans: dict[type, tuple[_Plan, ...]] = {}
        self._proofs: dict[type, Proof] = {}
        self.learn((ToolInvoked, ToolFailed, PromptRendered, PromptExecuted))

    def learn(self, types: Iterable[type]) -> None:
        """Register types, and those that the hints of their fields name."""
        found = list(types)
        while found:
            kind = found.pop()
            if kind in self._names or not (is_record(kind) or issubclass(kind, Enum)):
                continue
            try:
                require_plain(kind)
                hints = [field.hint for field in fields_of(kind)[0].values()] if is_record(kind) else []
            except (SnapshotError, NameError, TypeError):
                continue  # a class that is no record, or whose hints cannot be read: its values are refused
            name = type_name(kind)
            self._names[kind] = name if format_of(kind) == 1 else f"{name}@{format_of(kind)}"
            self._known[name] = kind
            self._known.setdefault(f"__main__:{kind.__qualname__}", kind)
            while hints:
                hint = hints.pop()
                hints += get_args(hint)
                found += [hint] if isinstance(hint, type) else []

    def types(self) -> Iterable[type]:
        """The registered types."""
        return tuple(self._names)

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
        if kind is dict:
            return self._write_dict(value, is_open=is_open)
        if kind is list:
            return [self.write(item, is_open=is_open) for item in value]
        if kind.__name__ in _ITEMS and kind is _ITEMS[kind.__name__]:
            items = [self.write(item, is_open=is_open) for item in value]
            return {_KIND: kind.__name__, "items": items if kind is tuple else sorted(items, key=json.dumps)}
        if kind is float and math.isfinite(value):
            return value
        if kind in AS_TEXT:
            return {_KIND: kind.__name__, "is": text_of(value)}
        return self._write_unknown(value, kind, is_open=is_open)

    def _write_known(self, value: Any, kind: type, *, is_open: bool, is_named: bool = True) -> dict[str, Any]:
        written = self._written(value, kind, is_open=is_open, is_named=is_named)
        if kind not in self._proofs:
            self._proofs[kind] = Proof(kind)
        why = None if is_open else self._proofs[kind].refusal(value)
        if why is not None:
            raise StoreError(f"a {type_name(kind)} cannot be stored: {why}")
        return written

    def _written(self, value: Any, kind: type, *, is_open: bool, is_named: bool = True) -> dict[str, Any]:
        written: dict[str, Any] = {_KIND: self._names[kind]} if is_named else {}
        if isinstance(value, Enum):
            written["is"] = self.write(value.value)
            return written
        for plan in self._plans_of(kind):
            item = getattr(value, plan.name)
            if item is plan.default:
                continue
            if plan.written is not None and item is not None:
                item = plan.written(item)
            if type(item) is str and plan.text is None:
                written[plan.argument] = item
            elif type(item) is str or _is_misfit(item, plan):
                raise StoreError(f"{kind.__qualname__}.{plan.name} cannot be stored: it is {shown(item)}")
            elif plan.text is not None and type(item) is plan.text[0]:
                written[plan.argument] = text_of(item)
            elif plan.is_tuple and type(item) is tuple:
                written[plan.argument] = [self._write_part(each, plan, is_open=is_open) for each in item]
            elif plan.is_tuple and type(item) is list:
                written[plan.argument] = {_KIND: "list", "items": self.write(item, is_open=is_open)}
            else:
                written[plan.argument] = self._write_part(item, plan, is_open=is_open)
        return written

    def _write_part(self, item: Any, plan: _Plan, *, is_open: bool) -> Any:
        kind = type(item)
        if plan.of is None:
            return self.write(item, is_open=is_open or plan.is_open)
        if kind is plan.of and self._names.get(kind) == type_name(kind):
            return self._write_known(item, kind, is_open=is_open, is_named=False)
        if kind is dict:
            return self._write_pairs(item, is_open=is_open)
        return self.write(item, is_open=is_open)

    def _write_dict(self, value: dict[Any, Any], *, is_open: bool) -> dict[str, Any]:
        if all(type(key) is str and key != _KIND for key in value):
            return {key: self.write(item, is_open=is_open) for key, item in value.items()}
        return self._write_pairs(value, is_open=is_open)

    def _write_pairs(self, value: dict[Any, Any], *, is_open: bool) -> dict[str, Any]:
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
                [name for name, field in fields_of(kind)[0].items() if field.is_stored]
                if is_record(kind)
                else getattr(kind, "model_fields", None)
            )
            if names is not None:  # of pydantic, where it is not a record
                return {name: self.write(getattr(value, name), is_open=True) for name in names}
        if is_record(kind):
            raise StoreError(
                f"a {type_name(kind)} cannot be stored: register a reducer for it or pass the class to "
                "session.register_types"
            )
        given = shown(value) if kind is float else f"a {type_name(kind)}"
        remedy = "use text, numbers, lists or records"
        raise StoreError(f"{given} has no JSON form and cannot be stored: {remedy}")

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
            return [self.read(item, is_open=is_open, is_lenient=is_lenient) for item in data]
        if kind is not dict:
            return data
        name = data.get(_KIND)
        if name is None:
            return {
                key: self.read(item, is_open=is_open, is_lenient=is_lenient) for key, item in data.items()
            }
        if name in _ITEMS:
            items = self.read(_part(data, "items", list), is_open=is_open, is_lenient=is_lenient)
            return _built(name, _ITEMS[name], items)
        if name == "dict":
            pairs = self.read(_part(data, "items", list), is_open=is_open, is_lenient=is_lenient)
            return _built(name, dict, pairs)
        if name in _TEXTS:
            return _built(name, _TEXTS[name][1], _part(data, "is", str))
        return self._read_known(data, str(name), is_open=is_open, is_lenient=is_lenient)

    def _read_known(self, data: dict[str, Any], name: str, *, is_open: bool, is_lenient: bool) -> Any:
        while name in self.upcasters or f"{name}@1" in self.upcasters:
            fields = {key: item for key, item in data.items() if key != _KIND}
            bare, _, number = name.partition("@")
            data = _built(name, self.upcasters[name if number else f"{name}@1"], fields)
            name = data.setdefault(_KIND, f"{bare}@{int(number or 1) + 1}")
        bare, _, number = name.partition("@")
        kind = self._known.get(bare)
        if kind is None:
            if is_open or is_lenient:
                fields = {key: item for key, item in data.items() if key != _KIND}
                kept = self.read(fields, is_open=True)
                return kept if is_open else Unread(bare, kept)
            raise StoreError(
                f"{shown(bare)} is not known here: import its module and register a reducer for it, or pass "
                "the class to session.register_types"
            )
        known = format_of(kind)
        if number not in {"" if known == 1 else str(known), str(known)}:
            newer = number.isdigit() and int(number) > known
            remedy = "use a newer release" if newer else "give the store an upcaster for it"
            raise StoreError(f"{bare} is stored in format {number or 1}; known here is {known}: {remedy}")
        if issubclass(kind, Enum):
            return _built(bare, kind, self.read(data.get("is")))
        values: dict[str, Any] = {}
        for plan in self._plans_of(kind):
            if plan.argument not in data:
                continue
            item = data[plan.argument]
            if type(item) is str:
                values[plan.argument] = item if plan.text is None else _built(bare, plan.text[1], item)
            elif _is_misfit(item, plan):
                raise StoreError(f"a stored {bare} has {shown(item)} for its {plan.name}")
            elif plan.is_tuple and type(item) is list:
                read = partial(self._read_part, plan=plan, is_open=is_open, is_lenient=is_lenient)
                values[plan.argument] = tuple([each if type(each) is str else read(each) for each in item])
            else:
                values[plan.argument] = self._read_part(item, plan, is_open=is_open, is_lenient=is_lenient)
        if len(values) != len(data) - (_KIND in data):
            raise StoreError(f"a stored {bare} has fields that are not known here")
        return _built(bare, kind, **values) if not is_open else _built_or_kept(bare, kind, values)

    def _read_part(self, item: Any, plan: _Plan, *, is_open: bool, is_lenient: bool) -> Any:
        if plan.of is not None and type(item) is dict and _KIND not in item:
            return self._read_known(item, type_name(plan.of), is_open=is_open, is_lenient=is_lenient)
        return self.read(item, is_open=is_open or plan.is_open, is_lenient=is_lenient)

    def _plans_of(self, kind: type) -> tuple[_Plan, ...]:
        found = self._plans.get(kind)
        if found is None:
            found = self._plans[kind] = tuple(
                self._plan_of(kind, name, field)
                for name, field in fields_of(kind)[0].items()
                if field.is_stored
            )
        return found

    def _plan_of(self, kind: type, name: str, field: Field) -> _Plan:
        members = _members(field.hint)
        texts = [member for member in members if member in AS_TEXT]
        tuples = [member for member in members if get_origin(member) is tuple]
        parts = [part for each in tuples for part in get_args(each) if part is not ...] or members
        records = [part for part in parts if isinstance(part, type) and is_record(part)]
        return _Plan(
            name=name,
            argument=field.argument,
            default=field.default,
            text=(texts[0], AS_TEXT[texts[0]]) if len(texts) == 1 and str not in members else None,
            is_text=len(texts) == len(members) == 1,
            is_name=field.hint is str and kind.__module__ == SessionEvent.__module__,
            of=records[0] if len(records) == len(parts) == 1 else None,
            is_tuple=bool(tuples),
            # A session event records what happened; what is reduced must be what it was.
            is_open=issubclass(kind, SessionEvent) and Any in members and name != "value",
            written=field.written,
        )


def _is_misfit(item: Any, plan: _Plan) -> bool:
    """Whether a value can be no value of a field: of a name, or of a type that is written as text."""
    kind = type(item)
    return kind is not str if plan.is_name else plan.is_text and kind in {bool, int, float, list}


def _members(hint: Any) -> list[Any]:
    """The types that a hint allows, without None."""
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    members = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
    return [member for member in members if member is not NoneType]


def _part(data: dict[str, Any], name: str, kind: type) -> Any:
    item = data.get(name)
    if len(data) != 2 or not isinstance(item, kind):
        raise StoreError(f"a stored {shown(data[_KIND])} has another form than it must have")
    return item


def _built_or_kept(name: str, kind: type, values: dict[str, Any]) -> Any:
    """A record where any value may be: its fields where its type refuses them."""
    try:
        return _built(name, kind, **values)
    except StoreError:
        return values


def _built(name: str, build: Callable[..., Any], /, *arguments: Any, **fields: Any) -> Any:
    """What a constructor makes of what is stored.

    Raises:
        StoreError: It refuses it.
    """
    try:
        return build(*arguments, **fields)
    except (RecursionError, MemoryError):
        raise
    except Exception as error:
        raise StoreError(f"a stored {name} is refused by its type: {error}") from error
