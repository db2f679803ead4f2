"""Values of a run: copies of limited size that have a form in JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from os import PathLike
from sys import getsizeof
from typing import Any, TypeVar, TypeVarTuple
from uuid import UUID

from planning.errors import show
from planning.tools.errors import ErrorKind, type_name
from planning.tools.result import DEEPEST, NoJsonForm, copied, field_names, plain
from planning.workflow.failures import StepFailed

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

KEYS = (str, int, float, type(None))
"""What the keys of a mapping in JSON are made of."""
MOST_BYTES = 32_000_000
"""How many bytes one output may take, and the inputs of one step."""
MOST_KEPT = 256_000_000
"""How many bytes the outputs and inputs that a run keeps may take."""

_AT_ONCE = 250_000  # bytes that are copied on the event loop
_ATOMS = frozenset({str, int, float, bool, type(None), bytes})
_WRITTEN = (
    bytes, bytearray, PathLike, date, time, timedelta, tzinfo, Decimal, Fraction, UUID, IPv4Address,
    IPv6Address,
)  # fmt: skip
_LONG_NUMBER = 1_300  # bytes: Python writes no whole number of more than some 4,300 digits
_TOO_LONG = 10**3_000
_SIZE = 8  # what a small value takes
_OUTPUT_TOO_LARGE = (
    f"{{}} returned more than {MOST_BYTES // 1_000_000} MB, which is too much to keep; let it store its data "
    "and return where it is"
)
_INPUT_TOO_LARGE = (
    f"the input {{}} takes more than {MOST_BYTES // 1_000_000} MB; store the data and pass where it is"
)
_HEAD = 28  # what small numbers take beside that, which share most of it


class Meter:
    """Counts the bytes of values, and stops before they are more than they may be.

    A part that occurs twice counts twice, as JSON would write it.

    Attributes:
        most: How many bytes all values together may take.
    """

    __slots__ = ("_left", "_name", "_subject", "_too_large", "most")

    def __init__(self, subject: str, too_large: str, most: int = MOST_BYTES, name: str = "") -> None:
        """Start with nothing counted.

        Args:
            subject: Begins the message about a value that JSON cannot hold.
            too_large: The message about values that take too many bytes.
            most: How many bytes they may take.
            name: What ``{}`` is in both; few of them are ever needed.
        """
        self._name = name
        self._subject = subject
        self._too_large = too_large
        self.most = self._left = most

    @property
    def spent(self) -> int:
        """How many bytes were counted."""
        return self.most - self._left

    def spend(self, size: int) -> None:
        """Count bytes before they are used.

        Raises:
            StepFailed: They are more than there may be.
        """
        self._left -= size
        if self._left < 0:
            raise self._exceeded()

    def copy(self, value: Any) -> Any:
        """A copy of a value, of the same types where these can be copied.

        Raises:
            StepFailed: It takes too many bytes, is nested too deep, or JSON cannot hold it.
        """
        try:
            return self._copy(value, 0)
        except StepFailed:
            raise
        except MemoryError:
            raise self._exceeded() from None
        except NoJsonForm as error:
            raise self._refused(f"an object of type {type_name(error.part)}, which {error}") from None
        except Exception:  # noqa: BLE001 - reading a value runs its code
            raise self._refused(f"an object of type {type_name(value)}, which cannot be read") from None

    def _copy(self, value: Any, depth: int, *, is_part: bool = False) -> Any:
        """A copy of a value; of a part of something that is copied as a whole, itself."""
        kind = type(value)
        self.spend(size := getsizeof(value, _SIZE))
        if kind in _ATOMS:
            if kind is int and size > _LONG_NUMBER and abs(value) >= _TOO_LONG:
                raise self._refused("a number of more than 3,000 digits")
            return value
        if depth == DEEPEST:
            raise self._refused(f"a value that contains itself or is nested more than {DEEPEST} levels deep")
        if kind is list:
            return self._items(value, depth + 1, is_part=is_part)
        if kind is dict:
            items = self._items(self._checked(value), depth + 1, is_part=is_part)
            return dict(zip(value, items, strict=True))
        self._items(self._parts(value), depth + 1, is_part=True)
        return value if is_part else copied(value)

    def _items(self, items: list[Any], depth: int, *, is_part: bool) -> list[Any]:
        kinds = set(map(type, items))
        if not kinds <= _ATOMS:
            return [self._copy(each, depth, is_part=is_part) for each in items]
        size = sum(map(getsizeof, items)) - (0 if kinds & {str, bytes} else _HEAD * len(items))
        is_long = int in kinds and size > _LONG_NUMBER < max(map(getsizeof, items))
        if is_long and any(type(each) is int and abs(each) >= _TOO_LONG for each in items):
            raise self._refused("a number of more than 3,000 digits")
        self.spend(max(_SIZE * len(items), size))
        return items.copy()

    def _parts(self, value: Any) -> list[Any]:
        """The parts of a value, asked of its class: an object may lie about its own."""
        kind = type(value)
        if issubclass(kind, Enum):
            return [value.value]
        if issubclass(kind, dict):
            return self._checked(dict(dict.items(value)))
        if issubclass(kind, Mapping):
            return self._checked({key: value[key] for key in self._each(value)})
        for base in (list, tuple, set, frozenset):
            if issubclass(kind, base):
                return [*base.__iter__(value)]
        if issubclass(kind, (str, bytes, int, float)):
            return []
        names = None if hasattr(kind, "model_dump") else field_names(value)
        if names is not None:
            return [getattr(value, name) for name in names]
        if is_written(kind):
            return [plain(value, strict=True)]
        raise self._refused(f"an object of type {type_name(value)}, which has no form in JSON")

    def _each(self, items: Iterable[Any]) -> Iterator[Any]:
        """The items of a custom class, which may not end."""
        for each in items:
            self.spend(_SIZE)
            yield each

    def _checked(self, value: dict[Any, Any]) -> list[Any]:
        """The values of a mapping whose keys JSON can hold."""
        self.spend(sum(map(getsizeof, value)))
        if set(map(type, value)) <= {str}:
            return [*value.values()]
        for key in value:
            if not issubclass(type(key), KEYS):
                raise self._refused(f"an object with a key of type {type_name(key)}")
        if len(json_keys(value)) < len(value):
            raise self._refused("an object with two keys that are the same text in JSON")
        return [*value.values()]

    def _exceeded(self) -> StepFailed:
        return StepFailed(self._too_large.format(self._name), "too_large")

    def _refused(self, what: str) -> StepFailed:
        message = f"{self._subject.format(self._name)} {what}; use text, numbers, lists and objects"
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
        """
        value = self._values[key]
        known, made = self._copies.get(key, (None, None))
        if known is not value:
            made = copied(value)
            self._copies[key] = value, made
        return made

    def __iter__(self) -> Iterator[str]:
        """The keys of this moment: other threads may add some meanwhile."""
        return iter(list(self._values))

    def __len__(self) -> int:
        """How many keys there are."""
        return len(self._values)

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self._values),)  # in another process it is what it was when it was sent


