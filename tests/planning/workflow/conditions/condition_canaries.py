"""A memory full of objects that tell when anything is asked of them, and of values that are too large."""

from __future__ import annotations

import dataclasses
import functools
import os
from collections import defaultdict
from typing import Any

from plan_findings import nested

__all__ = ["hostile_memory", "shape"]

_SPECIAL = [
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__bool__", "__len__",
    "__iter__", "__next__", "__contains__", "__getitem__", "__setitem__", "__delitem__", "__call__",
    "__del__", "__getattr__", "__getattribute__", "__setattr__", "__delattr__", "__str__", "__repr__",
    "__format__", "__add__", "__radd__", "__mul__", "__rmul__", "__mod__", "__rmod__", "__sub__",
    "__rsub__", "__truediv__", "__floordiv__", "__pow__", "__neg__", "__pos__", "__abs__", "__invert__",
    "__int__", "__float__", "__index__", "__enter__", "__exit__", "__reversed__", "__copy__",
    "__deepcopy__", "__reduce__", "__reduce_ex__", "__dir__", "__sizeof__", "__missing__",
    "__instancecheck__",
]  # fmt: skip


def canary(calls: list[str], base: type[Any] = object) -> Any:
    """An object whose every special method writes its name down, and then does harm if it can."""

    def recorded(name: str) -> Any:
        def told(*_given: object, **_named: object) -> Any:
            calls.append(name)
            return True

        return told

    @property  # type: ignore[misc]  # what is read of it is a lie on purpose
    def claimed(_self: object) -> type:
        calls.append("__class__")
        return dict

    members = {name: recorded(name) for name in _SPECIAL}
    if base is not object:
        members["__hash__"] = base.__hash__  # so that it can be a key
    return type("Canary", (base,), {**members, "__class__": claimed, "get": recorded("get")})()


@dataclasses.dataclass
class Record:
    x: int


def ring() -> dict[str, Any]:
    first: dict[str, Any] = {}
    first["next"] = {"next": first}
    return first


def hostile_memory(calls: list[str]) -> dict[str, Any]:
    """Values of every kind and of every size, among them canaries that write to ``calls``."""
    endless: list[Any] = []
    endless.append(endless)
    twin: list[Any] = []
    twin.append(twin)
    doubled: list[Any] = [1]
    doubled_again: list[Any] = [1]
    for _ in range(40):
        doubled, doubled_again = [doubled, doubled], [doubled_again, doubled_again]
    canaries = type(canary(calls))
    counted: defaultdict[str, list[int]] = defaultdict(list)
    counted["x"].append(1)
    return {
        "x": 1,
        "zero": 0,
        "text": "hello",
        "items": [3, 1, 2],
        "nested": {"a": {"b": [1, {"c": 2}]}},
        "counted": counted,
        "canary": canary(calls),
        "canaries": [canaries() for _ in range(5_000)],
        "dict_canary": canary(calls, dict),
        "list_canary": canary(calls, list),
        "text_canary": canary(calls, str),
        "number_canary": canary(calls, int),
        "module": os,
        "function": os.system,
        "builtin": eval,
        "class": type,
        "partial": functools.partial(canary, calls),
        "rows": [{"a": i, "b": [i], "": "text"} for i in range(10_000)],
        "rows_again": [{"a": i, "b": [i], "": "text"} for i in range(10_000)],
        "wide": {str(i): i for i in range(10_000)},
        "wide_again": {str(i): i for i in range(10_000)},
        "many": list(range(1_000_000)),
        "ten_thousand": list(range(10_000)),
        "texts": ["a" * 1000] * 10_000,
        "texts_again": ["".join(["a"] * 1000)] * 10_000,
        "long": "a" * 10_000_000,
        "long_again": "a" * 9_999_999 + "".join(["a"]),
        "medium": "a" * 29_999,
        "medium_wide": "\u0100" * 99_999,
        "needle": "a" * 490 + "b" + "a" * 490,
        "huge": 10**100_000,
        "large": 10**99,
        "deep": nested(100_000),
        "endless": endless,
        "twin": twin,
        "deep_again": nested(100_000),
        "thousand_deep": nested(1_000),
        "ring": ring(),
        "grid": [[*range(9_999), 0] for _ in range(100)],
        "grid_again": [[*range(9_999), 0] for _ in range(100)],
        "long_keys": {"a" * 1_000_000 + str(i): i for i in range(5)},
        "long_keys_again": {"a" * 1_000_000 + str(i): i for i in range(5)},
        "long_text_keys": {"\u0100" * 1_000_000: 1},
        "long_text_keys_again": {"\u0100" * 1_000_000: 1},
        "long_copies": ["a" * 1_000_000] * 1_000,
        "long_copies_again": ["".join(["a" * 999_999, "a"])] * 1_000,
        "tuples": tuple((i, i) for i in range(9_999)),
        "tuples_again": tuple((i, i) for i in range(9_999)),
        "record": Record(1),
        "evil_keys": {canary(calls, str): 1, canary(calls, int): 2},
        "evil_keys_again": {canary(calls, str): 1, canary(calls, int): 2},
        "liars": [canary(calls, int), canary(calls, str), canary(calls, float)],
        "doubled": doubled,
        "doubled_again": doubled_again,
    }


def shape(memory: dict[str, Any]) -> dict[str, Any]:
    """What the memory holds, by identity, so that nothing in it is asked to say so."""
    told: dict[str, Any] = {}
    for key, value in memory.items():
        inside: Any = ()
        if type(value) in (dict, defaultdict):
            inside = [(name, id(each)) for name, each in value.items()]
        elif type(value) is list and len(value) <= 100:
            inside = [id(each) for each in value]
        elif type(value) is list:
            inside = (len(value), id(value[0]), id(value[-1]))
        told[key] = (id(value), inside)
    return told
