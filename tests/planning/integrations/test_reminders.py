"""The reminder in a request: added to its last message, behind what is cached, and not kept."""

from __future__ import annotations

import asyncio
import json
from copy import deepcopy
from datetime import UTC, datetime
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from frameworks import HALF, OPEN, READ, SHOP, mark, planned, toolbox
from pydantic import BaseModel
from syrupy.assertion import SnapshotAssertion

from planning import PlanningToolsSection
from planning.integrations import anthropic, openai
from planning.testing import ScriptedModel
from planning.tools.errors import ContextInvalid
from session import Session

CACHED = {"type": "text", "text": "Go", "cache_control": {"type": "ephemeral"}}
IMAGE = SimpleNamespace(type="image_url", image_url={"url": "data:"})
USER = {"role": "user", "content": OPEN}
LAST: list[dict[str, Any]] = [
    {"role": "user", "content": "Go"},
    {"role": "user", "content": [CACHED]},
    {"role": "user", "content": (IMAGE,)},
    {"role": "tool", "tool_call_id": "1", "content": "ok"},
    {"role": "tool", "tool_call_id": "1"},
    {"type": "function_call_output", "call_id": "1", "output": "ok"},
    {"type": "custom_tool_call_output", "call_id": "1", "output": []},
    *({"role": "user", "content": [{"type": f"input_{kind}"}]} for kind in ("text", "image", "file")),
]


def test_it_is_added_to_the_last_message_of_the_user_or_of_a_tool(snapshot: SnapshotAssertion) -> None:
    shown = ""
    for last in LAST:
        messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}, last]
        before = deepcopy(messages)
        *kept, sent = openai.with_reminder(messages, planned())
        assert (kept, messages) == (before[:-1], before)
        shown += json.dumps(sent, default=vars) + "\n"
    assert shown == snapshot
    assert anthropic.with_reminder is openai.with_reminder


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "system", "content": "Be brief."}],
        [{"role": "user", "content": "Go"}, {"role": "assistant", "content": "Done."}],
        [{"type": "reasoning", "summary": []}],
        [{"type": "computer_call_output", "call_id": "1", "output": {"type": "computer_screenshot"}}],
        [{"role": "user", "content": {"unknown": "form"}}],
    ],
)
def test_behind_anything_else_it_is_a_message_of_the_user(messages: list[Any]) -> None:
    assert openai.with_reminder(tuple(messages), planned()) == [*messages, USER]


def test_the_last_message_may_be_a_clients_object_or_the_text_of_the_user() -> None:
    assert openai.with_reminder([SimpleNamespace(role="user", content="Go")], planned()) == [
        {"role": "user", "content": f"Go\n\n{OPEN}"}
    ]
    assert openai.with_reminder("Go", planned()) == [{"role": "user", "content": f"Go\n\n{OPEN}"}]


def test_what_a_clients_object_holds_is_sent_as_json() -> None:
    class Message(BaseModel):
        role: str
        content: str
        sent: datetime
        count: int
        name: str = "a default that was not sent"

    sent = datetime(2026, 1, 2, tzinfo=UTC)
    unchecked: Any = {"role": "user", "content": "Go", "sent": sent, "count": "many"}
    shown = openai.with_reminder([Message.model_construct(**unchecked)], planned())
    assert shown == [{**unchecked, "content": f"Go\n\n{OPEN}", "sent": "2026-01-02T00:00:00Z"}]


def test_without_an_active_plan_the_messages_stay_as_they_are() -> None:
    messages: list[Any] = [{"role": "user", "content": "Go"}]
    section = PlanningToolsSection(session=Session())
    sent = openai.with_reminder(messages, section)
    assert sent == messages
    assert sent is not messages
    toolbox(section.session, ()).call(*SHOP)
    toolbox(section.session, ()).call("planning_clear_plan", {})
    assert openai.with_reminder(messages, section) == messages


def test_the_session_of_a_request_may_be_given() -> None:
    section = PlanningToolsSection(session=lambda: None)
    assert openai.with_reminder([], section, session=planned().session) == [USER]
    with pytest.raises(ContextInvalid, match="no session for this call"):
        openai.with_reminder([], section)


