"""What type hints say of values: whether a value is one of a hint, and which classes a hint names."""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import typing_extensions

__all__ = ["Check", "check_of", "is_any", "members_of", "named_in", "spelled"]

Check = Callable[[Any], bool]
"""Whether a value is one of a hint."""

_QUALIFIERS = (
    Annotated,
    typing.Final,
    typing_extensions.Required,
    typing_extensions.NotRequired,
    typing_extensions.ReadOnly,
)


def _bare(hint: Any) -> Any:
    """A hint without what does not change its values: a qualifier, a NewType."""
    while True:
        if get_origin(hint) in _QUALIFIERS:
            hint = get_args(hint)[0]
        elif isinstance(hint, typing.NewType):
            hint = hint.__supertype__
        else:
            return hint


def _is_alias(hint: Any) -> bool:
    return type(hint).__name__ == "TypeAliasType"  # of typing or of typing_extensions: two classes


def members_of(hint: Any) -> list[Any]:
    """The types that a hint allows, without None."""
    hint = _bare(hint)
    members = get_args(hint) if get_origin(hint) in {Union, UnionType} else (hint,)
    return [_bare(member) for member in members if member is not NoneType]


def is_any(hint: Any) -> bool:
    """Whether a hint allows any value."""
    return Any in members_of(hint)


def named_in(hint: Any) -> Iterator[type]:
    """The classes that a hint names, at any depth."""
    open_, aliases = [hint], list[Any]()  # an alias may name itself
    while open_:
        found = _bare(open_.pop())
        if _is_alias(found):
            if found not in aliases:
                aliases.append(found)
                open_.append(found.__value__)
        elif isinstance(found, type):
            yield found
        open_ += get_args(found)


def spelled(hint: Any) -> str:
    """A hint as a message has it."""
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def check_of(hint: Any) -> Check:
    """What says whether a value is one of a hint; of a record, whether it is one of its class."""
    hint = _bare(hint)
    target, inner = get_origin(hint) or hint, get_args(hint)
    if target is Any or target is object or isinstance(target, TypeVar):
        return lambda _value: True
    if _is_alias(target):
        return _check_of_alias(target)
    if target is Union or target is UnionType:
        members = [check_of(member) for member in inner]
        return lambda value: any(member(value) for member in members)
    if target is Literal:
        return lambda value: any(value == option and type(value) is type(option) for option in inner)
    if typing_extensions.is_typeddict(target):
        return _check_of_typed_dict(target)
    if target is None:
        return lambda value: value is None
    if target in {int, float}:
        numbers = (int, float) if target is float else int
        return lambda value: isinstance(value, numbers) and type(value) is not bool
    if not isinstance(target, type) or getattr(target, "_is_protocol", False):
        return lambda _value: True  # such as a protocol: nothing is known of its values
    return _check_of_items(target, inner)


def _check_of_alias(alias: Any) -> Check:
    @cache
    def check() -> Check:
        """Late, for it may name itself."""
        return check_of(alias.__value__)

    def fits(value: Any) -> bool:
        return check()(value)

    return fits


def _check_of_items(target: Any, inner: tuple[Any, ...]) -> Check:
    if not inner:
        return lambda value: isinstance(value, target)
    if target is tuple and inner[1:] != (...,):
        each = [check_of(hint) for hint in inner]
        return lambda value: (
            isinstance(value, tuple)
            and len(value) == len(each)
            and all(check(item) for check, item in zip(each, value, strict=True))
        )
    checks = [check_of(hint) for hint in inner if hint is not ...]
    if issubclass(target, Mapping) and len(checks) == 2:
        key_fits, item_fits = checks
        return lambda value: (
            isinstance(value, target)
            and all(key_fits(key) and item_fits(item) for key, item in value.items())
        )
    if len(checks) != 1 or not hasattr(target, "__iter__"):  # a class of its own with type arguments
        return lambda value: isinstance(value, target)
    (fits,) = checks
    return lambda value: isinstance(value, target) and all(fits(item) for item in value)


def _check_of_typed_dict(kind: Any) -> Check:
    @cache
    def checks() -> tuple[dict[str, Check], set[str]]:
        """Late, for it may hold itself."""
        hints = typing_extensions.get_type_hints(kind, include_extras=True)
        declared = kind.__required_keys__
        required = {name for name in hints if _is_required(hints[name], by_default=name in declared)}
        return {name: check_of(hint) for name, hint in hints.items()}, required

    def fits(value: Any) -> bool:
        known, required = checks()
        return (
            isinstance(value, dict)
            and required <= value.keys() <= known.keys()
            and all(known[key](item) for key, item in value.items())
        )

    return fits


def _is_required(hint: Any, *, by_default: bool) -> bool:
    """Whether a TypedDict must have a key; with postponed annotations the class itself does not know."""
    origin = get_origin(hint)
    if origin in {Annotated, typing_extensions.ReadOnly}:
        return _is_required(get_args(hint)[0], by_default=by_default)
    if origin is typing_extensions.NotRequired:
        return False
    return by_default or origin is typing_extensions.Required
