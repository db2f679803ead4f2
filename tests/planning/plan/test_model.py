"""Where a step of a plan is, what holds of every id, and plans and commands as data."""

from __future__ import annotations

import copy
import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning import Plan, PlanStep, StepStatus, ready_steps, register_plan
from planning.plan.commands import Command
from planning.plan.facts import PlanFacts
from planning.plan.model import format_id, index_of, listed_ids, number_of, written_alike
from session import Session
from strategies import commands, plans


@pytest.mark.parametrize(
    "step_id", ["S004", "S0002", "s001", "S000", "S-01", "", "S", "\u0661", "S" + "9" * 9_999]
)
def test_an_id_that_no_step_has_is_nowhere(step_id: str) -> None:
    steps = [PlanStep(format_id(number), "x", None, "pending") for number in (1, 2, 3)]
    assert index_of(steps, step_id) is None


@given(plans(), st.text())
def test_an_index_is_the_place_of_its_step(plan: Plan, other: str) -> None:
    for place, step in enumerate(plan.steps):
        assert index_of(plan.steps, step.step_id) == place
    found = index_of(plan.steps, other)
    assert (found is None) is (other not in {step.step_id for step in plan.steps})


@given(st.integers(0, 10**12))
def test_an_id_reads_back_to_its_number(number: int) -> None:
    assert number_of(format_id(number)) == number


@given(st.text() | st.from_regex(r"\A.?[0-9]{1,3}\Z"))
def test_the_number_of_a_text_is_that_of_the_digits_at_its_end(text: str) -> None:
    (digits,) = re.findall(r"[0-9]*\Z", text)[:1]
    assert number_of(text) == (int(digits) if digits else None)


@given(st.integers(0, 10**9 - 1))
def test_every_shape_of_an_id_is_like_the_id_itself(number: int) -> None:
    step_id = format_id(number)
    for shape in (str(number), f"s{number}", f"S{number:06d}", step_id.lower()):
        assert written_alike(shape, [step_id, format_id(number + 1)]) == [step_id]


def test_an_id_of_very_many_digits_is_like_no_other() -> None:
    assert written_alike("9" * 100_000, ["S001", "S" + "9" * 99_999]) == []


@pytest.mark.parametrize(
    ("step_ids", "listed"),
    [
        ("S001", "S001"),
        ("S001 S002", "S001 to S002"),
        ("S999 S1000", "S999 to S1000"),
        ("S001 S003", "S001, S003"),
        ("S001 S002 S004 S005 S006 end", "S001 to S002, S004 to S006, end"),
        ("a b 7", "a, b, 7"),
        (" ".join(format_id(number) for number in range(1, 41, 2)),
         ", ".join(format_id(number) for number in range(1, 41, 2))),
        (" ".join(format_id(number) for number in (*range(1, 41, 2), 43, 44)),
         f"{', '.join(format_id(number) for number in range(1, 41, 2))} and 2 more"),
    ],
)  # fmt: skip
def test_ids_in_an_unbroken_row_are_listed_as_one(step_ids: str, listed: str) -> None:
    assert listed_ids(step_ids.split()) == listed


def test_the_steps_that_can_begin_are_the_pending_ones_whose_prerequisites_are_done(session: Session) -> None:
    register_plan(session)
    assert ready_steps(session) == ()
    statuses: list[StepStatus] = ["done", "pending", "pending", "blocked", "pending", "in_progress"]
    steps = tuple(PlanStep(format_id(at), "x", None, status) for at, status in enumerate(statuses, 1))
    session.dispatch(Plan("x", "active", steps))
    everything = (steps[1], steps[2], steps[4])
    assert ready_steps(session) == ready_steps(Plan("x", "active", steps)) == everything
    session.dispatch(PlanFacts(depends_on={"S002": ("S001", "S009"), "S003": ("S002",), "S005": ("S004",)}))
    for source in (session, session.snapshot(), session.at(session.version)):
        assert ready_steps(source) == (steps[1],)


@given(commands() | plans())
def test_a_value_can_be_compared_hashed_copied_and_pickled(value: Command | Plan) -> None:
    for twin in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)):  # noqa: S301 - its own pickle
        assert twin == value
        assert hash(twin) == hash(value)
        assert repr(twin) == repr(value)
