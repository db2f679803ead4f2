"""A plan in Google ADK's agents: each way to run them, going back, and a policy."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from unittest.mock import AsyncMock

import pytest

pytest.importorskip("google.adk", reason="needs Google ADK: pip install '.[google-adk]'")

from driver_google_adk import ADA, ScriptedLlm, adk_of, back, go, run_with, said, tail, turn
from frameworks import HALF, OPEN, OTHER, SHOP, facts_of, mark, proved, text_of, toolbox
from google.adk.agents import LiveRequestQueue, LlmAgent
from google.adk.agents.context import Context
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App, ResumabilityConfig
from google.adk.models.base_llm_connection import BaseLlmConnection
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.genai.types import Content, FunctionResponse, Part
from syrupy.assertion import SnapshotAssertion

from planning import ApprovePlan, PlanPolicy
from planning.integrations.google_adk import PlanningToolset
from planning.plan.commands import MarkStep, SetupPlan
from session import Session, SnapshotError, ToolFailed, ToolInvoked

of_agent_tool = pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated")
"""ADK's own ``AgentTool`` does what ADK warns of."""


async def test_an_agent_that_is_transferred_to_works_on_the_plan() -> None:
    planning = PlanningToolset()
    assert planning.name == "planning"
    helper = LlmAgent(name="helper", model=ScriptedLlm(script=[turn(mark("S001")), said()]), tools=[planning])
    script = turn(SHOP), turn(("transfer_to_agent", {"agent_name": "helper"}))
    runner, _ = run_with(planning, *script, sub_agents=[helper])
    await go(runner)
    assert text_of(planning.session_of(await adk_of(runner))) == HALF


async def test_the_state_of_a_run_can_be_written_down(stored: Session) -> None:
    def write(tool_context: Context) -> str:
        """Write the state down."""
        return json.dumps(tool_context.state.to_dict()) + tool_context.session.model_dump_json()

    script = turn(SHOP), turn(("write", {})), said()
    runner, model = run_with(PlanningToolset(stored), *script, tools=[write])
    await go(runner)
    assert model.script == []


@of_agent_tool
async def test_an_agent_in_a_tool_has_the_hosts_plan_and_goes_back_with_its_caller(stored: Session) -> None:
    planning = PlanningToolset(stored)
    helper = LlmAgent(name="helper", model=ScriptedLlm(script=[turn(mark("S001")), said()]), tools=[planning])
    script = turn(SHOP), said(), turn(("helper", {"request": "Rent it"})), said(), said()
    runner, _ = run_with(planning, *script, tools=[AgentTool(helper)])
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
    script = turn(SHOP), turn(("helper", {"request": "Rent it"}), mark("S002")), said()
    runner, _ = run_with(planning, *script, tools=[AgentTool(helper)])
    await go(runner)
    own = text_of(planning.session_of(await adk_of(runner)))
    assert (tail(model.requests[-1]), own) == (HALF, OTHER)


@pytest.mark.parametrize("name", ["ScriptedLlm", "LiteLlm", "OpenAILlm", "ApigeeLlm"])
async def test_a_model_class_that_splits_a_content_reads_the_plan_in_the_tools_answer(name: str) -> None:
    model = type(name, (ScriptedLlm,), {})(script=[turn(SHOP), said(), said()])
    agent = LlmAgent(name="clerk", model=model, tools=[PlanningToolset(Session())])
    runner = Runner(app_name="shop", agent=agent, session_service=InMemorySessionService())
    await go(runner)
    await go(runner)
    answer, *text = model.requests[1].contents[-1].parts
    said_so = {"result": "Plan set: S001 to S002. Next: S001 Rent a room"}
    split = {**said_so, "reminder": OPEN}
    assert answer.function_response.response == (split if name != "ScriptedLlm" else said_so)
    assert [each.text for each in text] == ([] if name != "ScriptedLlm" else [OPEN])
    assert [each.text for each in model.requests[2].contents[-1].parts] == ["Go", OPEN]
    kept = [part for event in (await adk_of(runner, ADA)).events for part in event.content.parts]
    assert OPEN not in str(kept)


