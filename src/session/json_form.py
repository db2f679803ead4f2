"""The JSON form of a value: what results, outputs of steps, events, stores and pages have of it.

It is made of text, numbers, booleans, None, lists, and dicts with text as names. Records become objects; an
enum is its value; a date, a path, a UUID, a Decimal and the like are the text that ``str`` gives. Nothing
that is done to the value later changes its form. The form of a form is the same.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from enum import Enum
from math import isfinite
from sys import getsizeof
from typing import Any

import attrs

DEEPEST = 100
"""The most levels of a value that is shown or kept."""
NO_FORM = "has no JSON form"
TOO_DEEP = f"is nested more than {DEEPEST} levels deep"
IN_ITSELF = "contains itself"
TWO_NAMES = "has two keys that are the same text in JSON"
TOO_LONG = "has more than 3,000 digits"

_PLAIN = (bool, int, float, str)
_ATOMS = frozenset({type(None), *_PLAIN})
_MOST_REPEATS = 1_000_000
_NAMES = frozenset({str})
_NUMBERS = frozenset({type(None), bool, int, float})
_FEW = 50
_SLOT = 8  # bytes that a list has for each item
_HEAD = 28  # bytes of a number that small ones share
_SMALL = 2**63
_LONGEST = 10**3_000  # of more than some 4,300 digits Python itself writes no number
_TEXTS = frozenset({
    "datetime.date", "datetime.time", "datetime.tzinfo", "uuid.UUID", "decimal.Decimal", "fractions.Fraction",
"ipaddress.IPv4Address", "ipaddress.IPv6Address",
})  # fmt: skip
"""Types that JSON lacks and that are always written as text; by name, so that none is imported for this."""


class NoJsonForm(TypeError):
    """A value, or a part of it, has no JSON form; the text says why.

    Attributes:
        part: The value that has none.
    """

    def __init__(self, part: object, why: str) -> None:
        super().__init__(why)
        self.part = part


class JsonTooLarge(NoJsonForm):
    """JSON forms take more bytes than they may."""


def json_form(value: Any, *, strict: bool = False) -> Any:
    """The JSON form of a value.

    A part that is repeated once a million parts are repeats is text that says so, so that the form is never
    much larger than the value.

    Raises:
        NoJsonForm: With ``strict``, a part has no JSON form.
        Exception: With ``strict``, whatever a part raises when it is read.
    """
    return JsonForms(strict=strict).of(value)


def _is_nan(number: float) -> bool:
    return number != number  # noqa: PLR0124 - math.isnan fails for a whole number that no float can hold


def _order(items: Sequence[Any]) -> list[Any]:
    """The items of a set in the same order in every process."""
    kinds = {*map(type, items)}
    if kinds <= {str} or (kinds <= {bool, int, float} and not any(map(_is_nan, items))):
        return sorted(items)
    return sorted(items, key=lambda item: json.dumps(json_form(item)))


_BASES: dict[type, Callable[[Any], Any]] = {
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    dict: lambda value: dict(dict.items(value)),
    list: lambda value: [*list.__iter__(value)],
    tuple: lambda value: [*tuple.__iter__(value)],
    set: lambda value: _order([*set.__iter__(value)]),
    frozenset: lambda value: _order([*frozenset.__iter__(value)]),
    bytes: lambda value: bytes.decode(value, errors="backslashreplace"),
    bytearray: lambda value: bytearray.decode(value, errors="backslashreplace"),
    timedelta: lambda value: f"-{-value}" if value < timedelta(0) else str(value),  # as it is read back
    Mapping: lambda value: {key: value[key] for key in value},
}
"""The readers of values of these types; of a subclass without its own methods if the type is built in."""


def opened(value: Any) -> Any:
    """One level of the JSON form of a value that is not JSON itself; its parts are as they were.

    Raises:
        NoJsonForm: It has none.
        Exception: Whatever it raises when it is read.
    """
    kind = type(value)
    if issubclass(kind, Enum):  # not isinstance: a value is asked nothing before its class is known
        return value.value
    for base, read in _BASES.items():
        if issubclass(kind, base):
            return read(value)
    if hasattr(kind, "model_dump"):  # a pydantic model
        return value.model_dump(mode="json")
    if hasattr(kind, "tolist"):  # a number or an array of numpy
        return value.tolist()
    names = field_names(value)
    if names is not None:
        return {name: getattr(value, name) for name in names}
    if hasattr(kind, "__fspath__") or any(f"{k.__module__}.{k.__qualname__}" in _TEXTS for k in kind.__mro__):
        return str(value)
    raise NoJsonForm(value, NO_FORM)


def field_names(value: object) -> tuple[str, ...] | None:
    """The fields of a dataclass, an attrs class, a pydantic model, a Struct or a named tuple.

    None for anything else.
    """
    kind = type(value)
    if kind in _ATOMS:
        return None
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    if attrs.has(kind):
        return tuple(field.name for field in attrs.fields(kind))
    for names in ("model_fields", "__struct_fields__", "_fields"):
        found = getattr(kind, names, None)
        if isinstance(found, (dict, tuple)):
            return tuple(found)
    return None


def key_text(key: Any) -> str:
    """The name that a key of a mapping has in the JSON form."""
    return JsonForms(strict=False).name(key)


def writable(text: str) -> str:
    """The text with lone surrogates escaped, which JSON cannot be sent with."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


