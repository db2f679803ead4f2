"""Typed values to plain JSON values, and back by the type hints of their classes."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin
from uuid import UUID

import attrs
import typing_extensions

from session.errors import SnapshotError, shown
from session.strict_json import read_json

__all__ = [
    "AS_TEXT",
    "Field",
    "Place",
    "Reader",
    "encode",
    "fields_of",
    "is_record",
    "require_plain",
    "type_name",
]

Place = str | tuple["Place", str | int]
"""Where a value is: a name, or the place around it and the key or index in that; spelled in messages only."""

AS_TEXT: dict[type, Callable[[str], Any]] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    time: time.fromisoformat,
    UUID: UUID,
    Decimal: Decimal,
}
"""Types that are written as text, and how they are read from it."""
_AS_IT_IS = (bool, int, float, str, types.NoneType)
_COLLECTIONS: dict[Any, Callable[[list[Any]], Any]] = {
    tuple: tuple,
    list: list,
    Sequence: list,
    set: set,
    frozenset: frozenset,
    AbstractSet: frozenset,
}
"""Types that are written as lists, and how they are made from one."""
_QUALIFIERS = (
    Annotated,
    typing.Final,
    typing_extensions.Required,
    typing_extensions.NotRequired,
    typing_extensions.ReadOnly,
)
_MISMATCH = object()


def type_name(kind: type) -> str:
    """The name under which a type is written: ``module:QualifiedName``."""
    return f"{kind.__module__}:{kind.__qualname__}"


def require_plain(kind: type) -> None:
    """Refuse a class whose values a snapshot never builds.

    A record is built by the constructor that dataclasses or attrs wrote for it, never by another.

    Raises:
        SnapshotError: It is neither a dataclass, an attrs class, an enum, a TypedDict nor a plain type.
    """
    if kind in {*_AS_IT_IS, *AS_TEXT, tuple, list, dict, set, frozenset} or issubclass(kind, Enum):
        return
    builder = next(base for base in kind.__mro__ if "__init__" in vars(base))
    is_built = not vars(builder).keys().isdisjoint({"__dataclass_fields__", "__attrs_attrs__"})
    if not is_built and not typing_extensions.is_typeddict(kind):
        raise SnapshotError(
            f"slice type {shown(type_name(kind))} is not a record: "
            "a snapshot holds dataclasses, attrs classes and plain values"
        )


def encode(value: Any, place: Place) -> Any:
    """Turn a value into plain JSON values.

    Raises:
        SnapshotError: It holds something without a JSON form; the text names the place.
    """
    if isinstance(value, Enum):
        return encode(value.value, place)
    if isinstance(value, float) and not math.isfinite(value):
        raise SnapshotError(f"{_spell_place(place)}: {value} has no JSON form")
    if isinstance(value, _AS_IT_IS):
        return value
    if isinstance(value, tuple(AS_TEXT)):
        return value.isoformat() if isinstance(value, (date, time)) else str(value)
    if isinstance(value, (tuple, list)):
        return [encode(item, (place, index)) for index, item in enumerate(value)]
    if isinstance(value, AbstractSet):
        # Sorted, so that equal sets are written alike in every process.
        return sorted((encode(item, place) for item in value), key=json.dumps)
    if isinstance(value, Mapping):
        return _encode_mapping(value, place)
    kind: type = type(value)
    if is_record(kind):
        items = ((name, field.written, getattr(value, name)) for name, field in fields_of(kind)[0].items())
        return {
            name: encode(item if written is None else written(item), (place, name))
            for name, written, item in items
        }
    raise SnapshotError(f"{_spell_place(place)}: a {type(value).__name__} has no JSON form in a snapshot")


def _encode_mapping(value: Mapping[Any, Any], place: Place) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for key, item in value.items():
        plain = encode(key, place)
        if isinstance(plain, (list, dict)):
            what = f"a {type(key).__name__} cannot be a key in a snapshot"
            raise SnapshotError(f"{_spell_place(place)}: {what}")
        text = plain if isinstance(plain, str) else json.dumps(plain)
        if text in written:
            raise SnapshotError(f"{_spell_place(place)}: two keys are written as {shown(text)}")
        written[text] = encode(item, (place, text))
    return written


class Reader:
    """Turns plain JSON values into values of hinted types.

    One reader reads one document. It remembers the result of a value under a member of a union: unions
    inside unions would otherwise be tried over and over, twice as often at each level.
    """

    __slots__ = ("_known", "_tried")

    def __init__(self, types: Iterable[type] = ()) -> None:
        """Begin a document.

        Args:
            types: Classes that it may name, beside those of the loaded modules.

        Raises:
            SnapshotError: One of them is not a class.
        """
        self._known: dict[str, type] = {}
        for kind in types:
            if not isinstance(kind, type):
                raise SnapshotError(f"types= takes classes, got {shown(kind)}")
            self._known[type_name(kind)] = kind
            # Each program has another __main__: a class of one of them is found by the rest of its name.
            self._known.setdefault(f"__main__:{kind.__qualname__}", kind)
        # By identity; the value and the hint are kept beside the outcome, so that no other takes their place.
        self._tried: dict[tuple[int, int], tuple[object, object, Any]] = {}

    def find_type(self, name: str) -> type:
        """Find a class whose values a snapshot may hold, by its written name.

        Raises:
            SnapshotError: It is neither among ``types`` nor in a loaded module, as reading a snapshot never
                imports one; or a snapshot cannot hold its values.
        """
        if name in self._known:
            return self._known[name]
        module, _, path = name.partition(":")
        found: Any = sys.modules.get(module)
        for part in path.split("."):
            # Not getattr: a module may import on demand what it does not hold.
            found = vars(found).get(part) if isinstance(found, (types.ModuleType, type)) else None
        if not isinstance(found, type):
            remedy = "pass the class in types="
            if all(part.isidentifier() for part in (*module.split("."), *path.split("."))):
                is_loaded = module in sys.modules
                cause = f"{module} has no such class; " if is_loaded else f"import {module} first, or "
                remedy = cause + remedy
            raise SnapshotError(f"slice type {shown(name)} is not loaded: {remedy}")
        require_plain(found)
        return found

    def decode(self, data: Any, hint: Any, place: Place) -> Any:
        """Turn plain JSON values into a value of the hinted type.

        Raises:
            SnapshotError: The data is not of that type; the text names the place.
        """
        target = get_origin(hint) or hint
        if target is Any or target is object or isinstance(target, TypeVar):
            return data
        if target in _QUALIFIERS:
            return self.decode(data, get_args(hint)[0], place)
        if isinstance(target, typing.NewType):
            return self.decode(data, target.__supertype__, place)
        if type(target).__name__ == "TypeAliasType":  # of typing or of typing_extensions: two classes
            return self.decode(data, target.__value__, place)
        if target is Union or target is types.UnionType:
            return self._decode_union(data, hint, place)
        if isinstance(data, list) and target in _COLLECTIONS:
            return self._decode_items(data, hint, target, place)
        if isinstance(data, dict) and target in {dict, Mapping}:
            return self._decode_mapping(data, hint, place)
        if isinstance(target, type) and is_record(target):
            return self._decode_record(data, target, place)
        value = _decode_atom(data, target, get_args(hint))
        if value is _MISMATCH:
            raise SnapshotError(f"{_spell_place(place)}: expected {_spell(hint)}, got {_spell_data(data)}")
        return value

    def _decode_union(self, data: Any, hint: Any, place: Place) -> Any:
        members = [member for member in get_args(hint) if member is not types.NoneType]
        if data is None and len(members) < len(get_args(hint)):
            return None
        if len(members) == 1:
            return self.decode(data, members[0], place)
        for member in members:
            value = self._try(data, member, place)
            if value is not _MISMATCH:
                return value
        raise SnapshotError(f"{_spell_place(place)}: expected {_spell(hint)}, got {_spell_data(data)}")

    def _try(self, data: Any, member: Any, place: Place) -> Any:
        tried = self._tried.get((id(data), id(member)))
        if tried is not None:
            return tried[2]
        try:
            value = self.decode(data, member, place)
        except SnapshotError:
            value = _MISMATCH
        if isinstance(data, (list, dict)):
            self._tried[id(data), id(member)] = (data, member, value)
        return value

    def _decode_items(self, data: list[Any], hint: Any, target: type, place: Place) -> Any:
        hints = get_args(hint)
        if target is not tuple or hints[1:] == (...,) or not hints:
            hints = ((hints or (Any,))[0],) * len(data)
        if len(hints) != len(data):
            raise SnapshotError(f"{_spell_place(place)}: expected {len(hints)} items, got {len(data)}")
        items = [
            self.decode(item, inner, (place, index))
            for index, (item, inner) in enumerate(zip(data, hints, strict=True))
        ]
        try:
            found = _COLLECTIONS[target](items)
        except TypeError:
            raise SnapshotError(f"{_spell_place(place)}: an item cannot be in a set") from None
        if len(found) != len(items):
            raise SnapshotError(f"{_spell_place(place)}: an item is in the set twice")
        return found

    def _decode_mapping(self, data: dict[str, Any], hint: Any, place: Place) -> dict[Any, Any]:
        keys, inner = get_args(hint) or (str, Any)
        found = {
            self._decode_key(key, keys, place): self.decode(item, inner, (place, key))
            for key, item in data.items()
        }
        if len(found) != len(data):
            raise SnapshotError(f"{_spell_place(place)}: two keys mean the same {_spell(keys)}")
        return found

    def _decode_key(self, text: str, hint: Any, place: Place) -> Any:
        """A key as its hint requires: the string itself, or its content as JSON."""
        if hint is str or hint is Any:
            return text
        try:
            return self.decode(text, hint, place)
        except SnapshotError as refusal:
            try:
                plain = read_json(text)
                key = _MISMATCH if isinstance(plain, (str, list, dict)) else self.decode(plain, hint, place)
            except (ValueError, RecursionError):  # a SnapshotError is a ValueError
                key = _MISMATCH
            if key is _MISMATCH:
                raise refusal from None
            return key

    def _decode_record(self, data: Any, kind: type, place: Place) -> Any:
        fields, required = fields_of(kind)
        if not isinstance(data, dict) or not required <= data.keys() <= fields.keys():
            expected = ", ".join(fields) or "no fields"
            raise SnapshotError(f"{_spell_place(place)}: expected an object with {expected}")
        values = {
            field.argument: self.decode(data[name], field.hint, (place, name))
            for name, field in fields.items()
            if name in data
        }
        try:
            return kind(**values)
        except RecursionError:
            raise
        except Exception as error:
            raise SnapshotError(f"{_spell_place(place)}: {kind.__name__} refuses it: {error}") from error


def _decode_atom(data: Any, target: Any, options: tuple[Any, ...]) -> Any:
    """A value without parts, or ``_MISMATCH``."""
    if target is Literal:
        return data if any(data == option and type(data) is type(option) for option in options) else _MISMATCH
    if target is None or target is types.NoneType:
        return None if data is None else _MISMATCH
    if target in _AS_IT_IS and not (target is float and type(data) is int):
        return data if type(data) is target else _MISMATCH
    try:
        if target is float:
            return float(data)
        if isinstance(data, str) and target in AS_TEXT:
            return AS_TEXT[target](data)
        if isinstance(target, type) and issubclass(target, Enum):
            return target(data)
    except (ValueError, TypeError, ArithmeticError):
        return _MISMATCH
    return _MISMATCH


def is_record(kind: type) -> bool:
    """Whether values of a class have fields that are written: a dataclass, an attrs class, a TypedDict."""
    return dataclasses.is_dataclass(kind) or attrs.has(kind) or typing_extensions.is_typeddict(kind)


@attrs.frozen
class Field:
    """A field of a record.

    Attributes:
        hint: Its type hint.
        argument: The constructor's argument for it.
        written: Makes of its value the one to write: the ``snapshot`` of the field's metadata, if there
            is one. A record with such a field compares by what is written, or does not read back equal.
        default: The value that it has when it is not given; ``...`` where it must be, or is made anew.
        is_stored: Whether a store keeps it: not where the field's metadata has a ``stored`` that is False.
    """

    hint: Any
    argument: str
    written: Callable[[Any], Any] | None = None
    default: Any = ...
    is_stored: bool = True


@lru_cache(maxsize=256)
def fields_of(kind: Any) -> tuple[dict[str, Field], AbstractSet[str]]:
    """The fields that a record is made from, by name, in order; and the names of those that it must have."""
    hints = typing_extensions.get_type_hints(kind, include_extras=True)
    if typing_extensions.is_typeddict(kind):
        declared = kind.__required_keys__
        required = {name for name in hints if _is_required(hints[name], by_default=name in declared)}
        return {name: Field(hint, name) for name, hint in hints.items()}, required
    fields = {
        field.name: Field(
            hints.get(field.name, Any),
            getattr(field, "alias", None) or field.name,
            field.metadata.get("snapshot"),
            field.default if field.default in (None, False, True) else ...,
            field.metadata.get("stored", True),
        )
        for field in (attrs.fields(kind) if attrs.has(kind) else dataclasses.fields(kind))
        if field.init
    }
    return fields, fields.keys()


def _is_required(hint: Any, *, by_default: bool) -> bool:
    """Whether a TypedDict must have a key; with postponed annotations the class itself does not know."""
    origin = get_origin(hint)
    if origin in {Annotated, typing_extensions.ReadOnly}:
        return _is_required(get_args(hint)[0], by_default=by_default)
    if origin is typing_extensions.NotRequired:
        return False
    return by_default or origin is typing_extensions.Required


def _spell(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def _spell_data(data: Any) -> str:
    return type(data).__name__ if isinstance(data, (list, dict)) else shown(data)


def _spell_place(place: Place) -> str:
    parts: list[str] = []
    while isinstance(place, tuple):
        place, part = place
        if isinstance(part, int):
            parts.append(f"[{part}]")
        else:
            parts.append(f".{part}" if len(part) <= 80 and part.isprintable() else f"[{shown(part)}]")
    return place + "".join(reversed(parts))
