"""The plan of an agent of LangChain's create_agent, in LangGraph's own loop."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

pytest.importorskip("langchain.agents", reason="needs langchain: pip install 'session-planning[langchain]'")

from frameworks import HALF, OPEN, OTHER, SHOP, mark, planned, setup, text_of
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, InterruptOnConfig
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk as create_tool_call_chunk
from langchain_models import ScriptedModel, said, turn
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from planning import PlanningStrategy, PlanningToolsSection
from planning.integrations.langchain import PlanningMiddleware, PlanningState
from session import Session, ToolInvoked, select_all

ASKED = {"messages": [HumanMessage("Go")]}


def thread(name: str) -> Any:
    return {"configurable": {"thread_id": name}}


def agent_of(script: Any, session: Any = None, **options: Any) -> tuple[Any, ScriptedModel]:
    """An agent with a plan and checkpoints, and its model."""
    model = ScriptedModel(script=script)
    middleware = [PlanningMiddleware(session, **options.pop("planning", {})), *options.pop("middleware", [])]
    options = {"checkpointer": InMemorySaver(), **options}
    return create_agent(model, middleware=middleware, **options), model


def answers(messages: list[AnyMessage]) -> list[tuple[str, str, str]]:
    return [
        (each.tool_call_id, each.status, str(each.content))
        for each in messages
        if isinstance(each, ToolMessage)
    ]


def test_the_section_follows_your_system_prompt_and_the_reminder_is_not_kept() -> None:
    agent, model = agent_of([turn(SHOP), said()], Session(), system_prompt="You run a shop.")
    result = agent.invoke(ASKED, thread("A"))
    body = PlanningToolsSection(session=Session()).body()
    assert model.requests[0][0].content == f"You run a shop.\n\n## Planning\n\n{body}"
    kinds = [type(each).__name__ for each in result["messages"]]
    assert kinds == ["HumanMessage", "AIMessage", "ToolMessage", "AIMessage"]


def test_parts_of_a_message_stay_before_the_reminder() -> None:
    parts = [
        {"type": "text", "text": "Go", "cache_control": {"type": "ephemeral"}},
        {"type": "image_url", "image_url": {"url": "data:"}},
    ]
    agent, model = agent_of([said()], planning={"section": planned()})
    result = agent.invoke({"messages": [{"role": "user", "content": parts}]}, thread("A"))
    assert [each.content for each in model.requests[0][1:]] == [[*parts, {"type": "text", "text": OPEN}]]
    assert result["messages"][0].content == parts


def test_a_call_that_was_cut_off_is_asked_for_again_and_those_of_other_tools_are_left_alone() -> None:
    kind = "invalid_tool_call"
    call: Any = {"name": SHOP[0], "args": '{"objective": "Open', "id": "c1", "error": None, "type": kind}
    other: Any = {**call, "name": "elsewhere", "id": "c2"}
    broken = AIMessage("", invalid_tool_calls=[call, other], response_metadata={"finish_reason": "length"})
    agent, _ = agent_of([broken, said()], Session())
    result = agent.invoke(ASKED, thread("A"))
    message = (
        f"{SHOP[0]} was not called: your reply was cut off before the call was complete. "
        "Send it again, shorter: fewer steps in one call."
    )
    assert ("c1", "error", message) in answers(result["messages"])
    assert [each["id"] for each in result["messages"][1].invalid_tool_calls] == ["c2"]


@pytest.mark.parametrize("kind", ["whole", "streamed"])
def test_calls_that_langchain_cannot_read_keep_their_place_in_the_turn(kind: str) -> None:
    session, (name, arguments) = Session(), mark("S001")
    made = [(SHOP[0], json.dumps(SHOP[1])[:-1] + ",}"), (name, json.dumps(arguments))]
    if kind == "streamed":
        message: AIMessage = AIMessageChunk(
            content="",
            tool_call_chunks=[
                create_tool_call_chunk(name=name, args=args, id=f"c{number}", index=number)
                for number, (name, args) in enumerate(made)
            ],
        )
    else:
        sent = [
            {"id": f"c{number}", "function": {"name": name, "arguments": args}}
            for number, (name, args) in enumerate(made)
        ]
        message = AIMessage("", additional_kwargs={"tool_calls": sent})
    assert [each["id"] for each in message.invalid_tool_calls] == ["c0"]
    agent, _ = agent_of([message, said()], session)
    result = agent.invoke(ASKED, thread("A"))
    assert answers(result["messages"]) == [
        ("c0", "success", "Plan set: S001 to S002. Next: S001 Rent a room"),
        ("c1", "success", "S001 done. Next: S002 Buy shelves"),
    ]


def test_a_strategy_and_a_section_of_ones_own_are_taken() -> None:
    session = Session()
    strategy = PlanningStrategy.PLAN_ACT_REFLECT
    section = PlanningToolsSection(session=session, strategy=strategy)
    for planning in ({"strategy": strategy}, {"section": section}):
        agent, model = agent_of([said()], None, planning=planning)
        agent.invoke(ASKED, thread("A"))
        assert model.requests[0][0].content == f"## Planning\n\n{section.body()}"


def test_an_agent_in_a_graph_of_its_own_keeps_its_plan() -> None:
    session = Session()
    model = ScriptedModel(script=[turn(SHOP), said(), turn(mark("S001")), said()])
    agent = create_agent(model, middleware=[PlanningMiddleware(session)])
    builder = StateGraph(PlanningState)
    builder.add_node("agent", agent)
    builder.add_edge(START, "agent")
    graph: Any = builder.compile(checkpointer=InMemorySaver())

    graph.invoke(ASKED, thread("A"))
    after_first = graph.get_state(thread("A")).config
    graph.invoke(ASKED, thread("A"))
    assert text_of(session) == HALF

    model.script = [turn(mark("S002")), said()]
    graph.invoke(ASKED, after_first)
    assert text_of(session) == OTHER


class TestHumanInTheLoop:
    @pytest.mark.parametrize("mode", ["batched", "per_call"])
    @pytest.mark.parametrize("is_first", [True, False])
    def test_a_planning_call_waits_for_a_person_and_the_others_are_kept(
        self, mode: Any, is_first: bool
    ) -> None:
        session = Session()
        gate = HumanInTheLoopMiddleware({"planning_clear_plan": True}, interrupt_mode=mode)
        planning = PlanningMiddleware(session)
        model = ScriptedModel(script=[turn(SHOP, ("planning_clear_plan", {})), said()])
        middleware: list[Any] = [planning, gate] if is_first else [gate, planning]
        agent: Any = create_agent(model, middleware=middleware, checkpointer=InMemorySaver())

        asked = agent.invoke(ASKED, thread("A"), version="v2")
        if mode == "per_call":
            assert text_of(session).startswith("Open the shop (active")
        (question,) = asked.interrupts
        decision = {"type": "reject", "message": "Keep it."}
        answer = {question.id: decision} if mode == "per_call" else {"decisions": [decision]}
        result = agent.invoke(Command(resume=answer), thread("A"), version="v2").value

        kept = {each[0]: each for each in answers(result["messages"])}
        assert kept["c1"] == ("c1", "success", "Plan set: S001 to S002. Next: S001 Rent a room")
        reason = "User rejected the tool call for `planning_clear_plan` with reason: Keep it."
        assert kept["c2"] == ("c2", "error", reason)
        assert [each.call_id for each in select_all(session, ToolInvoked)] == ["c1"]
        assert text_of(session).startswith("Open the shop (active, 0 of 2 done)")

    def test_an_edited_call_is_made_as_the_person_wrote_it(self) -> None:
        session = Session()
        config: InterruptOnConfig = {"allowed_decisions": ["edit"]}
        gate = HumanInTheLoopMiddleware({"planning_setup_plan": config}, edit_notice=None)
        agent, _ = agent_of([turn(SHOP, mark("S001")), said()], session, middleware=[gate])
        agent.invoke(ASKED, thread("A"))
        name, arguments = setup("Open the cafe", "Buy cups")
        edited = {"type": "edit", "edited_action": {"name": name, "args": arguments}}
        result = agent.invoke(Command(resume={"decisions": [edited]}), thread("A"))
        assert answers(result["messages"]) == [
            ("c1", "success", "Plan set: S001. Next: S001 Buy cups"),
            ("c2", "success", "S001 done. Plan completed."),
        ]


def test_calls_keep_their_order_when_their_ids_were_used_in_an_earlier_turn() -> None:
    class Late(AgentMiddleware[Any, Any, Any]):
        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            await asyncio.sleep(0.05 if request.tool_call["id"] == "c1" else 0)
            return await handler(request)

    def added(title: str) -> tuple[str, dict[str, Any]]:
        return "planning_add_step", {"steps": [{"title": title}]}

    session = Session()
    script = [turn(setup("Open the shop")), turn(added("Rent a room"), added("Buy shelves")), said()]
    agent: Any = create_agent(ScriptedModel(script=script), middleware=[Late(), PlanningMiddleware(session)])
    asyncio.run(agent.ainvoke(ASKED))
    assert text_of(session) == OPEN
