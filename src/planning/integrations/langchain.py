"""LangChain: a plan for agents of ``create_agent``, and LangChain's tools in a toolbox."""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Annotated, Any, NotRequired

from planning.errors import ToolValidationError
from planning.integrations._common import Call, acarry_out, carry_out
from planning.integrations._order import TurnOrder
from planning.integrations._rewind import Position, began, calls_made, follow, is_current, merge, position_of
from planning.integrations._sessions import SessionsOfStates, SessionSource, source_of
from planning.prompt import PlanningStrategy, PlanningToolsSection
from planning.tools import Tool, Toolbox, ToolResult
from planning.tools.declare import Declaration
from planning.tools.decode import read_arguments
from session import Session

try:
    from langchain.agents.middleware import (
        AgentMiddleware,
        AgentState,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
    )
    from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
    from langchain_core.tools import BaseTool
    from langgraph.config import get_config
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command

    from planning.integrations._langchain_tools import name_of_turn, tools_from
except ImportError as error:
    raise ImportError(
        "planning in LangChain's agents needs langchain: pip install 'session-planning[langchain]'"
    ) from error

__all__ = ["PlanningMiddleware", "PlanningState", "tools_from"]

_TEXT, _CUT = "__text__", "__cut__"  # the arguments of a call that LangChain could not read
Place = tuple[str, str, str]
"""Its name for the session, the thread, and the namespace of the agent in the thread."""

_CUT_OFF = ("length", "max_tokens")


class PlanningState(AgentState[Any]):
    """The state of an agent that plans; the plan of a parent graph with this state rewinds with the parent's.

    Attributes:
        planning: The session's id and version; of a session in memory also what it holds.
    """

    planning: NotRequired[Annotated[dict[str, Any] | None, merge]]


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
        self._sessions = SessionsOfStates(source_of(session, section, tools))
        current = self._sessions.current
        self._section = section or PlanningToolsSection(session=current, strategy=strategy)
        given = tools if isinstance(tools, Toolbox) else Toolbox(tools, session=current)
        own = [tool for tool in self._section.tools() if tool.name not in given.tools]
        self._boxes = {tool.name: Toolbox(own, session=current) for tool in own}
        self._boxes |= dict.fromkeys(given.tools, given)
        self._actor = actor
        self._order = TurnOrder()
        self.tools = [_BoundTool.of(self, box.tools[name]) for name, box in self._boxes.items()]

    def session_of(self, state: Mapping[str, Any]) -> Session | None:
        """The session of an agent's state; None when the host has none for this call.

        Args:
            state: What ``invoke`` returned, or ``get_state(config).values``.

        Raises:
            SnapshotError: What the state holds of the session cannot be restored.
        """
        return self._sessions.find(state.get("planning"), _thread())

    # Requests to the model

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Add the section to the system message, and the reminder behind the conversation.

        Before that the session is brought to where the state is, and with the answer the state to where the
        session is.
        """
        session, position, place = (
            self.session_of(request.state),
            _position(request.state),
            _place(request.runtime),
        )
        saver = _saver() if position is None and session is not None and began(session, place[0]) else None
        restarts = saver is not None and any(map(_has_position, saver.list(_kept(place), limit=10)))
        found = _followed(session, position, place, request.runtime, restarts=restarts)
        return _extended(self._readable(handler(self._prepared(request, session))), found)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """The same from async code."""
        session, position, place = (
            self.session_of(request.state),
            _position(request.state),
            _place(request.runtime),
        )
        saver = _saver() if position is None and session is not None and began(session, place[0]) else None
        found = (
            []
            if saver is None
            else [_has_position(each) async for each in saver.alist(_kept(place), limit=10)]
        )
        current = None
        if session is not None:
            current = await session.off_loop(
                lambda: _followed(session, position, place, request.runtime, restarts=any(found))
            )
        return _extended(self._readable(await handler(self._prepared(request, session))), current)

    def _prepared(self, request: ModelRequest[Any], session: Session | None) -> ModelRequest[Any]:
        if not self._section.is_enabled():
            return request
        text = f"## {self._section.title}\n\n{self._section.body()}"
        system = request.system_message or SystemMessage("")
        content: Any
        if isinstance(system.content, str):
            content = "\n\n".join(filter(None, [system.content, text]))
        else:
            content = [*system.content, {"type": "text", "text": text}]
        reminder = "" if session is None else self._section.reminder(session=session)
        tail: list[AnyMessage] = [HumanMessage(reminder)] if reminder else []
        return request.override(
            system_message=system.model_copy(update={"content": content}), messages=[*request.messages, *tail]
        )

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
            return handler(request)
        session, position = self.session_of(request.state), _position(request.state)
        with self._calling(request, session), self._order.turn_of(*self._ordered(request, session)):
            _follow_call(session, position, request.runtime)
            return _answered(handler(request), session, position)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """The same from async code."""
        if request.tool_call["name"] not in self._boxes:
            return await handler(request)
        session, position = self.session_of(request.state), _position(request.state)
        with self._calling(request, session):
            async with self._order.aturn_of(*self._ordered(request, session)):
                if session is not None:
                    await session.off_loop(lambda: _follow_call(session, position, request.runtime))
                return _answered(await handler(request), session, position)

    @contextmanager
    def _calling(self, request: ToolCallRequest, session: Session | None) -> Iterator[None]:
        """Let the tool know of its call."""
        actor = self._actor or request.runtime.config.get("metadata", {}).get("lc_agent_name")
        named = name_of_turn(request, _place(request.runtime)[0])
        token = _caller.set((request.tool_call["id"], actor, named))
        try:
            with self._sessions.within(session):
                yield
        finally:
            _caller.reset(token)

    def _ordered(self, request: ToolCallRequest, session: Session | None) -> tuple[Any, str, list[str]]:
        """The turn of a call, its id in it, and the calls that go before it and are not over."""
        messages = request.state.get("messages", [])
        asked = next((each for each in reversed(messages) if isinstance(each, AIMessage)), AIMessage(""))
        own = str(request.tool_call["id"])
        over: set[str | None] = {
            message.tool_call_id for message in messages if isinstance(message, ToolMessage)
        }
        place = _place(request.runtime)[0]
        turn = _turn(request.runtime)
        if session is not None:
            over |= calls_made(session, place, turn)
        ids = [str(call["id"]) for call in asked.tool_calls if self._is_ordered(call["name"])]
        earlier = ids[: ids.index(own)] if own in ids else []
        place, thread, _ = _place(request.runtime)
        return (
            (place, thread, asked.id, _turn(request.runtime)),
            own,
            [each for each in earlier if each not in over],
        )

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
    answer: ToolMessage | Command[Any], session: Session | None, before: Position | None
) -> ToolMessage | Command[Any]:
    """The answer to a call as an update of the state, with the session's position."""
    if session is None:
        return answer
    position = position_of(session, before)
    if isinstance(answer, ToolMessage):
        return Command(update={"messages": [answer], "planning": position})
    return dataclasses.replace(answer, update={**(answer.update or {}), "planning": position})


