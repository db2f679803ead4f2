"""Strategies of Hypothesis for commands, plans and histories."""

from __future__ import annotations

import string
from collections.abc import Callable
from typing import Any

from planning.errors import ToolValidationError
from planning.plan import handlers
from planning.plan.commands import (
    AddStep,
    ClearPlan,
    Command,
    MarkStep,
    NewPlanStep,
    ReadPlan,
    SetupPlan,
    UpdateStep,
)
from planning.plan.model import STEP_STATUSES, Plan, PlanStep, format_id
from planning.plan.reducers import REDUCERS
from planning.plan.text import DETAILS, NOTE, OBJECTIVE, STEP_ID, TITLE, TextRule

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import SearchStrategy
except ImportError:
    raise ImportError("the strategies need hypothesis: pip install 'session-planning[testing]'") from None

__all__ = ["any_plans", "commands", "histories", "new_steps", "plan_steps", "plans", "step_ids", "texts"]

_LINE = string.ascii_letters + string.digits + string.punctuation + " "
_HANDLERS: dict[type[Command], Callable[[Any, Plan | None], Any]] = {
    SetupPlan: handlers.setup_plan,
    AddStep: handlers.add_step,
    UpdateStep: handlers.update_step,
    MarkStep: handlers.mark_step,
    ClearPlan: handlers.clear_plan,
}


def texts(rule: TextRule) -> SearchStrategy[str]:
    """Strings that a rule of ``planning.plan.text`` keeps as they are."""
    alphabet = _LINE + ("\n\t" if rule.multiline else "")
    return st.text(alphabet, min_size=1, max_size=rule.limit).map(str.strip).filter(bool)


def step_ids() -> SearchStrategy[str]:
    """Ids as the reducers assign them, and others that a plan from elsewhere may hold."""
    return st.integers(1, 1_002).map(format_id) | texts(STEP_ID)


def new_steps() -> SearchStrategy[NewPlanStep]:
    """Steps to add, with normal strings."""
    return st.builds(NewPlanStep, texts(TITLE), st.none() | texts(DETAILS))


def plan_steps(step_id: SearchStrategy[str] | None = None) -> SearchStrategy[PlanStep]:
    """Steps of a plan, in any status."""
    return st.builds(
        PlanStep,
        step_ids() if step_id is None else step_id,
        texts(TITLE),
        st.none() | texts(DETAILS),
        st.sampled_from(STEP_STATUSES),
        st.lists(texts(NOTE), max_size=2).map(tuple),
    )


def commands(plan: Plan | None = None) -> SearchStrategy[Command]:
    """Commands with normal strings; those for one step name one of the plan's, or any id."""
    known = [] if plan is None else [step.step_id for step in plan.steps]
    step_id = st.sampled_from(known) | step_ids() if known else step_ids()
    some_steps = st.lists(new_steps(), max_size=3).map(tuple)
    note, title, details = st.none() | texts(NOTE), st.none() | texts(TITLE), st.none() | texts(DETAILS)
    return st.one_of(
        st.builds(SetupPlan, texts(OBJECTIVE), some_steps),
        st.builds(AddStep, some_steps),
        st.builds(UpdateStep, step_id, title, details),
        st.builds(MarkStep, step_id, st.sampled_from(STEP_STATUSES), note),
        st.builds(ClearPlan),
        st.builds(ReadPlan),
    )


@st.composite
def histories(draw: st.DrawFn, *, max_size: int = 8) -> tuple[tuple[Command, Plan], ...]:
    """Commands that are accepted one after the other in a new session, each with the plan that it makes.

    Args:
        draw: Given by Hypothesis.
        max_size: The most commands.
    """
    plan: Plan | None = None
    made: list[tuple[Command, Plan]] = []
    for _ in range(draw(st.integers(0, max_size))):
        command = draw(commands(plan) if plan is not None else st.builds(SetupPlan, texts(OBJECTIVE)))
        if isinstance(command, ReadPlan):
            continue
        try:
            checked = _HANDLERS[type(command)](command, plan)
        except ToolValidationError:
            continue
        (plan,) = REDUCERS[type(command)](() if plan is None else (plan,), checked)
        made.append((command, plan))
    return tuple(made)


def plans() -> SearchStrategy[Plan]:
    """Plans that a model can make, in any status."""
    made = histories().filter(bool)
    return made.map(lambda history: history[-1][1])


@st.composite
def any_plans(draw: st.DrawFn, *, max_steps: int = 5) -> Plan:
    """Plans in any status with any steps whose ids differ, also ones that no command leads to.

    Args:
        draw: Given by Hypothesis.
        max_steps: The most steps.
    """
    counted = st.integers(0, max_steps).map(lambda size: [format_id(place + 1) for place in range(size)])
    ids = draw(counted | st.lists(step_ids(), max_size=max_steps, unique=True))
    steps = tuple(draw(plan_steps(st.just(step_id))) for step_id in ids)
    return Plan(draw(texts(OBJECTIVE)), draw(st.sampled_from(["active", "completed", "abandoned"])), steps)
