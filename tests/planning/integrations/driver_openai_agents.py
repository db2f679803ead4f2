"""An agent of the OpenAI Agents SDK: run, and streamed."""

from __future__ import annotations

import json
from typing import Any

from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from agents.testing.model import ModelCall
from frameworks import OWN, READING, Answer, Request, added_to, is_success, playing

from planning import PlanPolicy
from planning.integrations.openai_agents import planning_tools


class Run:
    """Runs by ``run``; a conversation is the list of its items."""

    def __init__(
        self, session: Any, tools: Any = (), policy: PlanPolicy | None = None, others: Any = ()
    ) -> None:
        given = [*tools, *map(function_tool, others)] if others else tools
        planning = planning_tools(session, tools=given, policy=policy, read_only=READING)
        model = ScriptedModel([ModelStep.respond(self.play)] * 100)
        self.config = planning.run_config(RunConfig(tracing_disabled=True))
        self.agent = Agent("clerk", model=model, tools=planning, instructions=OWN)

    def play(self, call: ModelCall) -> list[Any]:
        offered: list[Any] = call.tools
        *items, last = (dict(each) for each in call.input)
        roles = {"function_call": "assistant", "function_call_output": "tool"}
        calls = playing.get().next(
            Request(
                call.system_instructions or "",
                [json.dumps(each) for each in items],
                added_to(last["content"] if "role" in last else last["output"]),
                {each.name: (each.description, each.params_json_schema) for each in offered},
                [each.get("role") or roles[each["type"]] for each in (*items, last)],
            )
        )
        made = [function_call(*made, call_id=call_id) for call_id, made in calls]
        return made or [assistant_message("Done.")]

    async def run(self, before: Any = None) -> tuple[list[Answer], Any]:
        result = await self.go([*(before or ()), {"role": "user", "content": "Go"}])
        answers = [
            Answer(each.raw_item["call_id"], is_success(str(each.output)), str(each.output))
            for each in result.new_items
            if each.type == "tool_call_output_item"
        ]
        return answers, result.to_input_list()

    async def go(self, items: list[Any]) -> Any:
        return await Runner.run(self.agent, items, run_config=self.config)


class Streamed(Run):
    async def go(self, items: list[Any]) -> Any:
        result = Runner.run_streamed(self.agent, items, run_config=self.config)
        async for _ in result.stream_events():
            pass
        return result
