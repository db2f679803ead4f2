"""What a message history of Pydantic AI keeps of a plan, and what a session of the host's keeps beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="needs pydantic-ai: pip install 'session-planning[pydantic-ai]'")

from frameworks import HALF, OPEN, READ, SHOP, mark, plans_of, rewinds, text_of
from pydantic_ai import Agent
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
from test_pydantic_ai import agent_of, answers, run

from planning.integrations.pydantic_ai import Planning
from session import Session, SnapshotError

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
    def test_parallel_runs_from_one_history_keep_all_marks(self) -> None:
        session, steps = Session(), [{"title": f"Step {number}"} for number in range(1, 9)]
        setup = ("planning_setup_plan", {"objective": "Many", "initial_steps": steps})
        agent, _ = agent_of(Planning(session), [setup], "Done.")
        messages = run(agent)

        def play(sent: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            place = max(i for i, each in enumerate(sent) if each.parts[0].part_kind == "user-prompt")
            name = str(sent[place].parts[0].content)  # type: ignore[union-attr]  # the prompt
            made = [p for each in sent[place:] for p in each.parts if isinstance(p, ToolReturnPart)]
            marks = ["in_progress", "done"][len(made) :]
            if not marks:
                return ModelResponse([TextPart("Done.")])
            return ModelResponse([ToolCallPart(*mark(name, marks[0]), f"{name}.{marks[0]}")])

        agent = Agent(FunctionModel(play), capabilities=[Planning(session)])

        async def main() -> None:
            runs = [agent.run(f"S00{number}", message_history=messages) for number in range(1, 9)]
            await asyncio.gather(*runs)

        asyncio.run(main())
        assert (plans_of(session), rewinds(session)) == ([(8, 8)], 0)

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
