"""Typed values to plain JSON values, by the fields of their classes; `reader` reads them back."""

from __future__ import annotations

import dataclasses
import json
import math
import types
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, get_args, get_origin
from uuid import UUID

import attrs
import typing_extensions

from session.errors import SnapshotError, shown

__all__ = [
    "AS_TEXT",
    "Field",
    "Place",
    "Proof",
    "encode",
    "fields_of",
    "format_of",
    "is_record",
    "require_plain",
    "spell_place",
    "text_of",
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
AS_IT_IS = (bool, int, float, str, types.NoneType)


def type_name(kind: type) -> str:
    """The name under which a type is written: ``module:QualifiedName``."""
    return f"{kind.__module__}:{kind.__qualname__}"


def require_plain(kind: type) -> None:
    """Refuse a class whose values a snapshot never builds.

    A record is built by the constructor that dataclasses or attrs wrote for it, never by another.

    Raises:
        SnapshotError: It is neither a dataclass, an attrs class, an enum, a TypedDict nor a plain type.
    """
    if kind in {*AS_IT_IS, *AS_TEXT, tuple, list, dict, set, frozenset} or issubclass(kind, Enum):
        return
    builder = next(base for base in kind.__mro__ if "__init__" in vars(base))
    is_built = not vars(builder).keys().isdisjoint({"__dataclass_fields__", "__attrs_attrs__"})
    if not is_built and not typing_extensions.is_typeddict(kind):
        raise SnapshotError(
            f"slice type {shown(type_name(kind))} is not a record: "
            "a snapshot holds dataclasses, attrs classes and plain values"
        )


def format_of(kind: type) -> int:
    """The number of the format in which a store has values of a class."""
    number = getattr(kind, "RECORD_FORMAT", 1)
    return number if type(number) is int else 1


def text_of(value: Any) -> str:
    """The text of a value of one of the types that are written as text."""
    return value.isoformat() if isinstance(value, (date, time)) else str(value)


def encode(value: Any, place: Place) -> Any:
    """Turn a value into plain JSON values.

    Raises:
        SnapshotError: It holds something without a JSON form; the text names the place.
    """
    if isinstance(value, Enum):
        return encode(value.value, place)
    if isinstance(value, float) and not math.isfinite(value):
        raise SnapshotError(f"{spell_place(place)}: {value} has no JSON form")
    if isinstance(value, AS_IT_IS):
        return value
    if isinstance(value, tuple(AS_TEXT)):
        return text_of(value)
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
    raise SnapshotError(f"{spell_place(place)}: a {type(value).__name__} has no JSON form in a snapshot")


def _encode_mapping(value: Mapping[Any, Any], place: Place) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for key, item in value.items():
        plain = encode(key, place)
        if isinstance(plain, (list, dict)):
            what = f"a {type(key).__name__} cannot be a key in a snapshot"
            raise SnapshotError(f"{spell_place(place)}: {what}")
        text = plain if isinstance(plain, str) else json.dumps(plain)
        if text in written:
            raise SnapshotError(f"{spell_place(place)}: two keys are written as {shown(text)}")
        written[text] = encode(item, (place, text))
    return written


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
        stored = {name: field for name, field in fields_of(kind)[0].items() if field.is_stored}
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


def spell_place(place: Place) -> str:
    """A place as a message has it."""
    parts: list[str] = []
    while isinstance(place, tuple):
        place, part = place
        if isinstance(part, int):
            parts.append(f"[{part}]")
        else:
            parts.append(f".{part}" if len(part) <= 80 and part.isprintable() else f"[{shown(part)}]")
    return place + "".join(reversed(parts))
