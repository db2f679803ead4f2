"""The fields of a record type: dataclass, attrs class, TypedDict or msgspec Struct, seen alike."""

from __future__ import annotations

import dataclasses
import sys
import typing
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import attrs
import typing_extensions

__all__ = [
    "Field",
    "class_of",
    "fields_of",
    "is_map",
    "is_read_only",
    "is_record",
    "nested_records",
    "resolved",
]

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_REQUIRED = (typing.Required, typing_extensions.Required)
_NOT_REQUIRED = (typing.NotRequired, typing_extensions.NotRequired)
_QUALIFIERS = (*_REQUIRED, *_NOT_REQUIRED, typing_extensions.ReadOnly)


@attrs.frozen
class Field:
    """One field.

    Attributes:
        name: Its name, as arguments spell it.
        hint: Its type, with what ``Annotated`` says of it.
        required: Whether it must be given.
        metadata: ``description``, ``min_length``, ``max_length``, ``min_items``, ``check`` and ``repair``,
            where given.
    """

    name: str
    hint: Any
    required: bool
    metadata: Mapping[str, Any] = _NOTHING


def is_record(kind: object) -> bool:
    """Whether a type has fields that this module can tell."""
    if not isinstance(kind, type):
        return False
    return (
        dataclasses.is_dataclass(kind)
        or attrs.has(kind)
        or typing_extensions.is_typeddict(kind)
        or _is_struct(kind)
    )


def class_of(kind: Any) -> Any:
    """The class of a record type: ``Box`` of ``Box[int]``, and else the type itself."""
    return typing.get_origin(kind) or kind


def fields_of(kind: Any) -> tuple[Field, ...]:
    """The fields that may be sent of a record type, in order.

    Raises:
        TypeError: A type hint names something that is not there, or it takes what is no field.
    """
    return _fields_of(kind)


def is_read_only(kind: Any) -> bool:
    """Whether a TypedDict has a field that is ``ReadOnly``."""
    hints = typing_extensions.get_type_hints(kind, include_extras=True)
    return any(typing_extensions.ReadOnly in _qualifiers_of(hint) for hint in hints.values())


def resolved(hint: Any) -> Any:
    """The hint that a type alias, or a ``NewType``, stands for."""
    while True:
        if isinstance(hint, typing_extensions.TypeAliasType):
            hint = hint.__value__
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        elif isinstance(typing.get_origin(hint), typing_extensions.TypeAliasType):
            hint = typing.get_origin(hint).__value__[typing.get_args(hint)]
        else:
            return hint


def is_map(hint: Any) -> bool:
    """Whether a hint is of a map that says what its keys and values are."""
    origin = typing.get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, Mapping) and len(typing.get_args(hint)) > 1


def nested_records(hint: Any) -> Iterator[Any]:
    """The record types that a type hint names; what ``Box[Inner]`` holds is for its own fields to say."""
    hint = resolved(hint)
    if is_record(class_of(hint)):
        yield hint
        return
    for argument in typing.get_args(hint):
        yield from nested_records(argument)


def _is_struct(kind: type) -> bool:
    msgspec = sys.modules.get("msgspec")
    return msgspec is not None and issubclass(kind, msgspec.Struct)


def _raw(kind: type[Any], hints: dict[str, Any]) -> Iterator[tuple[str, Any, bool, Mapping[str, Any]]]:
    if dataclasses.is_dataclass(kind):
        if any(isinstance(hint, dataclasses.InitVar) for hint in hints.values()):
            raise TypeError(
                f"{kind.__name__} cannot be described as JSON: dataclasses with `InitVar` fields are not "
                "supported"
            )
        for field in dataclasses.fields(kind):
            if field.init:
                default = (field.default, field.default_factory)
                required = default == (dataclasses.MISSING, dataclasses.MISSING)
                yield field.name, hints[field.name], required, field.metadata
    elif attrs.has(kind):
        for attribute in attrs.fields(kind):
            if attribute.init:
                hint = hints.get(attribute.name, Any)
                yield attribute.name, hint, attribute.default is attrs.NOTHING, attribute.metadata
    elif typing_extensions.is_typeddict(kind):
        for name, hint in hints.items():
            yield name, _unqualified(hint), _is_required(kind, name, hint), _NOTHING
    else:
        import msgspec  # noqa: PLC0415 - the type is one of its, so it is loaded

        for told in msgspec.structs.fields(kind):
            yield told.encode_name, hints[told.name], told.required, _NOTHING


def _is_required(kind: Any, name: str, hint: Any) -> bool:
    """Whether a TypedDict needs a key: what the class says of keys whose hints were texts may be wrong."""
    for qualifier in _qualifiers_of(hint):
        if qualifier in _REQUIRED or qualifier in _NOT_REQUIRED:
            return qualifier in _REQUIRED
    return name in kind.__required_keys__


def _qualifiers_of(hint: Any) -> Iterator[Any]:
    while (origin := typing.get_origin(hint)) in _QUALIFIERS or origin is typing.Annotated:
        yield origin
        hint = typing.get_args(hint)[0]


def _unqualified(hint: Any) -> Any:
    """The hint without ``Required`` and the like, also where ``Annotated`` stands around them."""
    while typing.get_origin(hint) in _QUALIFIERS:
        (hint,) = typing.get_args(hint)
    if typing.get_origin(hint) is typing.Annotated and typing.get_origin(hint.__origin__) in _QUALIFIERS:
        return typing.Annotated[(_unqualified(hint.__origin__), *hint.__metadata__)]
    return hint


def _filled(hint: Any, types: Mapping[Any, Any]) -> Any:
    """The hint of a generic type's field with the types in place of their variables."""
    variables = getattr(hint, "__parameters__", ())
    if isinstance(hint, typing.TypeVar):
        return types.get(hint, hint)
    return (
        hint[tuple(types.get(variable, variable) for variable in variables)] if types and variables else hint
    )


def _types_of(kind: Any) -> dict[Any, Any]:
    """By variable, the types that a generic type and its bases are given."""
    types: dict[Any, Any] = {}
    for base in getattr(class_of(kind), "__orig_bases__", ()):
        types |= _types_of(base)
    variables = getattr(class_of(kind), "__parameters__", ())
    return types | dict(zip(variables, typing.get_args(kind), strict=False))


def _described(hint: Any, metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    """The metadata, with what ``Annotated`` has to say as description where there is none."""
    if typing.get_origin(hint) is typing.Annotated and "description" not in metadata:
        said = (getattr(extra, "description", extra) for extra in hint.__metadata__)
        texts = [text for text in said if isinstance(text, str)]
        if texts:
            return {**metadata, "description": texts[0]}
    return metadata


@lru_cache(maxsize=512)
def _fields_of(kind: Any) -> tuple[Field, ...]:
    record, types = class_of(kind), _types_of(kind)
    try:
        hints = typing_extensions.get_type_hints(record, include_extras=True)
    except (NameError, AttributeError) as error:
        raise TypeError(
            f"{record.__name__} has a type hint that cannot be read: {error}; import the name at the top of "
            "its module"
        ) from None
    return tuple(
        Field(name, filled, required, _described(filled, metadata))
        for name, hint, required, metadata in _raw(record, hints)
        for filled in (_filled(hint, types),)
    )
