"""PlanChanged once for each commit that changed the plan, and where in a framework a change was made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from planning import (
    AddStep,
    ApprovePlan,
    MarkStep,
    NewPlanStep,
    Plan,
    PlanChanged,
    PlanningToolsSection,
    PlanPolicy,
    PlanStep,
    ReadPlan,
    SetupPlan,
    StepStatus,
    Toolbox,
    ToolValidationError,
    pending_approval,
    register_plan,
)
from planning.suite import events
from planning.suite.approval import decide_approval
from planning.suite.events import FrameworkChange, framework, last_change
from session import EventBus, InProcessEventBus, Session, SessionEvent, ToolFailed, ToolInvoked
from session.history import Commit
from session.stores import MemoryStore


def planned(bus: EventBus | None = None) -> tuple[Session, Toolbox, list[PlanChanged]]:
    session = Session(bus=bus)
    section = PlanningToolsSection(session=session)
    heard: list[PlanChanged] = []
    session.bus.subscribe(PlanChanged, heard.append)
    return session, Toolbox(section.tools(), session=session), heard


SETUP = SetupPlan("Fix the login bug", (NewPlanStep("Reproduce it"), NewPlanStep("Fix it")))


def test_a_tool_call_that_changes_the_plan_is_announced_once() -> None:
    session, toolbox, heard = planned()
    toolbox.invoke("planning_setup_plan", SETUP)
    before = session.select_latest(Plan)
    toolbox.invoke("planning_mark_step", MarkStep("S001", "done", "Fails on empty names"))
    assert heard == [
        PlanChanged(None, before, 1, None, None, "session", session.session_id),
        PlanChanged(before, session.select_latest(Plan), 2, None, None, "session", session.session_id),
    ]
    assert [str(event.diff) for event in heard] == [
        "New plan: Fix the login bug. Added S001, S002.",
        "S001 done: Fails on empty names.",
    ]


def test_a_bus_that_cannot_say_who_listens_is_told() -> None:
    class Bus:
        def __init__(self) -> None:
            inner = InProcessEventBus()
            self.subscribe, self.unsubscribe, self.publish = inner.subscribe, inner.unsubscribe, inner.publish

    _session, toolbox, heard = planned(Bus())
    toolbox.invoke("planning_setup_plan", SETUP)
    assert [str(event.diff) for event in heard] == ["New plan: Fix the login bug. Added S001, S002."]


def test_reads_refusals_and_marks_that_say_what_is_so_are_not() -> None:
    _session, toolbox, heard = planned()
    toolbox.invoke("planning_setup_plan", SETUP)
    toolbox.invoke("planning_read_plan", ReadPlan())
    with pytest.raises(ToolValidationError):
        toolbox.invoke("planning_mark_step", MarkStep("S009", "done"))
    toolbox.invoke("planning_mark_step", MarkStep("S001", "pending"))
    assert len(heard) == 1


def test_every_other_way_is_announced_too() -> None:
    session, toolbox, heard = planned()
    toolbox.invoke("planning_setup_plan", SETUP)
    snapshot = session.snapshot()
    session.dispatch(AddStep((NewPlanStep("Ship it"),)))
    with session.transaction(actor="host", call_id="call-7") as transaction:
        transaction.dispatch(MarkStep("S001", "done"))
        transaction.dispatch(MarkStep("S002", "done"))
    session.rollback(snapshot)
    session.rewind(2, actor="host")
    command = MarkStep("S003", "blocked")
    session.bus.publish(ToolInvoked("mark", None, None, command, session_id=session.session_id))
    session.reset()
    assert [(event.version, str(event.diff), event.actor, event.call_id) for event in heard[1:]] == [
        (2, "Added S003.", None, None),
        (3, "S001, S002 done.", "host", "call-7"),
        (4, "S001, S002 pending. S003 was removed.", None, None),
        (5, "Added S003.", "host", None),
        (6, "S003 blocked.", None, None),
        (7, "Plan removed.", None, None),
    ]


def test_it_follows_the_events_of_its_commit_and_is_in_no_log() -> None:
    session, toolbox, _ = planned()
    order: list[type] = []
    for kind in (PlanChanged, ToolInvoked):
        session.bus.subscribe(kind, lambda event: order.append(type(event)))
    toolbox.invoke("planning_setup_plan", SETUP)
    assert order == [ToolInvoked, PlanChanged]
    assert session.select_all(PlanChanged) == ()
    assert [type(event) for event in session.history()[0].events] == [ToolInvoked]


def test_without_a_subscriber_nothing_is_made() -> None:
    session = Session()
    register_plan(session)
    session.bus.subscribe(SessionEvent, lambda _event: None)
    made: list[object] = []
    session.publish_on_change(Plan, PlanChanged, made.append)
    session.dispatch(SETUP)
    session.bus.subscribe(PlanChanged, lambda _event: None)
    session.dispatch(AddStep((NewPlanStep("Ship it"),)))
    assert len(made) == 1


@pytest.mark.parametrize("store", [None, MemoryStore()], ids=["in memory", "stored"])
def test_an_announcement_that_fails_undoes_nothing_and_stops_no_other_event(
    store: MemoryStore | None, caplog: pytest.LogCaptureFixture
) -> None:
    session = Session(session_id="run-7", store=store)

    def fails(_commit: Commit[Plan]) -> None:
        raise ValueError("private")

    session.publish_on_change(Plan, ToolFailed, fails)
    register_plan(session)
    heard: list[object] = []
    for kind in (ToolInvoked, ToolFailed, PlanChanged):
        session.bus.subscribe(kind, heard.append)
    session.publish(ToolInvoked("by hand", None, None, SETUP))
    assert [type(event) for event in heard] == [ToolInvoked, PlanChanged]
    assert [
        (record.message, vars(record)["error"], vars(record)["handler"]) for record in caplog.records
    ] == [("announcement_failed", "ValueError", f"{__name__}.{fails.__qualname__}")]
    assert "private" not in caplog.text
    if store is not None:  # another process reads it all the same
        other = Session(session_id="run-7", store=twin_of(store))
        other.publish_on_change(Plan, ToolFailed, fails)
        register_plan(other)
        other.bus.subscribe(ToolFailed, heard.append)
        session.dispatch(AddStep((NewPlanStep("Ship it"),)))
        assert other.refresh() == 2
        assert other.select_latest(Plan) == session.select_latest(Plan)


def twin_of(store: MemoryStore) -> MemoryStore:
    """The same sessions, as another process would open them."""
    twin = MemoryStore()
    twin._kept, twin._claims = store._kept, store._claims
    return twin


def test_a_plan_says_how_far_it_is_and_what_is_next() -> None:
    statuses: tuple[StepStatus, ...] = ("done", "blocked", "pending", "in_progress")
    steps = tuple(
        PlanStep(f"S{number:03}", "Do it", None, status, ()) for number, status in enumerate(statuses, 1)
    )
    plan = Plan("Fix it", "active", steps)
    assert (plan.progress, plan.next_step) == ((1, 4), steps[3])
    assert Plan("Fix it", "active", steps[:3]).next_step == steps[2]
    assert (Plan("Fix it", "active", steps[:2]).next_step, Plan("Fix it", "active").progress) == (
        None,
        (0, 0),
    )


# Changes that an agent of a framework makes carry where in it they were made

GIVEN = {"objective": "Ship it", "initial_steps": ["A", "B"]}
MARK = {"step_id": "S001", "status": "in_progress"}


@contextmanager
def at(session: Session, place: str, checkpoint: str) -> Iterator[None]:
    running = framework.set((session.session_id, place, checkpoint))
    yield
    framework.reset(running)


def toolbox_of(session: Session, policy: PlanPolicy | None = None) -> Toolbox:
    return Toolbox(PlanningToolsSection(session=session, policy=policy).tools(), session=session)


def changes(session: Session) -> list[tuple[str, str, int, int]]:
    return [(each.place, each.at, each.version, each.start) for each in session.select_all(FrameworkChange)]


def test_the_last_change_of_each_place_is_kept_in_the_order_of_the_changes(session: Session) -> None:
    toolbox = toolbox_of(session)
    session.dispatch(SetupPlan("Before"))
    with at(session, "bench:1", "a"):
        toolbox.call("planning_setup_plan", GIVEN)
        toolbox.call("planning_mark_step", {**MARK, "step_id": "S009"})  # is refused
    with at(session, "bench:2", "b"):
        toolbox.call("planning_mark_step", MARK)
    toolbox.call("planning_read_plan")
    with at(session, "bench:1", "c"):
        toolbox.call("planning_read_plan")
    assert changes(session) == [("bench:2", "b", 4, 3), ("bench:1", "c", 6, 1)]
    last = last_change(session, "bench:1")
    assert last is not None and last.at == "c"
    assert last_change(session, "bench:3") is None


def test_a_call_in_another_session_is_not_marked() -> None:
    one, other = Session(), Session()
    with at(one, "bench:1", "a"):
        toolbox_of(other).call("planning_setup_plan", GIVEN)
    assert changes(other) == []


def test_of_very_many_places_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch, session: Session) -> None:
    toolbox = toolbox_of(session)
    monkeypatch.setattr(events, "MOST_PLACES", 3)  # in place of a thousand
    for number in range(5):
        with at(session, f"bench:{number}", "a"):
            toolbox.call("planning_setup_plan", GIVEN)
    assert [place for place, *_ in changes(session)] == ["bench:2", "bench:3", "bench:4"]


def test_what_a_policy_records_of_an_agent_and_what_a_user_decides_is_marked_too(session: Session) -> None:
    section = PlanningToolsSection(
        session=session, policy=PlanPolicy(approval=True, finish_gate=1, stale_after=1, evidence="required")
    )
    session.dispatch(SetupPlan("Ship it", (NewPlanStep("A"),)))
    toolbox = Toolbox([*section.tools(), lookup], session=session)
    with at(session, "bench:1", "a"):
        toolbox.call("lookup", {})
        section.take_notice()
        assert not section.may_finish().ok
        toolbox.call("planning_add_step", {"steps": ["B"]})
        shown = pending_approval(session)
        assert shown is not None and decide_approval(session, shown, ApprovePlan())
    marked = [
        change.version
        for change in session.history()
        if any(isinstance(event, FrameworkChange) for event in change.events)
    ]
    assert marked == [2, 3, 4, 5, 6]


def lookup() -> str:
    """Look something up."""
    return "found"
