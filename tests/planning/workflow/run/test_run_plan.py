"""The session of a run: its Plan and its slices while a workflow runs, and others who change them."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest
from run_cases import (
    TAKEN,
    called,
    capable,
    flow,
    plain_tool,
    plan_notes,
    plan_of,
    plan_states,
    thought,
    told,
)
from syrupy.assertion import SnapshotAssertion

from planning import PlanningToolsSection, PlanPolicy, Toolbox, plan_text
from planning.observe.names import names_in
from planning.tools import ToolError
from planning.workflow import Capabilities, arun_workflow, run_workflow
from planning.workflow.run.records import RunChanged, StepChanged, StepRecord, WorkflowRun
from session import Session
from session.stores import MemoryStore


def text(session: Session) -> str:
    return plan_text(plan_of(session)) + "\n"


def broken() -> None:
    raise ToolError("The archive is closed")


EVERYTHING = flow(
    thought("think"),
    called("search", "think", tool="search", description="Search the web", inputs={"query": "x"}),
    thought("known", expected_key="key", done_check="'key' in memory", type="handler", name="file"),
    thought("ask", "search", agent="expert", description="Ask an expert"),
    called("fail", "think", tool="broken", description="Look into the archive"),
    thought("behind", "fail"),
    called("passed", tool="broken", on_failure="skip_dependents"),
    thought("left", "passed"),
    goal="Find out who did it",
)
"""A step of each kind and of each fate."""
CAPABILITIES = Capabilities(
    tools={"search": lambda query: {"hits": [query], "count": 1}, "broken": broken},
    handlers={"file": lambda: None},
    agents={"expert": lambda: "It was the gardener.\nI am sure."},
)


def test_the_plan_at_every_moment_of_a_run(snapshot: SnapshotAssertion) -> None:
    session = Session()
    texts: list[str] = []

    def keep(event: StepChanged) -> None:
        told = text(session)
        if not texts or not texts[-1].endswith(told):
            texts.append(f"# {event.record.step_id}: {event.record.status}\n{told}")

    session.bus.subscribe(StepChanged, keep)
    result = run_workflow(EVERYTHING, CAPABILITIES, session=session, inputs={"key": 1}, max_parallel=1)
    assert (result.status, result.warnings) == ("failed", ())
    assert "\n".join(texts) == snapshot


def test_with_a_policy_of_any_language_the_plan_shows_it(snapshot: SnapshotAssertion) -> None:
    session = Session()
    PlanningToolsSection(session=session, policy=PlanPolicy(text="unicode"))
    steps = flow(called("a", description="\u691c\u7d22\u202e"), thought("\u65e5", "a"), goal="\u76ee\u6a19")
    result = run_workflow(steps, capable(work=lambda: "\u7d50\u679c"), session=session)
    assert result.warnings == ()
    assert text(session) == snapshot


def test_what_ascii_cannot_spell_is_not_shown_and_said(snapshot: SnapshotAssertion) -> None:
    steps = [
        called("a", description="\u691c\u7d22"),
        called("\u65e5", tool="broken", description="Search", on_failure="continue"),
        thought("c", "\u65e5"),
        thought("d", type="handler", name="\u691c\u7d22"),
    ]

    def fail() -> None:
        raise ToolError("\u5931\u6557: 7")

    tools = {"work": lambda: "\u7d50\u679c", "broken": fail}
    known = Capabilities(tools=tools, handlers={"\u691c\u7d22": lambda: "fine"})
    workflow = flow(*steps, goal="\u76ee\u6a19")
    result = run_workflow(workflow, known, user_prompt="Find it", max_parallel=1)
    assert text(result.session) == snapshot
    assert result.warnings == ("the plan allows only ASCII text; it shows step ids in place of other text",)
    assert names_in(result.session) == {"S001": "a", "S002": "\u65e5", "S003": "c", "S004": "d"}


# Policies

POLICIES = {
    "most_in_progress": PlanPolicy(most_in_progress=1),
    "dependencies": PlanPolicy(dependencies=True, most_in_progress=1, batch_marks=True),
    "approval": PlanPolicy(approval=True),
    "evidence": PlanPolicy(evidence="unique"),
    "replace": PlanPolicy(replace="refuse_unfinished", agent_edits=True, text="unicode"),
    "tools": PlanPolicy(tools=("read",), most_in_progress=1),
    "gates": PlanPolicy(stale_after=1, finish_gate=1),
}


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("policies", [*[(name,) for name in POLICIES], tuple(POLICIES)], ids="+".join)
def test_no_policy_holds_up_the_plan_of_a_run(policies: tuple[str, ...], *, is_stored: bool) -> None:
    session = Session(session_id="run", store=MemoryStore() if is_stored else None)
    for name in policies:
        PlanningToolsSection(session=session, policy=POLICIES[name])
    steps = [called(name) for name in "abc"] + [called("d", "a", tool="later"), called("e", "b", "d")]
    shown = list[list[str]]()
    session.bus.subscribe(StepChanged, lambda _event: shown.append(plan_states(session)))
    first = run_workflow(flow(*steps), capable(work=dict, later=broken), session=session)
    assert (first.status, first.warnings) == ("failed", ())
    assert plan_states(session) == ["done"] * 3 + ["blocked"] * 2
    assert ["in_progress"] * 3 + ["pending"] * 2 in shown
    second = run_workflow(flow(*steps), capable(work=dict, later=dict), session=session)
    assert (second.status, second.warnings) == ("completed", ())
    assert (plan_of(session).status, set(plan_states(session))) == ("completed", {"done"})


# Others at the same plan


SETUP = {"objective": "Mine", "initial_steps": [{"title": "x"}]}
MINE = "Mine (active, 0 of 1 done)\nS001 pending: x\n"


FOREIGN = "the session has another active plan, which does not show this run"


@pytest.mark.parametrize("steps", [(), (thought("a"),)])
def test_an_active_plan_that_was_there_before_is_left_alone_and_said(steps: Any) -> None:
    session = Session()
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    toolbox.call("planning_setup_plan", SETUP)
    result = run_workflow(flow(*steps), capable(), session=session)
    assert (result.status, result.warnings, text(session)) == ("completed", (FOREIGN,), MINE)


def test_a_workflow_without_steps_is_completed_and_so_is_its_plan() -> None:
    result = run_workflow(flow(goal=""), capable())
    assert (result.status, result.workflow.status, dict(result.outputs)) == ("completed", "completed", {})
    assert text(result.session) == "Run a workflow (completed, 0 of 0 done)\n"


def test_a_step_that_holds_the_event_loop_has_the_times_at_which_it_began_and_ended() -> None:
    async def work() -> None:
        time.sleep(0.01)

    result = run_workflow(flow(called("a"), called("b")), capable(work=work))
    events = result.session.select_all(StepChanged)
    times = {(event.record.step_id, event.record.status): event.created_at for event in events}
    assert [event.record.at for event in events] == [at.isoformat() for at in times.values()]
    ended = [times["a", "completed"], times["b", "completed"]]
    assert min(ended[0] - times["a", "in_progress"], ended[1] - ended[0]) >= timedelta(milliseconds=9)


@pytest.mark.parametrize("goals", [("one", "two"), ("one", "one")], ids=["unlike", "alike"])
def test_two_runs_in_one_session_both_complete_and_the_plan_shows_the_one_that_was_first(goals: Any) -> None:
    session = Session()

    async def work() -> str:
        await asyncio.sleep(0)
        return "worked"

    async def scene() -> Any:
        steps, tools = flow(called("a"), called("b", "a")), capable(work=work)
        given = [(replace(steps, goal=goal), {"x": number}) for number, goal in enumerate(goals)]
        runs = [arun_workflow(each, tools, session=session, inputs=inputs) for each, inputs in given]
        return await asyncio.gather(*runs)

    both = {"a": "worked", "b": "worked"}
    outcomes = [(each.status, each.outputs, each.warnings) for each in asyncio.run(scene())]
    assert outcomes == [("completed", both, ()), ("completed", both, (FOREIGN,))]
    assert len({run.run_id for run in session.select_all(WorkflowRun)}) == 2
    assert (plan_of(session).objective, plan_of(session).status) == ("one", "completed")
    assert plan_notes(session) == [("done", ("worked",))] * 2


@dataclass(frozen=True)
class Note:
    text: str


def test_what_a_tool_publishes_is_reduced_in_its_call_and_a_refusal_fails_its_step_alone() -> None:
    def keep(notes: tuple[Note, ...], note: Note) -> tuple[Note, ...]:
        if note.text == "bad":
            raise ToolError("not in my session")
        return (*notes, note)

    session = Session()
    session.register_reducer(Note, keep)
    write = plain_tool("write", lambda note: note, parameters=Note, publishes="value")
    steps = [called(text, tool="write", inputs={"text": text}) for text in ("good", "bad", "more")]
    result = run_workflow(flow(*steps), capable(write), session=session, max_parallel=1)
    assert dict(result.errors) == {"bad": told("not in my session", "tool", "not in my session")}
    assert session.select_all(Note) == (Note("good"), Note("more"))
    assert result.outputs == {"good": {"text": "good"}, "more": {"text": "more"}}


def test_a_run_has_a_token_until_it_ends_which_is_not_shown() -> None:
    result = run_workflow(flow(), capable())
    began, ended = (event.run for event in result.session.select_all(RunChanged))
    assert (began.token == "", began.token in repr(began), ended.token) == (False, False, "")


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads that take turns after each few instructions."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_however_threads_take_turns_the_last_one_has_the_run_and_nothing_is_called_twice() -> None:
    for _ in range(60):
        mails, session = list[str](), Session()
        mail = plain_tool("mail", lambda mails=mails: mails.append("sent"), idempotent=False)
        steps, tools = flow(called("a"), called("m", "a", tool="mail")), capable(mail, work=dict)
        with ThreadPoolExecutor(3) as threads:
            outcomes = [threads.submit(run_workflow, steps, tools, session=session) for _ in range(3)]
        errors = [str(each.exception()) for each in outcomes if each.exception() is not None]
        assert set(errors) <= {TAKEN}
        assert len(errors) < 3
        records = session.select_all(StepRecord)
        mail_calls = [each for each in records if (each.step_id, each.called) == ("m", True)]
        begun = {each.run_id for each in mail_calls if each.status == "in_progress"}
        assert len(mails) == len(begun) <= len(session.select_all(WorkflowRun))
