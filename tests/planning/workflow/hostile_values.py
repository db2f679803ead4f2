"""Objects that fail, lie or never end when they are asked anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

__all__ = [
    "Endless",
    "FailingBytes",
    "FailingDict",
    "FailingInt",
    "FailingList",
    "FailingMapping",
    "FailingObject",
    "FailingText",
    "LongList",
    "LyingClass",
    "Nameless",
    "NoClass",
    "ShortList",
    "holding_itself",
    "shared_by_all",
]


def _refuse(*_given: object, **_named: object) -> NoReturn:
    raise RuntimeError("never to be asked")


_fail: Any = _refuse


class FailingText(str):
    __slots__ = ()
    __str__ = __repr__ = __len__ = __iter__ = __getitem__ = __contains__ = __format__ = __eq__ = _fail
    encode = startswith = strip = isascii = removeprefix = _fail

    __hash__ = str.__hash__


class FailingBytes(bytes):
    __bytes__ = decode = __iter__ = __len__ = __getitem__ = _fail


class FailingList(list[Any]):
    __iter__ = __len__ = __getitem__ = __repr__ = __eq__ = __bool__ = _fail


class ShortList(list[Any]):
    def __len__(self) -> int:
        return 1


class LongList(list[Any]):
    def __len__(self) -> int:
        return 10**12


class FailingDict(dict[str, Any]):
    __iter__ = __len__ = __getitem__ = __repr__ = __eq__ = __contains__ = _fail
    items = keys = values = get = _fail


class FailingInt(int):
    __int__ = __index__ = __str__ = __repr__ = __float__ = _fail


class FailingObject:
    __str__ = __repr__ = __bool__ = __eq__ = __len__ = __iter__ = _fail
    __hash__ = object.__hash__


class NoClass:
    __class__: Any = property(_fail)


class LyingClass:
    def __init__(self, said: type) -> None:
        self.said = said

    __class__: Any = property(lambda self: self.said)


class _Unnamed(type):
    __name__: Any = property(_fail)


class Nameless(metaclass=_Unnamed):
    pass


class FailingMapping(Mapping[str, Any]):
    """A mapping of which one method fails."""

    def __init__(self, method: str) -> None:
        self.method = method

    def __iter__(self) -> Iterator[str]:
        if self.method == "iter":
            raise RuntimeError("cannot be iterated")
        return iter(["steps"])

    def __len__(self) -> int:
        if self.method == "len":
            raise RuntimeError("has no length")
        return 1

    def __getitem__(self, name: str) -> Any:
        if self.method == "getitem":
            raise RuntimeError("cannot be read")
        return []


class Endless(Mapping[str, Any]):
    """A mapping whose names never end."""

    def __iter__(self) -> Iterator[str]:
        number = 0
        while True:
            yield str(number)
            number += 1

    def __len__(self) -> int:
        return 1

    def __getitem__(self, name: str) -> Any:
        return None


def holding_itself() -> list[Any]:
    """A list that holds itself twice."""
    made: list[Any] = []
    made += [made, made]
    return made


def shared_by_all(levels: int) -> list[Any]:
    """A list whose items are one list, and so on: small, and as a tree very large."""
    made: list[Any] = [1]
    for _ in range(levels):
        made = [made, made]
    return made
