"""The plan of an agent of Pydantic AI, in its own loop, with its own fake models."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="needs pydantic-ai: pip install 'session-planning[pydantic-ai]'")

from frameworks import OPEN, READ, SHOP, mark, plan_after, rewinds, text_of
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import (
    CachePoint,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from planning import AddStep, PlanningToolsSection, PlanPolicy, plan_text
from planning.integrations._pydantic_messages import _Unchecked
from planning.integrations.pydantic_ai import Planning
from planning.plan.commands import NewPlanStep
from planning.plan.facts import EvidenceCall
from session import Session

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


def test_the_section_follows_your_instructions_and_the_reminder_is_behind_a_cache_point() -> None:
    session = Session()
    agent, script = agent_of(Planning(session), [SHOP], "Done.", instructions="You run a shop.")
    messages = run(agent)
    body = PlanningToolsSection(session=session).body()
    assert script.infos[0].instructions == f"You run a shop.\n\n## Planning\n\n{body}"
    parts = script.infos[0].model_request_parameters.instruction_parts or []
    assert [part.dynamic for part in parts] == [False, False]
    assert script.requests[1][-1].parts[-1].content == [CachePoint(), OPEN]  # type: ignore[union-attr]  # a UserPromptPart
    kept = [part for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
    assert [part.content for part in kept] == ["Go"]


def test_the_test_model_calls_every_tool() -> None:
    agent = Agent(TestModel(), capabilities=[Planning(Session())], retries=0)
    called = [call_id for call_id, _, _ in answers(run(agent))]
    assert len(called) == 6


def test_an_answer_that_is_a_tool_call_is_held_back_too() -> None:
    planning = Planning(Session(), policy=PlanPolicy(finish_gate=1))
    ends: list[Turn] = [[("final_result", {"response": number})] for number in (1, 2)]
    agent, _ = agent_of(planning, [SHOP], *ends, output_type=int, retries=0)
    output: Any = asyncio.run(agent.run("Go")).output
    assert output == 2


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

    def test_an_edit_of_the_host_after_going_back_stays(self) -> None:
        session = Session()
        agent, script = agent_of(Planning(session, follow_history=True), *self.TURNS)
        messages = run(agent)[:3]
        script.turns = ["Hm.", [mark("S003")], "Done."]
        messages = run(agent, "Go on", message_history=messages)
        session.dispatch(AddStep((NewPlanStep("Count the money"),)))
        run(agent, "Go on", message_history=messages)
        assert text_of(session).endswith("S003 done: Count the money")
        assert rewinds(session) == 1


@pytest.mark.parametrize(
    ("sent", "kept"),
    [(str, "[1"), (str.encode, b"[1"), (lambda text: bytearray(text.encode()), b"[1")],
    ids=["text", "bytes", "bytearray"],
)
def test_arguments_are_read_of_all_that_a_model_may_send(sent: Any, kept: Any) -> None:
    read = _Unchecked().validate_json
    assert read(sent('{"step_id": "S001"}')) == {"step_id": "S001"}
    assert [*read(sent("[1")).values()] == [kept]
