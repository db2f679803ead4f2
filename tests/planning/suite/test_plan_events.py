"""Changes of the plan: who hears of them, once each, and where in a framework they were made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_cases import work
from syrupy.assertion import SnapshotAssertion

from planning import Plan, PlanningToolsSection, PlanPolicy, Toolbox, pending_approval, register_plan, tool
from planning.plan.commands import AddStep, ApprovePlan, MarkStep, NewPlanStep, RemoveStep, SetupPlan
from planning.plan.reducers import REDUCERS
from planning.suite.approval import decide_approval
from planning.suite.events import FrameworkChange, PlanChanged, framework, last_change
from planning.testing.strategies import commands
from planning.tools.context import AGENT
from session import EventBus, Session, ToolInvoked


def planned(bus: EventBus | None = None) -> tuple[Session, Toolbox, list[PlanChanged]]:
    session = Session(bus=bus)
    section = PlanningToolsSection(session=session)
    heard: list[PlanChanged] = []
    session.bus.subscribe(PlanChanged, heard.append)
    return session, Toolbox(section.tools(), session=session), heard


SETUP = SetupPlan("Fix the login bug", (NewPlanStep("Reproduce it"), NewPlanStep("Fix it")))


def test_a_tool_call_that_changes_the_plan_is_announced_once_after_its_event_and_in_no_log() -> None:
    session, toolbox, heard = planned()
    order: list[type] = []
    for kind in (PlanChanged, ToolInvoked):
        session.bus.subscribe(kind, lambda event: order.append(type(event)))
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
    assert order == [ToolInvoked, PlanChanged] * 2
    assert session.select_all(PlanChanged) == ()
    assert [type(event) for event in session.history()[0].events] == [ToolInvoked]


def test_every_other_way_is_announced_too(snapshot: SnapshotAssertion) -> None:
    session, toolbox, heard = planned()
    toolbox.invoke("planning_setup_plan", SETUP)
    before = session.snapshot()
    session.dispatch(AddStep((NewPlanStep("Ship it"),)))
    with session.transaction(actor="host", call_id="call-7") as transaction:
        transaction.dispatch(MarkStep("S001", "done"))
        transaction.dispatch(MarkStep("S002", "done"))
    session.rollback(before)
    session.rewind(2, actor="host")
    command = MarkStep("S003", "blocked")
    session.bus.publish(ToolInvoked("mark", None, None, command, session_id=session.session_id))
    session.reset()
    told = [f"{event.version}, {event.actor}, {event.call_id}: {event.diff}" for event in heard[1:]]
    assert "\n".join(told) == snapshot


# An event that a host puts on the bus by hand, with a command as its value


NOTHING: Any = None


@pytest.mark.parametrize(
    "value", [MarkStep("S001", NOTHING), AddStep(NOTHING), MarkStep("S009", "done"), object()]
)
def test_a_value_that_the_plan_does_not_take_leaves_it_as_it_was(value: Any, session: Session) -> None:
    register_plan(session)
    session.dispatch(SETUP)
    plan = session.select_latest(Plan)
    event = ToolInvoked("by_hand", None, None, value, session_id=session.session_id)
    assert session.bus.publish(event).ok
    assert session.select_latest(Plan) is plan


@given(st.data())
def test_any_sequence_of_commands_is_reduced_as_the_reducers_say(data: st.DataObject) -> None:
    session = Session()
    register_plan(session)
    slice_: tuple[Plan, ...] = ()
    count = data.draw(st.integers(1, 6))
    for _ in range(count):
        command = data.draw(commands(slice_[-1] if slice_ else None))
        event = ToolInvoked("by_hand", None, None, command, session_id=session.session_id)
        assert session.bus.publish(event).ok
        assert session.select_latest(ToolInvoked) is event
        slice_ = REDUCERS[type(command)](slice_, command) if type(command) in REDUCERS else slice_
        assert session.select_all(Plan) == slice_
    assert session.version == count


# Changes that an agent of a framework makes carry where in it they were made

GIVEN = {"objective": "Ship it", "initial_steps": ["A", "B"]}
MARK = {"step_id": "S001", "status": "in_progress"}


@contextmanager
def at(session: Session, place: str, checkpoint: str) -> Iterator[None]:
    running = framework.set((session.session_id, place, checkpoint))
    yield
    framework.reset(running)


def changes(session: Session) -> list[tuple[str, str, int, int]]:
    return [(each.place, each.at, each.version, each.start) for each in session.select_all(FrameworkChange)]


def test_the_last_change_of_each_place_is_kept_in_order(session: Session, toolbox: Toolbox) -> None:
    session.dispatch(SetupPlan("Before"))
    with at(session, "bench:1", "a"):
        toolbox.call("planning_setup_plan", GIVEN)
        toolbox.call("planning_mark_step", {**MARK, "step_id": "S009"})  # is refused
    with at(session, "bench:2", "b"):
        toolbox.call("planning_mark_step", MARK)
    toolbox.call("planning_read_plan")
    with at(Session(), "bench:3", "b"):  # another session
        toolbox.call("planning_read_plan")
    with at(session, "bench:1", "c"):
        toolbox.call("planning_read_plan")
    assert changes(session) == [("bench:2", "b", 4, 3), ("bench:1", "c", 7, 1)]
    last = last_change(session, "bench:1")
    assert last is not None and last.at == "c"
    assert last_change(session, "bench:3") is None


def test_of_more_than_a_thousand_places_the_latest_are_kept(session: Session) -> None:
    register_plan(session)
    for number in range(1_002):
        session.publish(FrameworkChange(place=f"bench:{number}", at="a", version=number, start=0))
    assert [place for place, *_ in changes(session)] == [f"bench:{number}" for number in range(2, 1_002)]


def test_what_a_policy_records_of_an_agent_and_what_a_user_decides_is_marked_too(session: Session) -> None:
    policy = PlanPolicy(approval=True, finish_gate=1, stale_after=1, evidence="required")
    section = PlanningToolsSection(session=session, policy=policy)
    session.dispatch(SetupPlan("Ship it", (NewPlanStep("A"),)))
    toolbox = Toolbox([*section.tools(), tool(work)], session=session)
    with at(session, "bench:1", "a"):
        toolbox.call("work", {})
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


# An agent under a policy reads once, with its next call, what others have changed

LOOKED = "Since you last looked: "


class Planned:
    """A session with a plan, and the agents that call its tools."""

    def __init__(self) -> None:
        self.session = Session()
        section = PlanningToolsSection(session=self.session, policy=PlanPolicy())
        self.box = Toolbox(section.tools(), session=self.session)
        self.mark("host", None, 1, setup=["A", "B", "C"])

    def mark(self, actor: str | None, agent: Any, step_id: Any, **more: Any) -> str:
        context = {"actor": actor, AGENT: f"run {agent}" if isinstance(agent, str) else agent}
        if setup := more.get("setup"):
            arguments = {"objective": "Ship it", "initial_steps": setup}
            return self.box.call("planning_setup_plan", arguments, context=context).message
        arguments = {"step_id": step_id, "status": more.get("status", "done")}
        return self.box.call("planning_mark_step", arguments, context=context).message


def test_an_agent_reads_each_change_of_others_once_with_its_next_answer(snapshot: SnapshotAssertion) -> None:
    planned = Planned()
    said = [
        planned.mark("ann", "1", 1),
        planned.mark("bob", "1", 2),  # it has not looked yet
        planned.mark("ann", "1", 3, status="blocked"),
        planned.mark("ann", "1", 3, status="pending"),
        planned.mark("bob", "1", 3, status="blocked"),
    ]
    planned.session.dispatch(RemoveStep("S003"))
    said += [planned.mark("ann", "1", step_id) for step_id in ("S003", "S003", 2)]
    planned.session.reset()
    said += [planned.mark("ann", "1", 1), planned.mark("ann", "1", 1)]
    said += [planned.mark("ann", "1", 1, setup=["A"])]
    assert "\n".join(said) == snapshot


ONE, TWO = object(), object()


@pytest.mark.parametrize(("first", "second"), [("1", "2"), (ONE, TWO), (ONE, "1")])
def test_agents_of_one_name_hear_of_each_other_and_a_new_one_resumes(first: Any, second: Any) -> None:
    planned = Planned()
    planned.mark("ann", first, 1)
    assert planned.mark("ann", second, 2) == "S002 done. Next: S003 C"
    planned.session.dispatch(RemoveStep("S003"))
    assert planned.mark("ann", first, 1) == (
        f"{LOOKED}S002 done. S003 was removed. Plan completed. S001 is already done. Plan completed."
    )
    planned.session.dispatch(RemoveStep("S002"))
    assert planned.mark("ann", object(), 1) == (
        f"{LOOKED}S002 was removed. S001 is already done. Plan completed."
    )


@pytest.mark.parametrize(("others", "hears"), [(98, True), (99, False)])
def test_of_very_many_agents_the_latest_are_known(others: int, hears: bool) -> None:
    planned = Planned()
    planned.mark("ann", "1", 1)
    planned.session.dispatch(RemoveStep("S003"))
    for actor, agent in [("ann", "2"), ("ann", "3"), *((str(number), "1") for number in range(others))]:
        planned.mark(actor, agent, 1)
    assert planned.mark("ann", "1", 1).startswith(LOOKED) is hears
