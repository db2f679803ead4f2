"""What conditions say of a memory."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import json
import os
import re
import sys
import tracemalloc
import warnings
from collections import defaultdict
from datetime import date
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, ClassVar
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_findings import nested, stored_values, whole, with_outcomes
from run_cases import refusal
from syrupy.assertion import SnapshotAssertion

from laws import work_of
from planning.workflow.conditions import METHODS, ConditionInvalid, check_condition, is_done

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


HERE = Path(__file__).parent
DONE, NOT_DONE = ((HERE / name).read_text("utf-8").splitlines() for name in ("done.txt", "not_done.txt"))


@pytest.mark.parametrize("condition", [*DONE, *NOT_DONE])
def test_a_condition_is_done_or_not(condition: str) -> None:
    """What fails is not done."""
    assert is_done(condition, MEMORY, "count") is (condition in DONE)


def test_the_key_of_the_step_is_a_name(snapshot: SnapshotAssertion) -> None:
    def outcome(given: tuple[str, str | None, dict[str, Any]]) -> bool:
        condition, key, memory = given
        return is_done(condition, memory, key)

    assert with_outcomes(stored_values(snapshot), outcome) == snapshot


def test_what_just_keeps_the_limits_is_allowed() -> None:
    assert is_done("'" + "x" * 492 + "' != ''", {})
    assert is_done("not " + "not " * 97 + "True", {})
    assert is_done("9" * 100 + " > 1", {})


def test_a_condition_that_is_no_text_is_refused() -> None:
    message = "a condition must be a string; write one, such as \"memory.get('key') is not None\""
    assert refusal(ConditionInvalid, check_condition, None) == message


@pytest.mark.parametrize("error", [RecursionError, MemoryError])
def test_so_is_one_that_the_parser_has_no_room_for(error: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ast.parse", Mock(side_effect=error))
    message = "the condition is nested too deeply; shorten it"
    assert refusal(ConditionInvalid, check_condition, f"1 < {id(error)}") == message


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
        ("a" * 1000, "x.startswith(x)", True),
        ("a" * 1001, "x.startswith(x)", False),
        ("a" * 20, "x.strip(x) == ''", True),
        ("a" * 21, "x.strip(x) == ''", False),
        (list(range(10_000)), "9999 in x", True),
        (list(range(10_001)), "9999 in x", False),
        (list(range(9_997)), "1 in x and 2 in x and 3 in x and x != 1 and 'aaaaaa' < 'bbbbbb'", True),
        (list(range(9_997)), "1 in x and 2 in x and 3 in x and x != 1 and 'aaaaaaa' < 'bbbbbbb'", False),
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


# Attacks


ATTACKS: dict[str, list[str]] = {
    kind: [whole(written) for written in attacks]
    for kind, attacks in json.loads(Path(__file__).with_name("attacks.json").read_text()).items()
}
"""Conditions that want more than to look at the memory, by what they try."""

MOST_WORK = 1_000_000  # calls and their ends, of functions in Python and in C
SHOWN = 90


def outcome(attack: str, memory: dict[str, object]) -> str:
    """What becomes of an attack: refused, and why, or evaluated."""
    try:
        return str(is_done(attack, memory, "x"))
    except ConditionInvalid as refusal:
        return str(refusal)


@pytest.mark.parametrize("kind", ATTACKS)
def test_attacks_fail(kind: str, capfd: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    """Each is refused or not done, and nothing else happens."""
    calls, memory = hostile()
    before = shape(memory)
    calls.clear()
    lines, outcomes = list[str](), list[str]()

    def look(attack: str) -> None:
        outcomes.append(outcome(attack, memory))

    for attack in ATTACKS[kind]:
        with warnings.catch_warnings(action="error"):
            work = work_of(functools.partial(look, attack))
        assert (attack, calls, work <= MOST_WORK) == (attack, [], True)
        found = outcomes.pop()
        if found != "False":
            assert re.fullmatch("(None|[a-z])[ -~]*; [ -~]+", found), attack
            assert len(found) <= 140, attack
        shown = ascii(attack[:SHOWN])[1:-1]
        if len(attack) > SHOWN:
            shown += f" ... ({len(attack)} characters)"
        lines.append(f"{shown}\n    {found}\n")
    assert (shape(memory), capfd.readouterr()) == (before, ("", ""))
    assert "".join(lines) == snapshot


def test_an_evaluation_leaves_the_warning_filters_of_the_process_alone() -> None:
    with warnings.catch_warnings():
        before = (warnings.filters, list(warnings.filters))
        assert is_done("True", {})
        assert (warnings.filters, list(warnings.filters)) == before


def test_near_the_end_of_the_stack_the_answer_is_no_or_a_refusal() -> None:
    condition = "not " * 60 + "memory['x'] == [[[[1]]]]"

    def dive(depth: int) -> str:
        return outcome(condition, {"x": [[[[2]]]]}) if depth == 0 else dive(depth - 1)

    frame, depth = sys._getframe(), 0
    while frame.f_back:
        frame, depth = frame.f_back, depth + 1
    answers = {dive(sys.getrecursionlimit() - depth - room) for room in range(20, 100, 20)}
    assert answers <= {"False", "the condition is nested too deeply; shorten it"}


SIGNS = "()[]{}.,:+-*/%<>=!&|^~@#'\"\\ \n\0\u00e9\ud800"
GLUED = """== != ** // << := -> ...
1e999 1j 0x1 b' f' 'a' 1 x True None len sum memory memory['x'] memory.get('x')
__class__ all_of eval __import__ format [1,2] x= *x **x"""
SPACED = "and or not is in if else for lambda await yield import"
TOKENS = st.sampled_from([*SIGNS, *GLUED.split(), *map(" {} ".format, SPACED.split()), *sorted(METHODS)])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner) | st.tuples(inner, inner)
    ),
    max_leaves=10,
)


@given(
    st.text() | st.lists(TOKENS, max_size=30).map("".join),
    st.dictionaries(st.sampled_from(["x", "n", "s", "l", "d"]), ANYTHING),
    st.none() | st.text() | st.sampled_from(["x", "memory", "len"]),
)
def test_any_condition_is_refused_or_a_bool(condition: str, memory: dict[str, Any], key: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            check_condition(condition)
        except ConditionInvalid as refused:
            assert str(refused).isascii()
            assert len(str(refused)) <= 140
        with contextlib.suppress(ConditionInvalid):
            assert isinstance(is_done(condition, memory, key), bool)


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
        def told(*_given: object, **_named: object) -> bool:
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


def large_values(calls: list[str]) -> dict[str, Any]:
    """Values that take long to compare with their equals."""
    doubled: list[Any] = [1]
    for _ in range(40):
        doubled = [doubled, doubled]
    return {
        "rows": [{"a": i, "b": [i], "": "text"} for i in range(10_000)],
        "wide": {str(i): i for i in range(10_000)},
        "texts": ["".join(["a"] * 1000)] * 10_000,
        "long": "".join(["a" * 9_999_999, "a"]),
        "deep": nested(100_000),
        "grid": [[*range(9_999), 0] for _ in range(100)],
        "long_keys": {"a" * 1_000_000 + str(i): i for i in range(5)},
        "long_text_keys": {"\u0100" * 1_000_000: 1},
        "long_copies": ["".join(["a" * 999_999, "a"])] * 1_000,
        "tuples": tuple((i, i) for i in range(9_999)),
        "evil_keys": {canary(calls, str): 1, canary(calls, int): 2},
        "doubled": doubled,
    }


@functools.cache
def hostile() -> tuple[list[str], dict[str, Any]]:
    """The calls of canaries, and a memory with them among values of every kind and of every size."""
    calls, endless, twin = list[str](), list[Any](), list[Any]()
    endless.append(endless)
    twin.append(twin)
    canaries = type(canary(calls))
    return calls, {
        **large_values(calls),
        **{f"{name}_again": value for name, value in large_values(calls).items()},
        "x": 1,
        "text": "hello",
        "items": [3, 1, 2],
        "counted": defaultdict(list[int], x=[1]),
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
        "many": list(range(1_000_000)),
        "ten_thousand": list(range(10_000)),
        "medium": "a" * 29_999,
        "medium_wide": "\u0100" * 99_999,
        "needle": "a" * 490 + "b" + "a" * 490,
        "huge": 10**100_000,
        "large": 10**99,
        "endless": endless,
        "twin": twin,
        "thousand_deep": nested(1_000),
        "ring": ring(),
        "record": Record(1),
        "liars": [canary(calls, int), canary(calls, str), canary(calls, float)],
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
