"""LangChain: the tool of its todo middleware, which rewrites the whole list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents.middleware import TodoListMiddleware
from langchain.tools import ToolRuntime
from langgraph.graph.message import add_messages

from benchmarks.door import COMPLETED, Door, Prepared, Takes, middle, title

__all__ = ["DOORS"]

PACKAGE = "langchain"


def _prepare(steps: int) -> Prepared:
    tool = TodoListMiddleware().tools[0]
    state: dict[str, Any] = {"messages": [], "todos": _todos(steps, "pending")}
    # The model writes the whole list for every change: writing it is not timed, checking it is.
    lists = [_todos(steps, status) for status in COMPLETED]

    def mark(n: int) -> None:
        call_id = f"call-{n}"
        runtime = ToolRuntime(
            state=state,
            context=None,
            config={},
            stream_writer=_discard,
            tool_call_id=call_id,
            store=None,
        )
        command = tool.invoke(
            {
                "type": "tool_call",
                "name": tool.name,
                "id": call_id,
                "args": {"todos": lists[n & 1], "runtime": runtime},
            }
        )
        state["todos"] = command.update["todos"]
        state["messages"] = add_messages(state["messages"], command.update["messages"])

    def statuses() -> Sequence[str]:
        return [todo["status"] for todo in state["todos"]]

    return Prepared(mark, statuses)


def _todos(steps: int, status: str) -> list[dict[str, str]]:
    return [
        {"content": title(n), "status": status if n == middle(steps) else "pending"} for n in range(steps)
    ]


def _discard(chunk: object) -> None:
    """Take what the tool streams, and keep nothing."""
    del chunk


DOORS = (
    Door(
        name=PACKAGE,
        package=PACKAGE,
        takes=Takes.TYPED,
        description=(
            "write_todos of TodoListMiddleware through tool.invoke with the whole list as Python objects, "
            "then its update applied to the state with the graph's own message reducer; no graph runs"
        ),
        prepare=_prepare,
        words=COMPLETED,
    ),
)
