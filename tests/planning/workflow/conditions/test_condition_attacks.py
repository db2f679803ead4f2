"""No attack runs, reads outside the memory, changes it, or does too much work."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from condition_canaries import hostile_memory, shape
from syrupy.assertion import SnapshotAssertion

from planning.workflow.conditions import ConditionInvalid, is_done


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

ALL = [attack for attacks in ATTACKS.values() for attack in attacks]
MOST_CALLS = 500_000
SHOWN = 90


def outcome(attack: str, memory: dict[str, object]) -> str:
    """What becomes of an attack: refused, and why, or evaluated."""
    try:
        return str(is_done(attack, memory, "x"))
    except ConditionInvalid as refusal:
        return str(refusal)


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
            found = outcome(attack, memory)
        assert (attack, calls) == (attack, [])
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


def work(attack: str, memory: dict[str, object]) -> int:
    """How many calls an attack makes, of functions in Python and in C."""
    made = 0

    def count(_frame: object, event: str, _given: object) -> None:
        nonlocal made
        made += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        outcome(attack, memory)
    finally:
        sys.setprofile(before)
    return made


def test_no_attack_makes_more_calls_than_an_evaluation_may_cost(memory: dict[str, object]) -> None:
    made = {attack[:SHOWN]: work(attack, memory) for attack in ALL}
    assert {attack: count for attack, count in made.items() if count > MOST_CALLS} == {}


def test_an_evaluation_leaves_the_warning_filters_of_the_process_alone() -> None:
    before = (warnings.filters, list(warnings.filters))
    with warnings.catch_warnings():
        inside = warnings.filters
        assert is_done("True", {})
        assert warnings.filters is inside
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
