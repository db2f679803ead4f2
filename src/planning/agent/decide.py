"""The next action: a pure function of the state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from planning.agent.state import MOST_ITERATIONS, Action, AgentState

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
