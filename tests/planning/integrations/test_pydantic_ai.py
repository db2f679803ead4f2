"""The plan of an agent of Pydantic AI, in its own loop, and what a message history keeps of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="needs pydantic-ai: pip install 'session-planning[pydantic-ai]'")

from frameworks import HALF, OPEN, READ, SHOP, TABLE, Call, mark, plan_after, plans_of, play, rewinds, text_of
from pydantic_ai import Agent, ModelRetry, capture_run_messages
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel

from planning import PlanPolicy, plan_text, register_plan
from planning.integrations.pydantic_ai import Planning
from planning.plan.commands import SetupPlan
from planning.plan.facts import EvidenceCall
from planning.tools import Tool, ToolResult
from session import Session, ToolFailed, ToolInvoked

RUN, FOLLOWED = (each for each in TABLE if each.needs == "pydantic_ai")
History = Sequence[ModelMessage]


def as_json(messages: History) -> list[ModelMessage]:
    """Messages as an application stores them."""
    return ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(list(messages)))


def bare(messages: History) -> list[ModelMessage]:
    """Messages as an application stores them that keeps no metadata."""
    return [
        replace(each, metadata=None)
        if isinstance(each, ModelResponse)
        else replace(
            each,
            parts=[replace(p, metadata=None) if isinstance(p, ToolReturnPart) else p for p in each.parts],
        )
        for each in messages
    ]


def test_calls_that_failed_are_kept_as_such() -> None:
    def work(on: str) -> str:
        """Work."""
        if on == "error":
            raise ModelRetry("not that")
        return f"worked on {on}"

    session = Session()
    agent = RUN.agent(session, (), PlanPolicy(evidence="required"), others=[work])
    play(agent, [[SHOP], [("work", {"on": on}) for on in ("error", "shelves")]])
    assert {*session.select_all(EvidenceCall)} == {  # the calls ran at the same time
        EvidenceCall("work", "call_2", False),
        EvidenceCall("work", "call_3", True),
    }
    (failed,), *_, worked = session.select_all(ToolFailed), *session.select_all(ToolInvoked)
    assert failed.result == ToolResult(False, "not that", error="not that")
    assert worked.result == ToolResult(True, "worked on shelves")


TURNS: list[list[Call]] = [
    [SHOP, mark("S001", "in_progress")],
    [mark("S01x")],
    [mark("S001"), ("planning_add_step", {"steps": [{"title": "Paint it"}]}), mark("S002")],
]


def whole(messages: History) -> Iterator[History]:
    """Each beginning of a history that ends with a turn's results, or with the model's text."""
    for end in range(len(messages), 0, -1):
        calls = isinstance(messages[end - 1], ModelResponse) and messages[end - 1].parts
        if not any(isinstance(part, ToolCallPart) for part in calls or ()):
            yield messages[:end]


def plan_made_by(messages: History) -> str:
    """The plan that the answered calls of a history make, in a session of its own."""
    parts = [part for each in messages for part in each.parts]
    answered = {part.tool_call_id for part in parts if isinstance(part, ToolReturnPart)}
    calls = [part for part in parts if isinstance(part, ToolCallPart) and part.tool_call_id in answered]
    return plan_after((call.tool_name, call.args) for call in calls)


@pytest.mark.parametrize("kind", ["history", "memory", "a file", "another session", "json"])
def test_a_truncated_history_gives_the_plan_of_that_point(kind: str, stored: Session) -> None:
    session = None if kind in {"history", "json"} else stored if kind == "a file" else Session()
    agent = FOLLOWED.agent(session)
    messages = play(agent, TURNS).after
    messages = as_json(messages) if kind == "json" else messages
    for history in [*whole(messages), *reversed(list(whole(messages)))]:
        if kind == "another session":
            session = Session()
            agent = RUN.agent(session)
        expected = plan_made_by(history)
        refused = "Refused, nothing changed. no plan yet; call planning_setup_plan first"
        assert play(agent, [[READ]], history).texts == [expected or refused]
        plan = Planning(session).plan_of(history)
        assert ("" if plan is None else plan_text(plan)) == expected


LOST = "The plan of this conversation is lost: its messages were shortened, or lost their metadata."


class TestHostSession:
    def test_a_run_that_was_killed_has_not_its_work_undone_by_the_next(self) -> None:
        session = Session()
        agent = RUN.agent(session)
        start = play(agent, [[SHOP]]).after
        play(agent, [[mark("S001")]], start)  # nothing is kept of this run
        talk = play(agent, [[mark("S002", "in_progress")]], start)
        plan = HALF.replace("S002 pending", "S002 in_progress")
        told = "The plan has changed since your last turn: S001 done."
        assert [each.last for each in talk.requests] == [f"{HALF}\n\n{told}", plan]
        assert (text_of(session), rewinds(session)) == (plan, 0)

    def test_following_a_history_that_lost_its_metadata_goes_nowhere(self) -> None:
        session = Session()
        agent = FOLLOWED.agent(session)
        play(agent, [], bare(play(agent, [[SHOP], [mark("S001")]]).after))
        assert (text_of(session), rewinds(session)) == (HALF, 0)


class TestOwnHistory:
    @pytest.mark.parametrize("kept", [0, 3])
    def test_a_history_that_lost_its_metadata_keeps_the_plan(self, kept: int) -> None:
        agent, planning = RUN.agent(None), Planning()
        messages = play(agent, [[SHOP, mark("S01x")], [mark("S001")], [READ]]).after
        history = [*messages[:kept], *bare(messages[kept:])]
        assert text_of(planning.session_of(history)) == HALF
        talk = play(agent, [[READ]], history)
        assert (talk.texts, text_of(planning.session_of(talk.after))) == ([HALF], HALF)

    def test_a_history_that_lost_its_metadata_is_read_with_its_policy(self) -> None:
        policy = PlanPolicy(text="unicode")
        agent = RUN.agent(None, (), policy)
        history = bare(play(agent, [[("planning_setup_plan", {"objective": "Den Laden öffnen"})]]).after)
        read = text_of(Planning(policy=policy).session_of(history))
        assert read == "Den Laden öffnen (active, 0 of 0 done)"

    def test_the_last_messages_keep_the_plan_when_the_others_are_summarised(self) -> None:
        agent = RUN.agent(None)
        messages = play(agent, [], play(agent, [[SHOP], [mark("S001")]]).after).after
        last = as_json([ModelRequest([UserPromptPart("So far: ...")]), *messages[-2:]])
        assert play(agent, [[READ]], last).texts == [HALF]

    @pytest.mark.parametrize("kind", ["shortened", "edited", "without the call"])
    def test_a_plan_that_is_lost_is_told_at_once(self, kind: str) -> None:
        agent = RUN.agent(None)
        history = bare(play(agent, [[SHOP], [mark("S001")]]).after)
        if kind == "edited":
            history[1] = ModelResponse([ToolCallPart("planning_clear_plan", {}, "call_1")])
        else:
            history = history[3 if kind == "shortened" else 4 :]
        with pytest.warns(UserWarning) as caught:
            talk = play(agent, [[SHOP]], history)
        assert [str(each.message) for each in caught] == [
            f"{LOST} Keep them whole, or give Planning a session."
        ]
        assert [each.last for each in talk.requests] == [LOST, OPEN]
        assert text_of(Planning().session_of(talk.after)) == OPEN


def test_a_spec_names_it_with_options() -> None:
    for spec in ("Planning", {"Planning": "plan-act-reflect"}, {"Planning": {"actor": "clerk"}}):
        agent: Agent[Any, str] = Agent.from_spec(
            {"model": "test", "capabilities": [spec]}, custom_capability_types=[Planning]
        )
        with agent.override(model=TestModel(call_tools=["planning_setup_plan"])):
            messages = asyncio.run(agent.run("Go")).all_messages()
        assert plans_of(Planning().session_of(messages)) == [(0, 1)]
    assert [each.get_toolset().id for each in (Planning(), Planning(id="mine"))] == ["planning", "mine"]


ADD = ("planning_add_step", {"steps": ["Write a test"]})
MAIL = ("mail", {"to": "ada"})
Keep = Callable[[History], list[ModelMessage]]


class Mails:
    """A session, which has a store or not, and a tool that must not run twice."""

    def __init__(self, opens: Callable[[], Session]) -> None:
        self.open, self.sent, self.kills = opens, list[str](), False
        self.open().dispatch(SetupPlan("Fix the login"))

    def mail(self, arguments: dict[str, str]) -> str:
        self.sent.append(arguments["to"])
        if self.kills:
            raise KeyboardInterrupt
        return f"Sent {len(self.sent)}"

    def agent(self, *responses: ModelResponse) -> Agent[Any, Any]:
        given = iter([*responses, ModelResponse([TextPart("Done.")])])
        schema = {"type": "object", "properties": {"to": {"type": "string"}}}
        tool = Tool("mail", "Mail.", self.mail, parameters=schema, idempotent=False)
        planning = Planning(self.open(), tools=[tool])
        return Agent(FunctionModel(lambda _messages, _info: next(given)), capabilities=[planning])


@pytest.fixture(params=["memory", "a file"])
def mails(request: pytest.FixtureRequest, opens: Callable[[], Session]) -> Mails:
    memory = Session()
    register_plan(memory)
    return Mails(opens if request.param == "a file" else lambda: memory)


@pytest.fixture(params=["objects", "JSON", "the last two"])
def keep(request: pytest.FixtureRequest) -> Keep:
    """How a host keeps the messages."""
    if request.param == "objects":
        return list
    if request.param == "the last two":
        return lambda messages: list(messages)[-2:]
    return as_json


def calling(*calls: tuple[str, dict[str, Any]]) -> ModelResponse:
    return ModelResponse([ToolCallPart(*each, f"call_{n}") for n, each in enumerate(calls)])


def said(messages: History) -> list[Any]:
    """What the calls of a conversation answered."""
    return [part.content for each in messages for part in each.parts if isinstance(part, ToolReturnPart)]


def test_a_run_that_begins_with_a_kept_response_repeats_its_answers(mails: Mails, keep: Keep) -> None:
    first = asyncio.run(mails.agent(calling(ADD, MAIL)).run("Go")).all_messages()
    for _ in range(2):
        resumed = asyncio.run(mails.agent().run(message_history=keep(first[:2])))
        assert said(resumed.all_messages()) == ["Added S001.", "Sent 1"]
    assert (plans_of(mails.open()), mails.sent) == ([(0, 1)], ["ada"])


def test_a_run_that_was_killed_in_a_call_does_not_begin_it_again(mails: Mails, keep: Keep) -> None:
    mails.kills = True
    with capture_run_messages() as messages, pytest.raises(KeyboardInterrupt):
        asyncio.run(mails.agent(calling(ADD, MAIL)).run("Go"))
    mails.kills = False
    history = next(messages[: n + 1] for n, each in enumerate(messages) if isinstance(each, ModelResponse))
    resumed = asyncio.run(mails.agent().run(message_history=keep(history)))
    assert said(resumed.all_messages()) == [
        "Added S001.",
        "mail may have taken effect: this call was begun before, and its result is not known. Check what it "
        "did before you call it again.",
    ]
    assert (plans_of(mails.open()), mails.sent) == ([(0, 1)], ["ada"])


def test_a_response_that_a_model_gives_several_times_is_a_turn_each_time(mails: Mails) -> None:
    response = calling(ADD, MAIL)
    for _ in range(2):
        asyncio.run(mails.agent(response).run("Go"))
    asyncio.run(mails.agent(response, response).run("Go"))
    assert (plans_of(mails.open()), mails.sent) == ([(0, 4)], ["ada"] * 4)


def test_a_kept_response_that_names_no_run_has_its_calls_made(mails: Mails) -> None:
    first = asyncio.run(mails.agent(calling(ADD)).run("Go")).all_messages()
    for message in first:
        message.run_id = None
    asyncio.run(mails.agent().run(message_history=first[:2]))
    assert plans_of(mails.open()) == [(0, 2)]
