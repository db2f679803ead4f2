"""No attack runs, reads outside the memory, changes it, or does too much work."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from condition_canaries import hostile_memory, shape
from hypothesis import given, reject
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from planning.workflow.conditions import METHODS, ConditionInvalid, check_condition, is_done
from session.json_form import NoJsonForm, json_form


def whole(written: Any) -> str:
    """An attack as the corpus writes it: a text, or a list of texts and of pairs of a text and a count."""
    if isinstance(written, str):
        return written
    return "".join(part if isinstance(part, str) else part[0] * part[1] for part in written)


ATTACKS: dict[str, list[str]] = {
    kind: [whole(written) for written in attacks]
    for kind, attacks in json.loads(Path(__file__).with_name("attacks.json").read_text()).items()
}
"""Conditions that want more than to look at the memory, by what they try."""

MOST_CALLS = 500_000
SHOWN = 90


def outcome(attack: str, memory: dict[str, object]) -> str:
    """What becomes of an attack: refused, and why, or evaluated."""
    try:
        return str(is_done(attack, memory, "x"))
    except ConditionInvalid as refusal:
        return str(refusal)


def outcome_and_work(attack: str, memory: dict[str, object]) -> tuple[str, int]:
    """The outcome, and how many calls it took, of functions in Python and in C."""
    made = 0

    def count(_frame: object, event: str, _given: object) -> None:
        nonlocal made
        made += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        found = outcome(attack, memory)
    finally:
        sys.setprofile(before)
    return found, made


@pytest.fixture(scope="module")
def calls() -> list[str]:
    return []


@pytest.fixture(scope="module")
def memory(calls: list[str]) -> dict[str, object]:
    return hostile_memory(calls)


@pytest.mark.parametrize("kind", ATTACKS)
def test_each_attack_is_refused_or_not_done_and_nothing_else_happens(
    kind: str,
    memory: dict[str, object],
    calls: list[str],
    capfd: pytest.CaptureFixture[str],
    snapshot: SnapshotAssertion,
) -> None:
    before = shape(memory)
    calls.clear()
    lines = []
    for attack in ATTACKS[kind]:
        with warnings.catch_warnings(action="error"):
            found, work = outcome_and_work(attack, memory)
        assert (attack, calls, work <= MOST_CALLS) == (attack, [], True)
        if found != "False":
            assert found.isascii(), attack
            assert found.isprintable(), attack
            assert "; " in found, attack
            assert len(found) <= 140, attack
            assert found[0].islower() or found.startswith("None"), attack
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


@pytest.mark.parametrize("room", [20, 40, 60, 80])
def test_near_the_end_of_the_stack_the_answer_is_no_or_a_refusal(room: int) -> None:
    condition = "not " * room + "memory['x'] == [[[[1]]]]"

    def dive(depth: int) -> str:
        return outcome(condition, {"x": [[[[2]]]]}) if depth == 0 else dive(depth - 1)

    frame, depth = sys._getframe(), 0
    while frame.f_back:
        frame, depth = frame.f_back, depth + 1
    assert dive(sys.getrecursionlimit() - depth - room) in {
        "False",
        "the condition is nested too deeply; shorten it",
    }


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
def test_no_text_and_no_memory_raises_anything_but_a_refusal(
    condition: str, memory: dict[str, Any], key: str | None
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            check_condition(condition)
        except ConditionInvalid as refused:
            assert str(refused).isascii()
            assert len(str(refused)) <= 140
        with contextlib.suppress(ConditionInvalid):
            assert is_done(condition, memory, key) in {True, False}


@dataclasses.dataclass
class Row:
    n: Any
    s: Any


VALUES = st.recursive(
    ANYTHING | st.sets(st.integers()) | st.decimals() | st.uuids() | st.text("a\ud800\u0100"),
    lambda inner: (
        st.builds(Row, inner, inner) | st.lists(inner) | st.dictionaries(st.text("n1s\ud800"), inner)
    ),
    max_leaves=10,
)
QUESTIONS = st.sampled_from(
    """x == y
x != y
x in [y]
x['n'] == y['n']
x['s'] is None
x[0] == y[0]
x == y or len(x) > 1
max(x) == max(y)
sum(x) > 1
'n' in x and x.get('n') != 's'
x < y
x[1:] == y[1:]
x['n']['s'] == y
any_of(x) and not y
x.get(1) is None
1 in x
x.lower() == y
all_of(x == y, x['n'])""".splitlines()
)


@given(QUESTIONS, VALUES, VALUES | st.none())
def test_a_condition_means_the_same_of_a_value_and_of_its_record(question: str, x: Any, y: Any) -> None:
    memory = {"x": x, "y": x if y is None else y}
    try:
        record = json.loads(json.dumps(json_form(memory, strict=True)))
    except NoJsonForm:
        reject()
    condition = re.sub(r"\b([xy])\b", r"memory['\1']", question)
    assert outcome(condition, memory) == outcome(condition, record)
