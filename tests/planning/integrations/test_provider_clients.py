"""The integrations of openai and anthropic with the providers' own clients, against a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

import attrs
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


@attrs.frozen
class Api:
    """An API of a provider with its own client."""

    module: Any
    clients: tuple[Callable[..., Any], Callable[..., Any]]
    create: str
    conversation: str
    tools: Callable[[Any], list[Any]]
    more: Mapping[str, Any] = {}

    def ask(self, model: ScriptedModel, messages: Messages, box: Toolbox, *, stream: bool) -> Messages:
        with self.clients[0](**self.options(model)) as client:
            reply = attrgetter(self.create)(client)(**self.request(messages, box, stream))
            reply = list(reply) if stream else reply
        return [*self.module.turn(reply), *self.module.run_calls(reply, box, actor="triage")]

    async def aask(self, model: ScriptedModel, messages: Messages, box: Toolbox, *, stream: bool) -> Messages:
        async with self.clients[1](**self.options(model)) as client:
            reply = await attrgetter(self.create)(client)(**self.request(messages, box, stream))
            reply = [each async for each in reply] if stream else reply
        return [*self.module.turn(reply), *await self.module.arun_calls(reply, box, actor="triage")]

    def options(self, model: ScriptedModel) -> dict[str, Any]:
        url = model.openai_url if self.module is openai else model.anthropic_url
        return {"base_url": url, "api_key": "test", "max_retries": 0}

    def request(self, messages: Messages, box: Toolbox, stream: bool) -> dict[str, Any]:
        sent = {"model": "scripted", "tools": self.tools(box), "stream": stream}
        return {**sent, self.conversation: messages, **self.more}


OPENAI = (sdk.OpenAI, sdk.AsyncOpenAI)
ANTHROPIC = (anthropic_sdk.Anthropic, anthropic_sdk.AsyncAnthropic)
APIS = {
    "chat": Api(openai, OPENAI, "chat.completions.create", "messages", openai.tools),
    "responses": Api(openai, OPENAI, "responses.create", "input", partial(openai.tools, responses=True)),
    "messages": Api(anthropic, ANTHROPIC, "messages.create", "messages", anthropic.tools, {"max_tokens": 99}),
}


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


@pytest.mark.parametrize("api", APIS.values(), ids=APIS)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_conversation_keeps_the_plan_whatever_the_model_sends(
    api: Api, stream: bool, is_async: bool
) -> None:
    session = Session()
    section = PlanningToolsSection(session=session)
    box = Toolbox([*section.tools(), look_up], session=session)
    messages: Messages = [{"role": "user", "content": "Fix the login."}]
    with ScriptedModel(*SCRIPT) as model:
        while model.turns_left:
            ask = (model, messages, box)
            messages += (
                asyncio.run(api.aask(*ask, stream=stream)) if is_async else api.ask(*ask, stream=stream)
            )
        sent = json.loads(json.dumps(model.requests[-1].body))
    found = answers_in(messages)
    ids = [call_id for call_id, _ in found]
    assert [text for _, text in found] == ANSWERS
    assert len(set(ids)) == len(ANSWERS)
    assert answers_in(sent[api.conversation]) == found
    assert sent["tools"] == api.tools((*section.tools(), look_up))
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
