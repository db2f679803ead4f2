"""The end of a question: whether it was answered, and the answer for the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from planning.agent.reflect import refusal, rows_of
from planning.agent.state import MOST_ITERATIONS, AgentState
from planning.errors import cut
from planning.tools.result import safe_text

__all__ = ["complete"]

_LONGEST_CELL: Final = 200
_LONGEST: Final = 10_000
_NO_ROWS: Final = "execute_sql returned no rows under data"
_NO_TIME: Final = "no answer within {} decisions; allow more with max_iterations"


def complete(state: Mapping[str, Any]) -> AgentState:
    """Finish: it is a success only if a statement ran and its results were not refused.

    If a statement after a review of the results came to nothing, the results from before it are the answer.
    """
    problem = _problem(state)
    kept: Any = (state.get("reflection") or {}).get("kept") or {}
    if problem is not None and kept and _problem({**state, **kept}) is None:
        state, problem = {**state, **kept}, None
    else:
        kept = {}
    ended: AgentState = {"is_complete": True, "next_action": "complete", "success": False}
    if state.get("needs_user_input") and not kept:
        question = cut(str(state.get("input_request")), _LONGEST)
        return {**ended, "answer": question, "error": None, "user_message": None}
    if problem is not None:
        shown = f"The question could not be answered: {state.get('user_message') or problem}"
        return {**ended, "error": problem, "answer": cut(shown, _LONGEST)}
    return {
        **kept,
        **ended,
        "success": True,
        "answer": _summary(state["execution_result"]),
        "error": None,
        "user_message": None,
        "needs_user_input": False,
        "input_request": None,
    }


def _problem(state: Mapping[str, Any]) -> str | None:
    """The reason for a missing answer; None when the question was answered."""
    result = state.get("execution_result")
    if result is None:
        return state.get("error") or _NO_TIME.format(state.get("max_iterations", MOST_ITERATIONS))
    if not isinstance(result, Mapping) or result.get("success", True) is not True:
        error = result.get("error") if isinstance(result, Mapping) else None
        return state.get("error") or safe_text(error or "the statement has no result")
    if result and "data" not in result:
        return _NO_ROWS  # they may be under another name
    return refusal(state.get("validation_result"))


def _summary(result: Mapping[str, Any]) -> str:
    """The result in a sentence: the value itself if it is a single one."""
    rows = rows_of(result)
    columns: Sequence[str] = result.get("columns") or ()
    if not rows:
        return "No rows: nothing in the database matches."
    if len(rows) == 1 and len(rows[0]) == 1 and columns:
        [cell] = rows[0]
        value = "NULL" if cell is None else safe_text(cell)
        return f"{cut(safe_text(columns[0]), _LONGEST_CELL)}: {cut(value, _LONGEST_CELL)}"
    counted = "1 row" if len(rows) == 1 else f"{len(rows):,} rows"
    return f"The first {counted}; there are more." if result.get("truncated") else f"{counted}."
