"""Nothing that others have done to a plan is undone: agents of one run, other runs, the host."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from threading import Barrier, Thread
from typing import Any

import pytest

pytest.importorskip("langchain.agents", reason="needs langchain: pip install 'session-planning[langchain]'")

from frameworks import added_to, mark, rewinds, setup
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool as langchain_tool
from langchain_models import ScriptedModel, said, turn
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, RetryPolicy, interrupt

from planning import MarkStep, NewPlanStep, Plan, SetupPlan, register_plan
from planning.integrations.langchain import PlanningMiddleware, PlanningState
from session import Rewound, Session, select_latest

T: Any = {"configurable": {"thread_id": "T"}}
_numbers = count()
Model = Callable[[list[BaseMessage]], AIMessage]


def asked(text: str = "Go") -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


def calls(*made: Any) -> AIMessage:
    """A turn whose calls have ids of their own."""
    return turn(*made, prefix=f"u{next(_numbers)}-")


def planned() -> Session:
    """A session with a plan of two steps, which the host has set up."""
    session = Session()
    register_plan(session)
    session.dispatch(SetupPlan("Open the shop", (NewPlanStep("Rent a room"), NewPlanStep("Buy shelves"))))
    return session


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


def saver_of(kind: str) -> Any:
    return InMemorySaver() if kind == "checkpoints" else None


@pytest.mark.parametrize("kept", ["checkpoints", "nothing"])
@pytest.mark.parametrize("plans", [True, False])
@pytest.mark.parametrize("is_async", [False, True])
def test_two_agents_that_one_turn_delegates_to_keep_each_others_work(
    kept: str, plans: bool, is_async: bool
) -> None:
    session, meet = planned(), None if is_async else Barrier(2)
    helpers = [worker(session, marking(f"S00{number}", meet)) for number in (1, 2)]

    def delegate(number: int) -> str:
        """Delegate."""
        return str(helpers[number].invoke(asked())["messages"][-1].content)

    async def adelegate(number: int) -> str:
        """Delegate."""
        return str((await helpers[number].ainvoke(asked()))["messages"][-1].content)

    tool = langchain_tool("delegate")(adelegate if is_async else delegate)
    script = [calls(("delegate", {"number": 0}), ("delegate", {"number": 1})), said()]
    middleware = [PlanningMiddleware(session)] if plans else []
    model = ScriptedModel(script=script)
    supervisor: Any = create_agent(model, tools=[tool], middleware=middleware, checkpointer=saver_of(kept))
    if is_async:
        asyncio.run(supervisor.ainvoke(asked(), T))
    else:
        supervisor.invoke(asked(), T)
    assert (statuses(session), rewinds(session)) == (["done", "done"], 0)
    if plans:
        assert added_to(str(model.requests[-1][-1].content)) == (
            "The plan has changed since your last turn: S001, S002 done. Plan completed."
        )


@pytest.mark.parametrize("kept", ["checkpoints", "nothing"])
def test_a_session_that_is_opened_for_each_call_is_not_rewound_behind_an_agent_that_plans_first(
    kept: str, opens: Callable[[], Session]
) -> None:
    helper = worker(opens, [calls(setup("Open the shop", "Rent a room", "Buy shelves")), said()])

    @langchain_tool
    def delegate() -> str:
        """Delegate."""
        return str(helper.invoke(asked())["messages"][-1].content)

    script = [calls(("delegate", {})), calls(mark("S001")), calls(mark("S002")), said()]
    result = worker(opens, script, tools=[delegate], checkpointer=saver_of(kept)).invoke(asked(), T)
    session = opens()
    assert (statuses(session), rewinds(session)) == (["done", "done"], 0)
    assert result["planning"]["version"] == session.version


@pytest.mark.parametrize("kept", ["checkpoints", "nothing"])
def test_agents_in_nodes_side_by_side_keep_each_others_work(kept: str) -> None:
    session, meet = planned(), Barrier(2)
    builder = StateGraph(PlanningState)
    for number in (1, 2):
        builder.add_node(f"w{number}", worker(session, marking(f"S00{number}", meet)))
        builder.add_edge(START, f"w{number}")
    graph: Any = builder.compile(checkpointer=saver_of(kept))
    graph.invoke(asked(), T)
    assert (statuses(session), rewinds(session)) == (["done", "done"], 0)


@pytest.mark.parametrize("threads", [("T", "T"), ("T", "U")])
@pytest.mark.parametrize("kept", ["checkpoints", "nothing"])
def test_two_requests_at_once_keep_each_others_work(threads: tuple[str, str], kept: str) -> None:
    session, meet = planned(), Barrier(2)

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


def test_a_run_that_was_cut_short_has_not_its_work_undone_by_the_next() -> None:
    session, failures = planned(), [RuntimeError("the line is cut")]

    def play(messages: list[BaseMessage]) -> AIMessage:
        done = sum(isinstance(each, ToolMessage) for each in messages)
        if done == 1 and failures:
            raise failures.pop()
        return calls(mark("S001")) if not done else said()

    agent = worker(session, play, checkpointer=InMemorySaver())
    for durability in ("exit", "async"):
        with pytest.raises(RuntimeError, match=r"^the line is cut\n"):
            agent.invoke(asked(), T, durability=durability)
        failures.append(RuntimeError("the line is cut"))
    failures.clear()
    agent.invoke(asked("Again"), T)
    assert (statuses(session), rewinds(session)) == (["done", "pending"], 0)


def test_a_node_that_is_tried_again_keeps_what_was_done() -> None:
    session, failures = planned(), [ConnectionError("the line is cut")]
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
    graph.invoke(asked(), T)
    assert (statuses(session), rewinds(session)) == (["done", "pending"], 0)


@pytest.mark.parametrize("names", [False, True])
def test_a_run_that_resumes_keeps_what_was_done_beside_its_question(names: bool) -> None:
    session = planned()
    builder = StateGraph(PlanningState)
    builder.add_node("agent", worker(session, marking("S001")))
    builder.add_node("ask", lambda _state: {"messages": [HumanMessage(interrupt("Which?"))]})
    builder.add_node("last", worker(session, marking("S002")))
    for first, second in ((START, "agent"), (START, "ask"), ("agent", "last"), ("ask", "last")):
        builder.add_edge(first, second)
    graph: Any = builder.compile(checkpointer=InMemorySaver())
    graph.invoke(asked(), T)
    assert statuses(session) == ["done", "pending"]
    graph.invoke(Command(resume="This"), graph.get_state(T).config if names else T)
    assert statuses(session)[0] == "done"
    assert rewinds(session) == 0


def test_an_update_of_the_head_is_no_way_back() -> None:
    session = planned()
    agent = worker(session, [calls(mark("S001")), said(), said()], checkpointer=InMemorySaver())
    agent.invoke(asked(), T)
    session.dispatch(MarkStep("S002", "in_progress"))
    agent.update_state(T, {"messages": [HumanMessage("Hm")]})
    agent.invoke(None, T)
    assert (statuses(session), rewinds(session)) == (["done", "in_progress"], 0)


def supervised(session: Session, *, plans: bool) -> tuple[Any, ScriptedModel]:
    """A supervisor that delegates each step to an agent, one turn after the other."""

    @langchain_tool
    def delegate(step_id: str) -> str:
        """Delegate."""
        return str(worker(session, marking(step_id)).invoke(asked())["messages"][-1].content)

    model = ScriptedModel(
        script=[calls(("delegate", {"step_id": each})) for each in ("S001", "S002")] + [said()]
    )
    middleware = [PlanningMiddleware(session)] if plans else []
    return create_agent(model, tools=[delegate], middleware=middleware, checkpointer=InMemorySaver()), model


@pytest.mark.parametrize("messages", [1, 2, 3, 4])
@pytest.mark.parametrize("names", [False, True])
def test_a_supervisor_goes_back_once_and_keeps_what_its_agents_do_then(messages: int, names: bool) -> None:
    session = planned()
    agent, model = supervised(session, plans=True)
    agent.invoke(asked(), T)
    assert statuses(session) == ["done", "done"]
    old = next(each for each in agent.get_state_history(T) if len(each.values["messages"]) == messages)
    head = old.config
    if not names:
        agent.update_state(head, {"messages": [] if messages % 2 == 0 else [HumanMessage("Otherwise")]})
        head = T
    before = ["pending", "pending"] if messages < 3 else ["done", "pending"]

    model.script = [calls(("delegate", {"step_id": "S002"})), said()]
    given = None if messages % 2 == 0 or not names else asked("Otherwise")
    agent.invoke(given, head)
    expected = ["done" if messages == 2 else before[0], "done"]
    assert statuses(session) == expected
    assert rewinds(session) == 1
    seen = session.at(next(c.version for c in session.history() for e in c.events if isinstance(e, Rewound)))
    assert statuses(seen) == before


def test_agents_whose_positions_no_checkpoint_has_stay_as_they_are() -> None:
    session = planned()
    agent, model = supervised(session, plans=False)
    agent.invoke(asked(), T)
    first = list(agent.get_state_history(T))[-2]
    model.script = [calls(("delegate", {"step_id": "S001"})), said()]
    agent.invoke(asked("Otherwise"), first.config)
    assert (statuses(session), rewinds(session)) == (["done", "done"], 0)
