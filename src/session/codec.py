"""The types that have a JSON form, and the fields of records; `records` writes and reads their values."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Callable
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any, get_args, get_origin
from uuid import UUID

import attrs
import typing_extensions

from session.errors import SnapshotError, shown
from session.events import SessionEvent
from session.hints import Check, check_of, is_any, members_of, named_in

__all__ = [
    "AS_TEXT",
    "Field",
    "Proof",
    "fields_of",
    "format_of",
    "is_record",
    "loaded_type",
    "parts_of",
    "require_plain",
    "text_of",
    "type_name",
]

AS_TEXT: dict[type, Callable[[str], Any]] = {
    datetime: datetime.fromisoformat,
    date: date.fromisoformat,
    time: time.fromisoformat,
    UUID: UUID,
    Decimal: Decimal,
}
"""Types that are written as text, and how they are read from it."""
NO_DEFAULT = object()
"""The default of a field that is always written: no value of a field is this."""
_AS_IT_IS = (bool, int, str)
_PLAIN = {bool, int, float, str, types.NoneType, tuple, list, dict, set, frozenset, *AS_TEXT}


def type_name(kind: type) -> str:
    """The name under which a type is written: ``module:QualifiedName``."""
    return f"{kind.__module__}:{kind.__qualname__}"


def require_plain(kind: Any) -> None:
    """Refuse a class whose values are never built from JSON.

    A record is built by the constructor that dataclasses or attrs wrote for it, never by another.

    Raises:
        SnapshotError: It is neither a dataclass, an attrs class, an enum, a TypedDict nor a plain type.
        NameError: A type hint of a record cannot be resolved.
        TypeError: Likewise.
    """
    if kind in _PLAIN or issubclass(kind, Enum):
        return
    builder = next(base for base in kind.__mro__ if "__init__" in vars(base))
    is_built = not vars(builder).keys().isdisjoint({"__dataclass_fields__", "__attrs_attrs__"})
    if not is_built and not typing_extensions.is_typeddict(kind):
        raise SnapshotError(
            f"slice type {shown(type_name(kind))} is not a record: "
            "a snapshot holds dataclasses, attrs classes and plain values"
        )
    parts_of(kind)


def format_of(kind: type) -> int:
    """The number of the format in which a store has values of a class."""
    number = getattr(kind, "RECORD_FORMAT", 1)
    return number if type(number) is int else 1


def text_of(value: Any) -> str:
    """The text of a value of one of the types that are written as text."""
    return value.isoformat() if isinstance(value, (date, time)) else str(value)


def is_record(kind: type) -> bool:
    """Whether values of a class have fields that are written: a dataclass, an attrs class, a TypedDict."""
    return dataclasses.is_dataclass(kind) or attrs.has(kind) or typing_extensions.is_typeddict(kind)


@attrs.frozen
class Field:
    """A field of a record, and how it is written and read.

    Attributes:
        name: Its name.
        argument: The constructor's argument for it, under which it is written.
        hint: Its type hint.
        default: None, False or True, where that is the field's default: it is not written. Else
            ``NO_DEFAULT``.
        written: Makes of its value the one to write: the ``snapshot`` of the field's metadata, if there
            is one. A record with such a field compares by what is written, or does not read back equal.
        is_stored: Whether it is written: not where the field's metadata has a ``stored`` that is False.
        text: Reads it where its hint is one of the types that are written as text; and that type.
        is_text: Whether its hint is that type alone, or None.
        is_name: Whether it is a name of an event of this package: always text.
        of: The record type that its hint names, or that of a tuple's items: such a value needs no name.
        is_tuple: Whether its hint is a tuple.
        is_open: Whether a value of any type may be there: of one that is not registered, its fields are kept.
        fits: Says whether a value is one of its hint.
        plain: The types of which its hint allows any value, and that are written as they are.
    """

    name: str
    argument: str
    hint: Any
    default: Any
    written: Callable[[Any], Any] | None
    is_stored: bool
    text: tuple[type, Callable[[str], Any]] | None
    is_text: bool
    is_name: bool
    of: type | None
    is_tuple: bool
    is_open: bool
    fits: Check
    plain: frozenset[type]

    def misfits(self, value: Any) -> bool:
        """Whether no value of it is written like this: as text, where it is a name or read from text."""
        kind = type(value)
        return kind is not str if self.is_name else self.is_text and kind in {bool, int, float, list}


@lru_cache(maxsize=256)
def fields_of(kind: Any) -> tuple[Field, ...]:
    """The fields that a record is made from, in order."""
    hints = typing_extensions.get_type_hints(kind, include_extras=True)
    if typing_extensions.is_typeddict(kind):
        return tuple([_field_of(kind, name, hint, name) for name, hint in hints.items()])
    return tuple([
        _field_of(
            kind,
            field.name,
            hints.get(field.name, Any),
            getattr(field, "alias", None) or field.name,
            next((each for each in (None, False, True) if each is field.default), NO_DEFAULT),
            field.metadata,
        )
        for field in (attrs.fields(kind) if attrs.has(kind) else dataclasses.fields(kind))
        if field.init
    ])  # fmt: skip


def _field_of(
    kind: type,
    name: str,
    hint: Any,
    argument: str,
    default: Any = NO_DEFAULT,
    metadata: Any = types.MappingProxyType({}),
) -> Field:
    members = members_of(hint)
    texts = [member for member in members if member in AS_TEXT]
    tuples = [member for member in members if get_origin(member) is tuple]
    parts = [part for each in tuples for part in get_args(each) if part is not ...] or members
    records = [part for part in parts if isinstance(part, type) and is_record(part)]
    return Field(
        name=name,
        argument=argument,
        hint=hint,
        default=default,
        written=metadata.get("snapshot"),
        is_stored=metadata.get("stored", True),
        text=(texts[0], AS_TEXT[texts[0]]) if len(texts) == 1 and str not in members else None,
        is_text=len(texts) == len(members) == 1,
        is_name=hint is str and kind.__module__ == SessionEvent.__module__,
        of=records[0] if len(records) == len(parts) == 1 else None,
        is_tuple=bool(tuples),
        # A session event records what happened; what is reduced must be what it was.
        is_open=issubclass(kind, SessionEvent) and is_any(hint) and name != "value",
        fits=check_of(hint),
        plain=frozenset(
            [each for each in _AS_IT_IS if is_any(hint) or each in members]
            + [types.NoneType] * check_of(hint)(None)
        ),
    )


@lru_cache(maxsize=256)
def parts_of(kind: type) -> tuple[type, ...]:
    """The classes that the hints of a record's fields name.

    Raises:
        NameError: A hint cannot be resolved.
        TypeError: Likewise.
    """
    return tuple({part for field in fields_of(kind) for part in named_in(field.hint)})


class Proof:
    """Shows whether the records of a class are built again as they are.

    Attributes:
        names: The fields to compare; empty where the class runs no code of its own, which could change them.
    """

    __slots__ = ("_arguments", "_kind", "names")

    def __init__(self, kind: Any) -> None:
        """Look for hooks, converters and validators.

        Args:
            kind: The class.
        """
        self._kind = kind
        self._arguments: dict[str, str] = {}
        self.names: tuple[str, ...] = ()
        if issubclass(kind, Enum):
            return
        fields: Any = attrs.fields(kind) if attrs.has(kind) else dataclasses.fields(kind)
        stored = {field.name: field for field in fields_of(kind) if field.is_stored}
        hooks = ("__post_init__", "__attrs_post_init__", "__attrs_pre_init__")
        if (
            len(stored) == len(fields)
            and not any(map(_is_hooked, fields))
            and not any(hasattr(kind, name) for name in hooks)
        ):
            return
        made = [field.name for field in fields if not field.init and getattr(field, "compare", True)]
        self._arguments = {field.argument: name for name, field in stored.items()}
        self.names = (*stored, *made)

    def refusal(self, value: Any) -> str | None:
        """Why a record would not be read back as it is; None where it would be."""
        if not self.names:
            return None
        try:
            given = {argument: getattr(value, name) for argument, name in self._arguments.items()}
            built = self._kind(**given)
            for name in self.names:
                before, after = getattr(value, name), getattr(built, name)
                if before is not after and before != after:
                    return f"its {name} would be another when it is read back"
        except Exception as error:  # noqa: BLE001 - whatever the class raises
            return f"its type refuses it: {error}"
        return None


def _is_hooked(field: Any) -> bool:
    """Whether code of a class sees a field's value; that of the events of this package changes none."""
    hooks = (getattr(field, "converter", None), getattr(field, "validator", None))
    return any(hook is not None and getattr(hook, "__module__", "") != "session.events" for hook in hooks)


def loaded_type(name: str) -> type:
    """A class of a loaded module, by its written name: reading never imports one.

    Raises:
        SnapshotError: There is none, or its values are never built from JSON.
    """
    module, _, path = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        # Not getattr: a module may import on demand what it does not hold.
        found = vars(found).get(part) if isinstance(found, (types.ModuleType, type)) else None
    if isinstance(found, type):
        require_plain(found)
        return found
    remedy = "pass the class in types="
    if all(part.isidentifier() for part in (*module.split("."), *path.split("."))):
        cause = f"{module} has no such class; " if module in sys.modules else f"import {module} first, or "
        remedy = cause + remedy
    raise SnapshotError(f"slice type {shown(name)} is not loaded: {remedy}")
