"""A policy in Pydantic AI's own loop: agents that cheat."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="needs pydantic-ai: pip install 'session-planning[pydantic-ai]'")

from frameworks import SHOP, Call, proved
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from planning import ApprovePlan, PlanPolicy
from planning.integrations.pydantic_ai import Planning
from planning.plan.facts import EvidenceCall, PlanFacts
from session import Session
from session.stores import SqliteStore

WORK: Call = ("work", {"on": "shelves"})
APPROVAL = PlanPolicy(approval=True)
Script = list[list[Call] | str]


class Worker:
    """An agent with a plan, a tool of its own, and a script; it has no retries."""

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

    def work(self, on: str) -> Any:
        """Work."""
        self.worked.append(on)
        if on == "error":
            raise ModelRetry("not that")
        return {"success": False} if on == "nothing" else f"worked on {on}"

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
