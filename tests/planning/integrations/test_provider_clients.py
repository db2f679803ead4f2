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
from frameworks import HALF, SHOP, mark, text_of, toolbox

from planning import Toolbox
from planning.integrations import anthropic, openai
from planning.testing import ScriptedModel
from planning.tools import tool
from planning.tools.ledger import ToolCall
from session import Session

sdk = pytest.importorskip("openai", reason="needs the openai client: pip install '.[openai]'")
anthropic_sdk = pytest.importorskip(
    "anthropic", reason="needs the anthropic client: pip install '.[anthropic]'"
)

Messages = list[Any]


@tool
async def look_up(word: str) -> str:
    """Looks a word up."""
    await asyncio.sleep(0)
    return f"{word}: a word"


SCRIPT: list[Any] = [[SHOP, ("look_up", {"word": "shop"}), mark("S009")], [mark("S001")], "A room is rented."]
ANSWERS = [
    "Plan set: S001 to S002. Next: S001 Rent a room",
    "shop: a word",
    "Refused, nothing changed. step_id: the plan has no step S009; its steps are S001 to S002",
    "S001 done. Next: S002 Buy shelves",
]


@attrs.frozen
class Api:
    """An API of a provider with its own client."""

    module: Any
    client: Callable[..., Any]
    create: str
    conversation: str
    tools: Callable[[Any], list[Any]]
    more: Mapping[str, Any] = {}

    async def ask(self, model: ScriptedModel, messages: Messages, box: Toolbox, stream: bool) -> Messages:
        url = model.openai_url if self.module is openai else model.anthropic_url
        sent = {"model": "scripted", "tools": self.tools(box), "stream": stream, **self.more}
        async with self.client(base_url=url, api_key="test", max_retries=0) as client:
            reply = await attrgetter(self.create)(client)(**sent, **{self.conversation: messages})
            reply = [each async for each in reply] if stream else reply
        return [*self.module.turn(reply), *await self.module.arun_calls(reply, box, actor="clerk")]


CHAT = Api(openai, sdk.AsyncOpenAI, "chat.completions.create", "messages", openai.tools)
ITEMS = Api(openai, sdk.AsyncOpenAI, "responses.create", "input", partial(openai.tools, responses=True))
BLOCKS = Api(
    *(anthropic, anthropic_sdk.AsyncAnthropic, "messages.create", "messages", anthropic.tools),
    {"max_tokens": 99},
)


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


@pytest.mark.parametrize("api", [CHAT, ITEMS, BLOCKS], ids=["chat", "responses", "messages"])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_conversation_keeps_the_plan_whatever_the_model_sends(api: Api, stream: bool) -> None:
    session = Session()
    box = toolbox(session, [look_up])
    messages: Messages = [{"role": "user", "content": "Open the shop."}]
    with ScriptedModel(*SCRIPT) as model:
        while model.turns_left:
            messages += await api.ask(model, messages, box, stream)
        sent = json.loads(json.dumps(model.requests[-1].body))
    found, calls = answers_in(messages), session.select_all(ToolCall)
    assert [text for _, text in found] == ANSWERS
    assert (answers_in(sent[api.conversation]), sent["tools"]) == (found, api.tools(box))
    assert text_of(session) == HALF
    assert {change.actor for change in session.history()} == {"clerk"}
    assert [each.call_id for each in calls] == [call_id for call_id, _ in found]
    assert len({each.idempotency_key for each in calls} - {None}) == len(ANSWERS)
