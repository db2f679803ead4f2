"""Servers that number their calls from one again in each conversation, and calls that are made again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from planning import Plan, PlanningToolsSection, Toolbox
from planning.commands import MarkStep, NewPlanStep, SetupPlan
from planning.integrations import anthropic, openai
from planning.tools import Tool
from session import Session, ToolInvoked
from session.stores import SqliteStore

READ, RUN, DONE = "planning_read_plan", "run_tests", "planning_mark_step"
CALLS: list[tuple[str, dict[str, Any]]] = [
    (READ, {}),
    (RUN, {}),
    (DONE, {"step_id": "S001", "status": "done"}),
]
PENDING = "Fix the login (active, 0 of 2 done)\nS001 {}: Reproduce it\nS002 pending: Fix it"
ADDED: tuple[str, dict[str, Any]] = ("planning_add_step", {"steps": [{"title": "Write a test"}]})


class Runs:
    """A session in a file, and a tool whose answer is another one each time."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "plans.db"
        self.count = 0
        self.tool = Tool(RUN, "Run the tests.", self.run, parameters={"type": "object"})

    def run(self, _arguments: object) -> str:
        self.count += 1
        return f"Run {self.count}"

    def open(self) -> Session:
        """The session, as another process opens it."""
        session = Session(session_id="run-7", store=SqliteStore(self.path))
        PlanningToolsSection(session=session)
        return session

    def toolbox(self) -> Toolbox:
        session = self.open()
        return Toolbox([*PlanningToolsSection(session=session).tools(), self.tool], session=session)


def completions(runs: Runs) -> list[str]:
    box, said = runs.toolbox(), []
    for number, (name, arguments) in enumerate(CALLS, 1):
        call = {
            "id": f"call_{number}",
            "function": {"name": name, "arguments": str(arguments).replace("'", '"')},
        }
        message = {"role": "assistant", "content": None, "tool_calls": [{"type": "function", **call}]}
        reply = {"id": f"chatcmpl-{number}", "choices": [{"finish_reason": "tool_calls", "message": message}]}
        said += [each["content"] for each in openai.run_calls(reply, box)]
    return said


def responses(runs: Runs) -> list[str]:
    box, said = runs.toolbox(), []
    for number, (name, arguments) in enumerate(CALLS, 1):
        text = str(arguments).replace("'", '"')
        item = {"type": "function_call", "call_id": f"call_{number}", "name": name, "arguments": text}
        said += [each["output"] for each in openai.run_calls({"id": f"resp_{number}", "output": [item]}, box)]
    return said


def of_messages(runs: Runs) -> list[str]:
    box, said = runs.toolbox(), []
    for number, (name, arguments) in enumerate(CALLS, 1):
        block = {"type": "tool_use", "id": f"call_{number}", "name": name, "input": arguments}
        reply = {"id": f"msg_{number}", "role": "assistant", "content": [block], "stop_reason": "tool_use"}
        (message,) = anthropic.run_calls(reply, box)
        said += [each["content"] for each in message["content"]]
    return said


def without_id(runs: Runs) -> list[str]:
    box, said = runs.toolbox(), []
    for number, (name, arguments) in enumerate(CALLS, 1):
        call = {
            "id": f"call_{number}",
            "function": {"name": name, "arguments": str(arguments).replace("'", '"')},
        }
        message = {"role": "assistant", "content": None, "tool_calls": [{"type": "function", **call}]}
        said += [each["content"] for each in openai.run_calls(message, box)]
    return said


def langchain(runs: Runs) -> list[str]:
    pytest.importorskip("langchain", reason="needs LangChain: pip install '.[langchain]'")
    from langchain.agents import create_agent
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_models import ScriptedModel, said, turn
    from langgraph.checkpoint.memory import InMemorySaver

    from planning.integrations.langchain import PlanningMiddleware

    script: list[AIMessage] = [turn(call, prefix=f"call_{number}_") for number, call in enumerate(CALLS)]
    for number, message in enumerate([*script, said()]):
        message.id = f"run-{number}"  # as a server counts that names the messages of a stream
    agent: Any = create_agent(
        ScriptedModel(script=[*script, said()]),
        middleware=[PlanningMiddleware(runs.open(), tools=[runs.tool])],
        checkpointer=InMemorySaver(),
    )
    state = agent.invoke({"messages": ["Go"]}, {"configurable": {"thread_id": "1"}})
    return [each.text for each in state["messages"] if isinstance(each, ToolMessage)]


