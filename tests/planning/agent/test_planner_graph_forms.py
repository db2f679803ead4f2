"""The planner's graph plain, awaited and within an event loop, and its plan in the session."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agent_samples import plan_of
from planner_graph_samples import ADA, NOTHING, REQUEST, RESEND, asked, call, done, everything, lookup
from syrupy.assertion import SnapshotAssertion

from planning.agent import build_planner_graph
from planning.tools import ToolError
from session import Session

# Its forms


def test_everything_may_be_awaited() -> None:
    async def planner(question: str) -> str:
        await asyncio.sleep(0)
        return json.dumps({"tool_calls": [call("find", name="Ada")], "queries": ["x"]})

    async def find(name: str) -> str:
        """Find somebody."""
        await asyncio.sleep(0)
        return name

    async def respond(tool_results: Any) -> Any:
        await asyncio.sleep(0)
        return tool_results

    async def search(queries: Any) -> Any:
        await asyncio.sleep(0)
        return queries

    graph = build_planner_graph([find], planner, respond, execute_queries=search)
    awaited = asyncio.run(graph.ainvoke({"resolved_query": REQUEST}))
    assert awaited["response"] == {"find": done("Ada")}
    assert graph.invoke({"resolved_query": REQUEST}) == awaited
    searching = build_planner_graph([find], lambda: {"queries": ["x"]}, respond, execute_queries=search)
    assert asyncio.run(searching.ainvoke({"resolved_query": REQUEST}))["query_results"] == ["x"]


def test_plain_callables_do_their_work_within_an_event_loop() -> None:
    async def main() -> Any:
        return asked({"tool_calls": [call("lookup", name="Ada")]})

    assert asyncio.run(main())["response"] == NOTHING | {"tool_results": {"lookup": ADA}}


@pytest.mark.parametrize("place", ["planner", "respond", "execute_queries"])
def test_what_is_async_within_an_event_loop_says_what_to_do(place: str) -> None:
    async def later(state: Any) -> Any:
        return {}

    given: dict[str, Any] = {
        "planner": lambda: {"queries": ["x"]},
        "respond": everything,
        "execute_queries": lambda queries: queries,
        place: later,
    }

    async def main() -> Any:
        return build_planner_graph([], **given).invoke({"resolved_query": REQUEST})

    assert asyncio.run(main())["error"] == (
        f"Tool {place}: {place} is async; from code that runs in an event loop, await graph.ainvoke(...)"
        " instead of graph.invoke(...)"
    )


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"planner": "plan"}, "planner must be callable, got str"),
        ({"respond": None}, "respond must be callable, got NoneType"),
        ({"execute_queries": 5}, "execute_queries must be callable, got int"),
        (
            {"execute_queries": lambda a, b, c, d: a},
            "execute_queries has unknown parameters: a, b, c, d; name them after what it can take:"
            " queries, question, state",
        ),
        ({"registry": [5]}, "a tool's function must be callable, got int"),
    ],
)
def test_what_cannot_be_called_is_refused_when_the_graph_is_built(options: dict[str, Any], told: str) -> None:
    given: dict[str, Any] = {"registry": [], "planner": dict, "respond": lambda: ""} | options
    with pytest.raises(TypeError) as caught:
        build_planner_graph(**given)
    assert str(caught.value) == told


# Its progress


def followed(session: Session, planned: Any, **options: Any) -> str:
    """The plan after each node."""
    respond = options.pop("respond", lambda: "Done.")
    graph = build_planner_graph([lookup, RESEND], lambda: planned, respond, session=session, **options)
    told = []
    for update in graph.stream({"resolved_query": REQUEST}, stream_mode="updates"):
        told.append(f"# {next(iter(update))}\n{plan_of(session)}")
    return "\n\n".join(told) + "\n"


def failing(**_: Any) -> Any:
    """Somebody's function that fails."""
    raise ToolError("the index is away; try later")


CASES: dict[str, tuple[Any, dict[str, Any]]] = {
    "calls": (
        {
            "tool_calls": [
                call("lookup", name="Ada"),
                {"tool": "resend", "args": {}},
                {"tool": "fly", "args": {}, "reason": "\u00fcber\nall"},
            ]
        },
        {},
    ),
    "queries": ({"queries": ["badges"]}, {"execute_queries": lambda queries: queries}),
    "a_failed_search": ({"queries": ["badges"]}, {"execute_queries": failing}),
    "no_search": ({"queries": ["badges"]}, {}),
    "a_question": ({"needs_user_input": True, "input_request": "Whose?", "queries": ["x"]}, {}),
    "nothing": ("no plan", {}),
    "no_answer": ({"intent": "chat"}, {"respond": failing}),
    "an_answer_of_nothing": ({"intent": "chat"}, {"respond": lambda: None}),
}


@pytest.mark.parametrize("case", CASES)
def test_after_each_node_the_plan_has_a_step_for_each_call(
    case: str, session: Session, snapshot: SnapshotAssertion
) -> None:
    planned, options = CASES[case]
    assert followed(session, planned, **options) == snapshot


def test_the_next_request_has_a_plan_of_its_own(session: Session) -> None:
    followed(session, {"queries": ["badges"]}, execute_queries=failing)
    followed(session, {"tool_calls": [call("lookup", name="Ada")]})
    assert plan_of(session) == "\n".join(
        [
            f"{REQUEST} (completed, 2 of 2 done)",
            "S001 done: to lookup",
            "  tool lookup",
            "S002 done: Answer the user",
        ]
    )
