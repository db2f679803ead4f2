"""LangChain: a plan for agents of ``create_agent``, and LangChain's tools in a toolbox."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from time import perf_counter
from typing import Annotated, Any, NotRequired

from planning.errors import ToolValidationError
from planning.integrations._common import Call, acarry_out, carry_out
from planning.integrations._order import TurnOrder
from planning.integrations._rewind import Position, checked, is_current, is_of, merge, news, position_of
from planning.integrations._sessions import AWAY, AgentTools, SessionSource, unread
from planning.prompt import PlanningStrategy, PlanningToolsSection
from planning.tools import Tool, Toolbox, ToolResult
from planning.tools.declare import Declaration
from planning.tools.decode import read_arguments
from planning.tools.outcome import failed
from session import PastState, Session

try:
    from langchain.agents.middleware import (
        AgentMiddleware,
        AgentState,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
    )
    from langchain.agents.middleware.types import OmitFromInput
    from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
    from langchain_core.tools import BaseTool
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command

    from planning.integrations._langchain_tools import name_of_turn, tools_from
    from planning.integrations._langgraph import Here
except ImportError as error:
    raise ImportError(
        "planning in LangChain's agents needs langchain: pip install 'session-planning[langchain]'"
    ) from error

__all__ = ["PlanningMiddleware", "PlanningState", "tools_from"]

_TEXT, _CUT = "__text__", "__cut__"  # the arguments of a call that LangChain could not read
_CUT_OFF = ("length", "max_tokens")


class PlanningState(AgentState[Any]):
    """The state of an agent that plans, and of a graph around such agents whose checkpoints the plan follows.

    Attributes:
        planning: The session's id and version; of a session in memory also what it holds. An agent does not
            take it as input.
    """

    planning: NotRequired[Annotated[dict[str, Any] | None, OmitFromInput, merge]]


_caller: ContextVar[tuple[str | None, str | None, str | None]] = ContextVar("caller", default=(None,) * 3)
"""The id of the running call, who makes it, and what names its turn."""


class PlanningMiddleware(AgentMiddleware[PlanningState, Any, Any]):
    """Gives an agent of ``create_agent`` a plan that rewinds with its checkpoints.

    The planning section is added to the system message, and the reminder is the last message of each
    request; the reminder is not kept in the state. Calls of one turn are carried out in order. Put this
    middleware first in the list, so that it knows of each call before other middleware holds it back.
    """

    state_schema = PlanningState

    def __init__(
        self,
        session: SessionSource | None = None,
        *,
        tools: Iterable[Declaration] | Toolbox = (),
        section: PlanningToolsSection | None = None,
        strategy: PlanningStrategy = PlanningStrategy.REACT,
        actor: str | None = None,
    ) -> None:
        """Prepare the tools; one middleware serves any number of threads and sessions.

        Args:
            session: The session, or a function without arguments that returns the session of the running
                thread, as ``langgraph.config.get_config()`` names it. Omitted, each thread has a session of
                its own in memory, which is restored from the thread's state.
            tools: Further tools, or a toolbox that has them.
            section: The section, instead of ``session`` and ``strategy``.
            strategy: The mindset of the section's copy.
            actor: Who makes the calls, for the history; the name of the agent if omitted.

        Raises:
            TypeError: An argument is of another type.
            ValueError: Two tools have the same name.
        """
        super().__init__()
        self._given = given = AgentTools(session, tools, section, strategy)
        self._sessions, self._section, self._boxes = given.sessions, given.section, given.boxes
        self._actor = actor
        self._order = TurnOrder()
        self.tools = [_BoundTool.of(self, box.tools[name]) for name, box in self._boxes.items()]

    def session_of(self, state: Mapping[str, Any]) -> Session | PastState | None:
        """The session as it was at an agent's state, to read the plan: ``select_latest(..., Plan)``.

        Args:
            state: What ``invoke`` returned, or ``get_state(config).values``.

        Returns:
            What the selectors take; None when the host has no session for this call.

        Raises:
            VersionError: The state is of another session, or of a version that the session does not have.
            SnapshotError: What the state holds of the session cannot be read.
        """
        return self._sessions.read(_position(state))

    # Requests to the model

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Add the section to the system message, and the reminder behind the conversation.

        With the answer, the state is brought to where the session is.
        """
        here, position = Here.now(), _position(request.state)
        try:
            session = self._session(here, position)
            tail, kept = self._shown(session, position)
        except AWAY as error:
            tail, kept = unread(error), None
        return _extended(self._readable(handler(self._prepared(request, tail))), kept)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """The same from async code."""
        here, position = Here.now(), _position(request.state)
        try:
            session = await self._asession(here, position)
            shown = partial(self._shown, session, position)
            tail, kept = shown() if session is None else await session.off_loop(shown)
        except AWAY as error:
            tail, kept = unread(error), None
        return _extended(self._readable(await handler(self._prepared(request, tail))), kept)

    def _session(self, here: Here, position: Position | None) -> Session | None:
        """The host's session, brought to where the run begins; or the one that the calls of a step share."""
        session = self._sessions.given() if self._sessions.are_given else None
        if session is None:
            return None if self._sessions.are_given else self._sessions.of_step(here.step, position)
        here.follow(session, position)
        return session

    async def _asession(self, here: Here, position: Position | None) -> Session | None:
        """The same from async code."""
        session = self._sessions.given() if self._sessions.are_given else None
        if session is None:
            return None if self._sessions.are_given else self._sessions.of_step(here.step, position)
        await here.afollow(session, position)
        return session

    def _shown(self, session: Session | None, position: Position | None) -> tuple[str, dict[str, Any] | None]:
        """What the model reads of the plan, and the position that its answer is kept with."""
        if session is None:
            return "", None
        reminder = self._section.reminder(session=session) if self._section.is_enabled() else ""
        if not self._sessions.are_given:
            return reminder, None
        told = news(session, position) if self._section.is_enabled() else ""
        kept = None if is_current(session, position) else position_of(session, position)
        return "\n\n".join(filter(None, [reminder, told])), kept

    def _prepared(self, request: ModelRequest[Any], reminder: str) -> ModelRequest[Any]:
        text = self._given.copy
        if text is None:
            return request
        system = request.system_message
        if system is None:
            system = SystemMessage(text)
        elif isinstance(system.content, str):
            content = "\n\n".join(filter(None, [system.content, text]))
            system = system.model_copy(update={"content": content})
        else:
            system = system.model_copy(update={"content": [*system.content, {"type": "text", "text": text}]})
        tail: list[AnyMessage] = [HumanMessage(reminder)] if reminder else []
        return request.override(system_message=system, messages=[*request.messages, *tail])

    def _readable(self, response: ModelResponse[Any]) -> ModelResponse[Any]:
        """Let calls whose arguments are not JSON come to the toolbox, which repairs or refuses them."""
        for index, message in enumerate(response.result):
            if isinstance(message, AIMessage) and message.invalid_tool_calls:
                response.result[index] = self._with_calls(message)
        return response

    def _with_calls(self, message: AIMessage) -> AIMessage:
        reasons = (message.response_metadata.get(key) for key in ("finish_reason", "stop_reason"))
        is_cut = any(reason in _CUT_OFF for reason in reasons)
        calls, others = list(message.tool_calls), []
        for call in message.invalid_tool_calls:
            if call["name"] in self._boxes and call["id"] is not None:
                arguments = _arguments(call["args"] or "", is_cut=is_cut)
                calls.append({"name": call["name"], "args": arguments, "id": call["id"], "type": "tool_call"})
            else:
                others.append(call)
        return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": others})

    # Calls

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Carry out the calls of a turn in order, and keep the session's position with each result."""
        if request.tool_call["name"] not in self._boxes:
            return self._followed(request, handler(request))
        here, position = Here.now(), _position(request.state)
        with self._order.turn_of(here.step, *self._ordered(request)):
            try:
                session = self._session(here, position)
            except AWAY as error:
                return _away(request, error)
            with self._calling(request, session, here):
                return _answered(handler(request), session, position, here.step)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """The same from async code."""
        if request.tool_call["name"] not in self._boxes:
            return self._followed(request, await handler(request))
        here, position = Here.now(), _position(request.state)
        async with self._order.aturn_of(here.step, *self._ordered(request)):
            try:
                session = await self._asession(here, position)
            except AWAY as error:
                return _away(request, error)
            with self._calling(request, session, here):
                return _answered(await handler(request), session, position, here.step)

    def _followed(
        self, request: ToolCallRequest, answer: ToolMessage | Command[Any]
    ) -> ToolMessage | Command[Any]:
        """The answer of another tool, with the position of a session that its agents have changed."""
        try:
            session = self._sessions.given() if self._sessions.are_given else None
        except AWAY:
            return answer
        before = _position(request.state)
        if session is None or before is None or not is_of(before, session) or is_current(session, before):
            return answer
        return _answered(answer, session, before, seen=before.get("seen", before["version"]))

    @contextmanager
    def _calling(self, request: ToolCallRequest, session: Session | None, here: Here) -> Iterator[None]:
        """Let the tool know of its call."""
        actor = self._actor or request.runtime.config.get("metadata", {}).get("lc_agent_name")
        named = name_of_turn(here.place, request.state.get("messages", ()), request.tool_call["id"])
        token = _caller.set((request.tool_call["id"], actor, named))
        try:
            with self._sessions.within(session), here.calling(session):
                yield
        finally:
            _caller.reset(token)

    def _ordered(self, request: ToolCallRequest) -> tuple[str, list[str]]:
        """The id of a call, and the calls of its turn that go before it and are not over."""
        own = str(request.tool_call["id"])
        over: set[str] = set()
        calls: Sequence[Mapping[str, Any]] = ()
        for message in reversed(request.state.get("messages", [])):
            if isinstance(message, ToolMessage):
                over.add(message.tool_call_id)
            elif isinstance(message, AIMessage):
                calls = message.tool_calls
                break
        ids = [str(call["id"]) for call in calls if self._is_ordered(call["name"])]
        earlier = ids[: ids.index(own)] if own in ids else []
        return own, [each for each in earlier if each not in over]

    def _is_ordered(self, name: str) -> bool:
        """Whether calls of a tool are made one after the other: those that change the session at once are."""
        tool = self._boxes[name].tools[name] if name in self._boxes else None
        return tool is not None and not (tool.blocking or tool.is_async)

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolMessage | str:
        """Carry out the running call of a tool, for the tool itself."""
        call, actor = self._call(name, arguments)
        return _message(call, carry_out(self._boxes[name], call, actor))

    async def acall(self, name: str, arguments: Mapping[str, Any]) -> ToolMessage | str:
        """The same from async code."""
        call, actor = self._call(name, arguments)
        return _message(call, await acarry_out(self._boxes[name], call, actor))

    def _call(self, name: str, arguments: Mapping[str, Any]) -> tuple[Call, str | None]:
        call_id, actor, turn = _caller.get()
        text = arguments.get(_TEXT) if arguments.keys() <= {_TEXT, _CUT} else None
        return Call(call_id, name, arguments if text is None else text, _CUT in arguments, turn), actor