def pydantic_ai(runs: Runs) -> list[str]:
    pytest.importorskip("pydantic_ai", reason="needs Pydantic AI: pip install '.[pydantic-ai]'")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    from planning.integrations.pydantic_ai import Planning

    def play(messages: list[Any], _info: object) -> ModelResponse:
        turns = sum(isinstance(each, ModelResponse) for each in messages)
        if turns == len(CALLS):
            return ModelResponse([TextPart("Done.")])
        return ModelResponse([ToolCallPart(*CALLS[turns], "call_0")])  # one number for all

    agent = Agent(FunctionModel(play), capabilities=[Planning(runs.open(), tools=[runs.tool])])
    result = asyncio.run(agent.run("Go"))
    parts = [part for message in result.all_messages() for part in message.parts]
    return [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]


def over_mcp(runs: Runs) -> list[str]:
    pytest.importorskip("mcp", reason="needs the MCP SDK: pip install '.[mcp]'")
    from mcp import Client

    from planning.integrations.mcp import build_server

    async def main() -> list[str]:
        async with Client(build_server(runs.toolbox())) as client:
            said = []
            for number, (name, arguments) in enumerate(CALLS, 1):
                meta: Any = {"planning/call_id": f"call_{number}"}
                result = await client.call_tool(name, arguments, meta=meta)
                said.append("".join(getattr(each, "text", "") for each in result.content))
            return said

    return asyncio.run(main())


@pytest.mark.parametrize(
    "converse", [completions, responses, of_messages, without_id, langchain, pydantic_ai, over_mcp]
)
def test_a_second_conversation_whose_server_numbers_its_calls_alike_gets_its_own_answers(
    converse: Callable[[Runs], list[str]], tmp_path: Path
) -> None:
    runs = Runs(tmp_path)
    host = runs.open()
    host.dispatch(SetupPlan("Fix the login", (NewPlanStep("Reproduce it"), NewPlanStep("Fix it"))))
    first = converse(runs)
    host.refresh()
    host.dispatch(MarkStep("S001", "in_progress"))
    second = converse(runs)
    done = "S001 done. Next: S002 Fix it"
    assert [first, second] == [
        [PENDING.format("pending"), "Run 1", done],
        [PENDING.format("in_progress"), "Run 2", done],
    ]
    host.refresh()
    plan = host.select_latest(Plan)
    assert plan is not None
    assert plan.progress == (1, 2)


# Calls that are made again


def chat(turn_id: Any, *ids: str) -> dict[str, Any]:
    given = str(ADDED[1]).replace("'", '"')
    calls = [
        {"id": each, "type": "function", "function": {"name": ADDED[0], "arguments": given}} for each in ids
    ]
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    return {"id": turn_id, "choices": [{"finish_reason": "tool_calls", "message": message}]}


