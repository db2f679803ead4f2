"""The session's Plan while a workflow runs: what it says, odd texts in it, and others who change it."""

from __future__ import annotations

from typing import Any

import pytest
from run_cases import called, capable, flow, plan_of, thought
from syrupy.assertion import SnapshotAssertion

from planning import PlanningToolsSection, PlanPolicy, Toolbox, plan_text
from planning.tools import ToolError
from planning.workflow import Capabilities, run_workflow
from planning.workflow.run.records import StepChanged
from session import Session
from session.stores import MemoryStore


def text(session: Session) -> str:
    plan = plan_of(session)
    return plan_text(plan) + "\n"


def broken() -> None:
    raise ToolError("The archive is closed")


def everything() -> Any:
    """A workflow with a step of each kind and of each fate."""
    return flow(
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
    result = run_workflow(everything(), CAPABILITIES, session=session, inputs={"key": 1}, max_parallel=1)
    assert (result.status, result.warnings) == ("failed", ())
    assert "\n".join(texts) == snapshot


def test_with_a_policy_of_any_language_the_plan_shows_what_ascii_cannot_spell() -> None:
    session = Session()
    PlanningToolsSection(session=session, policy=PlanPolicy(text="unicode"))
    steps = [called("a", description="\u691c\u7d22\u202e"), thought("\u65e5", "a")]
    result = run_workflow(
        flow(*steps, goal="\u76ee\u6a19"), capable(work=lambda: "\u7d50\u679c"), session=session
    )
    assert text(session) == (
        "\u76ee\u6a19 (completed, 2 of 2 done)\n"
        "S001 done: \u691c\u7d22\n  step a, tool work\n  - \u7d50\u679c\n"
        "S002 done: Do \u65e5\n  step \u65e5\n  - Thought through\n"
    )
    assert result.warnings == ()


def test_what_ascii_cannot_spell_is_not_shown_and_said() -> None:
    steps = [
        called("a", description="\u691c\u7d22"),
        called("\u65e5", tool="broken", description="Search", on_failure="continue"),
        thought("c", "\u65e5"),
        thought("d", type="handler", name="\u691c\u7d22"),
    ]

    def fail() -> None:
        raise ToolError("\u5931\u6557: 7")

    result = run_workflow(
        flow(*steps, goal="\u76ee\u6a19"),
        Capabilities(
            tools={"work": lambda: "\u7d50\u679c", "broken": fail}, handlers={"\u691c\u7d22": lambda: "fine"}
        ),
        user_prompt="Find it",
        max_parallel=1,
    )
    assert text(result.session) == (
        "Find it (completed, 3 of 4 done)\n"
        "S001 done: a\n  step a, tool work\n  - Done\n"
        "S002 blocked: Search\n  step S002, tool broken\n  - Failed\n"
        "S003 done: Do c\n  step c\n  - Thought through\n"
        "S004 done: Do d\n  step d\n  - fine\n"
    )
    assert result.warnings == ("the plan allows only ASCII text; it shows step ids in place of other text",)


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
def test_no_policy_holds_the_plan_of_a_run_up_also_where_it_is_resumed(
    policies: tuple[str, ...], *, is_stored: bool
) -> None:
    session = Session(session_id="run", store=MemoryStore() if is_stored else None)
    for name in policies:
        PlanningToolsSection(session=session, policy=POLICIES[name])
    steps = [called(name) for name in "abc"] + [called("d", "a", tool="later"), called("e", "b", "d")]
    shown = list[list[str]]()
    session.bus.subscribe(
        StepChanged, lambda _event: shown.append([step.status for step in plan_of(session).steps])
    )
    first = run_workflow(flow(*steps), capable(work=dict, later=broken), session=session)
    assert (first.status, first.warnings) == ("failed", ())
    assert [step.status for step in plan_of(session).steps] == ["done"] * 3 + ["blocked"] * 2
    assert ["in_progress"] * 3 + ["pending"] * 2 in shown
    second = run_workflow(flow(*steps), capable(work=dict, later=dict), session=session)
    assert (second.status, second.warnings) == ("completed", ())
    assert (plan_of(session).status, {step.status for step in plan_of(session).steps}) == (
        "completed",
        {"done"},
    )


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
    result = run_workflow(flow(), capable())
    assert (result.status, result.workflow.status, dict(result.outputs)) == ("completed", "completed", {})
    assert text(result.session) == "Find it out (completed, 0 of 0 done)\n"