class TestPydanticAI:
    """Some models get a request as one message, and others a message for each of its parts."""

    def run(self, *script: Any, tools: Any = ()) -> list[Any]:
        """The messages of each request of two runs."""
        pytest.importorskip("pydantic_ai", reason="needs pydantic-ai")
        from openai import AsyncOpenAI
        from pydantic_ai import Agent
        from pydantic_ai.models.openai import OpenAIChatModel
        from pydantic_ai.providers.openai import OpenAIProvider

        from planning.integrations.pydantic_ai import Planning

        async def main(url: str) -> None:
            async with AsyncOpenAI(base_url=url, api_key="test") as client:
                model = OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client))
                agent = Agent(model, capabilities=[Planning(Session())], tools=tools)
                result = await agent.run("Go")
                await agent.run("Go on", message_history=result.all_messages())

        with ScriptedModel(*script, "Done.", "Again.") as server:
            asyncio.run(main(server.openai_url))
        return [request.body["messages"] for request in server.requests]

    def test_a_server_for_which_each_part_is_a_message_reads_it_in_the_last_one(self) -> None:
        requests = self.run([SHOP], [mark("S07")], [mark("S001"), READ])
        for messages in requests:
            roles = [each["role"] for each in messages if each["role"] != "system"]
            assert ("tool", "user") not in pairwise(roles)
            assert ("user", "user") not in pairwise(roles)
        first, second, third, fourth, again = (messages[-1]["content"] for messages in requests)
        assert first == "Go"
        assert second == f"Plan set: S001 to S002. Next: S001 Rent a room\n\n{OPEN}"
        refusal = "Refused, nothing changed. step_id: the plan has no step S07; its steps are S001 to S002"
        assert json.loads(third) == {"error": f"{refusal}\n\n{OPEN}"}
        assert fourth == f"{HALF}\n\n{HALF}"
        assert [each["text"] for each in again] == ["Go on", HALF]

    @pytest.mark.parametrize(
        ("returned", "read"), [({"rooms": [1, 2]}, '{"rooms":[1,2]}'), (["a"], '["a"]'), (None, "")]
    )
    def test_what_another_tool_returned_is_read_as_before(self, returned: Any, read: str) -> None:
        def look() -> Any:
            """Look around."""
            return returned

        requests = self.run([SHOP], [("look", {})], tools=[look])
        assert requests[2][-1]["content"] == "\n\n".join(filter(None, [read, OPEN]))

    def test_a_tool_that_returns_an_image_keeps_it(self) -> None:
        def look() -> Any:
            """Look around."""
            from pydantic_ai import BinaryContent

            return ["A room", BinaryContent(b"png", media_type="image/png", identifier="room")]

        requests = self.run([SHOP], [("look", {})], tools=[look])
        *_, result = (each for each in requests[2] if each["role"] == "tool")
        assert json.loads(result["content"]) == ["A room", "See file room.", OPEN]
        assert [part["type"] for part in requests[2][-1]["content"]] == ["text", "image_url", "text"]

    @pytest.mark.parametrize(
        "name", ["anthropic", "bedrock", "google", "google-cloud", "function", "test", "openai"]
    )
    def test_a_system_that_takes_parts_has_it_as_a_part_behind_what_is_cached(self, name: str) -> None:
        pydantic_ai = pytest.importorskip("pydantic_ai", reason="needs pydantic-ai")
        from pydantic_ai.models.function import FunctionModel

        from planning.integrations.pydantic_ai import Planning

        def play(messages: Any, _info: Any) -> Any:
            *kept, last = messages[-1].parts
            mark, text = last.content[-2:] if last.part_kind == "user-prompt" else ("", OPEN)
            assert (getattr(mark, "kind", ""), text) == ("cache-point" if mark else "", OPEN)
            seen.append([part.part_kind for part in (*kept, last)])
            calls = [pydantic_ai.ToolCallPart(*READ)] if len(seen) == 1 else [pydantic_ai.TextPart("Done.")]
            return pydantic_ai.ModelResponse(calls)

        seen = list[list[str]]()
        model = type("Named", (FunctionModel,), {"system": name})(play)
        agent = pydantic_ai.Agent(model, capabilities=[Planning(section=planned())])
        asyncio.run(agent.run("Go"))
        assert seen == [["user-prompt"], ["tool-return", *["user-prompt"] * (name != "openai")]]
