"""What a plan's policy asks of Google ADK's agents."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="needs Google ADK: pip install '.[google-adk]'")

from adk_models import ScriptedLlm, said, tail, turn
from frameworks import OPEN, SHOP, facts_of, mark, text_of
from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.function_tool import FunctionTool
from google.genai.types import Content, FunctionResponse, Part

from planning import ApprovePlan, PlanPolicy
from planning.integrations.google_adk import PlanningToolset
from session import Session, ToolFailed

ADA: dict[str, Any] = {"user_id": "ada", "session_id": "1"}
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

    async def answer(self, confirmed: bool, **payload: Any) -> list[Any]:
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
    assert (talk.done, question["hint"], question["payload"]["plan"]["approval"]) == (
        [],
        f"Approve this plan?\n{OPEN}",
        "waiting",
    )
    assert (await talk.answer(True), talk.done) == (["Rented 1."], ["1"])
    if session is not None:
        assert facts_of(session).approval == "approved"


async def test_a_plan_that_the_user_rejects_is_rejected_with_the_reason() -> None:
    session = Session()
    talk = Conversation(session, APPROVAL, turn(SHOP), turn(RENT), said("As you say."))
    await talk.say()
    assert await talk.answer(False, reason="Too dear.") == [
        "rent was not called: the plan was rejected (Too dear.); change the plan first"
    ]
    assert (talk.done, facts_of(session).approval) == ([], "rejected")


async def test_an_answer_is_for_the_plan_that_was_shown() -> None:
    session = Session()
    talk = Conversation(session, APPROVAL, turn(SHOP), turn(RENT), said())
    await talk.say()
    Conversation(session, APPROVAL).planning._boxes["planning_add_step"].call(
        "planning_add_step", {"steps": ["Burn it"]}
    )
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


async def test_a_reply_is_a_result_and_a_refusal_an_error() -> None:
    talk = Conversation(Session(), APPROVAL, turn(SHOP), turn(mark("S009")), said())
    await talk.say()
    parts = [part for content in talk.model.requests[-1].contents for part in content.parts or ()]
    responses = [part.function_response.response for part in parts if part.function_response is not None]
    assert responses == [
        {"result": "Plan set: S001 to S002. Ask the user to approve it first."},
        {"error": "Refused, nothing changed. step_id: the plan has no step S009; its steps are S001 to S002"},
    ]


async def test_a_policy_for_other_tools_needs_the_toolset_as_a_plugin() -> None:
    planning = PlanningToolset(policy=APPROVAL)
    agent = LlmAgent(name="clerk", model=ScriptedLlm(script=[said()]), tools=[planning])
    runner = Runner(
        app_name="shop", agent=agent, session_service=InMemorySessionService(), auto_create_session=True
    )
    with pytest.raises(RuntimeError) as raised:
        async for _ in runner.run_async(**ADA, new_message=Content(role="user", parts=[Part(text="Go")])):
            pass
    assert str(raised.value) == (
        "the plan's policy holds for the agent's other tools: give the toolset to the app too, "
        "App(..., plugins=[planning])"
    )


async def test_a_tool_that_fails_is_no_evidence_and_does_not_hold_up_the_turn() -> None:
    def burn() -> str:
        """Burn it."""
        raise ValueError

    async def caught(*_: Any, **__: Any) -> dict[str, Any]:
        return {"error": "It did not burn."}

    session = Session()
    end = mark("S001")
    calls = turn(mark("S001", "in_progress"), ("burn", {}), (end[0], {**end[1], "evidence": ["c2"]}))
    policy = PlanPolicy(evidence="required")
    talk = Conversation(session, policy, turn(SHOP), calls, said(), tools=[burn])
    talk.agent.on_tool_error_callback = caught
    assert (await talk.say())[2:] == [
        "It did not burn.",
        "Refused, nothing changed. C1 (burn) failed; call a tool that does the work of S001 first",
    ]
    assert [each.name for each in session.select_all(ToolFailed)] == ["burn", "planning_mark_step"]


async def test_an_agent_that_would_end_with_open_steps_goes_on() -> None:
    session = Session()
    script = [turn(SHOP), said("All done."), turn(mark("S001"), mark("S002")), said("Now it is.")]
    talk = Conversation(session, PlanPolicy(finish_gate=1), *script)
    assert (await talk.say())[1] == OPEN  # the plan is read for it
    assert tail(talk.model.requests[2]) == (
        f"{OPEN}\n\nS001 to S002 are open. Do the work and mark what is done; mark a step blocked, with "
        "a note, if it cannot be done now."
    )
    assert text_of(session) == (
        "Open the shop (completed, 2 of 2 done)\nS001 done: Rent a room\nS002 done: Buy shelves"
    )


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


async def test_an_agent_that_does_not_plan_may_end() -> None:
    talk, model = with_helper(PlanPolicy(finish_gate=1), said("Hello."))
    await talk.say()
    assert len(model.requests) == 1


def test_a_finish_gate_needs_the_tool_that_reads_the_plan() -> None:
    with pytest.raises(ValueError) as raised:
        PlanningToolset(policy=PlanPolicy(finish_gate=1, tools=("mark",)))
    assert str(raised.value) == "finish_gate needs planning_read_plan in ADK: add it to the policy's tools"
