"""A policy in Pydantic AI's own loop: agents that cheat."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="needs pydantic-ai: pip install 'session-planning[pydantic-ai]'")

from frameworks import Call, mark, setup
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from syrupy.assertion import SnapshotAssertion

from planning import ApprovePlan, PlanningToolsSection, PlanPolicy
from planning.integrations.pydantic_ai import Planning
from planning.plan.facts import EvidenceCall, PlanFacts
from planning.policy.reducers import AskToFinish
from session import Session, ToolFailed, ToolInvoked
from session.stores import SqliteStore

SHOP = setup("Open the shop", "Rent a room", "Buy shelves")
WORK: Call = ("work", {"on": "shelves"})
LOOK: Call = ("look", {})
APPROVAL = PlanPolicy(approval=True)
Script = list[list[Call] | str]


def proved(step_id: str, *evidence: str) -> Call:
    """A call that marks a step done with evidence."""
    return "planning_mark_step", {"step_id": step_id, "status": "done", "evidence": list(evidence)}


class Worker:
    """An agent with a plan, two tools of its own, and a script; it has no retries."""

    def __init__(self, planning: Planning, *script: list[Call] | str, output: Any = str) -> None:
        self.planning, self.script = planning, list(script)
        self.worked: list[str] = []
        self.last: list[str] = []
        self.agent: Agent[Any, Any] = Agent(
            FunctionModel(self.play),
            capabilities=[planning],
            retries=0,
            output_type=output,
            deps_type=Session,
        )
        self.agent.tool_plain(self.work)
        self.agent.tool_plain(metadata={"read_only": True})(self.look)

    def work(self, on: str) -> Any:
        """Work."""
        self.worked.append(on)
        if on == "error":
            raise ModelRetry("not that")
        return {"success": False} if on == "nothing" else f"worked on {on}"

    def look(self) -> str:
        """Look around."""
        return "seen"

    def play(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        content: Any = messages[-1].parts[-1].content  # type: ignore[union-attr]  # of requests
        self.last.append(content if isinstance(content, str) else content[-1])
        turn, number = self.script.pop(0), len(self.last)
        if isinstance(turn, str):
            return ModelResponse([TextPart(turn)])
        calls = [ToolCallPart(name, args, f"c{number}.{i}") for i, (name, args) in enumerate(turn)]
        return ModelResponse(calls)

    def run(self, prompt: str | None = "Go", **options: Any) -> list[ModelMessage]:
        found: list[ModelMessage] = asyncio.run(self.agent.run(prompt, **options)).all_messages()
        return found


def read(messages: list[ModelMessage]) -> str:
    """A conversation as lines."""
    lines = []
    for message in messages:
        for part in message.parts:
            match part:
                case ToolCallPart():
                    lines.append(f"model: {part.tool_name}({part.args})")
                case ToolReturnPart():
                    lines.append(f"tool: {part.content}")
                case UserPromptPart():
                    lines.append(f"user: {part.content}")
                case TextPart():
                    lines.append(f"model: {part.content}")
    return "\n".join(lines) + "\n"


CHEATS: dict[str, tuple[PlanPolicy, Script]] = {
    "marks done without evidence": (
        PlanPolicy(evidence="required"),
        [
            [SHOP],
            [mark("S001"), proved("S002", "C7"), proved("S001", "I did it")],
            [("work", {"on": "nothing"}), proved("S001", "C1")],
            [WORK, proved("1", "C2")],
            [mark("S002", "in_progress"), proved("s002", "C2")],
            "Half done.",
        ],
    ),
    "works before approval": (APPROVAL, [[SHOP, WORK], [LOOK, WORK], [mark("S001")], "Please approve."]),
    "finishes early": (
        PlanPolicy(finish_gate=2),
        [[SHOP], [mark("S001")], "All done!", "Really.", [mark("S002", "blocked")], "S002 is blocked."],
    ),
    "insists on finishing": (PlanPolicy(finish_gate=2), [[SHOP], "Done.", "Done!", "Done!!"]),
    "works without a change of the plan": (
        PlanPolicy(stale_after=2),
        [[SHOP], [WORK], [WORK], [WORK], "End."],
    ),
}


@pytest.mark.parametrize("name", CHEATS)
def test_what_a_policy_stops(name: str, snapshot: SnapshotAssertion) -> None:
    policy, script = CHEATS[name]
    shown = set()
    for session in (Session(), None):
        worker = Worker(Planning(session, policy=policy), *script)
        conversation = read(worker.run())
        tails = "\n".join(["-- the last message of each request", *worker.last])
        shown.add(f"{conversation}{tails}\n")
    assert len(shown) == 1  # whoever has the session
    assert shown.pop() == snapshot


def test_the_gate_counts_anew_for_the_user_and_the_history_says_why_it_let_go() -> None:
    session = Session()
    planning = Planning(session, policy=PlanPolicy(finish_gate=1))
    messages = Worker(planning, [SHOP], "1", "2").run()
    Worker(planning, "3", "4").run("Go on", message_history=messages)
    asked = [each for change in session.history() for each in change.events if isinstance(each, AskToFinish)]
    open_ = ("S001", "S002")
    assert asked == [AskToFinish(open_, False, True), AskToFinish(open_, True)] * 2


def test_the_history_has_each_call_that_was_held_back() -> None:
    session = Session()
    policy, script = CHEATS["works before approval"]
    Worker(Planning(session, policy=policy), *script).run()
    made = [each for change in session.history() for each in change.events]
    calls = [
        each for each in made if isinstance(each, (ToolFailed, ToolInvoked)) and each.name in {"work", "look"}
    ]
    assert sorted((type(each).__name__, each.name) for each in calls) == [
        ("ToolFailed", "work"),
        ("ToolFailed", "work"),
        ("ToolInvoked", "look"),
    ]


def test_an_answer_that_is_a_tool_call_is_held_back_too() -> None:
    worker = Worker(
        Planning(Session(), policy=PlanPolicy(finish_gate=1)),
        [SHOP],
        [("final_result", {"response": 1})],
        [("final_result", {"response": 2})],
        output=int,
    )
    assert asyncio.run(worker.agent.run("Go")).output == 2


def test_work_goes_on_when_the_host_has_approved_and_each_user_has_a_plan() -> None:
    def of_deps(ctx: RunContext[Session]) -> Session:
        return ctx.deps

    planning, ada, bob = Planning(of_deps, policy=APPROVAL), Session(), Session()
    messages = {user: Worker(planning, [SHOP], "Please.").run(deps=user) for user in (ada, bob)}
    bob.dispatch(ApprovePlan())
    workers = {user: Worker(planning, [WORK], "End.") for user in (ada, bob)}
    for user, worker in workers.items():
        worker.run("Go on", message_history=messages[user], deps=user)
    assert [workers[user].worked for user in (ada, bob)] == [[], ["shelves"]]


def test_a_run_that_was_killed_resumes_in_its_store_with_what_the_policy_knows(tmp_path: Path) -> None:
    store, policy = SqliteStore(tmp_path / "s.db"), PlanPolicy(evidence="required", approval=True)

    def opened() -> tuple[Session, Planning]:
        session = Session(session_id="s", store=store)
        return session, Planning(session, policy=policy)

    def play(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if not killed.script:
            raise KeyboardInterrupt
        return killed.play(messages, info)

    killed = Worker(opened()[1], [SHOP], [WORK])
    killed.agent.model = FunctionModel(play)
    with pytest.raises(KeyboardInterrupt):
        killed.run()
    opened()[0].dispatch(ApprovePlan())  # by another process
    session, planning = opened()
    resumed = Worker(planning, [WORK], [proved("S001", "C2")], "End.")
    resumed.run()
    facts = session.select_latest(PlanFacts)
    assert facts is not None
    assert (killed.worked, resumed.worked) == ([], ["shelves"])
    assert facts.proofs["S001"].evidence == ("C2",)  # C1 was held back


def test_calls_that_failed_are_kept_as_such() -> None:
    session = Session()
    planning = Planning(session, policy=PlanPolicy(evidence="required"))
    worker = Worker(planning, [SHOP], [("work", {"on": "error"}), WORK], "End.")
    worker.agent = Agent(FunctionModel(worker.play), capabilities=[planning], retries=2)
    worker.agent.tool_plain(worker.work)
    worker.run()
    assert {*session.select_all(EvidenceCall)} == {  # the calls ran at the same time
        EvidenceCall("work", "c2.0", False),
        EvidenceCall("work", "c2.1", True),
    }


def test_tools_that_only_read_are_named_and_a_section_brings_its_policy() -> None:
    section = PlanningToolsSection(session=Session(), policy=APPROVAL)
    worker = Worker(Planning(section=section, read_only=["work"]), [SHOP], [WORK], "End.")
    worker.run()
    assert worker.worked == ["shelves"]
    with pytest.raises(TypeError, match="the section has its policy"):
        Planning(section=section, policy=APPROVAL)


def test_a_store_that_is_gone_does_not_end_the_run(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    policy = PlanPolicy(approval=True, finish_gate=1, stale_after=1, evidence="required")
    worker = Worker(
        Planning(Session(session_id="s", store=SqliteStore(path)), policy=policy), [SHOP], [WORK], "E"
    )
    play = worker.play

    def vanish(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) > 1:
            path.write_bytes(b"something else")
        return play(messages, info)

    worker.agent.model = FunctionModel(vanish)
    worker.run()
    assert worker.worked == []
