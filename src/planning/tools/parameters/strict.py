"""Twins: a Struct of the same fields as a record type, which refuses unknown ones.

msgspec passes over the unknown fields of dataclasses, attrs classes and TypedDicts. Converting into the
twin finds them at every depth, in a fraction of the time that a JSON Schema takes. What is left out is UNSET.

Schemas are made of twins too, so that they say the same: a twin has the fields that may be sent, in the
order of their declaration, and carries the marks that ``schema`` reads.
"""

from __future__ import annotations

import datetime
import enum
import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from itertools import count
from typing import Any, ClassVar

import attrs
import msgspec

from planning.tools.parameters.fields import (
    Field,
    class_of,
    fields_of,
    is_map,
    is_record,
    nested_records,
    resolved,
)
from planning.tools.parameters.first_use import get_to_know

__all__ = ["OPTIONS", "PLACE", "SAID", "Twin", "built", "has_odd_keys", "strict_twin", "twin_of"]

OPTIONS = "x-options"
"""The mark of options, in the order of their declaration: msgspec sorts them."""
PLACE = "x-place"
"""The mark of the place of the record in a union: msgspec puts it last."""
SAID = "x-said"
"""The mark of what a field's metadata adds to the published schema."""

_KEYWORDS = {
    "description": "description",
    "min_length": "minLength",
    "max_length": "maxLength",
    "min_items": "minItems",
}
# msgspec says so only of those with a time zone.
_FORMATS = {datetime.datetime: "date-time", datetime.time: "time"}
_NUMBERS = count()


class Twin(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all twins; frozen, because a set may hold frozen records."""

    __kind__: ClassVar[Any]  # the class that it is the twin of
    __keywords__: ClassVar[Mapping[str, str]]  # by its own attribute, what the class's constructor calls it
    __hints__: ClassVar[Mapping[str, Any]]  # by field, what its value is converted into
    __is_strict__: ClassVar[bool]  # whether it alone can decide what fits, and its attributes are the fields


def strict_twin(kind: type[Any], *, is_open: bool = False) -> type[Twin] | None:
    """The twin of a record type; None where none can be made, and the schema has to decide.

    Args:
        kind: The record type.
        is_open: Whether its own unknown fields are let through; those of nested records are not.
    """
    if is_open:
        return None
    try:
        twin = twin_of(kind)
        get_to_know(twin)
    except TypeError:  # it refers to itself, or is a union of two records
        return None
    return twin if issubclass(twin, Twin) and twin.__is_strict__ else None


def twin_of(kind: Any) -> type[msgspec.Struct]:
    """The twin of a record type, strict or not; a Struct stands for itself.

    Raises:
        TypeError: The type refers to itself.
    """
    _refuse_endless(kind, (), set())
    return _twin(kind)


def built(value: Any) -> Any:
    """The value with a record, made by its own constructor, in place of every twin in it."""
    if isinstance(value, Twin):
        given = {keyword: getattr(value, name) for name, keyword in value.__keywords__.items()}
        return value.__kind__(
            **{name: built(item) for name, item in given.items() if item is not msgspec.UNSET}
        )
    if type(value) in {list, tuple, set, frozenset}:
        return type(value)(map(built, value))
    if type(value) is dict:
        return {name: built(item) for name, item in value.items()}
    return value


def has_odd_keys(hint: Any) -> bool:
    """Whether a hint names a map by something else than text, which JSON has as text all the same."""
    hint = resolved(hint)
    arguments = typing.get_args(hint)
    return (is_map(hint) and arguments[0] not in {str, Any}) or any(map(has_odd_keys, arguments))


def _refuse_endless(kind: Any, inside: tuple[Any, ...], known: set[Any]) -> None:
    if kind in inside:
        raise TypeError(f"the parameter type {class_of(kind).__name__} refers to itself")
    if kind not in known:
        for field in fields_of(kind):
            for nested in nested_records(field.hint):
                _refuse_endless(nested, (*inside, kind), known)
        known.add(kind)


@lru_cache(maxsize=512)
def _twin(kind: Any) -> type[msgspec.Struct]:
    record = class_of(kind)
    if issubclass(record, msgspec.Struct):
        return record  # type: ignore[no-any-return]  # it was asked just now
    fields = fields_of(kind)
    hints = {field.name: _said(field) for field in fields}
    has_odd_names = any(not name.isidentifier() or name.startswith("__") for name in hints)
    renamed = {f"f{number}": name for number, name in enumerate(hints)} if has_odd_names else {}
    aliases = {each.name: each.alias for each in attrs.fields(record)} if attrs.has(record) else {}
    names = dict(zip(renamed or hints, hints, strict=True))
    told = zip(names, hints.values(), fields, strict=True)
    nested = [_twin(inner) for field in fields for inner in nested_records(field.hint)]
    return msgspec.defstruct(
        f"{record.__name__}_{next(_NUMBERS)}",  # a schema names its parts, and two types may have one name
        [(name, hint) if field.required else (name, hint, msgspec.UNSET) for name, hint, field in told],
        bases=(Twin,),
        namespace={
            "__kind__": record,
            "__keywords__": {name: aliases.get(field, field) for name, field in names.items()},
            "__hints__": hints,
            "__is_strict__": not has_odd_names
            and all(issubclass(each, Twin) and each.__is_strict__ for each in nested),
        },
        rename=renamed or None,
        frozen=True,
        kw_only=True,
        forbid_unknown_fields=True,
    )


def _said(field: Field) -> Any:
    """What a field's value is converted into, with a mark of what the published schema says besides."""
    hint = _strict(field.hint)
    said = {keyword: field.metadata[key] for key, keyword in _KEYWORDS.items() if key in field.metadata}
    return _marked(hint, SAID, said) if said else hint


def _marked(hint: Any, mark: str, content: object) -> Any:
    return typing.Annotated[hint, msgspec.Meta(extra_json_schema={mark: content})]


def _strict(hint: Any) -> Any:
    hint = resolved(hint)
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if is_record(class_of(hint)):
        return _twin(hint)
    if origin is typing.Literal:
        return _marked(hint, OPTIONS, list(arguments))
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _marked(hint, OPTIONS, [member.value for member in hint])
    if isinstance(hint, type) and hint in _FORMATS:
        return _marked(hint, "format", _FORMATS[hint])
    if origin is typing.Annotated:
        return typing.Annotated[(_strict(arguments[0]), *hint.__metadata__)]
    stricter = tuple(map(_strict, arguments))
    if is_map(hint):
        stricter = (arguments[0], stricter[1])
    if stricter == arguments:
        return hint
    if origin in {typing.Union, types.UnionType}:
        union = typing.Union[stricter]  # type: ignore[valid-type]  # noqa: UP007 - built from a tuple
        others = [option for option in stricter if option is not type(None)]
        places = [place for place, option in enumerate(others) if _is_twin(option)]
        return _marked(union, PLACE, places[0]) if places and len(others) > 1 else union
    return origin[stricter]


def _is_twin(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Twin)
