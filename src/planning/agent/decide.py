"""The next action: a pure function of the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from planning.agent.state import MOST_ITERATIONS, Action, AgentState

__all__ = ["ACTIONS", "after_reflection", "decide_next_action", "entry", "route"]

ACTIONS: Final[tuple[tuple[str, Action], ...]] = (
    ("schema", "get_schema"),
    ("sql_query", "generate_sql"),
    ("execution_result", "execute_sql"),
    ("validation_result", "validate_results"),
)
"""The keys that the state needs before the question is answered, in order, and the action for each."""


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
        for key, action in ACTIONS:
            if state.get(key) is None:
                return {"iteration": iteration, "next_action": action}
    return {"iteration": iteration, "next_action": "complete", "is_complete": True}


def entry(state: Mapping[str, Any]) -> str:
    """Where a question begins: "plan", or "begin" if an interrupted question left its work in the state."""
    return "begin" if state.get("asked_query") is not None and state.get("answer") is None else "plan"


def route(state: Mapping[str, Any], *, reflects: bool = False) -> str:
    """The node for the next action.

    Args:
        state: An ``AgentState`` with ``next_action``.
        reflects: Whether the graph has a node that reviews the results.

    Returns:
        "generate_sql", "execute_tools", "complete", or "reflect" if results were validated and not yet
        reviewed.
    """
    action = state.get("next_action")
    if action == "complete":
        is_checked = reflects and state.get("validation_result") is not None
        return "reflect" if is_checked and _verdict(state) in {None, "again"} else "complete"
    return "generate_sql" if action == "generate_sql" else "execute_tools"


def after_reflection(state: Mapping[str, Any]) -> str:
    """The node after the review of the results: "plan" for another statement, or "complete"."""
    return "plan" if _verdict(state) == "again" else "complete"


def _verdict(state: Mapping[str, Any]) -> Any:
    reflection = state.get("reflection")
    return reflection.get("verdict") if isinstance(reflection, Mapping) else None
