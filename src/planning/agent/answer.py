"""The end of a question: whether it was answered, and the answer for the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from planning.agent.reflect import refusal, rows_of
from planning.agent.state import AgentState, restored
from planning.errors import cut
from planning.tools.result import safe_text

__all__ = ["complete"]

_LONGEST_CELL: Final = 200
_LONGEST: Final = 10_000
_NO_ROWS: Final = "execute_sql returned no rows under data"
_NO_RESULT: Final = "no answer after {}; allow more with max_iterations"


def complete(state: Mapping[str, Any]) -> AgentState:
    """Finish: it is a success only if a statement ran and its results were not refused.

    If a later attempt failed, the result that was kept before it is the answer.
    """
    taken: AgentState = {}
    kept = (state.get("reflection") or {}).get("kept")
    if state.get("execution_result") is None and isinstance(kept, Mapping):
        # The error of a later attempt does not concern this result.
        taken = {**restored(state), "error": None, "user_message": None}
        state = {**state, **taken}
    problem = _problem(state)
    ended: AgentState = {"is_complete": True, "next_action": "complete", "success": False}
    if state.get("needs_user_input") and (problem is not None or not taken):
        return {
            **ended,
            "answer": _short(state.get("input_request")),
            "error": None,
            "user_message": None,
        }
    if problem is None:
        return {
            **taken,
            **ended,
            "success": True,
            "answer": _summary(state["execution_result"]),
            "error": None,
            "user_message": None,
            "needs_user_input": False,
            "input_request": None,
        }
    return {
        **taken,
        **ended,
        "error": problem,
        "answer": _short(f"The question could not be answered: {state.get('user_message') or problem}"),
    }


def _problem(state: Mapping[str, Any]) -> str | None:
    """The reason for a missing answer; None when the question was answered."""
    result, verdict = state.get("execution_result"), state.get("validation_result")
    if result is None:
        return state.get("error") or _NO_RESULT.format(_decisions(state))
    if not isinstance(result, Mapping) or result.get("success", True) is not True:
        error = result.get("error") if isinstance(result, Mapping) else None
        return state.get("error") or safe_text(error or "the statement has no result")
    if result and "data" not in result:
        return _NO_ROWS  # they may be under another name
    return "; ".join(refusal(verdict)) or None


def _short(text: Any) -> Any:
    return cut(text, _LONGEST) if isinstance(text, str) else text


def _decisions(state: Mapping[str, Any]) -> str:
    """The number of decisions, without the last one, which only ended the run."""
    made, most = state.get("iteration") or 0, state.get("max_iterations")
    count = made if most is None else min(made, most)
    return "1 decision" if count == 1 else f"{count} decisions"


def _summary(result: Mapping[str, Any]) -> str:
    """The result in a sentence: the value itself if it is a single one."""
    rows = rows_of(result)
    columns: Sequence[str] = result.get("columns") or ()
    count = len(rows)
    if not count:
        return "No rows: nothing in the database matches."
    if count == 1 and len(rows[0]) == 1 and columns:
        [cell] = rows[0]
        texts = safe_text(columns[0]), "NULL" if cell is None else safe_text(cell)
        return ": ".join(
            text if len(text) <= _LONGEST_CELL else f"{text[:_LONGEST_CELL]}..." for text in texts
        )
    counted = "1 row" if count == 1 else f"{count:,} rows"
    return f"The first {counted}; there are more." if result.get("truncated") else f"{counted}."
