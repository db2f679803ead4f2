"""Pydantic AI: a plan for agents, as a capability with its toolset."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime
from typing import Any

from planning.errors import ToolValidationError
from planning.integrations._common import Call, acarry_out
from planning.integrations._rewind import Position, began, follow, plan_from, position_of
from planning.integrations._sessions import SessionsOfStates, SessionSource, source_of
from planning.model import Plan
from planning.prompt import PlanningStrategy, PlanningToolsSection
from planning.tools import Tool, Toolbox
from planning.tools.declare import Declaration
from planning.tools.decode import read_arguments
from session import Session

try:
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ToolFailedError
    from pydantic_ai.messages import (
        CachePoint,
        ModelMessage,
        ModelRequest,
        SystemPromptPart,
        ToolReturn,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
except ImportError as error:
    raise ImportError(
        "planning in Pydantic AI's agents needs pydantic-ai: pip install 'session-planning[pydantic-ai]'"
    ) from error

__all__ = ["Planning"]

_KEY = "planning"
_TEXT = "__text__"  # the arguments of a call that are not a JSON object


class Planning(AbstractCapability[Any]):
    """Gives an agent a plan: ``Agent(..., capabilities=[Planning()])``.

    The section is a static instruction, and the reminder comes last in each request, behind a cache point; it
    is not kept in the message history. The result of each call keeps the session's position as metadata,
    which the model does not see, so that a run with an earlier message history goes on with the plan of that
    moment.
    """

    def __init__(
        self,
        session: SessionSource | None = None,
        *,
        tools: Iterable[Declaration] | Toolbox = (),
        section: PlanningToolsSection | None = None,
        strategy: PlanningStrategy = PlanningStrategy.REACT,
        actor: str | None = None,
        id: str | None = _KEY,  # noqa: A002 - the name that pydantic-ai gives it
    ) -> None:
        """Prepare the tools; one capability serves any number of runs and sessions.

        Args:
            session: The session, or a function that returns the session of a call. It takes the
                ``RunContext``, whose ``deps`` may hold the session, or nothing. Omitted, each conversation
                has a session of its own in memory, which is restored from the message history.
            tools: Further tools, or a toolbox that has them.
            section: The section, instead of ``session`` and ``strategy``.
            strategy: The mindset of the section's copy.
            actor: Who makes the calls, for the history; the name of the agent if omitted.
            id: The id of the capability and of its toolset.

        Raises:
            TypeError: An argument is of another type.
            ValueError: Two tools have the same name.
        """
        self.id = id
        self._sessions = SessionsOfStates(source_of(session, section, tools))
        self._own: Session | None = None  # of the run, when it comes from the message history
        self._section = section or PlanningToolsSection(session=self._sessions.current, strategy=strategy)
        given = tools if isinstance(tools, Toolbox) else Toolbox(tools, session=self._sessions.current)
        own = [tool for tool in self._section.tools() if tool.name not in given.tools]
        self._boxes = {tool.name: Toolbox(own, session=self._sessions.current) for tool in own}
        self._boxes |= dict.fromkeys(given.tools, given)
        self._definitions = [_definition(box.tools[name]) for name, box in self._boxes.items()]
        self._actor = actor
        self._position: Position | None = None

    def session_of(
        self, messages: Sequence[ModelMessage], ctx: RunContext[Any] | None = None
    ) -> Session | None:
        """The session of a conversation; None when the host has none for this call.

        Args:
            messages: What ``result.all_messages()`` returned.
            ctx: The context of a run, for a ``session`` that takes it.

        Raises:
            SnapshotError: What the messages hold of the session cannot be restored.
        """
        return self._sessions.find(_position_in(messages), "", ctx)

    def plan_of(self, messages: Sequence[ModelMessage], session: Session | None = None) -> Plan | None:
        """The plan at the end of a message history; None when there was none.

        Args:
            messages: The messages, all or up to any point.
            session: The session, when it has a store: then the messages hold its version alone.

        Raises:
            VersionError: The session does not have that version.
            SnapshotError: What the messages hold is not a plan.
        """
        position = _position_in(messages)
        if position is None:
            return None
        if "plan" in position:
            return plan_from(position)
        session = session or self.session_of(messages)
        return None if session is None else session.at(position["version"]).select_latest(Plan)

    # What an agent asks of a capability

    async def for_run(self, ctx: RunContext[Any]) -> Planning:
        """The capability of one run, which begins where the message history ends."""
        run = copy(self)
        run._position = position = _position_in(ctx.messages)
        run._own = session = self._sessions.find(position, "", ctx)
        if session is not None:
            place = _place(ctx)
            first = began(session, place)
            restarts = position is None and first is not None and _is_before(ctx.messages, first)
            await session.off_loop(
                lambda: follow(session, position, place, "", calls=False, restarts=restarts)
            )
        return run

    def get_instructions(self) -> str | None:
        """The section, which never changes."""
        section = self._section
        return f"## {section.title}\n\n{section.body()}" if section.is_enabled() else None

    def get_toolset(self) -> AbstractToolset[Any]:
        """The planning tools, and those given."""
        return _PlanningToolset(self)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Put the reminder behind the messages of this request alone."""
        session = self._session(ctx) if self._section.is_enabled() else None
        reminder = "" if session is None else self._section.reminder(session=session)
        messages = request_context.messages
        last = messages[-1] if messages else None
        if reminder and isinstance(last, ModelRequest):
            is_cached = any(not isinstance(part, SystemPromptPart) for part in last.parts)
            part = UserPromptPart([CachePoint(), reminder] if is_cached else reminder)
            request_context.messages = [*messages[:-1], replace(last, parts=[*last.parts, part])]
        return request_context

    # Calls

    async def call(self, name: str, arguments: dict[str, Any], ctx: RunContext[Any]) -> ToolReturn[str]:
        """Carry out a call of the run.

        Raises:
            ToolFailedError: It failed; the model reads why, and the tool's retries are not used up.
        """
        session, before = self._session(ctx), self._position
        if session is not None:
            place, turn = _place(ctx), f"{ctx.run_id}:{ctx.run_step}"
            await session.off_loop(lambda: follow(session, before, place, turn, calls=True))
        actor = self._actor or (None if ctx.agent is None else ctx.agent.name)
        sent = arguments[_TEXT] if arguments.keys() == {_TEXT} else arguments
        with self._sessions.within(session):
            named = None if ctx.run_id is None else f"{ctx.run_id}:{ctx.run_step}"
            call = Call(ctx.tool_call_id, name, sent, turn=named)
            result = await acarry_out(self._boxes[name], call, actor)
        if session is not None:
            self._position = position_of(session, before)
        kept = {_KEY: self._position}
        if result.success:
            return ToolReturn(result.message, metadata=kept)
        call_id = ctx.tool_call_id or ""
        raise ToolFailedError(ToolReturnPart(name, result.message, call_id, metadata=kept, outcome="failed"))

    def _session(self, ctx: RunContext[Any]) -> Session | None:
        """The session of a call: the host's, or that of the run."""
        return self._sessions.find(None, "", ctx) if self._sessions.are_given else self._own


