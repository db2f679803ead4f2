"""The review of results that probably do not answer the question."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from planning.agent.answer import ZERO, drops_of, nothing_in, refusal
from planning.agent.nodes import Node, NodeCall, State
from planning.agent.state import AgentState
from planning.tools.result import ToolResult
from planning.tools.tool import Tool

_COMPARE: Final = (
    "compare its conditions and joins with the values in the schema, also their upper and lower case"
)


def reviewing(missing_values: Callable[[str], list[str]] | None) -> Node:
    """The node that asks, once, for another statement, with the reason, if ``is_doubtful``.

    Args:
        missing_values: Finds the strings in a statement that its columns do not hold; see
            ``SqlDatabase.missing_values``.
    """
    description = "Find the strings that a query compares with columns which do not hold them."
    search = None if missing_values is None else Tool("missing_values", description, missing_values)

    def prepare(state: State) -> NodeCall | AgentState:
        verdict = state.get("validation_result")
        reason = refusal(verdict) or drops_of(verdict)
        if reason is not None:
            return _again(state, reason)
        if search is None:
            return finish(state, ToolResult(True, "", []))
        return NodeCall(search, {"sql": state.get("sql_query") or ""})

    def finish(state: State, result: ToolResult) -> AgentState:
        problem = nothing_in(state["execution_result"])
        if result.success and result.value:
            return _again(state, f"{problem}: {'; '.join(result.value)}")
        if problem == ZERO:  # as good an answer as any other number
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
