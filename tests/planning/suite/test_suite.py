"""The six tools bound to a session, also where many writers call them at once."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest
from policy_cases import EVERYTHING, Agent
from syrupy.assertion import SnapshotAssertion

from planning import PlanChanged, PlanningToolsSection, PlanPolicy, Toolbox, ToolValidationError
from planning.plan.commands import (
    AddStep,
    ApprovePlan,
    ClearPlan,
    MarkStep,
    MarkSteps,
    NewPlanStep,
    SetupPlan,
)
from planning.plan.facts import PlanFacts
from planning.plan.model import Plan, PlanStep
from planning.plan.reducers import REDUCERS
from planning.suite.tools import planning_tools, register_plan
from planning.tools import ToolError, ToolResult
from planning.tools.pipeline import PATIENCE
from session import Session, SessionEvent, StoreError, ToolFailed, ToolInvoked, select_latest
from session.bus import InProcessEventBus
from session.stores import MemoryStore, SqliteStore

NAMES = ["setup_plan", "add_step", "update_step", "mark_step", "clear_plan", "read_plan"]


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("timeout", [None, 0.05])
def test_the_worked_examples_are_one_conversation_that_runs_as_told_in_the_callers_thread(
    section: PlanningToolsSection, session: Session, timeout: float | None, *, is_async: bool
) -> None:
    toolbox, threads = Toolbox(section.tools(), session=session, timeout=timeout), set[int]()
    session.bus.subscribe(ToolInvoked, lambda _event: threads.add(threading.get_ident()))
    assert [*toolbox.tools] == [f"planning_{name}" for name in NAMES]
    for tool in toolbox.tools.values():
        ((arguments, message),) = ((each.arguments, each.message) for each in tool.examples)
        box = toolbox
        result = asyncio.run(box.acall(tool.name, arguments)) if is_async else box.call(tool.name, arguments)
        assert (result.success, result.message) == (True, message)
    assert threads == {threading.get_ident()}


def test_a_result_and_its_event_carry_the_normalised_command(toolbox: Toolbox, session: Session) -> None:
    toolbox.invoke("planning_setup_plan", SetupPlan("Fix", (NewPlanStep("Look"),)))
    params, normal = MarkStep("S001 ", "done", " Ok "), MarkStep("S001", "done", "Ok")
    result = toolbox.invoke("planning_mark_step", params)
    assert (result.success, result.value, result.error, result.user_message) == (True, normal, None, None)
    event = session.select_latest(ToolInvoked)
    assert event is not None
    assert (event.name, event.params, event.value) == ("planning_mark_step", params, normal)
    assert (event.session_id, event.result) == (session.session_id, result)


def test_a_stored_call_is_read_back_with_its_result(opened: Callable[[], SqliteStore]) -> None:
    here = Session(session_id="s", store=opened())
    toolbox = Toolbox(PlanningToolsSection(session=here).tools(), session=here)
    calls: list[tuple[str, Any]] = [("planning_setup_plan", {"objective": "Fix"}), ("planning_read_plan", {})]
    results = [toolbox.call(*each) for each in calls]
    register_plan(there := Session(session_id="s", store=opened()))
    read = [call.result for call in there.select_all(ToolInvoked)]
    assert [(type(each), each.message, each.value) for each in read] == [
        (ToolResult, each.message, None)
        for each in results  # its value is not stored
    ]


@pytest.mark.parametrize("policy", [None, PlanPolicy(dependencies=True)], ids=["none", "dependencies"])
def test_without_the_reducers_no_tool_reports_success(session: Session, policy: PlanPolicy | None) -> None:
    toolbox = Toolbox(planning_tools(session, policy), session=session)
    message = "planning_setup_plan was not applied: the session's reducers did not take it"
    with pytest.raises(ToolError) as caught:
        toolbox.invoke("planning_setup_plan", SetupPlan("Fix"))
    assert str(caught.value) == message
    result = toolbox.call("planning_setup_plan", {"objective": "Fix"})
    assert (result.success, result.message, result.value) == (False, message, None)
    assert session.select_all(ToolInvoked) == ()


def test_the_tools_of_another_session_are_refused(toolbox: Toolbox, session: Session) -> None:
    toolbox.invoke("planning_setup_plan", SetupPlan("Fix", (NewPlanStep("Look"),)))
    stranger = Session(bus=session.bus)
    foreign = Toolbox(toolbox.tools.values(), session=stranger)
    before, version = session.snapshot(), session.version
    for name, tool in toolbox.tools.items():
        message = f"{name} belongs to another session; use the tools of this session's PlanningToolsSection"
        arguments = tool.examples[0].arguments
        assert refusals(foreign, name, arguments) == [message]
        result = foreign.call(name, arguments)
        assert (result.success, result.message) == (False, f"Refused, nothing changed. {message}")
        problem, *others = refusals(foreign, name, {**arguments, "x": 1})  # no word of a plan
        assert (problem.partition(";")[0], others) == ("x: unknown field", [message])
    assert (session.snapshot(), session.version) == (before, version)
    assert (stranger.select_all(Plan), stranger.select_all(ToolInvoked)) == ((), ())


def refusals(toolbox: Toolbox, name: str, arguments: Any) -> list[str]:
    with pytest.raises(ToolValidationError) as caught:
        toolbox.invoke(name, arguments)
    return [str(problem) for problem in caught.value.problems]


def test_the_plan_is_read_also_from_a_store_that_takes_no_change() -> None:
    store = MemoryStore()
    session = Session(session_id="s", store=store)
    section = PlanningToolsSection(session=session, policy=PlanPolicy(dependencies=True))
    toolbox = Toolbox(section.tools(), session=session)
    steps = [{"title": "Look"}, {"title": "Leap", "depends_on": ["S001"]}]
    toolbox.call("planning_setup_plan", {"objective": "One", "initial_steps": steps})
    version = session.version
    with pytest.MonkeyPatch.context() as full:
        full.setattr(store, "append", refuses)
        result = toolbox.call("planning_read_plan")
        assert (result.success, result.message, result.value) == (
            True,
            "One (active, 0 of 2 done)\nS001 pending: Look\nS002 pending, after S001: Leap",
            session.select_latest(Plan),
        )
        assert (session.version, 0 < result.elapsed < 20) == (version, True)
        assert not toolbox.call("planning_clear_plan").success
    session.dispatch(ClearPlan())
    assert toolbox.call("planning_read_plan").message == "One (abandoned, 0 of 0 done)"


def test_a_malformed_call_is_refused_also_where_the_store_cannot_be_read(path: Path) -> None:
    session = Session(session_id="s", store=SqliteStore(path))
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    toolbox.call("planning_setup_plan", {"objective": "One", "initial_steps": ["Look"]})
    path.write_bytes(b"overwritten" * 1_000)
    assert toolbox.call("planning_mark_step", {"step_id": "S001"}).message == (
        "Refused, nothing changed. status: missing; send one of pending, in_progress, blocked, done"
    )


def refuses(*_arguments: object, **_named: object) -> None:
    raise StoreError("the disk is full")


BATCH = PlanPolicy(batch_marks=True, agent_edits=True)
SAME: list[tuple[str, dict[str, Any]]] = [
    ("update_step", {"step_id": "S001", "title": " Look "}),
    ("update_step", {"step_id": "S001", "details": "Twice"}),
    ("update_step", {"step_id": "S001", "title": "Look", "details": "Twice"}),
    ("update_step", {"step_id": 2, "details": " "}),
    ("mark_step", {"step_id": "S001", "status": "done"}),
    ("mark_step", {"step_id": "2", "status": "pending"}),
    ("mark_step", {"step_id": "s3", "status": "Blocked"}),
    ("move_step", {"step_id": "S001", "index": 0}),
    ("mark_step", {"marks": [{"step_id": 1, "status": "done"}, {"step_id": 2, "status": "pending"}]}),
]
CHANGED: list[tuple[str, dict[str, Any]]] = [
    ("update_step", {"step_id": "S001", "title": "Look", "details": ""}),
    ("update_step", {"step_id": "S001", "title": "Search", "details": "Twice"}),
    ("mark_step", {"step_id": "S001", "status": "done", "note": "seen"}),
    ("add_step", {"steps": ["Look"]}),
    ("mark_step", {"marks": [{"step_id": 1, "status": "done"}, {"step_id": 2, "status": "done"}]}),
]


@pytest.mark.parametrize("policy", [None, BATCH, EVERYTHING], ids=["none", "batch", "everything"])
def test_a_call_that_changes_nothing_says_so(policy: PlanPolicy | None, snapshot: SnapshotAssertion) -> None:
    def reply(tool: str, arguments: dict[str, Any], store: MemoryStore | None) -> str:
        session = Session(session_id="s", store=store)
        register_plan(session)
        steps = (NewPlanStep("Look", "Twice"), NewPlanStep("Fix"), NewPlanStep("Ship"))
        for command in (SetupPlan("Fix it", steps), MarkStep("S001", "done"), MarkStep("S003", "blocked")):
            session.dispatch(command)
        section = PlanningToolsSection(session=session, policy=policy)
        toolbox = Toolbox(section.tools(), session=session)
        if policy is EVERYTHING:
            session.dispatch(ApprovePlan())
            section.may_finish()  # asked once
        before, version = (session.select_latest(Plan), session.select_latest(PlanFacts)), session.version
        heard, changes = list[PlanChanged](), (tool, arguments) in CHANGED
        session.bus.subscribe(PlanChanged, heard.append)
        result = toolbox.call(f"planning_{tool}", arguments)
        (change,) = session.history(after=version)
        assert (result.success, change.version, change.changed) == (True, version + 1, changes)
        assert len(heard) == changes
        after = (session.select_latest(Plan), session.select_latest(PlanFacts))
        assert changes or all(new is old for new, old in zip(after, before, strict=True))
        assert changes or [type(event) for event in change.events] == [ToolInvoked]
        return f"{tool} {arguments}\n{result.message}\n"

    calls = SAME if policy is EVERYTHING else [*SAME, *CHANGED]
    if policy is None:
        calls = [call for call in calls if not (call[0] == "move_step" or "marks" in call[1])]
    in_memory = "\n".join(reply(*call, None) for call in calls)
    assert in_memory == "\n".join(reply(*call, MemoryStore()) for call in calls) == snapshot


@pytest.mark.parametrize("is_batch", [False, True])
def test_a_done_step_takes_more_evidence(is_batch: bool) -> None:
    agent = Agent(PlanPolicy(evidence="required", batch_marks=True)).plans("Look")
    agent.mark(1, "in_progress")
    agent.call("work")
    agent.mark(1, "done", "C1")
    agent.call("work")
    mark = {"step_id": 1, "status": "done", "evidence": ["C1", "C2"]}
    said = agent.call("mark_step", **({"marks": [mark]} if is_batch else mark))
    assert said == "S001 is already done. Plan completed."
    facts = agent.session.select_latest(PlanFacts)
    assert facts is not None and facts.proofs["S001"].evidence == ("C1", "C2")


def test_an_event_has_the_plans_own_commands_without_what_a_policy_added() -> None:
    agent = Agent(PlanPolicy(dependencies=True, batch_marks=True, evidence="required"))
    steps = {"title": "A", "details": "a"}, {"title": "B", "depends_on": [1]}
    agent.call("setup_plan", objective="o", initial_steps=steps)
    agent.call("add_step", steps=[{"title": "C", "details": "c", "depends_on": ["A"]}])
    agent.marks(("S001", "blocked"), ("S002", "blocked"))
    made = [(event.params, event.value) for event in agent.session.select_all(ToolInvoked)]
    commands = [
        SetupPlan("o", (NewPlanStep("A", "a"), NewPlanStep("B"))),
        AddStep((NewPlanStep("C", "c"),)),
        MarkSteps((MarkStep("S001", "blocked"), MarkStep("S002", "blocked"))),
    ]
    assert made == [(command, command) for command in commands]


def test_with_a_policy_too_what_is_no_step_is_refused() -> None:
    steps: Any = (NewPlanStep("a"), "b")
    for policy in (PlanPolicy(), PlanPolicy(dependencies=True)):
        with pytest.raises(ToolValidationError) as caught:
            Agent(policy).toolbox.invoke("planning_setup_plan", SetupPlan("x", steps))
        assert str(caught.value) == "initial_steps[1]: expected a NewPlanStep, got str"


def test_the_examples_of_edits_are_what_they_answer(session: Session) -> None:
    tools = PlanningToolsSection(session=session, policy=PlanPolicy(agent_edits=True)).tools()
    toolbox = Toolbox(tools, session=session)
    for tool in (tools[-2], tools[-1]):
        toolbox.invoke("planning_setup_plan", SetupPlan("o", (NewPlanStep("x"),) * 3))
        (example,) = tool.examples
        assert toolbox.call(tool.name, example.arguments).message == example.message


NO_PLAN = "no plan yet; call planning_setup_plan first"


def test_a_plan_of_an_unknown_status_counts_as_none(toolbox: Toolbox, session: Session) -> None:
    unknown = cast("Any", "bogus")  # as a host's own code may write it
    session.dispatch(Plan("x", unknown, (PlanStep("S001", "a", None, "pending"),)))
    assert refusals(toolbox, "planning_mark_step", MarkStep("S001", "done")) == [NO_PLAN]
    assert toolbox.call("planning_read_plan").error == NO_PLAN
    assert toolbox.call("planning_setup_plan", {"objective": "again"}).success
    assert select_latest(session, Plan) == Plan("again", "active", ())


# Validating and reducing are one transaction: all of a call is committed, or nothing


def fails(_slice: tuple[Any, ...], _event: Any) -> NoReturn:
    raise RuntimeError("secret text")


def test_when_a_reducer_of_the_command_raises_nothing_has_happened(
    toolbox: Toolbox, session: Session, bus: InProcessEventBus
) -> None:
    toolbox.invoke("planning_setup_plan", SetupPlan("Fix", (NewPlanStep("Look"),)))
    heard: list[SessionEvent] = []
    bus.subscribe(SessionEvent, heard.append)
    session.register_reducer(MarkStep, fails, Plan)
    plan, snapshot, log = session.select_latest(Plan), session.snapshot(), session.select_all(ToolInvoked)

    with pytest.raises(RuntimeError) as caught:
        toolbox.invoke("planning_mark_step", MarkStep("S001", "done"))
    assert str(caught.value) == "secret text"
    result = toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done"})
    message = "planning_mark_step failed. Call it again, or continue without it."
    error = "Tool 'planning_mark_step' encountered an error"
    assert (result.success, result.message, result.error, result.value) == (False, message, error, None)

    assert session.select_latest(Plan) is plan
    assert session.snapshot() == snapshot
    assert session.select_all(ToolInvoked) == log
    assert [type(event) for event in heard] == [ToolFailed, ToolFailed]


# Many writers at once

WRITERS, ROUNDS = 8, 15


@pytest.fixture
def switch_often() -> Iterator[None]:
    """Let threads take turns far more often than they do by themselves."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def replayed(session: Session) -> Plan | None:
    """The plan that the session's accepted commands lead to, one after another in the order of the log."""
    slice_: tuple[Plan, ...] = ()
    for event in session.select_all(ToolInvoked):
        reducer = REDUCERS.get(type(event.value))
        slice_ = slice_ if reducer is None else reducer(slice_, event.value)
    return slice_[-1] if slice_ else None


