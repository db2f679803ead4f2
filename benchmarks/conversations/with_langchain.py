"""The conversation with LangChain's todo middleware."""

from __future__ import annotations

from langchain.agents.middleware import TodoListMiddleware
from langchain.tools import ToolRuntime
from langchain_core.utils.function_calling import convert_to_openai_tool

from benchmarks.characters import TITLES, Conversation, compact

__all__ = ["converse"]


def converse() -> Conversation:
    """Rewrite the list once for each step: completed, and the next one in progress, in one call.

    Its own prompt allows both changes in one rewrite, so this is the least that it asks for.
    """
    middleware = TodoListMiddleware()
    tool = middleware.tools[0]
    conversation = Conversation(
        name="langchain, whole list at each step",
        package="langchain",
        prompt=middleware.system_prompt,
        tools=compact([convert_to_openai_tool(tool)]),
    )
    todos: list[dict[str, str]] = []
    for finished in range(len(TITLES) + 1):
        todos = [{"content": title, "status": _status(n, finished)} for n, title in enumerate(TITLES)]
        call_id = f"call-{finished}"
        runtime = ToolRuntime(
            state={"messages": []},
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
                "args": {"todos": todos, "runtime": runtime},
            }
        )
        conversation.add(tool.name, {"todos": todos}, command.update["messages"][0].content)
        todos = command.update["todos"]
    if any(todo["status"] != "completed" for todo in todos):
        raise RuntimeError("the list did not end completed")
    return conversation


def _discard(chunk: object) -> None:
    """Take what the tool streams, and keep nothing."""
    del chunk


def _status(index: int, finished: int) -> str:
    if index < finished:
        return "completed"
    return "in_progress" if index == finished else "pending"
