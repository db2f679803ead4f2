"""Values as a run keeps them and passes them on: copies of bounded size that have a form in JSON."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from os import PathLike
from pathlib import PurePath
from sys import getsizeof
from typing import Any, TypeVar
from uuid import UUID

from planning.errors import show
from planning.tools.errors import ErrorKind
from planning.tools.result import field_names, plain
from planning.workflow.failures import StepFailed

__all__ = [
    "MOST_BYTES",
    "MOST_KEPT",
    "TEXTS",
    "Copier",
    "Copies",
    "is_written",
    "json_keys",
    "keep",
    "keep_inputs",
    "off_loop",
    "too_large",
]

T = TypeVar("T")

MOST_BYTES = 32_000_000
"""How many bytes one output may take, and the inputs of one step."""
MOST_KEPT = 256_000_000
"""How many bytes the outputs and inputs that a run keeps may take."""
TEXTS = (bytes, complex, date, time, timedelta, Decimal, Fraction, UUID, PurePath, IPv4Address, IPv6Address)
"""What JSON does not know, cannot be changed, and is plain text in JSON."""

_AT_ONCE = 250_000  # bytes that are copied on the event loop
_DEEPEST = 100  # deeper than that, ``plain`` cuts a value
_ATOMS = frozenset({str, int, float, bool, type(None), bytes})
_WRITERS = ("model_dump", "tolist", "__struct_fields__")  # of pydantic, numpy and msgspec
_SIZE = 8  # what a small value takes
_HEAD = 28  # what small numbers take beside that, which share most of it


class Copier:
    """Copies values, and stops before the copies take more bytes than they may.

    A part that occurs twice is copied twice and counts twice, as in JSON. Values that cannot be changed are
    shared.

    Attributes:
        most: How many bytes all copies together may take.
    """

    __slots__ = ("_is_strict", "_left", "_subject", "_too_large", "most")

    def __init__(
        self, subject: str, too_large: str, *, is_strict: bool = False, most: int = MOST_BYTES
    ) -> None:
        """Start with nothing copied.

        Args:
            subject: How the message about an invalid value begins.
            too_large: The message for values that take too many bytes.
            is_strict: Whether every part must have a form in JSON; otherwise an object of another type
                is shared as it is.
            most: How many bytes all copies together may take.
        """
        self._subject = subject
        self._too_large = too_large
        self._is_strict = is_strict
        self.most = self._left = most

    @property
    def spent(self) -> int:
        """How many bytes were copied."""
        return self.most - self._left

    def spend(self, size: int) -> None:
        """Count bytes before they are used.

        Raises:
            StepFailed: They are more than there may be.
        """
        self._left -= size
        if self._left < 0:
            raise StepFailed(self._too_large, "too_large")

    def copy(self, value: Any) -> Any:
        """A copy of a value, of the same types.

        Raises:
            StepFailed: It takes too many bytes, is nested too deep, or cannot be copied.
        """
        if type(value) in _ATOMS:
            self.spend(getsizeof(value))
            return value
        try:
            return self._copy(value, 0)
        except StepFailed:
            raise
        except MemoryError:
            raise StepFailed(self._too_large, "too_large") from None
        except Exception:  # noqa: BLE001 - copying runs the code of whatever is copied
            raise self._refused(f"an object of type {_name(type(value))}, which cannot be copied") from None

    def _copy(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if kind in _ATOMS:
            self.spend(getsizeof(value))
            return value
        if depth == _DEEPEST:
            raise self._refused(f"a value that holds itself or is nested more than {_DEEPEST} levels deep")
        self.spend(getsizeof(value, _SIZE))
        depth += 1
        if kind is dict:
            return self._dict(value, depth)
        if kind is list:
            return self._items(value, depth)
        # Asked of the class: an object may lie about its own.
        if issubclass(kind, Enum):
            self._copy(value.value, depth)
            return value
        for base in (str, int, float):
            if issubclass(kind, base):  # a custom class may return anything
                return getattr(base, f"__{base.__name__}__")(value) if self._is_strict else value
        if issubclass(kind, TEXTS):
            if issubclass(kind, PurePath):
                self.spend(len(str(value)))
            return value
        if issubclass(kind, Mapping):
            return self._mapping(value, depth)
        if issubclass(kind, (list, tuple, set, frozenset)):
            return self._collection(value, depth)
        return self._record(value, depth)

    def _items(self, items: Sequence[Any], depth: int) -> list[Any]:
        kinds = set(map(type, items))
        if not kinds <= _ATOMS:
            return [self._copy(each, depth) for each in items]
        size = sum(map(getsizeof, items))
        if not kinds & {str, bytes}:
            size = max(_SIZE * len(items), size - _HEAD * len(items))
        self.spend(size)
        return list(items)

    def _dict(self, value: dict[Any, Any], depth: int) -> dict[Any, Any]:
        self._check_keys(value)
        return dict(zip(value, self._items([*value.values()], depth), strict=True))

    def _check_keys(self, keys: Iterable[Any]) -> None:
        keys = list(keys)
        self.spend(sum(map(getsizeof, keys)))
        if not self._is_strict or set(map(type, keys)) <= {str}:
            return
        for key in keys:
            if not (key is None or issubclass(type(key), (str, int, float, Enum, *TEXTS))):
                raise self._refused(f"an object with a key of type {_name(type(key))}")
        if len(json_keys(keys)) < len(keys):
            raise self._refused("an object with two keys that are the same text in JSON")

    def _mapping(self, value: Any, depth: int) -> Any:
        if not issubclass(type(value), dict):  # a read-only view, or a custom class
            return self._dict({key: value[key] for key in self._each(value)}, depth)
        found = dict(dict.items(value))
        copied = self._new(value)
        for key, item in self._dict(found, depth).items():
            dict.__setitem__(copied, key, item)
        return copied

    def _each(self, items: Iterable[Any]) -> Iterable[Any]:
        """The items of a custom class, which may not end."""
        for each in items:
            self.spend(_SIZE)
            yield each

    def _collection(self, value: Any, depth: int) -> Any:
        kind = type(value)
        base = next(each for each in (list, tuple, set, frozenset) if issubclass(kind, each))
        given = list(base.__iter__(value))
        items = self._items(given, depth)
        if base is list:
            copied = self._new(value)
            list.__setitem__(copied, slice(None), items)
            return copied
        is_same = all(new is old for new, old in zip(items, given, strict=True))
        if base is set:
            return self._new(value) if is_same else kind(items)
        return value if is_same else base.__new__(kind, items)  # type: ignore[call-arg]  # not of object

    def _record(self, value: Any, depth: int) -> Any:
        names = None if hasattr(type(value), "__struct_fields__") else field_names(value)
        if names is None:
            if is_written(type(value)):
                return copy.deepcopy(value)
            if self._is_strict:
                raise self._refused(f"an object of type {_name(type(value))}, which has no form in JSON")
            return value
        copied = self._new(value)
        for name in names:
            object.__setattr__(copied, name, self._copy(getattr(value, name), depth))
        return copied

    def _new(self, value: Any) -> Any:
        """A shallow copy that is another object."""
        copied = copy.copy(value)
        if copied is value:
            raise TypeError
        return copied

    def _refused(self, what: str) -> StepFailed:
        message = f"{self._subject} {what}; use text, numbers, lists and objects"
        return StepFailed(message, ErrorKind.BAD_RESULT)


class Copies(Mapping[str, Any]):
    """A read-only view of a dict: each value is a copy, made when it is first read.

    A caller that changes a value changes only what this view shows.
    """

    __slots__ = ("_copies", "_values")

    def __init__(self, values: dict[str, Any]) -> None:
        """Show a dict, also what is put into it later."""
        self._values = values
        self._copies: dict[str, tuple[Any, Any]] = {}

    def __getitem__(self, key: str) -> Any:
        """A copy of the newest value under a key, the same one each time.

        Raises:
            KeyError: There is none.
            StepFailed: It is too large to be copied.
        """
        value = self._values[key]
        known, copied = self._copies.get(key, (None, None))
        if known is not value:
            subject = f"the value under {show(key)}"
            copier = Copier(f"{subject} holds", f"{subject} is too large to be read", most=MOST_KEPT)
            copied = copier.copy(value)
            self._copies[key] = value, copied
        return copied

    def __iter__(self) -> Iterator[str]:
        """The keys of this moment: other threads may add some meanwhile."""
        return iter(list(self._values))

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self._values)

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self._values),)  # in another process it is what it was when it was sent


async def off_loop(copying: Callable[[int], T]) -> T:
    """Copy values without holding the event loop: large ones in a thread.

    Args:
        copying: Copies them, given how many bytes it may copy; it fails with ``too_large``.

    Raises:
        StepFailed: They take more than ``MOST_BYTES``, or cannot be copied.
    """
    try:
        return copying(_AT_ONCE)
    except StepFailed as error:
        if error.code != "too_large":
            raise
    return await asyncio.to_thread(copying, MOST_BYTES)


def keep(value: Any, name: str, most: int = MOST_BYTES) -> tuple[Any, int]:
    """A copy of an output that nothing can change later, and how many bytes it takes.

    Args:
        value: The output.
        name: What returned it.
        most: How many bytes it may take.

    Raises:
        StepFailed: It takes more, or JSON cannot hold it.
    """
    if type(value) in _ATOMS and (size := getsizeof(value)) <= MOST_BYTES:
        return value, size
    copier = Copier(f"{name} returned", too_large(name), is_strict=True, most=most)
    return copier.copy(value), copier.spent


def keep_inputs(inputs: Mapping[str, Any], most: int = MOST_BYTES) -> dict[str, Any]:
    """Copies of the values that a run starts with, which nothing can change later.

    Args:
        inputs: The values by key.
        most: How many bytes each may take.

    Raises:
        StepFailed: A value takes more, or JSON cannot hold it.
    """
    kept = dict[str, Any]()
    for key, value in inputs.items():
        name = f"the input {show(key)}"
        message = f"{name} takes more than {MOST_BYTES // 1_000_000} MB; store the data and pass where it is"
        copier = Copier(f"{name} holds", message, is_strict=True, most=most)
        kept |= copier.copy({key: value})  # a snapshot has it one level deep
    return kept


def too_large(name: str) -> str:
    """The message for an output that is too large to be kept.

    Args:
        name: What returned it.
    """
    return (
        f"{name} returned more than {MOST_BYTES // 1_000_000} MB, which is too much to keep; let it "
        "store its data and return where it is"
    )


def is_written(kind: type) -> bool:
    """Whether a class that is not a record defines its own form in JSON."""
    return issubclass(kind, (bytearray, tzinfo, PathLike)) or any(hasattr(kind, name) for name in _WRITERS)


def json_keys(keys: Iterable[Any]) -> dict[str, Any]:
    """The keys of a mapping, by the text that each is in JSON."""
    return {key if type(key) is str else next(iter(plain({key: None}))): key for key in keys}


def _name(kind: type) -> str:
    return show(kind.__name__)[1:-1]
