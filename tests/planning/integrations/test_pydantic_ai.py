"""The plan of an agent of Pydantic AI, in its own loop, and what a message history keeps of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="needs pydantic-ai: pip install 'session-planning[pydantic-ai]'")

from frameworks import HALF, OPEN, READ, SHOP, mark, plan_after, plans_of, rewinds, text_of
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
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from planning import PlanPolicy, plan_text, register_plan
from planning.integrations._pydantic_messages import _Unchecked
from planning.integrations.pydantic_ai import Planning
from planning.plan.commands import SetupPlan
from planning.plan.facts import EvidenceCall
from planning.tools import Tool
from planning.tools.once import RepeatedIds
from session import Session, SnapshotError

Turn = str | list[tuple[str, Any]]


class Script:
    """Turns to play, one after the other, and what the model was sent."""

    def __init__(self, *turns: Turn) -> None:
        self.turns = list(turns)
        self.requests: list[list[ModelMessage]] = []
        self.infos: list[AgentInfo] = []

    def play(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.requests.append(list(messages))
        self.infos.append(info)
        turn = self.turns.pop(0)
        if isinstance(turn, str):
            return ModelResponse([TextPart(turn)])
        number = len(self.requests)
        return ModelResponse(
            [ToolCallPart(name, args, f"c{number}.{place}") for place, (name, args) in enumerate(turn, 1)]
        )


def agent_of(planning: Planning, *turns: Turn, **options: Any) -> tuple[Agent[Any, str], Script]:
    script = Script(*turns)
    return Agent(FunctionModel(script.play), capabilities=[planning], **options), script


def run(agent: Agent[Any, str], prompt: str = "Go", **options: Any) -> list[ModelMessage]:
    async def main() -> list[ModelMessage]:
        messages: list[ModelMessage] = (await agent.run(prompt, **options)).all_messages()
        return messages

    return asyncio.run(main())


def answers(messages: list[ModelMessage]) -> list[tuple[str, str, Any]]:
    return [
        (part.tool_call_id, part.outcome, part.content)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]


def test_calls_that_failed_are_kept_as_such() -> None:
    def work(on: str) -> str:
        """Work."""
        if on == "error":
            raise ModelRetry("not that")
        return f"worked on {on}"

    session = Session()
    works: Turn = [("work", {"on": on}) for on in ("error", "shelves")]
    planning = Planning(session, policy=PlanPolicy(evidence="required"))
    run(agent_of(planning, [SHOP], works, "End.", tools=[work], retries=2)[0])
    assert {*session.select_all(EvidenceCall)} == {  # the calls ran at the same time
        EvidenceCall("work", "c2.1", False),
        EvidenceCall("work", "c2.2", True),
    }


class TestMessageHistory:
    TURNS: tuple[Turn, ...] = (
        [SHOP, mark("S001", "in_progress")],
        [mark("S01x")],
        [mark("S001"), ("planning_add_step", {"steps": [{"title": "Paint it"}]}), mark("S002")],
        "Nearly done.",
    )

    def plan_of(self, messages: list[ModelMessage]) -> str:
        """The plan that the answered calls of a history make, in a session of its own."""
        answered = {call_id for call_id, _, _ in answers(messages)}
        calls = [p for each in messages for p in each.parts if isinstance(p, ToolCallPart)]
        return plan_after((p.tool_name, p.args) for p in calls if p.tool_call_id in answered)

    def whole(self, messages: list[ModelMessage]) -> Iterator[list[ModelMessage]]:
        """Each beginning of a history that ends with a turn's results, or with the model's text."""
        for end in range(len(messages), 0, -1):
            calls = isinstance(messages[end - 1], ModelResponse) and messages[end - 1].parts
            if not any(isinstance(part, ToolCallPart) for part in calls or ()):
                yield messages[:end]

    @pytest.mark.parametrize("kind", ["history", "memory", "a file", "another session", "json"])
    def test_a_truncated_history_gives_the_plan_of_that_point(self, kind: str, stored: Session) -> None:
        session = None if kind in {"history", "json"} else stored if kind == "a file" else Session()
        planning = Planning(session, follow_history=True)
        agent, _ = agent_of(planning, *self.TURNS)
        messages = run(agent)
        if kind == "json":
            planning = Planning()
            messages = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(messages))
        for history in [*self.whole(messages), *reversed(list(self.whole(messages)))]:
            planning = Planning(Session()) if kind == "another session" else planning
            agent, _ = agent_of(planning, [READ], "Done.")
            result = run(agent, "Go on", message_history=history)
            expected = self.plan_of(history)
            refused = "Refused, nothing changed. no plan yet; call planning_setup_plan first"
            assert answers(result)[-1][2] == (expected or refused)
            plan = planning.plan_of(history)
            assert ("" if plan is None else plan_text(plan)) == expected


@pytest.mark.parametrize(
    ("sent", "kept"),
    [(str, "[1"), (str.encode, b"[1"), (lambda text: bytearray(text.encode()), b"[1")],
    ids=["text", "bytes", "bytearray"],
)
def test_arguments_are_read_of_all_that_a_model_may_send(sent: Any, kept: Any) -> None:
    read = _Unchecked().validate_json
    assert read(sent('{"step_id": "S001"}')) == {"step_id": "S001"}
    assert [*read(sent("[1")).values()] == [kept]


LOST = "The plan of this conversation is lost: its messages were shortened, or lost their metadata."


def reminder_of(request: Sequence[ModelMessage]) -> str:
    """The last text of a request."""
    part = request[-1].parts[-1]
    content = part.content if isinstance(part, UserPromptPart) else ""
    return content if isinstance(content, str) else str(content[-1])


def bare(messages: list[ModelMessage]) -> list[ModelMessage]:
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


class TestHostSession:
    def test_a_run_that_was_killed_has_not_its_work_undone_by_the_next(self) -> None:
        session = Session()
        agent, script = agent_of(Planning(session), [SHOP], "Done.", [mark("S001")])
        messages = run(agent)
        with pytest.raises(IndexError):  # the script ends after the mark, as a process does
            run(agent, "Go on", message_history=messages)
        script.turns = [[mark("S002", "in_progress")], "Done."]
        run(agent, "Go on", message_history=messages)
        assert text_of(session).splitlines()[1:] == [
            "S001 done: Rent a room",
            "S002 in_progress: Buy shelves",
        ]
        assert rewinds(session) == 0
        told = "The plan has changed since your last turn: S001 done."
        assert reminder_of(script.requests[-2]) == f"{HALF}\n\n{told}"
        assert told not in reminder_of(script.requests[-1])

    def test_following_a_history_that_lost_its_metadata_goes_nowhere(self) -> None:
        session = Session()
        agent, script = agent_of(Planning(session, follow_history=True), [SHOP], [mark("S001")], "Done.")
        messages = run(agent)
        script.turns = ["Done."]
        run(agent, "Go on", message_history=bare(messages))
        assert (text_of(session), rewinds(session)) == (HALF, 0)


class TestOwnHistory:
    @pytest.mark.parametrize("whole", [0, 3])
    def test_a_history_that_lost_its_metadata_keeps_the_plan(self, whole: int) -> None:
        planning = Planning()
        agent, script = agent_of(planning, [SHOP, mark("S01x")], [mark("S001")], [READ], "Done.")
        messages = run(agent)
        history = [*messages[:whole], *bare(messages[whole:])]
        assert text_of(planning.session_of(history)) == HALF
        script.turns = [[READ], "Done."]
        result = run(agent, "Go on", message_history=history)
        assert answers(result)[-1][2] == HALF
        assert text_of(planning.session_of(result)) == HALF

    def test_a_history_that_lost_its_metadata_is_read_with_its_policy(self) -> None:
        planning = Planning(policy=PlanPolicy(text="unicode"))
        agent, _ = agent_of(planning, [("planning_setup_plan", {"objective": "Den Laden öffnen"})], "Done.")
        assert text_of(planning.session_of(bare(run(agent)))) == "Den Laden öffnen (active, 0 of 0 done)"

    def test_the_last_messages_keep_the_plan_when_the_others_are_summarised(self) -> None:
        planning = Planning()
        agent, script = agent_of(planning, [SHOP], [mark("S001")], "Done.", "Hm.")
        messages = run(agent)
        messages = run(agent, "And?", message_history=messages)
        last: list[ModelMessage] = [ModelRequest([UserPromptPart("So far: ...")]), *messages[-2:]]
        last = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(last))
        script.turns = [[READ], "Done."]
        assert answers(run(agent, "Go on", message_history=last))[-1][2] == HALF

    @pytest.mark.parametrize("kind", ["shortened", "edited", "without the call"])
    def test_a_plan_that_is_lost_is_told_at_once(self, kind: str) -> None:
        planning = Planning()
        agent, script = agent_of(planning, [SHOP], [mark("S001")], "Done.")
        history = bare(run(agent))
        if kind == "edited":
            history[1] = ModelResponse([ToolCallPart("planning_clear_plan", {}, "c1.1")])
        else:
            history = history[3 if kind == "shortened" else 4 :]
        script.turns = [[SHOP], "Done."]
        with pytest.warns(UserWarning) as caught:
            result = run(agent, "Go on", message_history=history)
        assert [str(each.message) for each in caught] == [
            f"{LOST} Keep them whole, or give Planning a session."
        ]
        assert reminder_of(script.requests[-2]) == LOST
        assert reminder_of(script.requests[-1]) == OPEN
        assert text_of(planning.session_of(result)) == OPEN

    def test_metadata_that_is_not_a_position_is_refused(self) -> None:
        agent, _ = agent_of(Planning(), [SHOP], "Done.")
        messages = run(agent)
        part = messages[2].parts[0]
        assert isinstance(part, ToolReturnPart)
        part.metadata = {"planning": {"plan": ["Mine", "active", []]}}
        with pytest.raises(SnapshotError) as caught:
            run(agent, "Go on", message_history=messages[:3])
        assert str(caught.value) == (
            "planning in the agent's state is not a position of a session, but a value of type dict: "
            "remove it, or go back to an earlier checkpoint"
        )


class TestSpec:
    def test_by_its_name_and_with_options(self) -> None:
        for spec in ("Planning", {"Planning": "plan-act-reflect"}, {"Planning": {"actor": "clerk"}}):
            agent: Agent[Any, str] = Agent.from_spec(
                {"model": "test", "capabilities": [spec]}, custom_capability_types=[Planning]
            )
            with agent.override(model=TestModel(call_tools=["planning_setup_plan"])):
                messages = run(agent)
            assert [each[1] for each in answers(messages)] == ["success"]
            assert plans_of(Planning().session_of(messages)) == [(0, 1)]

    def test_an_unknown_strategy_is_refused(self) -> None:
        specs = [{"Planning": "react-ish"}]
        with pytest.raises(ValueError, match="strategy: 'react-ish' is unknown; ") as caught:
            Agent.from_spec({"model": "test", "capabilities": specs}, custom_capability_types=[Planning])
        assert str(caught.value).endswith(
            "send one of react, plan-act-reflect, goal-decompose-route-synthesise"
        )


ADD = ("planning_add_step", {"steps": ["Write a test"]})
MAIL = ("mail", {"to": "ada"})
Keep = Callable[[Sequence[ModelMessage]], list[ModelMessage]]


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
    adapter = ModelMessagesTypeAdapter
    return lambda messages: adapter.validate_json(adapter.dump_json(list(messages)))


def calling(*calls: tuple[str, dict[str, Any]], call_id: str = "call_{}") -> ModelResponse:
    return ModelResponse([ToolCallPart(*each, call_id.format(n)) for n, each in enumerate(calls)])


def test_a_run_that_begins_with_a_kept_response_repeats_what_its_calls_answered(
    mails: Mails, keep: Keep
) -> None:
    first = asyncio.run(mails.agent(calling(ADD, MAIL)).run("Go")).all_messages()
    for _ in range(2):
        resumed = asyncio.run(mails.agent().run(message_history=keep(first[:2])))
        assert [text for *_, text in answers(resumed.all_messages())] == ["Added S001.", "Sent 1"]
    assert (plans_of(mails.open()), mails.sent) == ([(0, 1)], ["ada"])


def test_a_run_that_was_killed_in_a_call_does_not_begin_it_again(mails: Mails, keep: Keep) -> None:
    mails.kills = True
    with capture_run_messages() as messages, pytest.raises(KeyboardInterrupt):
        asyncio.run(mails.agent(calling(ADD, MAIL)).run("Go"))
    mails.kills = False
    history = next(messages[: n + 1] for n, each in enumerate(messages) if isinstance(each, ModelResponse))
    resumed = asyncio.run(mails.agent().run(message_history=keep(history)))
    assert [text for *_, text in answers(resumed.all_messages())] == [
        "Added S001.",
        "mail may have taken effect: this call was begun before, and its result is not known. Check what it "
        "did before you call it again.",
    ]
    assert (plans_of(mails.open()), mails.sent) == ([(0, 1)], ["ada"])


def test_turns_of_one_run_and_of_several_are_different_though_their_calls_have_one_id(mails: Mails) -> None:
    for _ in range(2):
        script = [calling(ADD, MAIL, call_id="call_0{}") for _ in range(2)]
        asyncio.run(mails.agent(*script).run("Go"))
    assert (plans_of(mails.open()), mails.sent) == ([(0, 4)], ["ada"] * 4)
    assert mails.open().select_all(RepeatedIds) == ()


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
