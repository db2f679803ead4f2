"""The rules that a record type brings along: field metadata, validators, ``__post_init__``."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from itertools import repeat
from typing import Any

import attrs
import typing_extensions

from planning.errors import Problem
from planning.tools.parameters import words
from planning.tools.parameters.fields import (
    Field,
    class_of,
    fields_of,
    is_map,
    is_read_only,
    is_record,
    nested_records,
    resolved,
)

__all__ = [
    "all_records",
    "checks_itself",
    "has_converters",
    "has_rules",
    "inside",
    "needs_constructor",
    "rule_problems",
]

Path = tuple[str | int, ...]

_LIMITS = {"min_length": "minLength", "max_length": "maxLength", "min_items": "minItems"}
_RULES = frozenset({"check", *_LIMITS})


def all_records(kind: Any) -> set[Any]:
    """The record type and all that its fields name, however deep."""
    found, waiting = set[Any](), [kind]
    while waiting:
        record = waiting.pop()
        if record not in found:
            found.add(record)
            waiting += [nested for field in fields_of(record) for nested in nested_records(field.hint)]
    return found


def has_rules(kind: Any) -> bool:
    """Whether a field's metadata limits it."""
    return any(field.metadata.keys() & _RULES for field in fields_of(kind))


def checks_itself(kind: Any) -> bool:
    """Whether making an instance may refuse values of the right types."""
    record = class_of(kind)
    if attrs.has(record):
        return hasattr(record, "__attrs_post_init__") or any(
            field.validator for field in attrs.fields(record)
        )
    return hasattr(record, "__post_init__")


def has_converters(kind: Any) -> bool:
    """Whether an attrs class changes what it is given; msgspec passes its converters over."""
    record = class_of(kind)
    return attrs.has(record) and any(field.converter for field in attrs.fields(record))


def needs_constructor(kind: Any) -> bool:
    """Whether only its own constructor can make an instance, because msgspec knows too little of it.

    It wants to be sent what a constructor does not take, and passes over what attrs converts; and it
    does not know ``ReadOnly``, attributes without a type, and defaults that are made of other fields.
    """
    record = class_of(kind)
    if dataclasses.is_dataclass(record):
        return not all(field.init for field in dataclasses.fields(record))
    if attrs.has(record):
        return any(
            field.converter
            or not field.init
            or field.type is None
            or getattr(field.default, "takes_self", False)
            for field in attrs.fields(record)
        )
    return typing_extensions.is_typeddict(record) and is_read_only(record)


def rule_problems(kind: Any, data: Any, *, limits: bool, path: Path = ()) -> Iterator[Problem]:
    """What the fields' metadata has against the values that are of the right type.

    Args:
        kind: The record type.
        data: The arguments; values of another type are passed over.
        limits: Whether the limits count too, and not the ``check`` functions alone.
        path: Where the data stands.
    """
    if not isinstance(data, Mapping):
        return
    for field in fields_of(kind):
        if field.name not in data:
            continue
        value, place = data[field.name], (*path, field.name)
        check = field.metadata.get("check")
        if check is not None:
            if isinstance(value, str):
                yield from (Problem(message, words.spell(place)) for message in check(value))
        elif limits:
            yield from _broken_limits(field, value, place)
        for nested, item, inner in inside(field, value, place):
            yield from rule_problems(nested, item, limits=limits, path=inner)


def _broken_limits(field: Field, value: Any, path: Path) -> Iterator[Problem]:
    for key, keyword in _LIMITS.items():
        limit = field.metadata.get(key)
        if limit is None or not isinstance(value, (list, tuple) if key == "min_items" else str):
            continue
        is_broken = len(value) > limit if key == "max_length" else len(value) < limit
        problem = words.out_of_bounds(path, keyword, limit, value) if is_broken else None
        if problem is not None:
            yield problem


def inside(field: Field, value: Any, path: Path) -> Iterator[tuple[Any, Mapping[str, Any], Path]]:
    """The nested records of a field's value, each with its type and place."""
    if any(True for _ in nested_records(field.hint)):
        yield from _inside(field.hint, value, path)


def _inside(hint: Any, value: Any, path: Path) -> Iterator[tuple[Any, Mapping[str, Any], Path]]:
    hint = resolved(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if is_record(class_of(hint)):
        if isinstance(value, Mapping):
            yield hint, value, path
    elif origin is typing.Annotated:
        yield from _inside(arguments[0], value, path)
    elif origin in {typing.Union, types.UnionType}:
        if sum(is_record(class_of(option)) for option in arguments) < 2:  # else it takes a tag to tell which
            for option in arguments:
                yield from _inside(option, value, path)
    elif is_map(hint) and isinstance(value, Mapping):
        for name, item in value.items():
            yield from _inside(arguments[1], item, (*path, str(name)))
    elif arguments and isinstance(value, (list, tuple)):
        is_fixed = origin is tuple and arguments[-1] is not ...
        for place, (each, item) in enumerate(zip(arguments if is_fixed else repeat(arguments[0]), value)):  # noqa: B905 - as many as there are
            yield from _inside(each, item, (*path, place))