class _BoundTool(BaseTool):
    """A tool of a toolbox as LangChain calls it. The toolbox alone checks the arguments."""

    middleware: Any

    @classmethod
    def of(cls, middleware: PlanningMiddleware, tool: Tool) -> _BoundTool:
        """Take a tool's name, description and schema."""
        schema = {"title": tool.name, **tool.parameters_schema()}
        return cls(name=tool.name, description=tool.description, args_schema=schema, middleware=middleware)

    def _run(self, /, **arguments: Any) -> Any:
        return self.middleware.call(self.name, arguments)

    async def _arun(self, /, **arguments: Any) -> Any:
        return await self.middleware.acall(self.name, arguments)


def _message(call: Call, result: ToolResult) -> ToolMessage | str:
    if call.call_id is None:
        return result.message
    status: Any = "success" if result.success else "error"
    return ToolMessage(result.message, name=call.name, tool_call_id=call.call_id, status=status)


def _answered(
    answer: ToolMessage | Command[Any],
    session: Session | None,
    before: Position | None,
    step: str = "",
    **more: Any,
) -> ToolMessage | Command[Any]:
    """The answer to a call as an update of the agent's state, with the session's position."""
    if session is None:
        return answer
    position = {**position_of(session, before, step), **more}
    if isinstance(answer, ToolMessage):
        return Command(update={"messages": [answer], "planning": position})
    if answer.graph is not None or not isinstance(answer.update, dict | None):
        return answer
    return dataclasses.replace(answer, update={**(answer.update or {}), "planning": position})


def _away(request: ToolCallRequest, error: Exception) -> ToolMessage | Command[Any]:
    """The answer to a call whose session is out of reach."""
    call, name = request.tool_call, request.tool_call["name"]
    result = failed(name, error, perf_counter())
    return ToolMessage(result.message, name=name, tool_call_id=call["id"], status="error")


def _arguments(text: str, *, is_cut: bool) -> dict[str, Any]:
    """Arguments that LangChain could not read: repaired, or as they are for the toolbox to refuse."""
    if is_cut:
        return {_TEXT: text, _CUT: True}
    try:
        return read_arguments(text)
    except ToolValidationError:
        return {_TEXT: text}


# LangGraph's state


def _position(state: Mapping[str, Any]) -> Position | None:
    return checked(state.get("planning"))


def _extended(
    response: ModelResponse[Any], position: dict[str, Any] | None
) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
    if position is None:
        return response
    return ExtendedModelResponse(response, Command(update={"planning": position}))