def _definition(tool: Tool) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        parameters_json_schema=tool.parameters_schema(),
        sequential=not (tool.blocking or tool.is_async),  # what changes the session at once, in order
    )


class _PlanningToolset(AbstractToolset[Any]):
    """The tools of a capability, whose toolboxes check the arguments: no validator refuses any before."""

    def __init__(self, planning: Planning) -> None:
        self._planning = planning
        unchecked = _Unchecked()
        self._tools = {
            each.name: ToolsetTool(toolset=self, tool_def=each, max_retries=1, args_validator=unchecked)
            for each in planning._definitions
        }

    @property
    def id(self) -> str | None:
        """The capability's."""
        return self._planning.id

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
        """Carry out a call."""
        return await self._planning.call(name, tool_args, ctx)


class _Unchecked:
    """Reads arguments, and refuses nothing: the toolbox does, with all that is wrong."""

    def validate_json(self, input: str | bytes | bytearray, **_: Any) -> dict[str, Any]:  # noqa: A002 - pydantic's name
        """Arguments as a dict; what is not a JSON object is kept as it is."""
        try:
            return read_arguments(bytes(input) if isinstance(input, bytearray) else input)
        except ToolValidationError:
            return {_TEXT: input if isinstance(input, str) else bytes(input)}

    def validate_python(self, input: Any, **_: Any) -> dict[str, Any]:  # noqa: A002 - the same
        """The same, of what was read already."""
        return input if isinstance(input, dict) else {_TEXT: json.dumps(input, default=str)}


def _place(ctx: RunContext[Any]) -> str:
    return f"pydantic_ai:{ctx.conversation_id}"


def _position_in(messages: Sequence[ModelMessage]) -> Position | None:
    """The last position that messages hold."""
    for message in reversed(messages):
        parts = message.parts if isinstance(message, ModelRequest) else ()
        kept = [part.metadata for part in parts if isinstance(part, ToolReturnPart)]
        found = [each[_KEY] for each in kept if isinstance(each, dict) and isinstance(each.get(_KEY), dict)]
        if found:
            last: Position = max(found, key=lambda position: position["version"])
            return last
    return None


def _is_before(messages: Sequence[ModelMessage], moment: datetime) -> bool:
    """Whether a message history ends before a moment; an empty one begins a conversation."""
    return bool(messages) and (messages[-1].timestamp or moment) < moment