class Connection(BaseLlmConnection):
    """A live connection whose model makes a plan, and then ends its turn."""

    send_history = send_realtime = send_content = close = AsyncMock()

    async def receive(self) -> AsyncGenerator[LlmResponse, None]:
        for answer in turn(SHOP, mark("S001")), said(), LlmResponse(turn_complete=True):
            yield answer


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


def of_two_runs(session: Session, *more: Any) -> Any:
    """A runner whose first run sets a plan up, and whose second one marks its first step."""
    runs = [turn(SHOP), said(), turn(mark("S001")), said(), *more]
    return run_with(PlanningToolset(session), *runs)


async def test_what_the_host_changed_before_a_run_that_is_taken_back_stays(stored: Session) -> None:
    runner, _ = of_two_runs(stored, said())
    await go(runner)
    stored.dispatch(MarkStep("S002", "in_progress"))
    second = await go(runner)
    await back(runner, second)
    await go(runner)
    assert text_of(stored) == (
        "Open the shop (active, 0 of 2 done)\nS001 pending: Rent a room\nS002 in_progress: Buy shelves"
    )


async def test_what_was_changed_between_runs_that_are_taken_back_stays_with_them(stored: Session) -> None:
    runner, _ = of_two_runs(stored, turn(mark("S002", "blocked")), said(), said())
    await go(runner)
    second = await go(runner)
    stored.dispatch(MarkStep("S002", "in_progress"))
    await go(runner)
    before = text_of(stored)
    await back(runner, second)
    await go(runner)
    assert text_of(stored) == before


async def test_history_that_was_cut_is_no_proof_that_a_run_was_taken_back(stored: Session) -> None:
    runner, model = of_two_runs(stored, said())
    await go(runner)
    second = await go(runner)
    await back(runner, second)
    cut = RunConfig(get_session_config=GetSessionConfig(num_recent_events=1))
    await go(runner, run_config=cut)
    assert text_of(stored) == HALF
    assert tail(model.requests[-1]) == f"{HALF}\n\nThe plan has changed since your last turn: S001 done."


class Failing(InMemorySessionService):
    """Does not take the first answers to calls."""

    fails = True

    async def append_event(self, session: Any, event: Any) -> Any:
        if self.fails and event.get_function_responses():
            self.fails = False
            raise ConnectionError
        return await super().append_event(session, event)


@pytest.mark.filterwarnings("ignore:.EXPERIMENTAL. ResumabilityConfig")
async def test_a_run_that_was_cut_short_is_resumed_and_makes_no_call_twice(stored: Session) -> None:
    model = ScriptedLlm(script=[turn(SHOP, mark("S001")), said()])
    app = App(
        name="shop",
        root_agent=LlmAgent(name="clerk", model=model, tools=[PlanningToolset(stored)]),
        resumability_config=ResumabilityConfig(is_resumable=True),
    )
    runner = Runner(app=app, session_service=Failing())
    with pytest.raises(ConnectionError):
        await go(runner)
    version = stored.version
    events = (await adk_of(runner)).events
    ran = runner.run_async(**ADA, invocation_id=events[0].invocation_id)
    answers = [each.response async for event in ran for each in event.get_function_responses()]
    assert answers == [
        {"result": "Plan set: S001 to S002. Next: S001 Rent a room"},
        {"result": "S001 done. Next: S002 Buy shelves"},
    ]
    assert (stored.version, text_of(stored)) == (version, HALF)


async def test_what_is_not_a_position_ends_the_run_before_the_model_is_asked(stored: Session) -> None:
    service = InMemorySessionService()
    await service.create_session(app_name="shop", **ADA, state={"planning:position": "S001"})
    runner, model = run_with(PlanningToolset(stored), turn(SHOP), said(), service=service)
    with pytest.raises(SnapshotError) as raised:
        await go(runner)
    assert (model.requests, stored.version) == ([], 0)
    assert str(raised.value) == (
        "planning in the agent's state is not a position of a session, but 'S001': remove it, or go back to "
        "an earlier checkpoint"
    )


ASKS = "adk_request_confirmation"


