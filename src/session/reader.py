"""Plain JSON values to typed values, by the type hints of their classes."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from functools import cache, lru_cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import typing_extensions

from session.codec import (
    AS_IT_IS,
    AS_TEXT,
    Place,
    fields_of,
    is_record,
    require_plain,
    spell_place,
    type_name,
)
from session.errors import SnapshotError, shown
from session.strict_json import read_json

__all__ = ["Reader"]

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
_PLAIN = (bool, int, str)


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
        return _reading(hint)(self, data, place)

    def tried(self, data: Any, member: Any, read: Read, place: Place) -> Any:
        """The value that data is under a member of a union, or ``_MISMATCH``."""
        known = self._tried.get((id(data), id(member)))
        if known is not None:
            return known[2]
        try:
            value = read(self, data, place)
        except SnapshotError:
            value = _MISMATCH
        if isinstance(data, (list, dict)):
            self._tried[id(data), id(member)] = (data, member, value)
        return value


Read = Callable[[Reader, Any, Place], Any]
"""Turns plain JSON values into a value of one hint."""


def _reading(hint: Any) -> Read:
    """What reads the values of a hint: a hint is looked at once, however many values it has."""
    target = get_origin(hint) or hint
    if target is Any or target is object or isinstance(target, TypeVar):
        return lambda _reader, data, _place: data
    if target in _QUALIFIERS:
        return _reading(get_args(hint)[0])
    if isinstance(target, typing.NewType):
        return _reading(target.__supertype__)
    if type(target).__name__ == "TypeAliasType":  # of typing or of typing_extensions: two classes
        return lambda reader, data, place: reader.decode(data, target.__value__, place)  # it may name itself
    if target is Union or target is types.UnionType:
        return _reading_union(hint)
    if target in _COLLECTIONS:
        return _reading_items(hint, target)
    if target in {dict, Mapping}:
        return _reading_mapping(hint)
    if isinstance(target, type) and is_record(target):
        return _reading_record(target)
    return _reading_atom(hint, target)


def _reading_union(hint: Any) -> Read:
    takes_none = types.NoneType in get_args(hint)
    members = [(member, _reading(member)) for member in get_args(hint) if member is not types.NoneType]

    def read(reader: Reader, data: Any, place: Place) -> Any:
        if data is None and takes_none:
            return None
        if len(members) == 1:
            return members[0][1](reader, data, place)
        for member, read_member in members:
            value = reader.tried(data, member, read_member, place)
            if value is not _MISMATCH:
                return value
        raise _mismatch(data, hint, place)

    return read


def _reading_items(hint: Any, target: Any) -> Read:
    hints = get_args(hint)
    is_fixed = target is tuple and bool(hints) and hints[1:] != (...,)
    reads = [_reading(each) for each in (hints if is_fixed else (hints or (Any,))[:1])]
    make = _COLLECTIONS[target]

    def read(reader: Reader, data: Any, place: Place) -> Any:
        if not isinstance(data, list):
            raise _mismatch(data, hint, place)
        if is_fixed and len(reads) != len(data):
            raise SnapshotError(f"{spell_place(place)}: expected {len(reads)} items, got {len(data)}")
        each = reads if is_fixed else reads * len(data)
        items = [
            read(reader, item, (place, index))
            for index, (item, read) in enumerate(zip(data, each, strict=True))
        ]
        try:
            found = make(items)
        except TypeError:
            raise SnapshotError(f"{spell_place(place)}: an item cannot be in a set") from None
        if len(found) != len(items):
            raise SnapshotError(f"{spell_place(place)}: an item is in the set twice")
        return found

    return read


def _reading_mapping(hint: Any) -> Read:
    keys, inner = get_args(hint) or (str, Any)
    read_key, read_item = _reading(keys), _reading(inner)
    is_text = keys is str or keys is Any

    def key_of(reader: Reader, text: str, place: Place) -> Any:
        """A key as its hint requires: the string itself, or its content as JSON."""
        if is_text:
            return text
        try:
            return read_key(reader, text, place)
        except SnapshotError as refusal:
            try:
                plain = read_json(text)
                key = _MISMATCH if isinstance(plain, (str, list, dict)) else read_key(reader, plain, place)
            except (ValueError, RecursionError):  # a SnapshotError is a ValueError
                key = _MISMATCH
            if key is _MISMATCH:
                raise refusal from None
            return key

    def read(reader: Reader, data: Any, place: Place) -> Any:
        if not isinstance(data, dict):
            raise _mismatch(data, hint, place)
        found = {
            key_of(reader, key, place): read_item(reader, item, (place, key)) for key, item in data.items()
        }
        if len(found) != len(data):
            raise SnapshotError(f"{spell_place(place)}: two keys mean the same {_spell(keys)}")
        return found

    return read


@lru_cache(maxsize=256)
def _reading_record(kind: type) -> Read:
    @cache
    def parts() -> list[tuple[str, str, Any, Read]]:
        """By what each field is read, found when it is needed: a record may hold itself."""
        found = fields_of(kind)[0].items()
        return [
            (name, field.argument, field.hint if field.hint in _PLAIN else None, _reading(field.hint))
            for name, field in found
        ]

    def read(reader: Reader, data: Any, place: Place) -> Any:
        fields, required = fields_of(kind)
        if not isinstance(data, dict) or not required <= data.keys() <= fields.keys():
            expected = ", ".join(fields) or "no fields"
            raise SnapshotError(f"{spell_place(place)}: expected an object with {expected}")
        values = {}
        for name, argument, plain, read_part in parts():
            if name in data:
                item = data[name]
                values[argument] = item if type(item) is plain else read_part(reader, item, (place, name))
        try:
            return kind(**values)
        except RecursionError:
            raise
        except Exception as error:
            raise SnapshotError(f"{spell_place(place)}: {kind.__name__} refuses it: {error}") from error

    return read


def _reading_atom(hint: Any, target: Any) -> Read:
    options = get_args(hint) if target is Literal else ()
    texts = frozenset(option for option in options if type(option) is str)
    plain = target if target in _PLAIN else None

    def read(_reader: Reader, data: Any, place: Place) -> Any:
        kind = type(data)
        if kind is plain or (kind is str and data in texts):
            return data
        value = _decode_atom(data, target, options)
        if value is _MISMATCH:
            raise _mismatch(data, hint, place)
        return value

    return read


def _decode_atom(data: Any, target: Any, options: tuple[Any, ...]) -> Any:
    """A value without parts, or ``_MISMATCH``."""
    if target is Literal:
        return data if any(data == option and type(data) is type(option) for option in options) else _MISMATCH
    if target is None or target is types.NoneType:
        return None if data is None else _MISMATCH
    if target in AS_IT_IS and not (target is float and type(data) is int):
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


def _mismatch(data: Any, hint: Any, place: Place) -> SnapshotError:
    return SnapshotError(f"{spell_place(place)}: expected {_spell(hint)}, got {_spell_data(data)}")


def _spell(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def _spell_data(data: Any) -> str:
    return type(data).__name__ if isinstance(data, (list, dict)) else shown(data)
