"""A plan that shows work whose state is kept elsewhere."""

from __future__ import annotations

import pytest

from planning import MarkStep, NewPlanStep, Plan, PlanStep, SetupPlan, ToolError
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


@pytest.mark.parametrize(
    "there",
    [
        None,
        Plan("Ship it", "abandoned"),
        Plan("Something else", "completed"),
        Plan("Ship it", "active", (PlanStep("S001", "Pack", "step a", "done"), SHOWN.steps[1])),
    ],
    ids=["no plan", "an abandoned plan", "a completed plan", "the plan of an earlier run"],
)
def test_new_work_sets_its_plan_up(there: Plan | None, mirror: PlanMirror, session: Session) -> None:
    assert (session.select_all(Plan), session.version, mirror.plan, mirror.problem) == ((), 0, None, None)
    if there is not None:
        session.dispatch(there)
    assert begin(mirror, session)
    assert (session.select_all(Plan), mirror.plan) == ((SHOWN,), SHOWN)


@pytest.mark.parametrize("is_new", [True, False])
def test_an_active_plan_of_other_work_is_left_alone_unless_it_may_be_replaced(
    is_new: bool, mirror: PlanMirror, session: Session
) -> None:
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


def test_work_that_resumes_keeps_the_plan_that_shows_it(mirror: PlanMirror, session: Session) -> None:
    kept = Plan(
        "Ship it", "active", (PlanStep("S001", "Pack", "step a", "done", ("ok",)), SHOWN.steps[1], ADDED)
    )
    session.dispatch(kept)
    version = session.version
    assert begin(mirror, session, is_new=False)
    assert (session.select_latest(Plan), session.version) == (kept, version)
    assert mirror.plan is session.select_latest(Plan)


def test_marks_are_one_change_by_the_index_of_the_step_and_what_others_add_or_mark_stays(
    mirror: PlanMirror, session: Session
) -> None:
    begin(mirror, session)
    session.dispatch(Plan("Ship it", "active", (*STEPS, ADDED)))
    session.dispatch(MarkStep("S002", "in_progress", "by hand"))
    version = session.version
    assert marked(mirror, session, (1, "blocked", "No access"), (0, "done", None))
    assert session.version == version + 1
    plan = session.select_latest(Plan)
    sent = PlanStep("S002", "Send", None, "blocked", ("by hand", "No access"))
    assert plan == Plan("Ship it", "active", (PlanStep("S001", "Pack", "step a", "done"), sent, ADDED))
    assert mirror.plan is plan
    assert marked(mirror, session)
    assert marked(mirror, session, (0, "done", None))  # it is done already
    assert (session.version, mirror.problem) == (version + 1, None)


def test_finished_work_completes_the_plan_with_its_open_steps_as_they_are(
    mirror: PlanMirror, session: Session
) -> None:
    begin(mirror, session)
    marked(mirror, session, (1, "blocked", None))
    assert finished(mirror, session)
    blocked = PlanStep("S002", "Send", None, "blocked")
    assert session.select_latest(Plan) == Plan("Ship it", "completed", (SHOWN.steps[0], blocked))
    version = session.version
    assert finished(mirror, session)
    assert session.version == version


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
def test_a_plan_that_no_longer_shows_the_work_is_left_alone(
    there: Plan, mirror: PlanMirror, session: Session
) -> None:
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