def _arguments(text: str, *, is_cut: bool) -> dict[str, Any]:
    """Arguments that LangChain could not read: repaired, or as they are for the toolbox to refuse."""
    if is_cut:
        return {_TEXT: text, _CUT: True}
    try:
        return read_arguments(text)
    except ToolValidationError:
        return {_TEXT: text}


# LangGraph's state


def _followed(
    session: Session | None, position: Position | None, place: Place, runtime: Any, *, restarts: bool
) -> dict[str, Any] | None:
    """Bring the session to where the state is; the position of the session, if the state's is another one."""
    if session is None:
        return None
    follow(session, position, place[0], _turn(runtime), calls=False, restarts=restarts)
    if position is not None and is_current(session, position):
        return None
    return position_of(session, position)


def _extended(
    response: ModelResponse[Any], position: dict[str, Any] | None
) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
    if position is None:
        return response
    return ExtendedModelResponse(response, Command(update={"planning": position}))


def _follow_call(session: Session | None, position: Position | None, runtime: Any) -> None:
    if session is not None:
        follow(session, position, _place(runtime)[0], _turn(runtime), calls=True)


def _place(runtime: Any) -> Place:
    """Where an agent runs: its name for the session, the thread, and its place in the thread."""
    info = getattr(runtime, "execution_info", None)
    if info is None:
        return "langchain", "", ""
    namespace = info.checkpoint_ns.rpartition("|")[0]
    thread = info.thread_id or ""
    return f"langchain:{thread}:{namespace}", thread, namespace


def _position(state: Any) -> Position | None:
    found: Position | None = state.get("planning")
    return found


def _thread() -> str:
    """The running thread; outside of any run, none."""
    try:
        return str(get_config().get("configurable", {}).get("thread_id") or "")
    except RuntimeError:
        return ""


def _turn(runtime: Any) -> str:
    info = getattr(runtime, "execution_info", None)
    return "" if info is None else info.checkpoint_id


def _saver() -> Any:
    """What keeps the checkpoints of the running graph; None if nothing does."""
    return get_config().get("configurable", {}).get("__pregel_checkpointer")


def _kept(place: Place) -> dict[str, Any]:
    """Where the checkpoints of a place are."""
    return {"configurable": {"thread_id": place[1], "checkpoint_ns": place[2]}}


def _has_position(kept: Any) -> bool:
    return kept.checkpoint["channel_values"].get("planning") is not None
