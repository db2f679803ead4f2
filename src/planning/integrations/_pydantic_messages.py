"""Pydantic AI's messages as ours, with what they hold of a plan, and our tools as Pydantic AI's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    CachePoint,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.models import Model
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from planning.errors import ToolValidationError
from planning.integrations._agents import AgentPlan
from planning.integrations._messages import with_text
from planning.integrations._rewind import Position, checked
from planning.integrations._sessions import SessionsOfStates
from planning.suite.tools import planning_tools
from planning.tools import Toolbox
from planning.tools.once import Turn
from planning.tools.parameters.arguments import read_arguments
from session import Session

KEY = "planning"
TEXT = "__text__"  # the arguments of a call that are not a JSON object
_WHOLE = {"anthropic", "bedrock", "google", "google-cloud", "function", "test"}
"""The systems whose models get a request as one message; others get a message for each of its parts."""


def made_of(messages: Sequence[ModelMessage], sessions: SessionsOfStates) -> tuple[Session, bool]:
    """A new session in memory with the plan of a message history, and whether that plan is lost.

    Calls whose results lost their metadata are made again: each must have the same result.
    """
    session = sessions.made_of(position_in(messages))
    box = Toolbox(planning_tools(session, sessions.policy), session=session)
    for call, answer in unkept(messages, box.tools):
        if call is None or box.call(call.tool_name, call.args).message != answer.content:
            session.reset()
            return session, True
    return session, False


def unkept(
    messages: Sequence[ModelMessage], names: Container[str]
) -> Iterator[tuple[ToolCallPart | None, ToolReturnPart]]:
    """The calls whose results have no position, since the last one that has; None for a call that is lost."""
    start = next((i + 1 for i in reversed(range(len(messages))) if position_in(messages[i : i + 1])), None)
    calls = dict[str, ToolCallPart]()
    for message in messages:
        calls |= {part.tool_call_id: part for part in message.parts if isinstance(part, ToolCallPart)}
    for message in messages[start:]:
        for part in message.parts:
            if isinstance(part, ToolReturnPart) and part.tool_name in names and part.outcome == "success":
                yield calls.get(part.tool_call_id), part


def position_in(messages: Sequence[ModelMessage]) -> Position | None:
    """The last position that messages hold."""
    for message in reversed(messages):
        kept = (each[KEY] for each in _metadata(message) if isinstance(each, dict) and KEY in each)
        known = [each for each in map(checked, kept) if each is not None]
        if known:
            return max(known, key=lambda position: position["version"])
    return None


def turn_of(messages: Sequence[ModelMessage], call_id: str | None) -> Turn | None:
    """The turn of a call, with a name that it has also in a later run that begins with these messages.

    The run and the time of the response name it, and the run of the request before it: a model may give a
    response twice.
    """
    names, turn, asked = list[str](), None, None
    for message in messages:
        if isinstance(message, ModelResponse):
            about = (asked, message.run_id, str(message.timestamp), message.provider_response_id)
            names.append(repr(about) if message.run_id else "")
            ids = [call.tool_call_id for call in message.tool_calls]
            turn = Turn(names[-1], ids) if call_id in ids else turn
        asked = message.run_id
    return turn if turn is not None and names.count(str(turn.name)) == 1 else None


def with_tail(request: ModelRequest, text: str, model: Model) -> ModelRequest:
    """A request with text at its end, behind what a provider caches."""
    parts = list(request.parts)
    last = parts[-1] if parts else None
    if isinstance(last, UserPromptPart):
        given = [last.content] if isinstance(last.content, str) else last.content
        prompt: list[UserContent] = [each for each in given if each]
        mark = [CachePoint()] if prompt and not isinstance(prompt[-1], CachePoint) else []
        parts[-1] = replace(last, content=[*prompt, *mark, text])
    elif isinstance(last, ToolReturnPart) and last.tool_kind is None and model.system not in _WHOLE:
        answer = last.content_items() if last.files else last.model_response_str(wrap_if_error=False)
        content: Any = [*answer, text] if last.files else with_text(answer, text)
        parts[-1] = replace(last, content=content)
    else:
        is_cached = any(not isinstance(part, SystemPromptPart) for part in parts)
        parts.append(UserPromptPart([CachePoint(), text] if is_cached else text))
    return replace(request, parts=parts)


def offered(
    tools: Iterable[ToolDefinition], own: Container[str], schemas: Mapping[str, dict[str, Any]]
) -> list[ToolDefinition]:
    """The tools of a request, of a capability's own only those with a schema, and with that."""
    return [
        replace(each, parameters_json_schema=schemas[each.name]) if each.name in own else each
        for each in tools
        if each.name not in own or each.name in schemas
    ]


def _metadata(message: ModelMessage) -> list[Any]:
    if isinstance(message, ModelRequest):
        return [part.metadata for part in message.parts if isinstance(part, ToolReturnPart)]
    return [message.metadata]


class PlanningToolset(AbstractToolset[Any]):
    """The tools of a capability, whose toolboxes check the arguments: no validator refuses any before."""

    def __init__(self, own_id: str | None, plan: AgentPlan, call: Callable[..., Awaitable[Any]]) -> None:
        self._id, self._call = own_id, call
        self._tools = {name: self._make(name, plan) for name in plan.tools}

    def _make(self, name: str, plan: AgentPlan) -> ToolsetTool[Any]:
        tool = plan.tools[name]
        about = ToolDefinition(
            name=name,
            description=tool.description,
            parameters_json_schema=tool.parameters_schema(),
            sequential=plan.is_in_order(name),
        )
        return ToolsetTool(toolset=self, tool_def=about, max_retries=1, args_validator=_Unchecked())

    @property
    def id(self) -> str | None:
        """The capability's."""
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:  # noqa: ARG002 - each run has the same
        """The tools, with the schemas that the model reads."""
        return self._tools

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],  # noqa: ARG002 - found by its name
    ) -> Any:
        """Run a call."""
        return await self._call(name, tool_args, ctx)


class _Unchecked:
    """Reads arguments, and refuses nothing: the toolbox does, with all that is wrong."""

    def validate_json(self, input: str | bytes | bytearray, **_: Any) -> dict[str, Any]:  # noqa: A002 - pydantic's name
        """Arguments as a dict; what is not a JSON object is kept as it is."""
        try:
            return read_arguments(input)
        except ToolValidationError:
            return {TEXT: input}

    def validate_python(self, input: dict[str, Any], **_: Any) -> dict[str, Any]:  # noqa: A002 - the same
        """The same, of what was read already."""
        return input
