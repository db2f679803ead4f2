"""Typed values to plain JSON values, and back by the type hints of their classes."""

from __future__ import annotations

import dataclasses
import math
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin
from uuid import UUID

import attrs

from session.errors import SnapshotError

__all__ = ["decode", "encode", "type_name", "type_of"]


def type_name(kind: type) -> str:
    """The name under which a type is written: ``module:QualifiedName``."""
    return f"{kind.__module__}:{kind.__qualname__}"


def type_of(name: str) -> type:
    """Find a class by its written name among the modules that are loaded already.

    Raises:
        SnapshotError: There is none; reading a snapshot never imports a module.
    """
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        # Not getattr: a module may import on demand what it does not hold.
        found = vars(found).get(part) if isinstance(found, (types.ModuleType, type)) else None
    if not isinstance(found, type):
        raise SnapshotError(f"slice type {name!r} is not loaded: import it first, or pass it in types=")
    return found


def encode(value: Any, place: str) -> Any:
    """Turn a value into plain JSON values.

    Raises:
        SnapshotError: It holds something without a JSON form; the text names the place.
    """
    if isinstance(value, Enum):
        return encode(value.value, place)
    if isinstance(value, float) and not math.isfinite(value):
        raise SnapshotError(f"{place}: {value} has no JSON form")
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [encode(item, f"{place}[{index}]") for index, item in enumerate(value)]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {key: encode(item, f"{place}.{key}") for key, item in value.items()}
    kind: type = type(value)
    if _is_record(kind):
        return {
            name: encode(field.written(getattr(value, name)), f"{place}.{name}")
            for name, field in _fields(kind).items()
        }
    raise SnapshotError(f"{place}: a {type(value).__name__} has no JSON form in a snapshot")


def decode(data: Any, hint: Any, place: str) -> Any:
    """Turn plain JSON values into a value of the hinted type.

    Raises:
        SnapshotError: The data is not of that type; the text names the place.
    """
    target = get_origin(hint) or hint
    if target is Any or target is object or isinstance(target, TypeVar):
        return data
    if target is Annotated:
        return decode(data, get_args(hint)[0], place)
    if target is Union or target is types.UnionType:
        return _decode_union(data, hint, place)
    if target in {tuple, list, Sequence} and isinstance(data, list):
        return _decode_items(data, hint, target, place)
    if target in {dict, Mapping} and isinstance(data, dict):
        keys, inner = get_args(hint) or (str, Any)
        if keys is str or keys is Any:
            return {key: decode(item, inner, f"{place}.{key}") for key, item in data.items()}
    if isinstance(target, type) and _is_record(target):
        return _decode_record(data, target, place)
    value = _decode_atom(data, target, get_args(hint))
    if value is _MISMATCH:
        raise SnapshotError(f"{place}: expected {_spell(hint)}, got {_spell_data(data)}")
    return value


_MISMATCH = object()


def _decode_atom(data: Any, target: Any, options: tuple[Any, ...]) -> Any:
    """A value without parts, or ``_MISMATCH``."""
    if target is Literal:
        return data if any(data == option and type(data) is type(option) for option in options) else _MISMATCH
    if target is None or target is types.NoneType:
        return None if data is None else _MISMATCH
    if target is float and type(data) is int:
        return float(data)
    if target in {bool, int, float, str}:
        return data if type(data) is target else _MISMATCH
    if isinstance(target, type) and issubclass(target, (Enum, datetime, UUID)):
        try:
            return datetime.fromisoformat(data) if issubclass(target, datetime) else target(data)
        except (ValueError, TypeError, AttributeError):
            return _MISMATCH
    return _MISMATCH


def _decode_union(data: Any, hint: Any, place: str) -> Any:
    members = [member for member in get_args(hint) if member is not types.NoneType]
    if data is None and len(members) < len(get_args(hint)):
        return None
    if len(members) == 1:
        return decode(data, members[0], place)
    for member in members:
        try:
            return decode(data, member, place)
        except SnapshotError:
            continue
    raise SnapshotError(f"{place}: expected {_spell(hint)}, got {_spell_data(data)}")


def _decode_items(data: list[Any], hint: Any, target: type, place: str) -> Any:
    hints = get_args(hint)
    if target is not tuple or hints[1:] == (...,) or not hints:
        hints = ((hints or (Any,))[0],) * len(data)
    if len(hints) != len(data):
        raise SnapshotError(f"{place}: expected {len(hints)} items, got {len(data)}")
    items = [
        decode(item, inner, f"{place}[{index}]")
        for index, (item, inner) in enumerate(zip(data, hints, strict=True))
    ]
    return tuple(items) if target is tuple else items


def _decode_record(data: Any, kind: type, place: str) -> Any:
    fields = _fields(kind)
    if not isinstance(data, dict) or data.keys() != fields.keys():
        raise SnapshotError(f"{place}: expected an object with {', '.join(fields) or 'no fields'}")
    values = {
        field.argument: decode(data[name], field.hint, f"{place}.{name}") for name, field in fields.items()
    }
    try:
        return kind(**values)
    except Exception as error:
        raise SnapshotError(f"{place}: {kind.__name__} refuses it: {error}") from error


def _is_record(kind: type) -> bool:
    return dataclasses.is_dataclass(kind) or attrs.has(kind)


@attrs.frozen
class _Field:
    """A field of a record.

    Attributes:
        hint: Its type hint.
        argument: The constructor's argument for it.
        written: What makes of its value the one to write: the ``snapshot`` of the field's metadata. A
            record with such a field compares by what is written, or it does not read back equal.
    """

    hint: Any
    argument: str
    written: Callable[[Any], Any]


@lru_cache(maxsize=256)
def _fields(kind: type) -> dict[str, _Field]:
    """The fields that a record is made from, by name, in order."""
    hints = typing.get_type_hints(kind, include_extras=True)
    fields: Any = attrs.fields(kind) if attrs.has(kind) else dataclasses.fields(kind)
    return {
        each.name: _Field(
            hints.get(each.name, Any),
            getattr(each, "alias", None) or each.name,
            each.metadata.get("snapshot", _as_it_is),
        )
        for each in fields
        if each.init
    }


def _as_it_is(value: Any) -> Any:
    return value


def _spell(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def _spell_data(data: Any) -> str:
    return repr(data) if isinstance(data, (str, int, float, bool, type(None))) else type(data).__name__
