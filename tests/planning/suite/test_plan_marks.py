"""Several marks as one change: what they would make one after the other, or nothing."""

from __future__ import annotations

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning import MarkStep, Plan, PlanStep
from planning.errors import ToolValidationError
from planning.plan.commands import MarkSteps
from planning.plan.handlers import mark
from planning.plan.model import STEP_STATUSES, PlanStatus
from planning.plan.reducers import mark_step, mark_steps
from planning.suite.tools import register_plan
from session import Session
from strategies import plans

PLAN = Plan(
    "Fix it", "active", (PlanStep("S001", "Look", None, "done"), PlanStep("S002", "Fix", None, "pending"))
)


@given(plans(), st.data())
def test_several_marks_make_what_they_make_one_after_the_other(plan: Plan, data: st.DataObject) -> None:
    ids = [step.step_id for step in plan.steps]
    marks = data.draw(
        st.lists(
            st.builds(
                MarkStep,
                st.sampled_from(ids) if ids else st.nothing(),
                st.sampled_from(STEP_STATUSES),
                st.none() | st.just("seen"),
            ),
            max_size=6 if ids else 0,
        )
    )
    slice_: tuple[Plan, ...] = (plan,)
    assert mark_steps(slice_, MarkSteps(tuple(marks))) == reduce(mark_step, marks, slice_)


@pytest.mark.parametrize(("is_last", "status"), [(False, "active"), (True, "completed")])
def test_a_session_takes_several_marks_and_the_last_of_them_completes_its_plan(
    is_last: bool, status: PlanStatus, session: Session
) -> None:
    register_plan(session)
    session.dispatch(PLAN)
    session.dispatch(MarkSteps((MarkStep("S002", "blocked", "No access"),), is_last=is_last))
    blocked = PlanStep("S002", "Fix", None, "blocked", ("No access",))
    assert session.select_all(Plan) == (Plan("Fix it", status, (PLAN.steps[0], blocked)),)


@pytest.mark.parametrize(
    "marks",
    [
        (),
        (MarkStep("S002", "done"), MarkStep("S009", "done")),
        (MarkStep("S002", "done"), MarkStep("S001", "finished")),  # type: ignore[arg-type] # no status
    ],
)
def test_with_no_mark_or_one_that_cannot_be_made_the_slice_stays_as_it_is(
    marks: tuple[MarkStep, ...],
) -> None:
    slice_ = (PLAN,)
    assert mark_steps(slice_, MarkSteps(marks)) is slice_


def test_each_mark_is_checked_and_normalised_like_a_single_one() -> None:
    command = MarkSteps((MarkStep(" S002 ", "done", " seen "), MarkStep("S001", "pending")))
    assert mark(command, PLAN) == MarkSteps((MarkStep("S002", "done", "seen"), MarkStep("S001", "pending")))


def test_a_mark_that_is_refused_refuses_all() -> None:
    with pytest.raises(ToolValidationError) as refused:
        mark(MarkSteps((MarkStep("S001", "done"), MarkStep("S007", "done"))), PLAN)
    assert str(refused.value) == "marks[1].step_id: the plan has no step S007; its steps are S001 to S002"
