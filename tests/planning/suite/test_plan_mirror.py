"""A plan that shows work whose state is kept elsewhere."""

from __future__ import annotations

import pytest

from planning import NewPlanStep, Plan, PlanStep, SetupPlan, ToolError
from planning.plan.commands import MarkSteps
from planning.suite.mirror import PlanMirror, shows
from session import Session

SETUP = SetupPlan("Ship it", (NewPlanStep("Pack", "step a"), NewPlanStep("Send")))
STEPS = (PlanStep("S001", "Pack", "step a", "pending"), PlanStep("S002", "Send", None, "pending"))
SHOWN = Plan("Ship it", "active", STEPS)
ADDED = PlanStep("S003", "Call", None, "pending")
OTHER = Plan("Something else", "active")


@pytest.fixture
def mirror(session: Session) -> PlanMirror:
    """A mirror that has not begun."""
    return PlanMirror(session, "the run", SETUP)


def begin(mirror: PlanMirror, session: Session, *, may_replace: bool = False, is_new: bool = True) -> bool:
    with session.transaction() as transaction:
        return mirror.begin(transaction, lambda _plan: may_replace, is_new=is_new)


def marked(mirror: PlanMirror, session: Session, *marks: tuple[int, str, str | None]) -> bool:
    with session.transaction() as transaction:
        return mirror.mark(transaction, marks)  # type: ignore[arg-type]  # statuses from a table


def finished(mirror: PlanMirror, session: Session) -> bool:
    with session.transaction() as transaction:
        return mirror.finish(transaction)


@pytest.mark.parametrize("is_new", [True, False])
def test_an_active_plan_of_other_work_is_left_alone_unless_it_may_be_replaced(
    is_new: bool, mirror: PlanMirror, session: Session
) -> None:
    assert (session.select_all(Plan), mirror.plan, mirror.problem) == ((), None, None)
    session.dispatch(OTHER)
    asked: list[Plan] = []

    def may_replace(plan: Plan) -> bool:
        asked.append(plan)
        return False

    with session.transaction() as transaction:
        assert mirror.begin(transaction, may_replace, is_new=is_new) is False
    foreign = "the session has another active plan, which does not show this run"
    assert (asked, session.select_all(Plan), mirror.plan) == ([OTHER], (OTHER,), None)
    assert (marked(mirror, session), mirror.problem) == (False, foreign)
    assert begin(mirror, session, may_replace=True, is_new=is_new)
    assert (session.select_all(Plan), mirror.problem) == ((SHOWN,), None)


@pytest.mark.parametrize(("status", "ends"), [("pending", "active"), ("done", "completed")])
def test_an_open_step_that_others_added_keeps_the_plan_active(
    status: str, ends: str, mirror: PlanMirror, session: Session
) -> None:
    begin(mirror, session)
    added = PlanStep("S003", "Call", None, status)  # type: ignore[arg-type]  # a status from a table
    session.dispatch(Plan("Ship it", "active", (*SHOWN.steps, added)))
    assert finished(mirror, session)
    plan = session.select_latest(Plan)
    assert plan is not None
    assert plan.status == ends


@pytest.mark.parametrize(
    "there",
    [
        OTHER,
        Plan("Ship it", "abandoned", SHOWN.steps),
        Plan("Ship it", "active", SHOWN.steps[:1]),
        Plan("Ship it", "active", (SHOWN.steps[0], PlanStep("S002", "Sell", None, "pending"))),
        Plan("Ship it", "active", (PlanStep("S001", "Pack", None, "pending"), SHOWN.steps[1])),
    ],
    ids=["another objective", "abandoned", "fewer steps", "another title", "other details"],
)
def test_an_outdated_plan_is_left_alone(there: Plan, mirror: PlanMirror, session: Session) -> None:
    assert not shows(there, SETUP)
    begin(mirror, session)
    session.dispatch(there)
    assert marked(mirror, session, (0, "done", None)) is False
    assert marked(mirror, session) is False
    assert finished(mirror, session) is False
    assert session.select_all(Plan) == (there,)
    assert mirror.problem == (
        "other code replaced the plan while the workflow ran; it no longer shows this run"
    )


def test_reducers_of_others_that_undo_the_change_are_an_error_at_the_start_and_an_end_later(
    mirror: PlanMirror, session: Session
) -> None:
    begin(mirror, session)
    kept = session.select_all(Plan)
    for command in (SetupPlan, MarkSteps):
        session.register_reducer(command, lambda _slice, _command: kept, Plan)
    assert marked(mirror, session, (0, "done", None)) is False
    assert finished(mirror, session) is False
    untaken = "the run was not applied: the session's reducers did not take it"
    assert mirror.problem == (
        f"the session refused a change of the plan, which no longer shows this run: {untaken}"
    )
    with pytest.raises(ToolError) as refused, session.transaction() as transaction:
        mirror.begin(transaction, lambda _plan: True, is_new=True)
    assert str(refused.value) == untaken
    assert session.select_all(Plan) is kept
