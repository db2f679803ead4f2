"""The integrations of openai and anthropic with the providers' own clients, against a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from planning import Plan, PlanningToolsSection, Toolbox, plan_text
from planning.integrations import anthropic, openai
from planning.testing import ScriptedModel
from planning.tools import tool
from planning.tools.ledger import ToolCall
from session import Session, select_all, select_latest

sdk = pytest.importorskip("openai", reason="needs the openai client: pip install '.[openai]'")
anthropic_sdk = pytest.importorskip(
    "anthropic", reason="needs the anthropic client: pip install '.[anthropic]'"
)

Messages = list[Any]
SYSTEM = "You keep a plan."


@tool
async def look_up(word: str) -> str:
    """Looks a word up."""
    await asyncio.sleep(0)
    return f"{word}: a word"


SCRIPT: list[Any] = [
    [
        ("planning_setup_plan", {"objective": "Fix the login", "initial_steps": ["Reproduce it", "Fix it"]}),
        ("planning_mark_step", {"step_id": 1, "status": "completed"}),
        ("look_up", {"word": "login"}),
        ("planning_finish", {}),
        ("planning_mark_step", {"step_id": "S009", "status": "done"}),
    ],
    [("planning_mark_step", {"step_id": "S001", "status": "done", "note": "Fails on empty names"})],
    "The bug is reproduced.",
]
ANSWERS = [
    "Plan set: S001 to S002. Next: S001 Reproduce it",
    "Refused, nothing changed. status: 'completed' is unknown; did you mean done? "
    "send one of pending, in_progress, blocked, done",
    "login: a word",
    "Refused, nothing changed. no tool is named 'planning_finish'; the tools are planning_setup_plan, "
    "planning_add_step, planning_update_step, planning_mark_step, planning_clear_plan, planning_read_plan, "
    "look_up",
    "Refused, nothing changed. step_id: the plan has no step S009; its steps are S001 to S002",
    "S001 done. Next: S002 Fix it",
]


def chat(model: ScriptedModel, messages: Messages, box: Toolbox, *, stream: bool) -> Messages:
    with sdk.OpenAI(base_url=model.openai_url, api_key="test", max_retries=0) as client:
        reply = client.chat.completions.create(
            model="scripted", messages=messages, tools=openai.tools(box), stream=stream
        )
        reply = list(reply) if stream else reply
    return [*openai.turn(reply), *openai.run_calls(reply, box, actor="triage")]


async def achat(model: ScriptedModel, messages: Messages, box: Toolbox, *, stream: bool) -> Messages:
    async with sdk.AsyncOpenAI(base_url=model.openai_url, api_key="test", max_retries=0) as client:
        reply = await client.chat.completions.create(
            model="scripted", messages=messages, tools=openai.tools(box), stream=stream
        )
        reply = [chunk async for chunk in reply] if stream else reply
    return [*openai.turn(reply), *await openai.arun_calls(reply, box, actor="triage")]


def responses(model: ScriptedModel, messages: Messages, box: Toolbox, *, stream: bool) -> Messages:
    with sdk.OpenAI(base_url=model.openai_url, api_key="test", max_retries=0) as client:
        reply = client.responses.create(
            model="scripted", input=messages, tools=openai.tools(box, responses=True), stream=stream
        )
        reply = list(reply) if stream else reply
    return [*openai.turn(reply), *openai.run_calls(reply, box, actor="triage")]


async def aresponses(model: ScriptedModel, messages: Messages, box: Toolbox, *, stream: bool) -> Messages:
    async with sdk.AsyncOpenAI(base_url=model.openai_url, api_key="test", max_retries=0) as client:
        reply = await client.responses.create(
            model="scripted", input=messages, tools=openai.tools(box, responses=True), stream=stream
        )
        reply = [event async for event in reply] if stream else reply
    return [*openai.turn(reply), *await openai.arun_calls(reply, box, actor="triage")]


def of_messages(model: ScriptedModel, messages: Messages, box: Toolbox, *, stream: bool) -> Messages:
    with anthropic_sdk.Anthropic(base_url=model.anthropic_url, api_key="test", max_retries=0) as client:
        reply = client.messages.create(
            model="scripted", max_tokens=99, messages=messages, tools=anthropic.tools(box), stream=stream
        )
        reply = list(reply) if stream else reply
    return [*anthropic.turn(reply), *anthropic.run_calls(reply, box, actor="triage")]


async def aof_messages(model: ScriptedModel, messages: Messages, box: Toolbox, *, stream: bool) -> Messages:
    async with anthropic_sdk.AsyncAnthropic(
        base_url=model.anthropic_url, api_key="test", max_retries=0
    ) as client:
        reply = await client.messages.create(
            model="scripted", max_tokens=99, messages=messages, tools=anthropic.tools(box), stream=stream
        )
        reply = [event async for event in reply] if stream else reply
    return [*anthropic.turn(reply), *await anthropic.arun_calls(reply, box, actor="triage")]


def answers_in(messages: Messages) -> list[tuple[str, str]]:
    """The id and the text of each answer, in whichever form."""
    found = []
    for message in messages:
        if message.get("role") == "tool":
            found.append((message["tool_call_id"], message["content"]))
        elif message.get("type") == "function_call_output":
            found.append((message["call_id"], message["output"]))
        elif message.get("role") == "user" and isinstance(message["content"], list):
            found += [(block["tool_use_id"], block["content"]) for block in message["content"]]
    return found


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("ask", [chat, achat, responses, aresponses, of_messages, aof_messages])
def test_a_conversation_keeps_the_plan_whatever_the_model_sends(
    ask: Callable[..., Any], stream: bool
) -> None:
    session = Session()
    section = PlanningToolsSection(session=session)
    box = Toolbox([*section.tools(), look_up], session=session)
    messages: Messages = [{"role": "user", "content": "Fix the login."}]
    with ScriptedModel(*SCRIPT) as model:
        while model.turns_left:
            added = ask(model, messages, box, stream=stream)
            messages += asyncio.run(added) if asyncio.iscoroutine(added) else added
        sent = json.loads(json.dumps(model.requests[-1].body))
    found = answers_in(messages)
    ids = [call_id for call_id, _ in found]
    assert [text for _, text in found] == ANSWERS
    assert len(set(ids)) == len(ANSWERS)
    assert answers_in(sent.get("messages") or sent["input"]) == found
    assert plan_text(select_latest(session, Plan) or Plan("", "active")) == (
        "Fix the login (active, 1 of 2 done)\n"
        "S001 done: Reproduce it\n"
        "  - Fails on empty names\n"
        "S002 pending: Fix it"
    )
    calls = select_all(session, ToolCall)
    assert [(call.tool, call.outcome, call.actor) for call in calls] == [
        ("planning_setup_plan", "success", "triage"),
        ("planning_mark_step", "parameter", "triage"),
        ("look_up", "success", "triage"),
        ("planning_finish", "unknown_tool", "triage"),
        ("planning_mark_step", "parameter", "triage"),
        ("planning_mark_step", "success", "triage"),
    ]
    assert [call.call_id for call in calls] == ids
    assert len({call.idempotency_key for call in calls} - {None}) == len(ANSWERS)


@pytest.mark.parametrize("ask", [chat, responses, of_messages])
def test_the_answer_to_arguments_that_are_not_json_is_a_refusal(ask: Callable[..., Any]) -> None:
    session = Session()
    box = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    with ScriptedModel([("planning_clear_plan", "{'objective"), ("planning_read_plan", "[]")]) as model:
        added = ask(model, [{"role": "user", "content": "Go."}], box, stream=True)
    assert [text for _, text in answers_in(added)] == [
        "Refused, nothing changed. arguments are not JSON at line 1, column 2: "
        "Expecting property name enclosed in double quotes; send one JSON object",
        "Refused, nothing changed. arguments must be a JSON object, got an array",
    ]


def bodies(model: ScriptedModel) -> list[Mapping[str, Any]]:
    return [request.body for request in model.requests]


def test_the_definitions_of_a_section_reach_the_model_as_they_are(section: PlanningToolsSection) -> None:
    user: Messages = [{"role": "user", "content": "Go."}]
    with ScriptedModel("a", "b", "c") as model:
        with sdk.OpenAI(base_url=model.openai_url, api_key="test") as client:
            client.chat.completions.create(model="m", messages=user, tools=openai.tools(section, strict=True))
            client.responses.create(
                model="m", input=user, tools=openai.tools(section, strict=True, responses=True)
            )
        with anthropic_sdk.Anthropic(base_url=model.anthropic_url, api_key="test") as messages:
            messages.messages.create(
                model="m", max_tokens=9, messages=user, tools=anthropic.tools(section, strict=True)
            )
        sent = [body["tools"] for body in bodies(model)]
    assert sent == [
        openai.tools(strict=True),
        openai.tools(strict=True, responses=True),
        anthropic.tools(strict=True),
    ]