def chunked(turn_id: Any, *ids: str) -> list[dict[str, Any]]:
    whole = chat(turn_id, *ids)
    (choice,) = whole["choices"]
    calls = [{"index": place, **call} for place, call in enumerate(choice["message"]["tool_calls"])]
    delta = {"index": 0, "delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}
    return [{"id": turn_id, "choices": [delta]}]


def items(turn_id: Any, *ids: str) -> dict[str, Any]:
    given = str(ADDED[1]).replace("'", '"')
    calls = [{"type": "function_call", "call_id": each, "name": ADDED[0], "arguments": given} for each in ids]
    return {"id": turn_id, "output": calls}


def itemised(turn_id: Any, *ids: str) -> list[dict[str, Any]]:
    whole = items(turn_id, *ids)
    begun = {"type": "response.created", "response": {"id": turn_id, "output": []}}
    done = [{"type": "response.output_item.done", "item": each} for each in whole["output"]]
    return [begun, *done]  # the stream broke off


def blocks(turn_id: Any, *ids: str) -> dict[str, Any]:
    used = [{"type": "tool_use", "id": each, "name": ADDED[0], "input": ADDED[1]} for each in ids]
    return {"id": turn_id, "role": "assistant", "content": used, "stop_reason": "tool_use"}


def block_events(turn_id: Any, *ids: str) -> list[dict[str, Any]]:
    starts = [
        {"type": "content_block_start", "index": place, "content_block": block}
        for place, block in enumerate(blocks(turn_id, *ids)["content"])
    ]
    end = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
    return [{"type": "message_start", "message": {"id": turn_id, "content": []}}, *starts, end]


FORMS = [
    (openai, chat),
    (openai, chunked),
    (openai, items),
    (openai, itemised),
    (anthropic, blocks),
    (anthropic, block_events),
]
NAMED = "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT"


def steps_of(session: Session) -> int:
    plan = session.select_latest(Plan)
    assert plan is not None
    return len(plan.steps)


@pytest.mark.parametrize(("module", "form"), FORMS)
def test_a_response_that_is_carried_out_again_changes_nothing(
    module: Any, form: Callable[..., Any], tmp_path: Path
) -> None:
    runs = Runs(tmp_path)
    runs.toolbox().invoke("planning_setup_plan", SetupPlan("Fix the login"))
    first = module.run_calls(form(NAMED, "call_1", "call_2"), runs.toolbox())
    again = module.run_calls(form(NAMED, "call_1", "call_2"), runs.toolbox())
    later = asyncio.run(module.arun_calls(form(NAMED, "call_1", "call_2"), runs.toolbox()))
    assert first == again == later
    session = runs.open()
    assert (session.version, steps_of(session)) == (3, 2)
    keys = [event.idempotency_key for event in session.select_all(ToolInvoked)]
    assert len({*keys}) == 3


@pytest.mark.parametrize(("module", "form"), FORMS)
@pytest.mark.parametrize("turn_id", [None, "", "chatcmpl-637", "chatcmpl-A1", 7])
def test_where_nothing_names_the_response_its_calls_are_made_each_time(
    module: Any, form: Callable[..., Any], turn_id: Any
) -> None:
    session = Session()
    box = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    box.invoke("planning_setup_plan", SetupPlan("Fix the login"))
    for _ in range(2):
        module.run_calls(form(turn_id, "call_1"), box)
    assert steps_of(session) == 2


@pytest.mark.parametrize(("module", "form"), FORMS)
@pytest.mark.parametrize("ids", [("call_0", "call_0"), ("", ""), (None, None)])
def test_calls_of_one_response_that_have_no_ids_of_their_own_are_all_made(
    module: Any, form: Callable[..., Any], ids: tuple[Any, Any]
) -> None:
    if form is chunked:
        pytest.skip("what has one id in a stream is one call")
    session = Session()
    box = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    box.invoke("planning_setup_plan", SetupPlan("Fix the login"))
    module.run_calls(form(NAMED, *ids), box)
    assert steps_of(session) == 2


@pytest.mark.parametrize("is_shared", [False, True])
def test_the_messages_of_a_model_that_gives_them_twice_are_two_turns(is_shared: bool) -> None:
    pytest.importorskip("langchain", reason="needs LangChain: pip install '.[langchain]'")
    from langchain.agents import create_agent
    from langchain_models import ScriptedModel, said, turn

    from planning.integrations.langchain import PlanningMiddleware

    session = Session()
    PlanningToolsSection(session=session)
    session.dispatch(SetupPlan("Fix the login"))
    middleware = PlanningMiddleware(session)
    message, end = turn(ADDED), said()
    for _ in range(2):  # LangChain gives the messages their ids the first time
        script = [message, end] if is_shared else [message.model_copy(), end.model_copy()]
        agent: Any = create_agent(ScriptedModel(script=script), middleware=[middleware])
        agent.invoke({"messages": ["Go"]})
    assert steps_of(session) == 2


def test_a_turn_of_langchain_that_is_resumed_after_a_crash_makes_its_calls_once(tmp_path: Path) -> None:
    pytest.importorskip("langchain", reason="needs LangChain: pip install '.[langchain]'")
    from langchain.agents import create_agent
    from langchain.agents.middleware import AgentMiddleware
    from langchain_models import ScriptedModel, said, turn
    from langgraph.checkpoint.memory import InMemorySaver

    from planning.integrations.langchain import PlanningMiddleware

    runs, saver = Runs(tmp_path), InMemorySaver()
    runs.toolbox().invoke("planning_setup_plan", SetupPlan("Fix the login"))
    crashes = [True]

    class Crash(AgentMiddleware[Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            answer = handler(request)
            if crashes:
                raise KeyboardInterrupt(crashes.pop())
            return answer

    def agent(*script: Any) -> Any:
        middleware = [PlanningMiddleware(runs.open(), tools=[runs.tool]), Crash()]
        return create_agent(ScriptedModel(script=[*script]), middleware=middleware, checkpointer=saver)

    config = {"configurable": {"thread_id": "1"}}
    with pytest.raises(KeyboardInterrupt):
        agent(turn(ADDED, (RUN, {}))).invoke({"messages": ["Go"]}, config)
    state = agent(said()).invoke(None, config)
    assert [each.text for each in state["messages"][2:4]] == ["Added S001.", "Run 1"]
    assert (steps_of(runs.open()), runs.count) == (1, 1)
