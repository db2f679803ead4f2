"""A plan in Google ADK's agents, in each way to run them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="needs Google ADK: pip install '.[google-adk]'")

from adk_models import ADA, ScriptedLlm, adk_of, back, go, said, tail, turn
from frameworks import HALF, OPEN, OTHER, SHOP, mark, plans_of, text_of
from google.adk.agents import LiveRequestQueue, LlmAgent, ParallelAgent
from google.adk.agents.context import Context
from google.adk.agents.run_config import RunConfig
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.genai.types import Blob, Content, Part

from planning.integrations.google_adk import PlanningToolset
from planning.plan.commands import NewPlanStep, SetupPlan
from session import Session, ToolInvoked

of_agent_tool = pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated")
"""ADK's own ``AgentTool`` does what ADK warns of."""


@pytest.mark.filterwarnings("ignore:ParallelAgent is deprecated")
async def test_agents_side_by_side_work_on_the_hosts_plan(stored: Session) -> None:
    stored.dispatch(SetupPlan("Open the shop", (NewPlanStep("Rent a room"), NewPlanStep("Buy shelves"))))
    planning = PlanningToolset(stored)
    agents: list[Any] = [
        LlmAgent(name=name, model=ScriptedLlm(script=[turn(mark(step)), said()]), tools=[planning])
        for name, step in (("ada", "S001"), ("bob", "S002"))
    ]
    both = ParallelAgent(name="both", sub_agents=agents)
    runner = Runner(app_name="shop", agent=both, session_service=InMemorySessionService())
    await go(runner)
    assert {each.actor for each in stored.select_all(ToolInvoked)} == {"ada", "bob"}
    assert plans_of(stored) == [(2, 2)]


async def test_an_agent_that_is_transferred_to_works_on_the_plan() -> None:
    planning = PlanningToolset()
    helper = LlmAgent(name="helper", model=ScriptedLlm(script=[turn(mark("S001")), said()]), tools=[planning])
    model = ScriptedLlm(script=[turn(SHOP), turn(("transfer_to_agent", {"agent_name": "helper"}))])
    clerk = LlmAgent(name="clerk", model=model, tools=[planning], sub_agents=[helper])
    runner = Runner(app_name="shop", agent=clerk, session_service=InMemorySessionService())
    await go(runner)
    assert text_of(planning.session_of(await adk_of(runner))) == HALF


async def test_the_state_of_a_run_can_be_written_down(stored: Session) -> None:
    def write(tool_context: Context) -> str:
        """Write the state down."""
        return json.dumps(tool_context.state.to_dict()) + tool_context.session.model_dump_json()

    model = ScriptedLlm(script=[turn(SHOP), turn(("write", {})), said()])
    agent = LlmAgent(name="clerk", model=model, tools=[PlanningToolset(stored), write])
    await go(Runner(app_name="shop", agent=agent, session_service=InMemorySessionService()))
    assert model.script == []


@of_agent_tool
async def test_an_agent_that_a_tool_runs_has_the_hosts_plan_and_goes_back_with_its_caller(
    stored: Session,
) -> None:
    planning = PlanningToolset(stored)
    helper = LlmAgent(name="helper", model=ScriptedLlm(script=[turn(mark("S001")), said()]))
    helper.tools.append(planning)
    calls = [turn(SHOP), said(), turn(("helper", {"request": "Rent it"})), said(), said()]
    model = ScriptedLlm(script=calls)
    clerk = LlmAgent(name="clerk", model=model, tools=[planning, AgentTool(helper)])
    runner = Runner(app_name="shop", agent=clerk, session_service=InMemorySessionService())
    await go(runner)
    second = await go(runner)
    assert (text_of(stored), stored.select_all(ToolInvoked)[-1].actor) == (HALF, "helper")
    await back(runner, second)
    await go(runner)
    assert text_of(stored) == OPEN


@of_agent_tool
async def test_an_agent_that_a_tool_runs_has_a_plan_of_its_own_where_the_host_gives_none() -> None:
    planning = PlanningToolset()
    model = ScriptedLlm(script=[turn(SHOP, mark("S001")), said()])
    helper = LlmAgent(name="helper", model=model, tools=[planning])
    calls = [turn(SHOP), turn(("helper", {"request": "Rent it"}), mark("S002")), said()]
    clerk = LlmAgent(name="clerk", model=ScriptedLlm(script=calls), tools=[planning, AgentTool(helper)])
    runner = Runner(app_name="shop", agent=clerk, session_service=InMemorySessionService())
    await go(runner)
    assert (tail(model.requests[-1]), text_of(planning.session_of(await adk_of(runner)))) == (
        HALF,
        OTHER,
    )


@pytest.mark.parametrize("name", ["ScriptedLlm", "LiteLlm"])
async def test_a_model_class_that_splits_a_content_reads_the_plan_in_the_answer_of_the_tool(
    name: str,
) -> None:
    model = type(name, (ScriptedLlm,), {})(script=[turn(SHOP), said(), said()])
    agent = LlmAgent(name="clerk", model=model, tools=[PlanningToolset(Session())])
    runner = Runner(app_name="shop", agent=agent, session_service=InMemorySessionService())
    await go(runner)
    await go(runner)
    answer, *text = model.requests[1].contents[-1].parts
    said_so = {"result": "Plan set: S001 to S002. Next: S001 Rent a room"}
    split = {**said_so, "reminder": OPEN}
    assert answer.function_response.response == (split if name == "LiteLlm" else said_so)
    assert [each.text for each in text] == ([] if name == "LiteLlm" else [OPEN])
    assert [each.text for each in model.requests[2].contents[-1].parts] == ["Go", OPEN]
    kept = [part for event in (await adk_of(runner, ADA)).events for part in event.content.parts]
    assert OPEN not in str(kept)


class Connection(BaseLlmConnection):
    """A live connection whose model makes a plan when the user has spoken, and then ends its turn."""

    def __init__(self) -> None:
        self.answers = asyncio.Queue[LlmResponse]()

    async def send_history(self, history: list[Content]) -> None:
        raise AssertionError

    async def send_content(self, content: Content) -> None:
        is_users = any(part.text for part in content.parts or ())
        for answer in [turn(SHOP, mark("S001"))] if is_users else [said(), LlmResponse(turn_complete=True)]:
            self.answers.put_nowait(answer)

    async def send_realtime(self, blob: Blob) -> None:
        raise AssertionError

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        while True:
            yield await self.answers.get()

    async def close(self) -> None:
        """Nothing is open."""


class Live(ScriptedLlm):
    @asynccontextmanager
    async def connect(self, llm_request: LlmRequest) -> AsyncIterator[Connection]:
        self.requests.append(llm_request)
        yield Connection()


async def test_a_live_connection_has_the_tools_and_begins_without_a_reminder(stored: Session) -> None:
    stored.dispatch(SetupPlan("Open the shop"))
    model, queue = Live(), LiveRequestQueue()
    agent = LlmAgent(name="clerk", model=model, tools=[PlanningToolset(stored)])
    runner = Runner(
        app_name="shop", agent=agent, session_service=InMemorySessionService(), auto_create_session=True
    )
    queue.send_content(Content(role="user", parts=[Part(text="Go")]))
    config = RunConfig.model_validate({"response_modalities": ["TEXT"]})
    async for event in runner.run_live(**ADA, live_request_queue=queue, run_config=config):
        if event.turn_complete:
            queue.close()
            break
    (request,) = model.requests
    assert (text_of(stored), request.contents, len(request.tools_dict)) == (HALF, [], 6)
