"""The states of the graphs: what a node reads, and what it writes.

Values are those that JSON knows, and whatever a database holds: a checkpointer can store them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal, TypedDict

__all__ = [
    "Action",
    "AgentState",
    "Attempt",
    "MOST_ITERATIONS",
    "PlannerState",
    "collected",
    "first_answer",
    "fresh_answer",
]

Action = Literal["get_schema", "generate_sql", "execute_sql", "validate_results", "complete"]

MOST_ITERATIONS: Final = 12
"""How often a graph decides what to do when nobody says: one full pass takes five, a repair two more."""


class Attempt(TypedDict):
    """What was tried and did not do.

    Attributes:
        sql: The statement; None where none could be written.
        error: What was wrong with it.
    """

    sql: str | None
    error: str


def collected(known: Sequence[Any] | None, new: Sequence[Any] | None) -> list[Any]:
    """How a list in the state takes an update: what is new comes behind; None empties it.

    A graph within another one returns the whole list, with what it was given: that is no news.
    """
    if new is None:
        return []
    known = known or ()
    is_whole = len(new) >= len(known) > 0 and all(old is same for old, same in zip(known, new, strict=False))
    return list(new) if is_whole else [*known, *new]


class _Request(TypedDict, total=False):
    """What both graphs know of a request.

    Attributes:
        resolved_query: What the user wants to know, in words that need no conversation around them.
        trace_id: The id of the request in logs.
        conversation_context: ``conversation_id`` is the id of the conversation.
        user_context: ``conference_id`` is what the user is here for.
        intent: What the planner takes the request for.
        queries: What the planner wants to be searched for.
        tool_results: What came of the planner's tool calls, by name.
        needs_user_input: Whether only the user can say what is missing.
        input_request: What to ask the user.
        error: What went wrong last, for the developer: it may hold the text of an exception. None once
            something succeeded after it.
        user_message: The same as a person may be told it.
    """

    resolved_query: str
    trace_id: str | None
    conversation_context: dict[str, Any] | None
    user_context: dict[str, Any] | None
    intent: str | None
    queries: list[Any]
    tool_results: dict[str, dict[str, Any]]
    needs_user_input: bool
    input_request: str | None
    error: str | None
    user_message: str | None


class AgentState(_Request, total=False):
    """The state of the graph that answers a question with SQL. No key has to be there but ``resolved_query``.

    Attributes:
        schema: What the database holds, as text; None until it was read.
        sql_query: The statement; None until it was written, and again once it turned out wrong.
        execution_result: What it returned; None until it was run.
        validation_result: What was found when that was checked; None until it was.
        next_action: What is to be done next.
        iteration: How often that was decided.
        max_iterations: How often at most.
        is_complete: Whether there is nothing more to do.
        tool_calls: The calls that were made: ``{"success", "tool", "result", "error", "elapsed"}`` each.
        attempts: What was tried and did not do.
        reflection: What was thought of the results: ``{"verdict", "reasons"}``.
        asked_query: The question that all of this is about.
        success: Whether the question was answered; there at the end.
        answer: What a person may be told; there at the end.
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
        tool_calls: What the planner asks for: ``{"tool", "args", "reason"}`` each.
        query_results: What came of its queries.
        planner_problems: What could not be understood of what it wrote.
        response: What the user is told.
    """

    tool_calls: list[dict[str, Any]] | None
    query_results: Any
    planner_problems: list[str]
    response: Any


_BEFORE: Final[AgentState] = {
    "schema": None,
    "sql_query": None,
    "execution_result": None,
    "validation_result": None,
    "next_action": None,
    "iteration": 0,
    "is_complete": False,
    "reflection": None,
    "needs_user_input": False,
    "input_request": None,
    "error": None,
    "user_message": None,
    "success": False,
    "answer": None,
}


_WORK: Final = frozenset(
    {"schema", "sql_query", "execution_result", "validation_result", "next_action", "iteration"}
)
"""What somebody may hand in, done already. How an earlier question ended says nothing of this one."""


def first_answer(state: Mapping[str, Any]) -> AgentState:
    """An update that begins a state's first question: the work that is there already is kept."""
    begun: Any = {key: value for key, value in _BEFORE.items() if key not in _WORK or state.get(key) is None}
    update: AgentState = begun
    return update


def fresh_answer() -> AgentState:
    """An update that begins afresh with another question: it empties the lists, too."""
    emptied: Any = {**_BEFORE, "tool_calls": None, "attempts": None}
    update: AgentState = emptied
    return update
