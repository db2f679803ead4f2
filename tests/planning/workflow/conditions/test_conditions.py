"""What conditions say of a memory."""

from __future__ import annotations

import dataclasses
import enum
import tracemalloc
from datetime import date
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, ClassVar

import pytest
from condition_canaries import nested

from planning.workflow.conditions import ConditionInvalid, check_condition, is_done

MEMORY: dict[str, Any] = {
    "count": 3,
    "none": None,
    "yes": True,
    "no": False,
    "ratio": 0.5,
    "name": "Acme Corp",
    "list": [3, 1, 2],
    "empty": [],
    "texts": ["b", "a"],
    "flags": [True, True, False],
    "rows": [{"id": 1, "tags": ["x"]}, {"id": 2, "tags": []}],
    "map": {"a": 1, "b": {"c": [1, 2]}, "": 0, "none": None},
    "same": {"b": {"c": (1, 2)}, "a": 1, "": 0, "none": None},
    "other": {"a": 1, "b": {"c": [1, 3]}, "": 0, "none": None},
    "keys": {1: "one", None: "none", 2.5: "two"},
}


DONE, NOT_DONE = (
    Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines()
    for name in ("done.txt", "not_done.txt")
)


@pytest.mark.parametrize("condition", DONE)
def test_a_true_condition_is_done(condition: str) -> None:
    assert is_done(condition, MEMORY, "count") is True


@pytest.mark.parametrize("condition", NOT_DONE)
def test_a_false_or_failing_condition_is_not_done(condition: str) -> None:
    assert is_done(condition, MEMORY, "count") is False


@pytest.mark.parametrize(
    ("condition", "kind"),
    [
        ("memory['name']", "a string"),
        ("memory['count']", "a number"),
        ("memory['ratio']", "a number"),
        ("memory['none']", "None"),
        ("memory.get('absent')", "None"),
        ("memory['list']", "a list or a mapping or another object"),
        ("memory", "a list or a mapping or another object"),
        ("memory['empty'] or 1", "a number"),
    ],
)
def test_a_result_that_is_no_bool_is_invalid(condition: str, kind: str) -> None:
    check_condition(condition)
    with pytest.raises(ConditionInvalid) as refused:
        is_done(condition, MEMORY)
    assert (
        str(refused.value)
        == f"the condition gives {kind}; write a comparison, such as memory.get('key') is not None"
    )


@pytest.mark.parametrize(
    ("condition", "key", "memory", "done"),
    [
        ("revenue == 5", "revenue", {"revenue": 5}, True),
        ("revenue == 5", None, {"revenue": 5}, False),
        ("revenue is None", "revenue", {}, False),
        ("cost == 5", "revenue", {"revenue": 1, "cost": 5}, False),
        ("memory['memory'] == 5 and 'x' in memory", "memory", {"memory": 5, "x": 1}, True),
        ("memory == 5", "memory", {"memory": 5}, False),
        ("None is None", "None", {"None": 5}, True),
        ("memory['not a name'] == 5", "not a name", {"not a name": 5}, True),
        ("sum > 3 and sum([sum]) > 3", "sum", {"sum": 4}, True),
        ("match == 1", "match", {"match": 1}, True),
    ],
)
def test_the_key_of_the_step_is_a_name(condition: str, key: str, memory: dict[str, Any], done: bool) -> None:
    assert is_done(condition, memory, key) is done


def test_what_just_keeps_the_limits_is_allowed() -> None:
    assert is_done("'" + "x" * 492 + "' != ''", {})
    assert is_done("not " + "not " * 97 + "True", {})
    assert is_done("9" * 100 + " > 1", {})


def test_a_condition_that_is_no_text_is_refused() -> None:
    nothing: Any = None
    with pytest.raises(ConditionInvalid) as refused:
        check_condition(nothing)
    assert (
        str(refused.value)
        == "a condition must be a string; write one, such as \"memory.get('key') is not None\""
    )


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
