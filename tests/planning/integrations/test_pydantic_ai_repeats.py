"""Calls of a response of Pydantic AI that was kept: a later run does not make again what was made."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="needs pydantic-ai: pip install 'session-planning[pydantic-ai]'")

from frameworks import plans_of
from pydantic_ai import Agent, capture_run_messages
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import FunctionModel

from planning import register_plan
from planning.integrations.pydantic_ai import Planning
from planning.plan.commands import SetupPlan
from planning.tools import Tool
from planning.tools.once import RepeatedIds
from session import Session
from session.stores import SqliteStore

ADD = ("planning_add_step", {"steps": ["Write a test"]})
MAIL = ("mail", {"to": "ada"})
Keep = Callable[[Sequence[ModelMessage]], list[ModelMessage]]


class Mails:
    """A session, which has a store or not, and a tool that must not run twice."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.sent, self.kills = path, list[str](), False
        self.memory = Session()
        self.open().dispatch(SetupPlan("Fix the login"))

    def open(self) -> Session:
        session = self.memory if self.path is None else Session(session_id="a", store=SqliteStore(self.path))
        register_plan(session)
        return session

    def mail(self, arguments: dict[str, str]) -> str:
        self.sent.append(arguments["to"])
        if self.kills:
            raise KeyboardInterrupt
        return f"Sent {len(self.sent)}"

    def agent(self, *responses: ModelResponse) -> Agent[Any, Any]:
        given = iter(responses)
        schema = {"type": "object", "properties": {"to": {"type": "string"}}}
        tool = Tool("mail", "Mail.", self.mail, parameters=schema, idempotent=False)
        planning = Planning(self.open(), tools=[tool])
        return Agent(FunctionModel(lambda _messages, _info: next(given)), capabilities=[planning])


@pytest.fixture(params=["memory", "a file"])
def mails(request: pytest.FixtureRequest, tmp_path: Path) -> Mails:
    return Mails(tmp_path / "plans.db" if request.param == "a file" else None)


@pytest.fixture(params=["objects", "JSON", "the last two"])
def keep(request: pytest.FixtureRequest) -> Keep:
    """How a host keeps the messages."""
    if request.param == "objects":
        return list
    if request.param == "the last two":
        return lambda messages: list(messages)[-2:]
    adapter = ModelMessagesTypeAdapter
    return lambda messages: adapter.validate_json(adapter.dump_json(list(messages)))


def calling(*calls: tuple[str, dict[str, Any]], call_id: str = "call_{}") -> ModelResponse:
    return ModelResponse([ToolCallPart(*each, call_id.format(n)) for n, each in enumerate(calls)])


def said() -> ModelResponse:
    return ModelResponse([TextPart("Done.")])


def answered(messages: Sequence[ModelMessage]) -> list[str]:
    parts = (part for message in messages for part in message.parts)
    return [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]


def test_a_run_that_begins_with_a_kept_response_repeats_what_its_calls_answered(
    mails: Mails, keep: Keep
) -> None:
    first = asyncio.run(mails.agent(calling(ADD, MAIL), said()).run("Go")).all_messages()
    for _ in range(2):
        resumed = asyncio.run(mails.agent(said()).run(message_history=keep(first[:2])))
        assert answered(resumed.all_messages()) == ["Added S001.", "Sent 1"]
    assert (plans_of(mails.open()), mails.sent) == ([(0, 1)], ["ada"])


def test_a_run_that_was_killed_in_a_call_does_not_begin_it_again(mails: Mails, keep: Keep) -> None:
    mails.kills = True
    with capture_run_messages() as messages, pytest.raises(KeyboardInterrupt):
        asyncio.run(mails.agent(calling(ADD, MAIL), said()).run("Go"))
    mails.kills = False
    history = next(messages[: n + 1] for n, each in enumerate(messages) if isinstance(each, ModelResponse))
    resumed = asyncio.run(mails.agent(said()).run(message_history=keep(history)))
    assert answered(resumed.all_messages()) == [
        "Added S001.",
        "mail may have taken effect: this call was begun before, and its result is not known. Check what it "
        "did before you call it again.",
    ]
    assert (plans_of(mails.open()), mails.sent) == ([(0, 1)], ["ada"])


def test_turns_of_one_run_and_of_several_are_different_though_their_calls_have_one_id(mails: Mails) -> None:
    for _ in range(2):
        script = [calling(ADD, MAIL, call_id="call_0{}") for _ in range(2)]
        asyncio.run(mails.agent(*script, said()).run("Go"))
    assert (plans_of(mails.open()), mails.sent) == ([(0, 4)], ["ada"] * 4)
    assert mails.open().select_all(RepeatedIds) == ()


def test_a_response_that_a_model_gives_several_times_is_a_turn_each_time(mails: Mails) -> None:
    response = calling(ADD, MAIL)
    for _ in range(2):
        asyncio.run(mails.agent(response, said()).run("Go"))
    asyncio.run(mails.agent(response, response, said()).run("Go"))
    assert (plans_of(mails.open()), mails.sent) == ([(0, 4)], ["ada"] * 4)


def test_a_kept_response_that_names_no_run_has_its_calls_made(mails: Mails) -> None:
    first = asyncio.run(mails.agent(calling(ADD), said()).run("Go")).all_messages()
    for message in first:
        message.run_id = None
    asyncio.run(mails.agent(said()).run(message_history=first[:2]))
    assert plans_of(mails.open()) == [(0, 2)]
