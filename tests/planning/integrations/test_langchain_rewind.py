"""The plan rewinds with LangGraph's checkpoints, and nothing that others have done to it is undone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from threading import Barrier, Thread
from time import sleep
from typing import Any

import pytest

pytest.importorskip("langchain.agents", reason="needs langchain: pip install 'session-planning[langchain]'")

from driver_langchain import ScriptedModel, said, turn
from frameworks import SHOP, added_to, mark, plan_after, planned, rewinds, setup, text_of
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

from planning import AddStep, MarkStep, NewPlanStep, Plan, PlanPolicy, SetupPlan, register_plan
from planning.integrations.langchain import PlanningMiddleware, PlanningState
from session import Rewound, Session, select_latest

A: Any = {"configurable": {"thread_id": "A"}}
ASKED = {"messages": [HumanMessage("Go")]}
RUN = [
    turn(SHOP, mark("S001", "in_progress"), prefix="a"),
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
            assert added_to(str(request[-1].content)) == plan_of(request)
        if checkpoint.next:
            assert text_of(session) == plan_of(agent.get_state(A).values["messages"])


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
    saver, failures = InMemorySaver(), [RuntimeError("the line is cut")]

    @langchain_tool
    def phone() -> str:
        """Phone the landlord."""
        if failures:
            raise failures.pop()
        return "He agrees."

    script = [turn(setup("Open the shop", "Rent a room"), ("phone", {}), mark("S001")), said()]
    first = opens() if is_stored else Session()
    agent, _ = agent_of(first, script, saver, tools=[phone])
    with pytest.raises(RuntimeError, match=r"^the line is cut\n"):
        agent.invoke(ASKED, A)
    session = opens() if is_stored else first
    agent, _ = agent_of(session, script, saver, tools=[phone])
    result = asyncio.run(agent.ainvoke(None, A)) if is_async else agent.invoke(None, A)
    assert [(each.name, each.text) for each in result["messages"] if isinstance(each, ToolMessage)] == [
        ("planning_setup_plan", "Plan set: S001. Next: S001 Rent a room"),
        ("phone", "He agrees."),
        ("planning_mark_step", "S001 done. Plan completed."),
    ]
    assert text_of(session) == "Open the shop (completed, 1 of 1 done)\nS001 done: Rent a room"
    assert rewinds(session) == 0
    assert [change.call_id for change in session.history() if change.changed] == ["c1", "c3"]


def test_calls_whose_answers_were_lost_in_a_crash_are_not_made_again(opens: Callable[[], Session]) -> None:
    crashes, saver = [KeyboardInterrupt()], InMemorySaver()
    opens().dispatch(SetupPlan("Open the shop"))

    class Crash(AgentMiddleware[Any, Any]):
        def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
            answer = handler(request)
            if crashes:
                raise crashes.pop()
            return answer

    def agent(*script: AIMessage) -> Any:
        middleware = [PlanningMiddleware(opens()), Crash()]
        return create_agent(ScriptedModel(script=[*script]), middleware=middleware, checkpointer=saver)

    add = ("planning_add_step", {"steps": ["Paint it"]})
    with pytest.raises(KeyboardInterrupt):
        agent(turn(add, add)).invoke(ASKED, A)
    messages = agent(said()).invoke(None, A)["messages"]
    assert [each.content for each in messages if isinstance(each, ToolMessage)] == [
        "Added S001.",
        "Added S002.",
    ]
    assert statuses(opens()) == ["pending"] * 2


def test_a_session_in_memory_that_has_changes_of_its_own_is_not_overwritten() -> None:
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


_numbers = count()
Model = Callable[[list[BaseMessage]], AIMessage]


def asked(text: str = "Go") -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def calls(*made: Any) -> AIMessage:
    """A turn whose calls have ids of their own."""
    return turn(*made, prefix=f"u{next(_numbers)}-")


def statuses(session: Any) -> list[str]:
    plan = select_latest(session, Plan)
    return [] if plan is None else [step.status for step in plan.steps]


def marking(step_id: str, meet: Barrier | None = None) -> Model:
    """A model that begins a step and ends it; the ends meet, so that each agent has begun by then."""

    def play(messages: list[BaseMessage]) -> AIMessage:
        done = sum(isinstance(each, ToolMessage) for each in messages)
        if done == 1 and meet is not None:
            meet.wait(10)
        return [calls(mark(step_id, "in_progress")), calls(mark(step_id)), said()][done]

    return play


def worker(session: Any, play: Any, **options: Any) -> Any:
    return create_agent(ScriptedModel(script=play), middleware=[PlanningMiddleware(session)], **options)


def delegating(agent_of: Callable[[str], Any], *, is_async: bool = False) -> Any:
    """A tool that has an agent work on a step."""

    def delegate(step_id: str) -> str:
        """Delegate."""
        return str(agent_of(step_id).invoke(asked())["messages"][-1].content)

    async def adelegate(step_id: str) -> str:
        """Delegate."""
        return str((await agent_of(step_id).ainvoke(asked()))["messages"][-1].content)

    return langchain_tool("delegate")(adelegate if is_async else delegate)


def delegated(*step_ids: str) -> AIMessage:
    """A turn that delegates steps."""
    return calls(*(("delegate", {"step_id": each}) for each in step_ids))


def saver_of(kind: str) -> Any:
    return InMemorySaver() if kind == "checkpoints" else None


@pytest.mark.parametrize("kept", ["checkpoints", "nothing"])
@pytest.mark.parametrize("plans", [True, False])
@pytest.mark.parametrize("is_async", [False, True])
def test_two_agents_of_one_turn_keep_each_others_work(kept: str, plans: bool, is_async: bool) -> None:
    session, meet = planned().session, None if is_async else Barrier(2)
    tool = delegating(lambda step_id: worker(session, marking(step_id, meet)), is_async=is_async)
    middleware = [PlanningMiddleware(session)] if plans else []
    model = ScriptedModel(script=[delegated("S001", "S002"), said()])
    supervisor: Any = create_agent(model, tools=[tool], middleware=middleware, checkpointer=saver_of(kept))
    if is_async:
        asyncio.run(supervisor.ainvoke(asked(), A))
    else:
        supervisor.invoke(asked(), A)
    assert (statuses(session), rewinds(session)) == (["done", "done"], 0)
    if plans:
        assert added_to(str(model.requests[-1][-1].content)) == (
            "The plan has changed since your last turn: S001, S002 done. Plan completed."
        )


def test_a_node_that_is_tried_again_keeps_what_was_done() -> None:
    session, failures = planned().session, [ConnectionError("the line is cut")]
    agent = worker(session, marking("S001"))

    def node(state: Any) -> Any:
        result = agent.invoke({"messages": state["messages"]})
        if failures:
            raise failures.pop()
        return {"planning": result["planning"]}

    builder = StateGraph(PlanningState)
    builder.add_node("agent", node, retry_policy=RetryPolicy(initial_interval=0.01))
    builder.add_edge(START, "agent")
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    graph.invoke(asked(), A)
    assert (statuses(session), rewinds(session)) == (["done", "pending"], 0)


@pytest.mark.parametrize("names", [False, True])
def test_a_run_that_resumes_keeps_what_was_done_beside_its_question(names: bool) -> None:
    session = planned().session
    builder = StateGraph(PlanningState)
    builder.add_node("agent", worker(session, marking("S001")))
    builder.add_node("ask", lambda _state: {"messages": [HumanMessage(interrupt("Which?"))]})
    builder.add_node("last", worker(session, marking("S002")))
    for first, second in ((START, "agent"), (START, "ask"), ("agent", "last"), ("ask", "last")):
        builder.add_edge(first, second)
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    graph.invoke(asked(), A)
    assert statuses(session) == ["done", "pending"]
    graph.invoke(Command(resume="This"), graph.get_state(A).config if names else A)
    assert statuses(session)[0] == "done"
    assert rewinds(session) == 0


@pytest.mark.parametrize("messages", [1, 2, 3, 4])
@pytest.mark.parametrize("names", [False, True])
def test_a_supervisor_goes_back_once_and_keeps_what_its_agents_do_then(messages: int, names: bool) -> None:
    """Its agents get a step each, one turn after the other."""
    session = planned().session
    tool = delegating(lambda step_id: worker(session, marking(step_id)))
    script = [delegated("S001"), delegated("S002"), said()]
    agent = worker(session, script, tools=[tool], checkpointer=InMemorySaver())
    agent.invoke(asked(), A)
    assert statuses(session) == ["done", "done"]
    old = next(each for each in agent.get_state_history(A) if len(each.values["messages"]) == messages)
    head = old.config
    if not names:
        agent.update_state(head, {"messages": [] if messages % 2 == 0 else [HumanMessage("Otherwise")]})
        head = A
    before = ["pending", "pending"] if messages < 3 else ["done", "pending"]

    script[:] = [delegated("S002"), said()]
    given = None if messages % 2 == 0 or not names else asked("Otherwise")
    agent.invoke(given, head)
    expected = ["done" if messages == 2 else before[0], "done"]
    assert statuses(session) == expected
    assert rewinds(session) == 1
    seen = session.at(next(c.version for c in session.history() for e in c.events if isinstance(e, Rewound)))
    assert statuses(seen) == before


@pytest.mark.parametrize("kept", ["checkpoints", "nothing"])
def test_a_session_that_is_opened_for_each_call_is_not_rewound_behind_an_agent_that_plans_first(
    kept: str, opens: Callable[[], Session]
) -> None:
    tool = delegating(lambda _: worker(opens, [calls(SHOP), said()]))
    script = [delegated("all"), calls(mark("S001")), calls(mark("S002")), said()]
    result = worker(opens, script, tools=[tool], checkpointer=saver_of(kept)).invoke(asked(), A)
    session = opens()
    assert (statuses(session), rewinds(session)) == (["done", "done"], 0)
    assert result["planning"]["version"] == session.version


@pytest.mark.parametrize("threads", [("T", "T"), ("T", "U")])
@pytest.mark.parametrize("kept", ["checkpoints", "nothing"])
def test_two_requests_at_once_keep_each_others_work(threads: tuple[str, str], kept: str) -> None:
    session, meet = planned().session, Barrier(2)

    def play(messages: list[BaseMessage]) -> AIMessage:
        place = max(i for i, each in enumerate(messages) if isinstance(each, HumanMessage))
        return marking(str(messages[place].content).partition("\n")[0], meet)(messages[place:])

    agent = worker(session, play, checkpointer=saver_of(kept))

    def request(thread: str, step_id: str) -> None:
        agent.invoke(asked(step_id), {"configurable": {"thread_id": thread}})

    requests = [Thread(target=request, args=each) for each in zip(threads, ["S001", "S002"], strict=True)]
    for each in requests:
        each.start()
    for each in requests:
        each.join()
    assert (statuses(session), rewinds(session)) == (["done", "done"], 0)


def test_without_checkpoints_two_runs_of_one_name_hear_of_each_other() -> None:
    session = planned().session
    register_plan(session, PlanPolicy(dependencies=True))

    @langchain_tool
    def meet() -> str:
        """Let the agent work in a thread, where it is not a part of this run."""
        working = Thread(target=lambda: agent.invoke(asked()))
        working.start()
        working.join()
        return "met"

    before, other = [mark("S002", "in_progress")], [mark("S001")]
    script = [calls(*before), calls(("meet", {})), calls(*other), said(), calls(mark("S002")), said()]
    agent = worker(session, script, tools=[meet], name="clerk")
    said_last = agent.invoke(asked())["messages"][-2].content
    assert said_last == "Since you last looked: S001 done. S002 done. Plan completed."


class Slow(InMemorySaver):
    """Saves a checkpoint when the run has gone on from it already."""

    def put(self, *given: Any) -> Any:
        sleep(0.1)
        return super().put(*given)


@pytest.mark.parametrize("names", [False, True])
def test_an_agent_in_a_node_goes_back_though_its_checkpoint_is_saved_late(names: bool) -> None:
    session = planned().session
    builder = StateGraph(PlanningState)
    builder.add_node("agent", worker(session, marking("S001")))
    builder.add_edge(START, "agent")
    graph: Any = builder.compile(checkpointer=Slow())
    graph.invoke(asked(), A)
    head = next(each.config for each in graph.get_state_history(A) if each.next == ("agent",))
    if not names:
        graph.update_state(head, {"messages": [HumanMessage("Otherwise")]}, as_node=START)
        head = A
    graph.invoke(None, head)
    assert (statuses(session), rewinds(session)) == (["done", "pending"], 1)


def test_news_of_a_delegation_leave_out_what_its_own_turn_did_before() -> None:
    session = planned().session
    tool = delegating(lambda step_id: worker(session, marking(step_id)))
    model = ScriptedModel(script=[calls(mark("S001"), ("delegate", {"step_id": "S002"})), said()])
    middleware = [PlanningMiddleware(session, policy=PlanPolicy(stale_after=9))]
    agent: Any = create_agent(model, tools=[tool], middleware=middleware)
    agent.invoke(ASKED)
    assert added_to(str(model.requests[-1][-1].content)) == (
        "The plan has changed since your last turn: S002 done. Plan completed."
    )


def test_an_update_of_the_head_is_no_way_back() -> None:
    session = planned().session
    agent = worker(session, [calls(mark("S001")), said(), said()], checkpointer=InMemorySaver())
    agent.invoke(asked(), A)
    session.dispatch(MarkStep("S002", "in_progress"))
    agent.update_state(A, {"messages": [HumanMessage("Hm")]})
    agent.invoke(None, A)
    assert (statuses(session), rewinds(session)) == (["done", "in_progress"], 0)


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
