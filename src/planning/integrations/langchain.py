"""LangChain: a plan for agents of ``create_agent``, and LangChain's tools in a toolbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import nullcontext
from contextvars import ContextVar
from functools import partial
from inspect import signature
from typing import Annotated, Any, NotRequired, Self

from planning.integrations._common import Call, acarry_out, carry_out
from planning.integrations._order import TurnOrder
from planning.integrations._rewind import Position, Setting, is_current, is_of, merge, news, position_of
from planning.integrations._sessions import AWAY, AgentTools, SessionSource, unread
from planning.integrations._steered import Steered
from planning.policy.policy import PlanPolicy
from planning.prompt import PlanningStrategy, PlanningToolsSection
from planning.tools import Toolbox
from planning.tools.tool import Declaration
from session import PastState, Session

try:
    from langchain.agents.middleware import (
        AgentMiddleware,
        AgentState,
        ExtendedModelResponse,
        ModelRequest,
        ModelResponse,
        hook_config,
    )
    from langchain.agents.middleware.types import OmitFromInput
    from langchain_core.messages import SystemMessage, ToolMessage
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command

    from planning.integrations._langchain_answers import (
        CUT,
        TEXT,
        answered,
        away,
        extended,
        last_turn,
        message_of,
        position_in,
        readable,
        refused,
        with_tail,
    )
    from planning.integrations._langchain_tools import BoundTool, name_of_turn, readers, tools_from
    from planning.integrations._langgraph import Here
    from planning.integrations._langgraph_gate import after_turn
except ImportError as error:
    raise ImportError(
        "planning in LangChain's agents needs langchain: pip install 'session-planning[langchain]'"
    ) from error

__all__ = ["PlanningMiddleware", "PlanningState", "tools_from"]


class PlanningState(AgentState[Any]):
    """The state of an agent that plans, and of a graph around such agents whose checkpoints the plan follows.

    Attributes:
        planning: The session's id and version; of a session in memory also what it holds. An agent does not
            take it as input.
    """

    planning: NotRequired[Annotated[dict[str, Any] | None, OmitFromInput, merge]]


_caller: ContextVar[tuple[Any, ...]] = ContextVar("caller", default=(None,) * 4)
"""The id of the running call, who makes it, what names its turn, and its run."""


class PlanningMiddleware(AgentMiddleware[PlanningState, Any, Any]):
    """Gives an agent of ``create_agent`` a plan that rewinds with its checkpoints.

    The planning section is added to the system message, and the reminder to the last message of each request;
    the reminder is not kept in the state. Calls of one turn are carried out in order. Put this
    middleware first in the list, so that it knows of each call before other middleware holds it back.
    """

    state_schema = PlanningState

    def __new__(
        cls,
        *_: Any,
        section: PlanningToolsSection | None = None,
        policy: PlanPolicy | None = None,
        **_options: Any,
    ) -> Self:
        """Make one that is asked after each turn only if its policy says so: LangChain goes by the class."""
        policy = policy if section is None else section.policy
        if policy is not None and (policy.approval or policy.finish_gate is not None):
            hooks = {"after_model": cls._after_model, "aafter_model": cls._aafter_model}
            cls = type(cls.__name__, (cls,), hooks)  # noqa: PLW0642 - the class to be made
        return super().__new__(cls)

    def __init__(
        self,
        session: SessionSource | None = None,
        *,
        tools: Iterable[Declaration] | Toolbox = (),
        section: PlanningToolsSection | None = None,
        strategy: PlanningStrategy = PlanningStrategy.REACT,
        policy: PlanPolicy | None = None,
        read_only: Iterable[str] = (),
        actor: str | None = None,
    ) -> None:
        """Prepare the tools; one middleware serves any number of threads and sessions.

        Args:
            session: The session, or a function without arguments that returns the session of the running
                thread, as ``langgraph.config.get_config()`` names it. Omitted, each thread has a session of
                its own in memory, which is restored from the thread's state.
            tools: Further tools, or a toolbox that has them.
            section: The section, instead of ``session``, ``strategy`` and ``policy``.
            strategy: The mindset of the section's copy.
            policy: What the host demands of the plan. It holds for the agent's other tools as well.
            read_only: Names of the agent's other tools that change nothing, which a plan that waits for
                approval does not hold back; those with ``metadata={"read_only": True}`` are known.
            actor: Who makes the calls, for the history; the name of the agent if omitted.

        Raises:
            TypeError: An argument is of another type.
            ValueError: Two tools have the same name.
        """
        super().__init__()
        self._given = given = AgentTools(session, tools, section, strategy, policy)
        self._sessions, self._section, self._boxes = given.sessions, given.section, given.boxes
        self._steered = Steered(given, read_only)
        self._actor = actor
        self._order = TurnOrder()
        self.tools = [BoundTool.of(self, each) for each in given.tools.values()]

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
        return self._sessions.read(position_in(state))

    # Requests to the model

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Add the section to the system message, and the reminder behind the conversation.

        With the answer, the state is brought to where the session is.
        """
        here, position = Here.now(), position_in(request.state)
        try:
            session = self._session(here, position)
            tail, kept = self._shown(session, position)
        except AWAY as error:
            tail, kept = unread(error), None
            session = None
        answer = readable(handler(self._prepared(request, tail)), self._boxes)
        return extended(answer, self._noticed(session, position, here) or kept)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """The same from async code."""
        here, position = Here.now(), position_in(request.state)
        try:
            session = await self._asession(here, position)
            shown = partial(self._shown, session, position)
            tail, kept = shown() if session is None else await session.off_loop(shown)
        except AWAY as error:
            tail, kept = unread(error), None
            session = None
        answer = readable(await handler(self._prepared(request, tail)), self._boxes)
        noticed = partial(self._noticed, session, position, here)
        return extended(answer, (noticed() if session is None else await session.off_loop(noticed)) or kept)

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
        if is_current(session, position):
            return reminder, None
        told = news(session, position) if self._section.is_enabled() else ""
        return "\n\n".join(filter(None, [reminder, told])), position_of(session, position)

    def _noticed(
        self, session: Session | None, position: Position | None, here: Here
    ) -> dict[str, Any] | None:
        """Note that the model has read the reminder; the position to keep where that changed the session."""
        if session is None or self._section.policy is None:
            return None
        version = session.version
        with here.calling(session):
            self._steered.notice(session)
        return None if session.version == version else position_of(session, position, here.step)

    def _prepared(self, request: ModelRequest[Any], reminder: str) -> ModelRequest[Any]:
        if self._steered.records:
            self._steered.reading |= readers(request.tools)
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
        return request.override(system_message=system, messages=with_tail(request.messages, reminder))

    # The end of a turn

    @hook_config(can_jump_to=["model"])
    def _after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002 - LangChain gives it
        """Ask the user to approve a plan that waits; send the agent back to steps that are open."""
        here = Here.now()
        try:
            session = self._session(here, position_in(state))
            return None if session is None else self._after(session, here, state)
        except AWAY:
            return None

    @hook_config(can_jump_to=["model"])
    async def _aafter_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002 - the same
        """The same from async code."""
        here, position = Here.now(), position_in(state)
        try:
            session = await self._asession(here, position)
            return (
                None
                if session is None
                else await session.off_loop(partial(self._after, session, here, state))
            )
        except AWAY:
            return None

    def _after(self, session: Session, here: Here, state: Mapping[str, Any]) -> dict[str, Any] | None:
        with here.calling(session):
            return after_turn(session, self._section, state, self._sessions.read, self._steered.holds, here)

    # Calls

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Carry out the calls of a turn in order, and keep the session's position with each result."""
        is_own = request.tool_call["name"] in self._boxes
        if not is_own and not self._steered.records:
            return self._followed(request, handler(request))
        if not is_own:
            self._steered.reading |= readers([request.tool])
        here, position = Here.now(), position_in(request.state)
        with self._in_order(self._order.turn_of, request, here):
            try:
                session = self._session(here, position)
                reason = None if is_own else self._steered.refusal(session, request.tool_call["name"])
            except AWAY as error:
                return away(request, error)
            if is_own:
                called = self._called(request, here)
                with called, self._sessions.within(session), here.calling(session):
                    return answered(handler(request), session, position, here.step)
            seen = 0 if session is None else session.version
            answer = handler(request) if reason is None else refused(request, reason)
            return self._recorded(request, session, here, seen, answer)

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """The same from async code."""
        is_own = request.tool_call["name"] in self._boxes
        if not is_own and not self._steered.records:
            return self._followed(request, await handler(request))
        if not is_own:
            self._steered.reading |= readers([request.tool])
        here, position = Here.now(), position_in(request.state)
        async with self._in_order(self._order.aturn_of, request, here):
            try:
                session = await self._asession(here, position)
                name = request.tool_call["name"]
                reason = None if is_own else await self._steered.arefusal(session, name)
            except AWAY as error:
                return away(request, error)
            if is_own:
                called = self._called(request, here)
                with called, self._sessions.within(session), here.calling(session):
                    return answered(await handler(request), session, position, here.step)
            seen = 0 if session is None else session.version
            answer = await handler(request) if reason is None else refused(request, reason)
            recorded = partial(self._recorded, request, session, here, seen, answer)
            return recorded() if session is None else await session.off_loop(recorded)

    def _recorded(
        self,
        request: ToolCallRequest,
        session: Session | None,
        here: Here,
        seen: int,
        answer: ToolMessage | Command[Any],
    ) -> ToolMessage | Command[Any]:
        """The answer of another tool, with the position of a session that has its call."""
        call, content = request.tool_call, answer.text if isinstance(answer, ToolMessage) else answer
        is_error = isinstance(answer, ToolMessage) and answer.status == "error"
        made = Call(call["id"], call["name"], call["args"])
        with here.calling(session):
            self._steered.record(session, made, self._actor_of(request), content, failed=is_error)
        if self._sessions.are_given:
            return self._followed(request, answer, seen)
        return answered(answer, session, position_in(request.state), here.step)

    def _followed(
        self, request: ToolCallRequest, answer: ToolMessage | Command[Any], seen: int | None = None
    ) -> ToolMessage | Command[Any]:
        """The answer of another tool, with the position of a session that its agents have changed since."""
        try:
            session = self._sessions.given() if self._sessions.are_given else None
        except AWAY:
            return answer
        before = position_in(request.state)
        if session is None or before is None or not is_of(before, session) or is_current(session, before):
            return answer
        return answered(
            answer, session, before, seen=before.get("seen", before["version"] if seen is None else seen)
        )

    def _called(self, request: ToolCallRequest, here: Here) -> Setting:
        """Let the tool know of its call."""
        call_id = request.tool_call["id"]
        named = name_of_turn(here.place, request.state.get("messages", ()), call_id)
        return Setting(_caller, (call_id, self._actor_of(request), named, here.run))

    def _actor_of(self, request: ToolCallRequest) -> str | None:
        return self._actor or request.runtime.config.get("metadata", {}).get("lc_agent_name")

    def _in_order(self, turn_of: Callable[..., Any], request: ToolCallRequest, here: Here) -> Any:
        """Hold back a call until those of its turn that go before it are over."""
        calls, over = last_turn(request.state)
        if len(calls) == 1:
            return nullcontext()  # no other call waits for it
        own, in_order = str(request.tool_call["id"]), self._given.in_order
        is_mark = self._steered.records and request.tool_call["name"] in in_order
        also = {own} if self._steered.records else set()
        ids = [str(c["id"]) for c in calls if is_mark or c["name"] in in_order or c["id"] in also]
        earlier = ids[: ids.index(own)] if own in ids else []
        return turn_of(here.step, own, [each for each in earlier if each not in over])

    def call(self, name: str, arguments: Mapping[str, Any]) -> ToolMessage | str:
        """Carry out the running call of a tool, for the tool itself."""
        call, actor = self._call(name, arguments)
        return message_of(call, carry_out(self._boxes[name], call, actor))

    async def acall(self, name: str, arguments: Mapping[str, Any]) -> ToolMessage | str:
        """The same from async code."""
        call, actor = self._call(name, arguments)
        return message_of(call, await acarry_out(self._boxes[name], call, actor))

    def _call(self, name: str, arguments: Mapping[str, Any]) -> tuple[Call, str | None]:
        call_id, actor, turn, run = _caller.get()
        sent = arguments.get(TEXT, arguments) if arguments.keys() <= {TEXT, CUT} else arguments
        return Call(call_id, name, sent, CUT in arguments, turn, run), actor


for _hook in (PlanningMiddleware.wrap_model_call, PlanningMiddleware.wrap_tool_call):
    _hook.__signature__ = signature(_hook)  # type: ignore[union-attr]  # LangChain asks at each call
