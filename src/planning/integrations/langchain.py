"""LangChain: a plan for agents of ``create_agent``, and LangChain's tools in a toolbox."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from inspect import isawaitable, signature
from typing import Annotated, Any, NotRequired, Self

from planning.integrations._agents import AgentPlan
from planning.integrations._calls import Call, out_of_reach
from planning.integrations._rewind import Position, is_current, is_of, merge, position_of, setting
from planning.integrations._sessions import AWAY, SessionSource, unread
from planning.policy.policy import PlanPolicy
from planning.prompt import PlanningStrategy, PlanningToolsSection
from planning.tools import Toolbox
from planning.tools.once import TurnOrder
from planning.tools.tool import Declaration
from session import Session, SessionView

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
    from langchain_core.messages import ToolMessage
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.types import Command

    from planning.integrations._langchain_messages import (
        BoundTool,
        answered,
        caller,
        last_turn,
        offered,
        position_in,
        readable,
        readers,
        refused,
        tools_from,
        turn_of,
        with_system,
        with_tail,
    )
    from planning.integrations._langgraph import Here, run_plain
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


_Schemas = Mapping[str, dict[str, Any]]
_Answer = ToolMessage | Command[Any]
_Response = ModelResponse[Any] | ExtendedModelResponse[Any]


class PlanningMiddleware(AgentMiddleware[PlanningState, Any, Any]):
    """Gives an agent of ``create_agent`` a plan that rewinds with its checkpoints.

    The planning section is added to the system message, and the reminder to the last message of each request;
    the reminder is not kept in the state. Calls of one turn are run in order. Put this
    middleware first in the list, so that it sees each call before other middleware delays it.
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
        strategy: PlanningStrategy | str = PlanningStrategy.REACT,
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
                approval does not block; those with ``metadata={"read_only": True}`` are known.
            actor: Who makes the calls, for the history; the name of the agent if omitted.
        """
        super().__init__()
        self._plan = plan = AgentPlan(session, tools, section, strategy, policy, read_only)
        self._sessions, self._section, self._boxes = plan.sessions, plan.section, plan.boxes
        self._actor = actor
        self._order = TurnOrder()
        self.tools = [BoundTool.of(each, self._boxes[each.name]) for each in plan.tools.values()]

    def session_of(self, state: Mapping[str, Any]) -> Session | SessionView | None:
        """The session as it was at an agent's state, to read the plan: ``select_latest(..., Plan)``.

        Args:
            state: What ``invoke`` returned, or ``get_state(config).values``.

        Raises:
            VersionError: The state is of another session, or of a version that the session does not have.
            SnapshotError: What the state holds of the session cannot be read.
        """
        return self._sessions.read(position_in(state))

    # Requests to the model

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> _Response:
        """Add the section to the system message, and the reminder behind the conversation.

        With the answer, the state is brought to where the session is.
        """
        return run_plain(self._ask(request, handler, Here.now(is_async=False)))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> _Response:
        """Do in async code what ``wrap_model_call`` does."""
        return await self._ask(request, handler, Here.now(is_async=True))

    async def _ask(self, request: ModelRequest[Any], handler: Callable[..., Any], here: Here) -> _Response:
        position, session, kept = position_in(request.state), None, None
        try:
            session = await self._session(here, position)
            tail, kept, schemas = await here.finish(session, partial(self._show, session, position))
        except AWAY as error:
            tail, schemas, session = unread(error), None, None
        answer = readable(await _make(handler(self._prepare(request, tail, schemas))), self._boxes)
        noticed = await here.finish(session, partial(self._notice, session, position, here))
        if noticed is None and kept is None:
            return answer
        return ExtendedModelResponse(answer, Command(update={"planning": noticed or kept}))

    async def _session(self, here: Here, position: Position | None) -> Session | None:
        """The host's session, brought to where the run begins; or the one that the calls of a step share."""
        if not self._sessions.are_given:
            return self._sessions.of_step(here.step, position)
        session = self._sessions.given()
        if session is not None:
            await here.follow(session, position)
        return session

    def _show(
        self, session: Session | None, position: Position | None
    ) -> tuple[str, dict[str, Any] | None, _Schemas | None]:
        """The plan, as the model reads it, the position to keep with the answer, and what is offered."""
        if session is None:
            return "", None, None
        tail, kept = self._plan.shown(session, position)
        kept = position_of(session) if self._sessions.are_given and position is None else kept
        return tail, kept, self._plan.schemas(session)

    def _notice(
        self, session: Session | None, position: Position | None, here: Here
    ) -> dict[str, Any] | None:
        """Note that the model has read the reminder; the position to keep where that changed the session."""
        if session is None or self._section.policy is None:
            return None
        version = session.version
        with here.calling(session):
            self._plan.notice(session)
        return None if session.version == version else position_of(session, position, here.step)

    def _prepare(
        self, request: ModelRequest[Any], reminder: str, schemas: _Schemas | None
    ) -> ModelRequest[Any]:
        if self._plan.records:
            self._plan.reading |= readers(request.tools)
        text = self._plan.copy
        if text is None:
            return request
        system = with_system(request.system_message, text)
        tools = request.tools if schemas is None else offered(request.tools, schemas)
        messages = with_tail(request.messages, reminder)
        return request.override(system_message=system, messages=messages, tools=tools)

    # The end of a turn

    @hook_config(can_jump_to=["model"])
    def _after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002 - LangChain gives it
        """Ask the user to approve a plan that waits; send the agent back to steps that are open."""
        return run_plain(self._after(state, Here.now(is_async=False)))

    async def _aafter_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:  # noqa: ARG002 - the same
        """Do that in async code; LangChain knows from the other one where it may jump."""
        return await self._after(state, Here.now(is_async=True))

    async def _after(self, state: Mapping[str, Any], here: Here) -> dict[str, Any] | None:
        try:
            session = await self._session(here, position_in(state))
            if session is None:
                return None
            with here.calling(session):
                return await here.finish(session, partial(after_turn, session, self._plan, state, here))
        except AWAY:
            return None

    # Calls

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], _Answer]
    ) -> _Answer:
        """Run the calls of a turn in order, and keep the session's position with each result."""
        return run_plain(self._carry_out(request, handler, Here.now(is_async=False)))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[_Answer]]
    ) -> _Answer:
        """Do in async code what ``wrap_tool_call`` does."""
        return await self._carry_out(request, handler, Here.now(is_async=True))

    async def _carry_out(self, request: ToolCallRequest, handler: Callable[..., Any], here: Here) -> _Answer:
        name, call_id = request.tool_call["name"], request.tool_call["id"]
        position, is_own = position_in(request.state), name in self._boxes
        if not is_own:
            if not self._plan.records:
                return self._follow(request, await _make(handler(request)))
            self._plan.reading |= readers([request.tool])
        calls, over = last_turn(request.state)
        earlier = self._plan.earlier([(str(c["id"]), c["name"]) for c in calls], str(call_id), over)
        with self._order.place_of(here.step, str(call_id), earlier) as pauses:
            for seconds in pauses:
                await here.pause(seconds)
            try:
                session = await self._session(here, position)
                held = None if is_own else self._plan.begin(session, name)
                reason = None if held is None else await here.finish(session, held)
            except AWAY as error:
                return refused(request, out_of_reach(name, error).message)
            if is_own:
                named = turn_of(here.place, request.state.get("messages", ()))
                called = setting(caller, (call_id, named, here.run, self._actor_of(request)))
                with called, self._sessions.within(session), here.calling(session):
                    return answered(await _make(handler(request)), session, position, here.step)
            seen = 0 if session is None else session.version
            answer = await _make(handler(request)) if reason is None else refused(request, reason)
            return await here.finish(session, partial(self._record, request, session, here, seen, answer))

    def _record(
        self, request: ToolCallRequest, session: Session | None, here: Here, seen: int, answer: _Answer
    ) -> _Answer:
        """The answer of another tool, with the position of a session that has its call."""
        call, content = request.tool_call, answer.text if isinstance(answer, ToolMessage) else answer
        is_error = isinstance(answer, ToolMessage) and answer.status == "error"
        made = Call(call["id"], call["name"], call["args"])
        with here.calling(session):
            self._plan.record(session, made, self._actor_of(request), content, failed=is_error)
        if self._sessions.are_given:
            return self._follow(request, answer, seen)
        return answered(answer, session, position_in(request.state), here.step)

    def _follow(self, request: ToolCallRequest, answer: _Answer, seen: int | None = None) -> _Answer:
        """The answer of another tool, with the position of a session that its agents have changed since."""
        try:
            session = self._sessions.given() if self._sessions.are_given else None
        except AWAY:
            return answer
        before = position_in(request.state)
        if session is None or before is None or not is_of(before, session) or is_current(session, before):
            return answer
        seen = before["version"] if seen is None else seen
        return answered(answer, session, before, seen=before.get("seen", seen))

    def _actor_of(self, request: ToolCallRequest) -> str | None:
        return self._actor or request.runtime.config.get("metadata", {}).get("lc_agent_name")


async def _make(answer: Any) -> Any:
    """The result of a handler, also of one in async code."""
    return await answer if isawaitable(answer) else answer


for _hook in (PlanningMiddleware.wrap_model_call, PlanningMiddleware.wrap_tool_call):
    _hook.__signature__ = signature(_hook)  # type: ignore[union-attr]  # LangChain asks at each call
