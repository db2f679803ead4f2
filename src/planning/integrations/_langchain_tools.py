"""LangChain's tools as tools of a toolbox, and what names a turn of its models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException
from pydantic import ValidationError

from planning.errors import Problem, ToolError, ToolValidationError
from planning.tools import Tool, ToolContext


def tools_from(tools: Iterable[BaseTool]) -> tuple[Tool, ...]:
    """LangChain's tools as tools of a toolbox, a workflow or the engine.

    A ``ToolException`` and arguments that the tool refuses are what the model reads; any other error is not.
    Arguments that LangChain injects from an agent's state or store have no counterpart here.

    Args:
        tools: The tools.

    Raises:
        TypeError: One is not a LangChain tool.
        ValueError: A name is not one that providers take.
    """
    return tuple(map(_tool_from, tools))


def _tool_from(tool: BaseTool) -> Tool:
    if not isinstance(tool, BaseTool):
        raise TypeError(f"expected a LangChain tool, got {type(tool).__name__}: decorate it with @tool")

    def request(params: Mapping[str, Any], context: ToolContext) -> dict[str, Any]:
        call_id = context.call_id or str(uuid4())
        return {"type": "tool_call", "name": tool.name, "args": dict(params), "id": call_id}

    def run(params: Mapping[str, Any], context: ToolContext) -> Any:
        with _refusals(tool):
            return _value(tool.invoke(request(params, context)))

    async def arun(params: Mapping[str, Any], context: ToolContext) -> Any:
        with _refusals(tool):
            return _value(await tool.ainvoke(request(params, context)))

    schema: Any = tool.tool_call_schema
    parameters = schema if isinstance(schema, dict) else schema.model_json_schema()
    is_async = getattr(tool, "coroutine", None) is not None and getattr(tool, "func", None) is None
    function, reads = arun if is_async else run, bool(readers([tool]))
    return Tool(tool.name, tool.description, function, parameters=parameters, read_only=reads)


def readers(tools: Iterable[object]) -> set[str]:
    """The names of the tools that say that they change nothing."""
    known = (each for each in tools if isinstance(each, BaseTool))
    return {each.name for each in known if (each.metadata or {}).get("read_only") is True}


class BoundTool(BaseTool):
    """A tool of a toolbox as LangChain calls it. The toolbox alone checks the arguments."""

    middleware: Any

    @classmethod
    def of(cls, middleware: Any, tool: Tool) -> BoundTool:
        """Take a tool's name, description and schema."""
        schema = {"title": tool.name, **tool.parameters_schema()}
        return cls(name=tool.name, description=tool.description, args_schema=schema, middleware=middleware)

    def _run(self, /, **arguments: Any) -> Any:
        return self.middleware.call(self.name, arguments)

    async def _arun(self, /, **arguments: Any) -> Any:
        return await self.middleware.acall(self.name, arguments)


@contextmanager
def _refusals(tool: BaseTool) -> Iterator[None]:
    try:
        yield
    except ToolException as error:
        raise ToolError(str(error)) from error
    except ValidationError as error:
        if error.title != getattr(tool.args_schema, "__name__", None):
            raise  # of the tool's own work, not of its arguments
        problems = [Problem(each["msg"], ".".join(map(str, each["loc"]))) for each in error.errors()]
        raise ToolValidationError(problems) from None


def _value(answer: Any) -> Any:
    if not isinstance(answer, ToolMessage):
        return answer
    if answer.status == "error":
        raise ToolError(answer.text)
    return answer.content


def name_of_turn(place: str | None, conversation: Iterable[BaseMessage], call_id: str | None) -> str | None:
    """What names a call's turn: the id of the model's message, behind those of the messages before it.

    A model may give a message the same id in two conversations. LangGraph draws the ids of what the user says
    and the tools answer.

    Args:
        place: The thread of the agent; None without a checkpointer.
        conversation: The messages of its state.
        call_id: The call.

    Returns:
        None where nothing names the turn, or several of its calls have one id.
    """
    messages = list(conversation)
    while messages and not isinstance(messages[-1], AIMessage):
        messages.pop()
    ids = [each.id for each in messages]
    turn = messages[-1] if messages else None
    calls = [each["id"] for each in turn.tool_calls] if isinstance(turn, AIMessage) else []
    if not any(ids[:-1]) or not ids[-1] or calls.count(call_id) != 1:
        return None
    return repr((place, ids))