class Conversation:
    """An agent with a policy, a tool ``rent`` that changes something and a tool ``look`` that does not."""

    def __init__(self, session: Session | None, policy: PlanPolicy, *script: Any, tools: Any = ()) -> None:
        self.done: list[str] = []

        async def rent(room: str) -> str:
            """Rent a room."""
            await asyncio.sleep(0.01)
            self.done.append(room)
            return f"Rented {room}."

        def look() -> str:
            """Look for rooms."""
            return "Rooms 1 and 2."

        self.planning = PlanningToolset(session, policy=policy)
        self.model = ScriptedLlm(script=list(script))
        looking = FunctionTool(look)
        looking.custom_metadata = {"read_only": True}
        self.agent = LlmAgent(name="clerk", model=self.model, tools=[self.planning, rent, looking, *tools])
        app = App(name="shop", root_agent=self.agent, plugins=[self.planning])
        self.runner = Runner(app=app, session_service=InMemorySessionService(), auto_create_session=True)
        self.asked: Any = None

    async def say(self, *parts: Part) -> list[Any]:
        """What the agent's tools answered; a question to the user is kept in ``asked``."""
        self.asked, answers = None, []
        message = Content(role="user", parts=list(parts) or [Part(text="Go")])
        async for event in self.runner.run_async(**ADA, new_message=message):
            answers += [next(iter((each.response or {}).values())) for each in event.get_function_responses()]
            for call in event.get_function_calls():
                if call.name == ASKS:
                    self.asked = call
        return answers

    async def answer(self, confirmed: bool, payload: Any = None) -> list[Any]:
        response = {"confirmed": confirmed, "payload": payload}
        part = FunctionResponse(id=self.asked.id, name=ASKS, response=response)
        return await self.say(Part(function_response=part))


APPROVAL = PlanPolicy(approval=True)
RENT = ("rent", {"room": "1"})
WAITS = "rent was not called: the plan waits for approval; end your turn and ask the user to approve it"


@pytest.mark.parametrize("is_given", [False, True], ids=["adk's own", "the host's"])
async def test_the_user_is_asked_for_a_plan_that_waits_and_the_call_is_made(is_given: bool) -> None:
    session = Session() if is_given else None
    talk = Conversation(session, APPROVAL, turn(SHOP), turn(("look", {}), RENT), said())
    answers = await talk.say()
    assert answers[1:] == ["Rooms 1 and 2.", WAITS]
    question = talk.asked.args["toolConfirmation"]
    assert (talk.done, question["hint"]) == ([], f"Approve this plan?\n{OPEN}")
    payload = question["payload"]
    assert (payload["plan"]["approval"], payload["reason"]) == ("waiting", "")
    assert (await talk.answer(True), talk.done) == (["Rented 1."], ["1"])
    if session is not None:
        assert facts_of(session).approval == "approved"


async def test_a_plan_that_the_user_rejects_is_rejected_with_the_reason() -> None:
    session = Session()
    talk = Conversation(session, APPROVAL, turn(SHOP), turn(RENT), said("As you say."))
    await talk.say()
    assert await talk.answer(False, {"reason": "Too dear."}) == [
        "rent was not called: the plan was rejected (Too dear.); change the plan first"
    ]
    assert (talk.done, facts_of(session).approval) == ([], "rejected")


async def test_an_answer_is_for_the_plan_that_was_shown() -> None:
    session = Session()
    talk = Conversation(session, APPROVAL, turn(SHOP), turn(RENT), said())
    await talk.say()
    toolbox(session, ()).call("planning_add_step", {"steps": ["Burn it"]})
    assert await talk.answer(True) == [WAITS]
    assert (talk.done, facts_of(session).approval) == ([], "waiting")


async def test_a_call_that_the_user_rejects_is_not_made_though_its_plan_was_approved_elsewhere() -> None:
    session = Session()
    talk = Conversation(session, APPROVAL, turn(SHOP), turn(RENT), said())
    await talk.say()
    session.dispatch(ApprovePlan())
    assert await talk.answer(False) == ["The user rejected this call."]
    assert (talk.done, facts_of(session).approval) == ([], "approved")


