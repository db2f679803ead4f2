"""What the tests of the planner's graph share: two tools, and a request that is planned in any way."""

from __future__ import annotations

from typing import Any

from planning.agent import build_planner_graph
from planning.tools import Tool, ToolError

__all__ = [
    "ADA",
    "NOTHING",
    "REQUEST",
    "RESEND",
    "asked",
    "call",
    "done",
    "everything",
    "lookup",
    "noting",
    "resend",
]

REQUEST = "Please resend my badge"


def lookup(name: str) -> dict[str, Any]:
    """Look a registration up.

    Args:
        name: Whose.
    """
    if name == "Nobody":
        raise ToolError("nobody is called Nobody; ask for the full name")
    return {"name": name, "badge": 7}


def resend(email: str) -> str:
    """Send a badge again."""
    return f"sent to {email}"


RESEND = Tool("resend", "Send a badge again.", resend, requires_identifier=True, identifiers=("email",))


def everything(state: Any) -> Any:
    """An answer that shows what it is made of."""
    keys = ("tool_results", "query_results", "needs_user_input", "input_request", "intent", "error")
    return {key: state.get(key) for key in keys}


def asked(planned: Any, **options: Any) -> Any:
    """The final state of a request that is planned like this."""
    planner = planned if callable(planned) else lambda: planned
    search = options.pop("execute_queries", lambda queries: [f"about {query}" for query in queries])
    graph = build_planner_graph(
        options.pop("tools", [lookup, RESEND]),
        planner,
        options.pop("respond", everything),
        execute_queries=search,
        **options,
    )
    return graph.invoke({"resolved_query": REQUEST})


def call(tool: str, **args: Any) -> dict[str, Any]:
    """A call that a planner asks for."""
    return {"tool": tool, "args": args, "reason": f"to {tool}"}


def done(data: Any) -> dict[str, Any]:
    """The envelope of a call that succeeded."""
    return {"success": True, "data": data, "error": None, "user_message": None}


ADA = done({"name": "Ada", "badge": 7})
NOTHING: dict[str, Any] = {
    "tool_results": {},
    "query_results": None,
    "needs_user_input": False,
    "input_request": None,
    "intent": None,
    "error": None,
}


def noting(seen: list[Any], value: object) -> dict[str, Any]:
    """A plan of nothing, by a planner that notes what it is given."""
    seen.append(value)
    return {}
