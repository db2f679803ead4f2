"""The states of the graphs.

They hold JSON values and the values of databases, so that any checkpointer can store them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, NamedTuple, TypedDict

Action = Literal["get_schema", "generate_sql", "execute_sql", "validate_results", "complete"]

MOST_ITERATIONS: Final = 12
"""The default for the number of decisions: one full pass takes five, a repair two more."""


class Attempt(TypedDict):
    """A failed attempt to answer the question: the statement, if one was written, and what was wrong."""

    sql: str | None
    error: str


def collected(known: Sequence[Any] | None, new: Sequence[Any] | None) -> list[Any]:
    """A list with new items, which a graph within another one returns as a whole list; None empties it."""
    if new is None:
        return []
    known = known or ()
    is_whole = len(new) >= len(known) > 0 and all(old is same for old, same in zip(known, new, strict=False))
    return list(new) if is_whole else [*known, *new]


class _Request(TypedDict, total=False):
    """The keys that both states have.

    Attributes:
        resolved_query: The question, in words that can be understood without the conversation.
        trace_id: The id of the request in logs.
        conversation_context: ``conversation_id`` is the id of the conversation.
        user_context: ``conference_id`` is the id of the conference that the request is about.
        needs_user_input: Whether only the user can give what is missing.
        input_request: The question to the user.
        error: The last error, for the developer: it may hold the text of an exception. None after a later
            success.
        user_message: The error in words for the user.
    """

    resolved_query: str
    trace_id: str | None
    conversation_context: dict[str, Any] | None
    user_context: dict[str, Any] | None
    needs_user_input: bool
    input_request: str | None
    error: str | None
    user_message: str | None


class AgentState(_Request, total=False):
    """The state of the graph that answers a question with SQL. Only ``resolved_query`` is required.

    Attributes:
        schema: The schema as text; None until it is read.
        sql_query: The statement; None until it is written, and again after it failed.
        execution_result: The rows; None until the statement has run.
        validation_result: The check of the rows; None until it is done.
        next_action: The next action.
        iteration: The number of decisions so far.
        max_iterations: The most decisions.
        is_complete: Whether there is nothing more to do.
        tool_calls: The calls so far: ``{"success", "tool", "result", "error", "elapsed"}`` each.
        attempts: The failed attempts.
        reflection: Why the first results looked wrong, and these results: ``{"reason", "kept"}``; None if
            they did not.
        asked_query: The question that the other keys belong to.
        success: Whether the question was answered; set at the end.
        answer: The answer for the user; set at the end.
    """

    schema: str | None
    sql_query: str | None
    execution_result: dict[str, Any] | None
    validation_result: dict[str, Any] | None
    next_action: Action | None
    iteration: int
    max_iterations: int
    is_complete: bool
    tool_calls: Annotated[list[dict[str, Any]], collected]
    attempts: Annotated[list[Attempt], collected]
    reflection: dict[str, Any] | None
    asked_query: str | None
    success: bool
    answer: str | None


class PlannerState(_Request, total=False):
    """The state of the graph that asks a planner what to do.

    Attributes:
        tool_calls: The calls that the planner asks for: ``{"tool", "args", "reason"}`` each.
        tool_results: Their results, by name.
        queries: The searches that the planner asks for.
        query_results: Their results.
        intent: The kind of request, according to the planner.
        planner_problems: The parts of its answer that could not be understood.
        response: The answer to the user.
    """

    tool_calls: list[dict[str, Any]] | None
    tool_results: dict[str, dict[str, Any]]
    queries: list[Any]
    query_results: Any
    intent: str | None
    planner_problems: list[str]
    response: Any


class Step(NamedTuple):
    """A step of answering a question.

    Attributes:
        action: The action.
        key: The key of the state that it fills.
        title: Its title in a plan.
        arguments: The arguments of its tool, and the keys of the state that they come from.
    """

    action: Action
    key: str
    title: str
    arguments: Mapping[str, str] | None


STEPS: Final = (
    Step("get_schema", "schema", "Read the schema", {"query": "resolved_query"}),
    Step("generate_sql", "sql_query", "Write the SQL", None),
    Step("execute_sql", "execution_result", "Run the SQL", {"sql": "sql_query"}),
    Step(
        "validate_results",
        "validation_result",
        "Check the results",
        {"query": "resolved_query", "sql": "sql_query", "results": "execution_result"},
    ),
)
"""The steps, in order: the first whose key the state lacks is the next."""


def begun(state: Mapping[str, Any], *, is_first: bool) -> AgentState:
    """An update for a new question: everything starts over, but work that came with a first one is kept."""
    emptied: Any = {
        **{step.key: state.get(step.key) if is_first else None for step in STEPS},
        "tool_calls": None,
        "attempts": None,
        "asked_query": state.get("resolved_query"),
        "next_action": None,
        "iteration": (state.get("iteration") or 0) if is_first else 0,
        "is_complete": False,
        "reflection": None,
        "needs_user_input": False,
        "input_request": None,
        "error": None,
        "user_message": None,
        "success": False,
        "answer": None,
    }
    update: AgentState = emptied
    return update


def decide_next_action(state: Mapping[str, Any]) -> AgentState:
    """Decide what to do next. It only reads the state.

    Args:
        state: An ``AgentState``. A missing key counts as None, and only None counts as missing: an empty
            schema is a schema. Without ``max_iterations``, ``MOST_ITERATIONS`` are allowed.

    Returns:
        An update: ``iteration``, one more than before, and ``next_action``: the action for the first of
        schema, SQL, results and verdict that is missing; or "complete", with ``is_complete``, if none is
        missing or ``iteration`` is more than ``max_iterations``.
    """
    iteration = (state.get("iteration") or 0) + 1
    most = state.get("max_iterations")
    if iteration <= (MOST_ITERATIONS if most is None else most):
        for step in STEPS:
            if state.get(step.key) is None:
                return {"iteration": iteration, "next_action": step.action}
    return {"iteration": iteration, "next_action": "complete", "is_complete": True}