async def test_approval_of_the_plan_is_not_the_answer_to_a_question_of_the_tool() -> None:
    def pay() -> str:
        """Pay the rent."""
        raise AssertionError

    own = FunctionTool(pay, require_confirmation=True)
    talk = Conversation(Session(), APPROVAL, turn(SHOP), turn(("pay", {})), said(), tools=[own])
    await talk.say()
    assert await talk.answer(True) == ["This tool call requires confirmation, please approve or reject."]


async def test_what_ends_the_agents_part_is_not_work() -> None:
    def exit_loop() -> str:
        """Leave."""
        return "left"

    def set_model_response() -> str:
        """Answer."""
        return "answered"

    calls = turn(SHOP), turn(("exit_loop", {}), ("set_model_response", {})), said()
    talk = Conversation(Session(), APPROVAL, *calls, tools=[exit_loop, set_model_response])
    assert (await talk.say())[1:] == ["left", "answered"]


async def test_a_policy_for_other_tools_needs_the_toolset_as_a_plugin() -> None:
    runner, _ = run_with(PlanningToolset(policy=APPROVAL), said())
    with pytest.raises(RuntimeError) as raised:
        await go(runner)
    assert str(raised.value) == (
        "the plan's policy holds for the agent's other tools: give the toolset to the app too, "
        "App(..., plugins=[planning])"
    )


async def test_a_tool_that_fails_is_no_evidence_and_does_not_hold_up_the_turn(
    snapshot: SnapshotAssertion,
) -> None:
    def burn() -> str:
        """Burn it."""
        raise ValueError

    def count() -> dict[str, Any]:
        """Count the rooms."""
        return {"error": None, "rooms": 2}

    async def caught(*_: Any, **__: Any) -> dict[str, Any]:
        return {"error": "It did not burn."}

    session = Session()
    proofs = proved("S001", "c2"), proved("S001", "c3")
    calls = turn(mark("S001", "in_progress"), ("burn", {}), ("count", {}), *proofs)
    policy = PlanPolicy(evidence="required")
    talk = Conversation(session, policy, turn(SHOP), calls, said(), tools=[burn, count])
    talk.agent.on_tool_error_callback = caught
    assert "\n".join(map(str, (await talk.say())[2:])) == snapshot
    assert [(each.name, each.actor) for each in session.select_all(ToolFailed)] == [
        *(("burn", "clerk"), ("planning_mark_step", "clerk"))
    ]


def with_helper(policy: PlanPolicy, *script: Any) -> tuple[Conversation, ScriptedLlm]:
    """A conversation in which an agent without the toolset, but with ``burn``, takes over."""

    def burn() -> str:
        """Burn it."""
        raise AssertionError

    talk = Conversation(Session(), policy, turn(SHOP), turn(("transfer_to_agent", {"agent_name": "helper"})))
    model = ScriptedLlm(script=list(script))
    helper = LlmAgent(name="helper", model=model, tools=[burn])
    talk.agent.sub_agents.append(helper)
    helper.parent_agent = talk.agent
    return talk, model


async def test_the_tools_of_an_agent_that_does_not_plan_are_held_back_too() -> None:
    talk, model = with_helper(APPROVAL, turn(("burn", {})), said("I may not."))
    assert (await talk.say())[-1] == WAITS.replace("rent", "burn")
    assert await talk.answer(False) == [
        "burn was not called: the plan was rejected (no reason was given); change the plan first"
    ]
    assert model.script == []


async def test_an_agent_that_is_sent_back_reads_the_plan() -> None:
    talk = Conversation(Session(), PlanPolicy(finish_gate=1), turn(SHOP), said(), said())
    assert (await talk.say())[1:] == [OPEN]


async def test_an_agent_that_does_not_plan_may_end() -> None:
    talk, model = with_helper(PlanPolicy(finish_gate=1), said("Hello."))
    await talk.say()
    assert len(model.requests) == 1


def test_a_finish_gate_needs_the_tool_that_reads_the_plan() -> None:
    with pytest.raises(ValueError) as raised:
        PlanningToolset(policy=PlanPolicy(finish_gate=1, tools=("mark",)))
    assert str(raised.value) == "finish_gate needs planning_read_plan in ADK: add it to the policy's tools"
