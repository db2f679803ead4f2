"""LangChain: the tool of its todo middleware, which rewrites the whole list."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import TodoListMiddleware
from langchain.tools import ToolRuntime
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.graph.message import add_messages

from benchmarks.peers.contest import COMPLETED, TITLES, Conversation, Door, Prepared, compact, middle, title

__all__ = ["LANGCHAIN", "converse"]


def _write(tool: Any, state: dict[str, Any], todos: list[dict[str, str]], call_id: str) -> Any:
    """Call the tool as its graph does: the update of the state."""
    runtime: Any = ToolRuntime(
        state=state, context=None, config={}, stream_writer=str, tool_call_id=call_id, store=None
    )
    arguments = {"todos": todos, "runtime": runtime}
    return tool.invoke({"type": "tool_call", "name": tool.name, "id": call_id, "args": arguments}).update


def _prepare(steps: int) -> Prepared:
    tool = TodoListMiddleware().tools[0]
    state: dict[str, Any] = {"messages": [], "todos": _todos(steps, "pending")}
    # The model writes the whole list for every change: writing it is not timed, checking it is.
    lists = [_todos(steps, status) for status in COMPLETED]

    def mark(n: int) -> None:
        update = _write(tool, state, lists[n & 1], f"call-{n}")
        state["todos"] = update["todos"]
        state["messages"] = add_messages(state["messages"], update["messages"])

    return Prepared(mark, lambda: [todo["status"] for todo in state["todos"]])


def _todos(steps: int, status: str) -> list[dict[str, str]]:
    return [
        {"content": title(n), "status": status if n == middle(steps) else "pending"} for n in range(steps)
    ]


LANGCHAIN = Door(
    "langchain",
    (
        "write_todos of TodoListMiddleware through tool.invoke with the whole list as Python objects, then"
        " its update applied to the state with the graph's own message reducer; no graph runs"
    ),
    _prepare,
    words=COMPLETED,
)


def converse() -> Conversation:
    """Rewrite the list once for each step: completed, and the next one in progress, in one call.

    Its own prompt allows both changes in one rewrite, so this is the least that it asks for.
    """
    middleware = TodoListMiddleware()
    tool = middleware.tools[0]
    conversation = Conversation(len(middleware.system_prompt), len(compact([convert_to_openai_tool(tool)])))
    for finished in range(len(TITLES) + 1):
        words = ["completed"] * finished + ["in_progress"] + ["pending"] * len(TITLES)
        todos = [{"content": each, "status": word} for each, word in zip(TITLES, words, strict=False)]
        update = _write(tool, {"messages": []}, todos, f"call-{finished}")
        conversation.add(tool.name, {"todos": todos}, update["messages"][0].content)
    if any(todo["status"] != "completed" for todo in update["todos"]):
        raise RuntimeError("the list did not end completed")
    return conversation
