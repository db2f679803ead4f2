"""The plan of a LangChain agent rewinds with LangGraph's checkpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("langchain.agents", reason="needs langchain: pip install 'session-planning[langchain]'")

from frameworks import added_to, mark, plan_after, rewinds, setup, text_of
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool as langchain_tool
from langchain_models import ScriptedModel, said, turn
from langgraph.checkpoint.memory import InMemorySaver

from planning import AddStep, SetupPlan
from planning.integrations.langchain import PlanningMiddleware
from planning.plan.commands import NewPlanStep
from session import Session, VersionError

A: Any = {"configurable": {"thread_id": "A"}}
ASKED = {"messages": [HumanMessage("Go")]}
RUN = [
    turn(setup("Open the shop", "Rent a room", "Buy shelves"), mark("S001", "in_progress"), prefix="a"),
    turn(mark("S01x"), prefix="b"),
    turn(
        mark("S001"),
        mark("S002", "in_progress"),
        ("planning_add_step", {"steps": [{"title": "Paint it"}]}),
        ("planning_read_plan", {}),
        mark("S002"),
        prefix="c",
    ),
    said("Nearly done."),
]


def play(messages: list[BaseMessage]) -> AIMessage:
    """The turn of the run that comes after as many turns as there were."""
    return RUN[sum(isinstance(each, AIMessage) for each in messages)].model_copy()


def agent_of(
    session: Any, script: Any = play, saver: Any = None, **options: Any
) -> tuple[Any, ScriptedModel]:
    model = ScriptedModel(script=script)
    saver = InMemorySaver() if saver is None else saver
    return create_agent(model, middleware=[PlanningMiddleware(session)], checkpointer=saver, **options), model


def plan_of(messages: list[Any]) -> str:
    """The plan that the answered calls of a conversation make, in a session of its own."""
    answered = {each.tool_call_id for each in messages if isinstance(each, ToolMessage)}
    turns = [each.tool_calls for each in messages if isinstance(each, AIMessage)]
    return plan_after(
        (call["name"], call["args"]) for made in turns for call in made if call["id"] in answered
    )


def phone_of(*failures: Exception) -> Any:
    """A tool that fails so often."""
    left = list(failures)

    @langchain_tool
    def phone() -> str:
        """Phone the landlord."""
        if left:
            raise left.pop()
        return "He agrees."

    return phone


def reminder_in(request: list[BaseMessage]) -> str:
    return added_to(str(request[-1].content))


@pytest.mark.parametrize("is_async", [False, True])
def test_at_each_checkpoint_the_plan_is_the_one_of_that_moment(session: Session, is_async: bool) -> None:
    agent, model = agent_of(session)
    agent.invoke(ASKED, A)
    assert rewinds(session) == 0
    history = list(agent.get_state_history(A))
    assert len(history) == 9

    for checkpoint in [*history, *reversed(history)]:
        model.requests.clear()
        if is_async:
            asyncio.run(agent.ainvoke(None, checkpoint.config))
        else:
            agent.invoke(None, checkpoint.config)
        for request in model.requests:
            assert reminder_in(request) == plan_of(request)
        if checkpoint.next:
            assert text_of(session) == plan_of(agent.get_state(A).values["messages"])


def test_a_rewind_of_the_host_between_two_turns_stays(session: Session) -> None:
    agent, model = agent_of(session, script=[turn(setup("Open the shop", "Rent a room")), said()])
    agent.invoke(ASKED, A)
    version = session.version
    session.dispatch(AddStep((NewPlanStep("Count the money"),)))
    model.script = [turn(mark("S002"), prefix="d"), said()]
    agent.invoke(ASKED, A)
    session.rewind(version, actor="host")

    model.script = [turn(mark("S001"), prefix="e"), said()]
    agent.invoke(ASKED, A)
    assert text_of(session) == "Open the shop (completed, 1 of 1 done)\nS001 done: Rent a room"
    assert rewinds(session) == 1


def test_a_fork_of_the_turn_before_its_calls_replaces_them(session: Session) -> None:
    agent, _ = agent_of(session, interrupt_after=["tools"])
    agent.invoke(ASKED, A)
    before = next(each for each in agent.get_state_history(A) if each.next == ("tools", "tools"))
    message = before.values["messages"][-1]
    other = turn(setup("Close the shop", "Sell shelves"), mark("S001"))
    fork = agent.update_state(before.config, {"messages": [other.model_copy(update={"id": message.id})]})

    agent.invoke(None, fork)
    assert text_of(session) == "Close the shop (completed, 1 of 1 done)\nS001 done: Sell shelves"
    assert [each.content for each in agent.get_state(A).values["messages"][-2:]] == [
        "Plan set: S001. Next: S001 Sell shelves",
        "S001 done. Plan completed.",
    ]


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_turn_that_was_cut_short_is_finished_and_no_call_is_made_twice(
    opens: Callable[[], Session], is_stored: bool, is_async: bool
) -> None:
    saver, phone = InMemorySaver(), phone_of(RuntimeError("the line is cut"))
    script = [turn(setup("Open the shop", "Rent a room"), ("phone", {}), mark("S001")), said()]
    first = opens() if is_stored else Session()
    agent, _ = agent_of(first, script, saver, tools=[phone])
    with pytest.raises(RuntimeError, match=r"^the line is cut\n"):
        agent.invoke(ASKED, A)
    session = opens() if is_stored else first
    agent, _ = agent_of(session, script, saver, tools=[phone])
    result = asyncio.run(agent.ainvoke(None, A)) if is_async else agent.invoke(None, A)
    assert [each.content for each in result["messages"] if isinstance(each, ToolMessage)] == [
        "Plan set: S001. Next: S001 Rent a room",
        "He agrees.",
        "S001 done. Plan completed.",
    ]
    assert text_of(session) == "Open the shop (completed, 1 of 1 done)\nS001 done: Rent a room"
    assert rewinds(session) == 0
    assert [change.call_id for change in session.history() if change.changed] == ["c1", "c3"]


class TestInMemory:
    def test_a_call_that_failed_resumes_beside_those_that_were_made(self) -> None:
        saver, phone = InMemorySaver(), phone_of(RuntimeError("the process ends"))
        script = [turn(setup("Open the shop", "Rent a room"), ("phone", {})), said()]
        agent, _ = agent_of(Session(), script, saver, tools=[phone])
        with pytest.raises(RuntimeError, match=r"^the process ends\n"):
            agent.invoke(ASKED, A)
        session = Session()
        again, _ = agent_of(session, script, saver, tools=[phone])
        again.invoke(None, A)
        assert text_of(session) == "Open the shop (active, 0 of 1 done)\nS001 pending: Rent a room"

    def test_an_agent_without_checkpoints_keeps_its_plan_for_the_run(self) -> None:
        model = ScriptedModel(script=play)
        agent: Any = create_agent(model, middleware=[PlanningMiddleware()])
        messages = agent.invoke(ASKED)["messages"]
        assert reminder_in(model.requests[-1]) == plan_of(messages)
        assert messages[-2].content == "S002 done. Next: S003 Paint it"

    def test_a_session_that_has_changes_of_its_own_is_not_overwritten(self) -> None:
        saver = InMemorySaver()
        agent, _ = agent_of(Session(session_id="shop"), saver=saver)
        agent.invoke(ASKED, A)
        second = Session(session_id="shop")
        PlanningMiddleware(second)
        second.dispatch(SetupPlan("Close the shop", (NewPlanStep("Sell shelves"),)))
        again, model = agent_of(second, [said()], saver)
        again.invoke(ASKED, A)
        plan = "Close the shop (active, 0 of 1 done)\nS001 pending: Sell shelves"
        assert text_of(second) == plan
        assert model.requests[0][-1].content == (
            f"{plan}\n\nThe plan has changed since your last turn: New plan: Close the shop. Added S001."
        )

    @pytest.mark.parametrize("is_given", [True, False])
    def test_checkpoints_of_an_ended_process_are_gone_back_to(self, is_given: bool) -> None:
        saver = InMemorySaver()
        agent, _ = agent_of(Session() if is_given else None, saver=saver)
        agent.invoke(ASKED, A)
        starts = [each for each in agent.get_state_history(A) if each.next == ("model",)]
        agent, model = agent_of(Session() if is_given else None, saver=saver)
        assert len(starts) == len(RUN)
        for checkpoint in starts:
            model.requests.clear()
            agent.invoke(None, checkpoint.config)
            assert reminder_in(model.requests[0]) == plan_of(model.requests[0])


@pytest.mark.parametrize(
    ("position", "message"),
    [
        (
            {"version": 7},
            "the agent's state is of version 7 of session shop, which has the versions 0 to 0: "
            "its store is a different one, or has lost changes",
        ),
        (
            {"version": 1, "since": "2020-01-01T00:00:00+00:00"},
            "the agent's state is of another session named shop, which began at another time",
        ),
    ],
)
def test_a_position_that_the_session_never_had_is_an_error(position: dict[str, Any], message: str) -> None:
    session = Session(session_id="shop")
    agent, _ = agent_of(session, [said()])
    kept = {"session_id": "shop", "since": session.created_at.isoformat(), "version": 0, **position}
    agent.update_state(A, {"planning": kept}, as_node="model")
    with pytest.raises(VersionError) as caught:
        agent.invoke(ASKED, A)
    assert str(caught.value) == message
