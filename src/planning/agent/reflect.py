"""The review of results: whether they look as if the statement did not mean what was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from planning.agent.nodes import Call, Node, State
from planning.agent.state import MOST_ITERATIONS, AgentState
from planning.errors import cut
from planning.tools.result import ToolResult, safe_text
from planning.tools.tool import Tool

__all__ = ["is_doubtful", "refusal", "reviewing", "rows_of"]

_REFUSED: Final = "its results were refused"
_NO_ROWS: Final = "it ran and returned no rows"
_NULL: Final = "it ran and returned nothing but NULL"
_ZERO: Final = "it ran and returned nothing but 0"
_COMPARE: Final = (
    "compare its conditions and joins with the values in the schema, also their upper and lower case"
)
_LONGEST: Final = 2_000
_ROOM: Final = 3
"""How many decisions another statement takes: it is written, run and checked."""


def is_doubtful(state: State) -> bool:
    """Whether results look wrong and were not reviewed yet, and there is room for another statement."""
    result, verdict = state.get("execution_result"), state.get("validation_result")
    if verdict is None or state.get("reflection") is not None or not isinstance(result, Mapping):
        return False
    most = state.get("max_iterations")
    room = (MOST_ITERATIONS if most is None else most) - (state.get("iteration") or 0)
    return room >= _ROOM and (refusal(verdict) or _nothing_in(result)) is not None


def reviewing(missing_values: Callable[[str], list[str]] | None) -> Node:
    """The node that asks, once, for another statement, with the reason, where ``is_doubtful`` holds.

    Args:
        missing_values: Finds the strings in a statement that its columns do not hold; see
            ``SqlDatabase.missing_values``.
    """
    description = "Find the strings that a query compares with columns which do not hold them."
    search = None if missing_values is None else Tool("missing_values", description, missing_values)

    def prepare(state: State) -> Call | AgentState:
        reason = refusal(state.get("validation_result"))
        if reason is not None:
            return _again(state, reason)
        if search is None:
            return finish(state, ToolResult(True, "", []))
        return Call(search, {"sql": state.get("sql_query") or ""})

    def finish(state: State, result: ToolResult) -> AgentState:
        problem = _nothing_in(state["execution_result"])
        if result.success and result.value:
            return _again(state, f"{problem}: {'; '.join(result.value)}")
        if problem == _ZERO:  # as good an answer as any other number
            return {"reflection": {"reason": None, "kept": None}}
        return _again(state, f"{problem}; {_COMPARE}")

    return Node(prepare, finish)


def _again(state: State, reason: str) -> AgentState:
    """Put the results aside, unless they were refused, and ask for another statement."""
    sql, verdict = state.get("sql_query"), state.get("validation_result")
    results = {
        "sql_query": sql,
        "execution_result": state.get("execution_result"),
        "validation_result": verdict,
    }
    return {
        "reflection": {"reason": reason, "kept": results if refusal(verdict) is None else None},
        "attempts": [{"sql": sql, "error": reason}],
        "sql_query": None,
        "execution_result": None,
        "validation_result": None,
        "is_complete": False,
    }


def refusal(verdict: object) -> str | None:
    """Why a check of the results refused them; None if it did not."""
    if verdict is False:
        return _REFUSED
    if not isinstance(verdict, Mapping) or verdict.get("is_valid", True) is True:
        return None
    issues = verdict.get("issues") or ()
    texts = map(safe_text, issues if isinstance(issues, (list, tuple)) else [issues])
    return cut("; ".join(texts), _LONGEST) or _REFUSED


def rows_of(result: Mapping[str, Any]) -> list[Sequence[Any]]:
    """The rows of a result, each as a list of values, in whatever form a tool returned them."""
    data = result.get("data")
    if not isinstance(data, (list, tuple)):
        return []
    return [
        row if isinstance(row, (list, tuple)) else list(row.values()) if isinstance(row, Mapping) else [row]
        for row in data
    ]


def _nothing_in(result: Mapping[str, Any]) -> str | None:
    """What is wrong with a result that has no rows, NULL alone, or a single row of 0 and NULL; else None."""
    rows = rows_of(result)
    if not rows:
        return _NO_ROWS
    if all(value is None for row in rows for value in row):
        return _NULL
    if len(rows) > 1:
        return None
    is_zero = all(value is None or (type(value) in {int, float} and value == 0) for value in rows[0])
    return _ZERO if is_zero else None
