"""Hypothesis strategies that all tests share: those of ``planning.testing``, and what is refused."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from planning import (
    AddStep,
    ClearPlan,
    MarkStep,
    NewPlanStep,
    Plan,
    ReadPlan,
    SetupPlan,
    UpdateStep,
)
from planning.plan.commands import Command
from planning.plan.model import STEP_STATUSES
from planning.plan.text import DETAILS, NOTE, OBJECTIVE, STEP_ID, TITLE, TextRule
from planning.testing.strategies import any_plans as plans
from planning.testing.strategies import commands, new_steps, plan_steps, step_ids, texts

__all__ = [
    "anything",
    "commands",
    "new_steps",
    "plan_steps",
    "plans",
    "refused_texts",
    "spaces",
    "step_ids",
    "texts",
    "untrimmed_texts",
    "wild_commands",
]

_CONTROLS = "".join(map(chr, range(0x20))) + "\x7f"


def spaces(max_size: int = 3) -> SearchStrategy[str]:
    """What a trim takes away, or nothing."""
    return st.text(" \t\n\r\u00a0\u3000", max_size=max_size)


def untrimmed_texts(rule: TextRule) -> SearchStrategy[str]:
    """Texts that a rule lets through once they are trimmed."""
    return st.tuples(spaces(), texts(rule), spaces()).map("".join)


def refused_texts(rule: TextRule) -> SearchStrategy[str]:
    """Texts that break a rule: too long, with a character that it does not allow, or blank."""
    too_long = st.integers(1, 40).map(lambda over: "x" * (rule.limit + over))
    controls = "".join(each for each in _CONTROLS if not (rule.multiline and each in "\n\t"))
    character = st.characters(min_codepoint=0x80) | st.sampled_from(controls)
    with_character = st.tuples(st.just("a"), character, st.just("z")).map("".join)
    kinds = [too_long, with_character] if rule.blank_is_none else [too_long, with_character, spaces()]
    return st.one_of(kinds)


def anything() -> SearchStrategy[Any]:
    """Values of types that a field may or may not take."""
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.binary(max_size=3),
        st.text(max_size=12),
        st.lists(st.text(max_size=3), max_size=2),
        st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    )


def wild_commands(plan: Plan | None = None) -> SearchStrategy[Command]:
    """Commands as careless callers make them: any text, padded, refused, or no text at all."""

    def text(rule: TextRule) -> SearchStrategy[Any]:
        return untrimmed_texts(rule) | refused_texts(rule) | anything()

    known = [] if plan is None else [step.step_id for step in plan.steps]
    step_id = text(STEP_ID)
    if known:
        step_id |= st.tuples(spaces(), st.sampled_from(known), spaces()).map("".join)
    status = st.sampled_from(STEP_STATUSES) | anything()
    step = st.builds(NewPlanStep, text(TITLE), st.none() | text(DETAILS))
    steps: SearchStrategy[Any] = st.lists(step | anything(), max_size=3)
    steps = steps | steps.map(tuple) | st.lists(new_steps(), max_size=3) | anything()
    return st.one_of(
        st.builds(SetupPlan, text(OBJECTIVE), steps),
        st.builds(AddStep, steps),
        st.builds(UpdateStep, step_id, st.none() | text(TITLE), st.none() | text(DETAILS)),
        st.builds(MarkStep, step_id, status, st.none() | text(NOTE)),
        st.builds(ClearPlan),
        st.builds(ReadPlan),
    )
