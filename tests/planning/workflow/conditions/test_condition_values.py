"""What a condition sees of values that are not plain JSON, or are large."""

from __future__ import annotations

import dataclasses
import enum
import tracemalloc
from collections import defaultdict
from collections.abc import Mapping
from datetime import date
from types import MappingProxyType, SimpleNamespace
from typing import Any, ClassVar

import pytest
from condition_canaries import nested

from planning.workflow.conditions import is_done


@dataclasses.dataclass(eq=False)
class Fact:
    name: str
    value: float = 1.5
    unit: ClassVar[str] = "USD"

    @property
    def secret(self) -> str:
        raise AssertionError("a property is not read")

    def __getattr__(self, name: str) -> str:
        raise AssertionError("nothing is asked")

    def __eq__(self, other: object) -> bool:
        raise AssertionError("nothing is compared")

    __hash__ = object.__hash__


class Colour(enum.StrEnum):
    RED = "red"


class Reading(float):
    def __eq__(self, other: object) -> bool:
        raise AssertionError("nothing is compared")

    __hash__ = float.__hash__


class Counting(Mapping[str, int]):
    def __getitem__(self, key: str) -> int:
        return {"a": 1}[key]

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Any:
        return iter(["a"])


LONG = "a" * 10_000_000
MANY = list(range(1_000_000))


@pytest.mark.parametrize(
    ("value", "condition", "done"),
    [
        ([Fact("a")], "x[0]['name'] == 'a' and x[0].get('value') == 1.5 and len(x[0]) == 2", True),
        ([Fact("a")], "'secret' in x[0] or 'unit' in x[0] or '__class__' in x[0] or 1 in x[0]", False),
        ([Fact("a")], "x[0]['secret'] is None", False),
        (Colour.RED, "x == 'red' and x.upper() == 'RED' and len(x) == 3", True),
        (Reading(1.5), "x == 1.5 and x < 2", True),
        (MappingProxyType({"a": 1}), "x['a'] == 1 and len(x) == 1", True),
        ({1: "a", "b": 2}, "x[1] == 'a' and x['1'] == 'a' and x.get('b') == 2 and 'c' not in x", True),
        (date(2024, 1, 1), "x == '2024-01-01' and x < '2024-01-02' and len(x) == 10", True),
        (SimpleNamespace(name="a"), "x['name'] == 'a'", False),
        (10**101, "x is not None and x != 1", True),
        (10**101, "x > 1", False),
        (float("nan"), "x == 'nan' and x in [x] and [x] == [x]", True),
        (float("inf"), "x > 1", False),
        ("a" * 100_000, "x.isalpha() and len(x) == 100000", True),
        ("a" * 100_001, "x.isalpha()", False),
        (LONG, "x.startswith('aa') and x.endswith('a') and len(x) == 10000000 and x[5] == 'a'", True),
        (list(range(10_001)), "9999 in x", False),
        (MANY, "len(x) == 1000000 and x[-1] == 999999 and x[:2] == [0, 1] and x != [1]", True),
        ([nested(60), nested(60)], "x[0] == x[1]", True),
    ],
)  # fmt: skip
def test_values_are_seen_as_what_they_hold(value: Any, condition: str, done: bool) -> None:
    assert is_done(condition, {"x": value}, "x") is done


def test_a_memory_of_any_mapping_is_read() -> None:
    assert is_done("memory['a'] == 1 and a == 1 and len(memory) == 1", Counting(), "a")
    nothing: Any = None
    assert not is_done("memory['a'] == 1", nothing)


def test_a_missing_key_makes_no_default() -> None:
    counted: defaultdict[str, list[int]] = defaultdict(list)
    memory = {"a": counted, "b": MappingProxyType(counted)}
    assert not is_done("memory['a']['x'] == []", memory)
    assert not is_done("memory['b']['x'] == []", memory)
    assert not is_done("'x' in memory['a'] or 'x' in memory['b']", memory)
    assert counted == {}


def test_a_large_memory_is_not_converted_to_read_one_value() -> None:
    memory: dict[str, Any] = {f"clé {number}": number for number in range(50_000)}
    tracemalloc.start()
    try:
        assert is_done("memory['clé 7'] == 7 and 'key' not in memory and memory.get('key') is None", memory)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200_000


def test_a_key_with_half_a_character_is_found_as_it_is_recorded() -> None:
    memory = {"\ud800": 1, "key": "\ud800", "escaped": r"\ud800"}
    assert is_done("memory[memory['key']] == 1 and memory['escaped'] in memory", memory)
    assert is_done("memory.get(memory['escaped']) == 1", memory)
