"""Values as a condition sees them: as the JSON that is recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final

from planning.errors import writable
from planning.tools.result import field_names, plain
from planning.workflow.conditions.grammar import LARGEST
from planning.workflow.values import KEYS, is_written, json_keys


class _Opaque:
    """A value without a JSON form: it is there, equals nothing, and is asked nothing."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # it is never a key

    def __eq__(self, other: object) -> bool:
        return False

    def __bool__(self) -> bool:
        raise TypeError


OPAQUE: Final = _Opaque()
# How to read a value of a subclass, without its own methods where the base class is built in.
_BASES: Final[dict[type, Callable[[Any], Any]]] = {
    str: str.__str__,
    float: float.__float__,
    int: int.__index__,
    dict: lambda value: dict(dict.items(value)),
    list: lambda value: [*list.__iter__(value)],
    tuple: lambda value: [*tuple.__iter__(value)],
    set: lambda value: [*set.__iter__(value)],
    frozenset: lambda value: [*frozenset.__iter__(value)],
    Mapping: lambda value: {key: value[key] for key in value},
}


def view(value: Any) -> Any:
    """A value as None, a bool, a number, a str, a list, a dict or ``OPAQUE``; the items are as they were."""
    kind = type(value)
    if kind is str:
        return writable(value)
    if kind is int and -LARGEST <= value <= LARGEST:
        return value
    if kind is int or kind is float:
        form = plain(value)  # where JSON has no such number, text
        return form if type(form) is not int else OPAQUE
    if value is None or kind is bool or kind is list:
        return value
    if kind is dict:
        is_plain = set(map(type, value)) <= {str} and all(map(str.isascii, value))
        return value if is_plain else {_name(key): item for key, item in value.items()}
    if issubclass(kind, Enum):
        return view(value.value)
    for base, read in _BASES.items():
        if issubclass(kind, base):
            return view(read(value))
    names = None if hasattr(kind, "model_dump") else field_names(value)
    if names is not None:
        return view({name: getattr(value, name) for name in names})
    return view(plain(value)) if is_written(kind) else OPAQUE


def _name(key: Any) -> str:
    """A key as JSON has it."""
    if issubclass(type(key), str):
        return writable(str.__str__(key))
    return next(iter(json_keys([key]))) if issubclass(type(key), KEYS) else ""