def latest(session: Session) -> Plan:
    plan = session.select_latest(Plan)
    assert plan is not None
    return plan


@pytest.mark.usefixtures("switch_often")
def test_no_update_of_many_writers_is_lost(toolbox: Toolbox, session: Session) -> None:
    toolbox.invoke("planning_setup_plan", SetupPlan("Many hands"))

    def writer(name: str) -> None:
        for turn in range(ROUNDS):
            title = f"{name} {turn}"
            message = toolbox.call("planning_add_step", {"steps": [{"title": title}]}).message
            step_id = message.removeprefix("Added ").removesuffix(".")
            assert {step.title for step in latest(session).steps if step.step_id == step_id} == {title}
            mark = {"step_id": step_id, "status": "done", "note": title}
            assert toolbox.call("planning_mark_step", mark).success
            seen = latest(session).steps[int(step_id[1:]) - 1]
            assert (seen.step_id, seen.status, seen.notes) == (step_id, "done", (title,))
            # The plan is complete whenever all steps are done just then; reopened, it takes more.
            toolbox.call("planning_mark_step", {"step_id": "S001", "status": "pending"})

    # One step stays open until the end, so that no writer finds the plan completed.
    toolbox.invoke("planning_add_step", AddStep((NewPlanStep("Keep open"),)))
    with ThreadPoolExecutor(WRITERS) as pool:
        for begun in [pool.submit(writer, f"writer {number}") for number in range(WRITERS)]:
            begun.result()

    plan = latest(session)
    ids = [f"S{place:03d}" for place in range(1, WRITERS * ROUNDS + 2)]
    assert [step.step_id for step in plan.steps] == ids
    titles = [step.title for step in plan.steps[1:]]
    assert sorted(titles) == sorted(f"writer {n} {turn}" for n in range(WRITERS) for turn in range(ROUNDS))
    assert all(step.status == "done" and step.notes == (step.title,) for step in plan.steps[1:])
    assert len(session.select_all(ToolInvoked)) == 2 + 3 * WRITERS * ROUNDS
    assert replayed(session) == plan


def test_a_read_does_not_wait_for_another_thread_that_holds_the_session_and_a_change_does(
    toolbox: Toolbox, session: Session
) -> None:
    toolbox.invoke("planning_setup_plan", SetupPlan("Fix"))
    with ThreadPoolExecutor(2) as threads, session.transaction() as transaction:
        mark = threads.submit(toolbox.call, "planning_mark_step", {"step_id": "S001", "status": "done"})
        read = threads.submit(toolbox.call, "planning_read_plan").result(20)
        assert read.message == "Fix (active, 0 of 0 done)"
        time.sleep(2 * PATIENCE)
        transaction.dispatch(SetupPlan("Held", (NewPlanStep("Look"),)))
    assert mark.result().message == "S001 done. Plan completed."
