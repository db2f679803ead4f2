"""A policy in Pydantic AI's own loop: agents that cheat."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="needs pydantic-ai: pip install 'session-planning[pydantic-ai]'")

from frameworks import SHOP, Call
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from planning import PlanPolicy
from planning.integrations.pydantic_ai import Planning
from planning.plan.facts import EvidenceCall
from session import Session

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
