"""Agents of the OpenAI Agents SDK with a script as their model, and the ways to run them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import pytest

pytest.importorskip("agents", reason="needs the OpenAI Agents SDK: pip install '.[openai-agents]'")

from agents import Agent, RunConfig, Runner
from agents.testing import ScriptedModel, assistant_message, function_call
from frameworks import added_to

from planning.integrations.openai_agents import PlanningTools

Turn = Sequence[tuple[str, Any]] | str
QUIET = RunConfig(tracing_disabled=True)


def script(*turns: Turn, numbers: Iterable[int] | None = None, item_id: str = "fc_{}") -> ScriptedModel:
    """A model that plays turns; its calls are ``call_1``, ``call_2``, ... unless other numbers are given."""
    ids = iter(count(1) if numbers is None else numbers)

    def items(turn: Turn) -> list[Any]:
        if isinstance(turn, str):
            return [assistant_message(turn)]
        named = [(next(ids), call) for call in turn]
        return [
            function_call(*call, call_id=f"call_{number}", item_id=item_id.format(number))
            for number, call in named
        ]

    return ScriptedModel([items(turn) for turn in turns])


def agent_of(planning: PlanningTools, *turns: Turn, **options: Any) -> tuple[Agent[Any], ScriptedModel]:
    model = script(*turns)
    return Agent("clerk", model=model, tools=planning, **options), model


def run_async(planning: PlanningTools, agent: Agent[Any], asked: Any = "Go", **options: Any) -> Any:
    return asyncio.run(Runner.run(agent, asked, run_config=planning.run_config(QUIET), **options))


def run_streamed(planning: PlanningTools, agent: Agent[Any], asked: Any = "Go", **options: Any) -> Any:
    async def main() -> Any:
        result = Runner.run_streamed(agent, asked, run_config=planning.run_config(QUIET), **options)
        async for _ in result.stream_events():
            pass
        return result

    return asyncio.run(main())


def outputs(result: Any) -> list[Any]:
    return [each.output for each in result.new_items if each.type == "tool_call_output_item"]


def tails(model: ScriptedModel) -> list[str]:
    ends = [dict(call.input[-1]) for call in model.calls]
    return [added_to(each.get("content") or each["output"]) for each in ends]
