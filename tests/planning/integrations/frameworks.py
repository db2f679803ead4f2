"""Each provider and framework as one function: a model's turns go in, the answers to its calls come out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs
import pytest

from planning import Plan, PlanningToolsSection, Toolbox, plan_text
from planning.integrations import anthropic, openai
from planning.tools import Tool
from session import Rewound, RolledBack, Session, select_latest

Call = tuple[str, dict[str, Any]]
Turns = Sequence[Sequence[Call]]
READ: Call = ("planning_read_plan", {})


def setup(objective: str, *titles: str) -> Call:
    """A call that sets a plan up."""
    steps = [{"title": each} for each in titles]
    return "planning_setup_plan", {"objective": objective, "initial_steps": steps}


def mark(step_id: str, status: str = "done") -> Call:
    """A call that marks a step."""
    return "planning_mark_step", {"step_id": step_id, "status": status}


SHOP = setup("Open the shop", "Rent a room", "Buy shelves")
OPEN = "Open the shop (active, 0 of 2 done)\nS001 pending: Rent a room\nS002 pending: Buy shelves"
HALF = "Open the shop (active, 1 of 2 done)\nS001 done: Rent a room\nS002 pending: Buy shelves"


def text_of(session: Any) -> str:
    """The plan of a session, or of what a framework gives in its place."""
    plan = select_latest(session, Plan)
    return "" if plan is None else plan_text(plan)


def plan_after(calls: Iterable[tuple[str, Any]]) -> str:
    """The plan that calls make, in a session of its own."""
    session = Session()
    box = toolbox(session, ())
    for name, arguments in calls:
        box.call(name, arguments)
    return text_of(session)


def rewinds(session: Session) -> int:
    """How often a session has gone back."""
    return sum(
        isinstance(each, (Rewound, RolledBack)) for change in session.history() for each in change.events
    )


@attrs.frozen
class Answer:
    """What a model reads of a call; its id is ``call_N``, and numbered from one in each conversation."""

    call_id: str
    success: bool
    text: str


Converse = Callable[..., list[Answer]]
"""Plays turns with a session or a function that returns one, and further tools; the agent is ``clerk``."""


def numbered(turns: Turns) -> list[list[tuple[str, Call]]]:
    """The calls of each turn with their ids."""
    ids = (f"call_{number}" for number in range(1, 1_000))
    return [[(next(ids), call) for call in turn] for turn in turns]


def toolbox(session: Any, tools: Iterable[Tool]) -> Toolbox:
    return Toolbox([*PlanningToolsSection(session=session).tools(), *tools], session=session)


def chat(turn_id: Any, *calls: tuple[Any, Call]) -> dict[str, Any]:
    """A completion that makes calls."""
    made = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for call_id, (name, arguments) in calls
    ]
    message = {"role": "assistant", "content": None, "tool_calls": made}
    return {"id": turn_id, "choices": [{"finish_reason": "tool_calls", "message": message}]}


def items(turn_id: Any, *calls: tuple[Any, Call]) -> dict[str, Any]:
    """A response of the Responses API that makes them."""
    made = [
        {"type": "function_call", "call_id": call_id, "name": name, "arguments": json.dumps(arguments)}
        for call_id, (name, arguments) in calls
    ]
    return {"id": turn_id, "output": made}


def blocks(turn_id: Any, *calls: tuple[Any, Call]) -> dict[str, Any]:
    """A message of Anthropic's API that makes them."""
    made = [
        {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
        for call_id, (name, arguments) in calls
    ]
    return {"id": turn_id, "role": "assistant", "content": made, "stop_reason": "tool_use"}


def completions(session: Any, turns: Turns, tools: Iterable[Tool] = ()) -> list[Answer]:
    box = toolbox(session, tools)
    sent = [chat(f"chatcmpl-{number}", *calls) for number, calls in enumerate(numbered(turns), 1)]
    said = [each for response in sent for each in openai.run_calls(response, box, actor="clerk")]
    return [Answer(each["tool_call_id"], not _failed(each["content"]), each["content"]) for each in said]


def bare_messages(session: Any, turns: Turns, tools: Iterable[Tool] = ()) -> list[Answer]:
    box = toolbox(session, tools)
    sent = [chat(None, *calls)["choices"][0]["message"] for calls in numbered(turns)]
    said = [each for one in sent for each in asyncio.run(openai.arun_calls(one, box, actor="clerk"))]
    return [Answer(each["tool_call_id"], not _failed(each["content"]), each["content"]) for each in said]


def responses(session: Any, turns: Turns, tools: Iterable[Tool] = ()) -> list[Answer]:
    box = toolbox(session, tools)
    sent = [items(f"resp_{number}", *calls) for number, calls in enumerate(numbered(turns), 1)]
    said = [each for response in sent for each in openai.run_calls(response, box, actor="clerk")]
    return [Answer(each["call_id"], not _failed(each["output"]), each["output"]) for each in said]


def of_messages(session: Any, turns: Turns, tools: Iterable[Tool] = ()) -> list[Answer]:
    box = toolbox(session, tools)
    sent = [blocks(f"msg_{number}", *calls) for number, calls in enumerate(numbered(turns), 1)]
    said = [each for message in sent for each in anthropic.run_calls(message, box, actor="clerk")]
    made = [each for message in said for each in message["content"]]
    return [Answer(each["tool_use_id"], "is_error" not in each, each["content"]) for each in made]


def _failed(text: str) -> bool:
    """Whether an answer without a status is that of a failed call."""
    return text.startswith("Refused") or "was not called" in text or "could not write" in text


def langchain(session: Any, turns: Turns, tools: Iterable[Tool] = (), way: str = "sync") -> list[Answer]:
    pytest.importorskip("langchain", reason="needs LangChain: pip install '.[langchain]'")
    from langchain.agents import create_agent
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_models import ScriptedModel
    from langgraph.checkpoint.memory import InMemorySaver

    from planning.integrations.langchain import PlanningMiddleware

    script = [
        AIMessage(
            "",
            id=f"run-{number}",  # as a server counts that names the messages of a stream
            tool_calls=[{"name": name, "args": args, "id": call_id} for call_id, (name, args) in calls],
        )
        for number, calls in enumerate(numbered(turns))
    ]
    agent: Any = create_agent(
        ScriptedModel(script=[*script, AIMessage("Done.", id="run-end")]),
        middleware=[PlanningMiddleware(session, tools=tools)],
        checkpointer=InMemorySaver(),
        name="clerk",
    )
    asked, config = {"messages": ["Go"]}, {"configurable": {"thread_id": "1"}}
    if way == "sync":
        agent.invoke(asked, config)
    elif way == "async":
        asyncio.run(agent.ainvoke(asked, config))
    else:
        list(agent.stream(asked, config, stream_mode="updates"))
    said = [each for each in agent.get_state(config).values["messages"] if isinstance(each, ToolMessage)]
    return [Answer(each.tool_call_id, each.status == "success", each.text) for each in said]


def langchain_async(session: Any, turns: Turns, tools: Iterable[Tool] = ()) -> list[Answer]:
    return langchain(session, turns, tools, "async")


def langchain_stream(session: Any, turns: Turns, tools: Iterable[Tool] = ()) -> list[Answer]:
    return langchain(session, turns, tools, "stream")


def pydantic_ai(session: Any, turns: Turns, tools: Iterable[Tool] = ()) -> list[Answer]:
    pytest.importorskip("pydantic_ai", reason="needs Pydantic AI: pip install '.[pydantic-ai]'")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    from planning.integrations.pydantic_ai import Planning

    script = [[ToolCallPart(*call, call_id) for call_id, call in calls] for calls in numbered(turns)]

    def play(messages: list[Any], _info: object) -> ModelResponse:
        made = sum(isinstance(each, ModelResponse) for each in messages)
        return ModelResponse(script[made] if made < len(script) else [TextPart("Done.")])

    agent = Agent(FunctionModel(play), capabilities=[Planning(session, tools=tools)], name="clerk")
    parts = [part for each in asyncio.run(agent.run("Go")).all_messages() for part in each.parts]
    return [
        Answer(str(part.tool_call_id), getattr(part, "outcome", "") == "success", str(part.content))
        for part in parts
        if isinstance(part, (ToolReturnPart, RetryPromptPart))
    ]


def over_mcp(session: Any, turns: Turns, tools: Iterable[Tool] = ()) -> list[Answer]:
    pytest.importorskip("mcp", reason="needs the MCP SDK: pip install '.[mcp]'")
    from mcp import Client
    from mcp_types import Implementation

    from planning.integrations.mcp import build_server

    async def main() -> list[Answer]:
        server = build_server(tools, session=session)
        async with Client(server, client_info=Implementation(name="clerk", version="1")) as client:
            said = []
            for call_id, (name, arguments) in (call for calls in numbered(turns) for call in calls):
                meta: Any = {"planning/call_id": call_id}
                result = await client.call_tool(name, arguments, meta=meta)
                text = "".join(getattr(each, "text", "") for each in result.content)
                said.append(Answer(call_id, not result.is_error, text))
            return said

    return asyncio.run(main())


ALL: list[Converse] = [
    completions,
    bare_messages,
    responses,
    of_messages,
    langchain,
    langchain_async,
    langchain_stream,
    pydantic_ai,
    over_mcp,
]
through_each = pytest.mark.parametrize("converse", ALL, ids=lambda each: each.__name__)


def plans_of(*sessions: Any) -> list[tuple[int, int] | None]:
    """How far the plan of each is."""
    plans = [session.select_latest(Plan) for session in sessions]
    return [None if plan is None else plan.progress for plan in plans]