class JsonForms:
    """Makes the JSON forms of values.

    Attributes:
        limit: How many bytes all forms together may take; a part that occurs twice counts twice. None for no
            limit.
    """

    __slots__ = ("_around", "_known", "_left", "_repeats", "_strict", "limit")

    def __init__(self, *, strict: bool, limit: int | None = None) -> None:
        self.limit = limit
        self._left = limit or 0
        self._strict = strict
        self._around: set[int] = set()
        self._known: dict[int, Any] = {}  # holds what it has read: an id must not be given out again
        self._repeats = 0

    @property
    def spent(self) -> int:
        """The bytes that the forms take so far."""
        return (self.limit or 0) - self._left

    def spend(self, size: int) -> None:
        """Count bytes before they are used.

        Raises:
            JsonTooLarge: They are more than there may be.
        """
        self._left -= size
        if self._left < 0:
            raise JsonTooLarge(None, "is too large")

    def of(self, value: Any) -> Any:
        """The form of a value.

        Raises:
            NoJsonForm: As for ``json_form``; with a limit also for a key of a mapping that is neither text
                nor a number, and ``JsonTooLarge``.
        """
        self._count((value,))
        return self._of(value)

    def _of(self, value: Any) -> Any:
        kind = type(value)
        if kind in _ATOMS:
            return self._atom(value, kind)
        key, around = id(value), self._around
        if key in around or len(around) >= DEEPEST:
            why = IN_ITSELF if key in around else TOO_DEEP
            if self._strict:
                raise NoJsonForm(value, why)
            return f"... (cut: {why})"
        if self.limit is None and self._is_repeat_too_many(value):
            return f"... (cut: the values before repeat more than {_MOST_REPEATS:,} parts)"
        around.add(key)
        try:
            if kind is dict:
                return self._named(value)
            if kind is list or kind is tuple:
                return self._items(value)
            return self._other(value)
        except Exception:
            if self._strict:
                raise
            return f"<{kind.__name__}>"
        finally:
            around.discard(key)

    def _is_repeat_too_many(self, value: Any) -> bool:
        if id(value) not in self._known:
            self._known[id(value)] = value
            return False
        self._repeats += 1 + (len(value) if type(value) in {dict, list, tuple, set, frozenset} else 0)
        return self._repeats > _MOST_REPEATS

    def _other(self, value: Any) -> Any:
        try:
            inner = opened(value)
        except NoJsonForm:
            if self._strict:
                raise
            return writable(str(value))
        if type(inner) is dict:
            return self._named(inner)
        return self._items(inner) if type(inner) is list else self._of(inner)

    def _named(self, value: dict[Any, Any]) -> dict[str, Any]:
        items = self._items(value.values())
        if _NAMES.issuperset(map(type, value)) and all(map(str.isascii, value)):
            self._count(value)
            return dict(zip(value, items, strict=True))
        named = dict(zip(map(self.name, value), items, strict=True))
        if len(named) < len(value):
            raise NoJsonForm(value, TWO_NAMES)
        return named

    def name(self, key: Any) -> str:
        """The name that a key of a mapping has."""
        form = self.of(key)
        if type(form) in _ATOMS:
            return writable(str(form))
        if self.limit is not None:
            raise NoJsonForm(key, f"has a key of type {type(key).__name__}")
        return writable(str(key))

    def _items(self, items: Collection[Any]) -> list[Any]:
        self._count(items)
        return [
            item  # nearly all that tools return
            if (type(item) is str and item.isascii()) or (type(item) is int and -_SMALL < item < _SMALL)
            else self._of(item)
            for item in items
        ]

    def _count(self, values: Collection[Any]) -> None:
        if self.limit is not None:
            size = sum(map(getsizeof, values))
            if len(values) > _FEW and _NUMBERS.issuperset(map(type, values)):
                size = max(_SLOT * len(values), size - _HEAD * len(values))
            self.spend(size)

    def _atom(self, value: Any, kind: type) -> Any:
        """A plain value, or text if JSON has no such number or it has too many digits to be read back."""
        if kind is str:
            return value if value.isascii() else writable(value)
        if kind is float:
            return value if isfinite(value) else str(value)
        if kind is int and not -_SMALL < value < _SMALL and abs(value) >= _LONGEST:
            if self._strict:
                raise NoJsonForm(value, TOO_LONG)
            return hex(value)
        return value