async def off_loop(copying: Callable[[*Ts, int], T], *values: *Ts) -> T:
    """Copy values without holding the event loop: large ones in a thread.

    Args:
        copying: Copies them, given also how many bytes it may copy; it fails with ``too_large``.
        values: What it is given first.

    Raises:
        StepFailed: They take more than ``MOST_BYTES``, or cannot be copied.
    """
    try:
        return copying(*values, _AT_ONCE)
    except StepFailed as error:
        if error.code != "too_large":
            raise
    import asyncio  # noqa: PLC0415 - the names of `planning` load this module, and not that

    return await asyncio.to_thread(copying, *values, MOST_BYTES)


def keep(value: Any, name: str, most: int = MOST_BYTES) -> tuple[Any, int]:
    """A copy of an output that nothing can change later, and how many bytes it takes.

    Raises:
        StepFailed: It takes more, or JSON cannot hold it.
    """
    meter = Meter("{} returned", _OUTPUT_TOO_LARGE, most, name)
    return meter.copy(value), meter.spent


def keep_inputs(inputs: Mapping[str, Any], most: int = MOST_BYTES) -> tuple[dict[str, Any], int]:
    """Copies of the values that a run starts with, which nothing can change later, and their bytes.

    Raises:
        StepFailed: A value takes more, or JSON cannot hold it.
    """
    kept, size = dict[str, Any](), 0
    for key, value in inputs.items():
        meter = Meter("the input {} holds", _INPUT_TOO_LARGE, most, show(key))
        kept |= meter.copy({key: value})  # a snapshot has it one level deep
        size += meter.spent
    return kept, size


def is_written(kind: type) -> bool:
    """Whether a class that JSON lacks, and that is not a record, has a form in JSON."""
    return issubclass(kind, _WRITTEN) or hasattr(kind, "model_dump") or hasattr(kind, "tolist")


def json_keys(keys: Iterable[Any]) -> dict[str, Any]:
    """The keys of a mapping, by the text that each is in JSON."""
    return {key if type(key) is str else next(iter(plain({key: None}))): key for key in keys}
