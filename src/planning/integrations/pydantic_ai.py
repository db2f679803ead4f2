"""Pydantic AI: a plan for agents, as a capability with its toolset."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from planning.integrations._agents import AgentPlan
from planning.integrations._calls import Call, acarry_out, out_of_reach
from planning.integrations._rewind import (
    Position,
    calling,
    go_back,
    is_current,
    is_older,
    position_of,
    settle,
)
from planning.integrations._sessions import AWAY, SessionSource, unread
from planning.plan.model import Plan
from planning.policy.policy import PlanPolicy
from planning.prompt import PlanningStrategy, PlanningToolsSection
from planning.suite.events import last_change
from planning.tools import Toolbox
from planning.tools.tool import Declaration
from session import Session, SessionView

try:
    from pydantic_ai import DeferredToolRequests, ModelRequestNode, RunContext
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.exceptions import ToolFailedError, ToolRetryError
    from pydantic_ai.messages import (
        ModelMessage,
        ModelRequest,
        ModelResponse,
        ToolCallPart,
        ToolReturn,
        ToolReturnPart,
        UserPromptPart,
    )
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset
    from pydantic_graph import End

    from planning.integrations._pydantic_messages import (
        KEY,
        TEXT,
        PlanningToolset,
        made_of,
        offered,
        position_in,
        turn_of,
        unkept,
        with_tail,
    )
except ImportError as error:
    raise ImportError(
        "planning in Pydantic AI's agents needs pydantic-ai: pip install 'session-planning[pydantic-ai]'"
    ) from error

__all__ = ["Planning"]

_LOST = "The plan of this conversation is lost: its messages were shortened, or lost their metadata."
Mindset = Literal["react", "plan-act-reflect", "goal-decompose-route-synthesise"]


@dataclass(init=False, repr=False, eq=False)  # as Agent.from_spec demands
class Planning(AbstractCapability[Any]):
    """Gives an agent a plan: ``Agent(..., capabilities=[Planning()])``.

    The section is a static instruction, and the reminder comes last in each request, behind a cache point; it
    is not kept in the message history. Messages keep the session's position as metadata, which the model does
    not see. Without a session of the host's, the plan is the message history's own.
    """

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
        follow_history: bool = False,
        id: str | None = KEY,  # noqa: A002 - the name that pydantic-ai gives it
    ) -> None:
        """Prepare the tools; one capability serves any number of runs and sessions.

        Args:
            session: The session, or a function that returns the session of a call. It takes the
                ``RunContext``, whose ``deps`` may hold the session, or nothing. Omitted, each run has a
                session of its own in memory, which is made of the message history.
            tools: Further tools, or a toolbox that has them.
            section: The section, instead of ``session``, ``strategy`` and ``policy``.
            strategy: The mindset of the section's copy.
            policy: What the host demands of the plan. It holds for the agent's other tools as well.
            read_only: Names of the agent's other tools that change nothing, which a plan that waits for
                approval does not block; those with ``metadata={"read_only": True}`` are known.
            actor: Who makes the calls, for the history; the name of the agent if omitted.
            follow_history: Whether a run with an earlier message history rewinds the host's session to that
                point. Two runs at once with the same history then take back each other's changes.
            id: The id of the capability and of its toolset.
        """
        self.id = id
        self._plan = plan = AgentPlan(session, tools, section, strategy, policy, read_only)
        self._sessions, self._section, self._boxes = plan.sessions, plan.section, plan.boxes
        self._actor, self._follows = actor, follow_history
        self._own: Session | None = None  # of the run, when it comes from the message history
        self._position: Position | None = None
        self._is_lost = False
        self._has_asked = False  # in this run, whether the agent may end

    @classmethod
    def from_spec(
        cls,
        strategy: Mindset = "react",
        actor: str | None = None,
        id: str | None = KEY,  # noqa: A002 - as above
    ) -> Planning:
        """Make the capability for ``Agent.from_spec``, with a strategy by its name.

        Raises:
            ValueError: There is no such strategy.
        """
        return cls(strategy=strategy, actor=actor, id=id)

    def session_of(
        self, messages: Sequence[ModelMessage], ctx: RunContext[Any] | None = None
    ) -> Session | SessionView | None:
        """The session as it was at the end of a message history, to read it.

        Args:
            messages: What ``result.all_messages()`` returned, all or up to any point.
            ctx: The context of a run, for a ``session`` that takes it.

        Raises:
            VersionError: The messages are of another session, or of a version that the session does not have.
            SnapshotError: What the messages hold of the session cannot be read.
        """
        if not self._sessions.are_given:
            return made_of(messages, self._sessions)[0]
        return self._sessions.read(position_in(messages), ctx)

    def plan_of(self, messages: Sequence[ModelMessage], session: Session | None = None) -> Plan | None:
        """The plan at the end of a message history; None when there was none.

        Args:
            messages: The messages, all or up to any point.
            session: The session, when it has a store: then the messages hold only its version.

        Raises:
            VersionError: The session does not have that version.
            SnapshotError: What the messages hold is not a plan.
        """
        position = position_in(messages)
        if session is not None and position is not None and "plan" not in position:
            return session.at(position["version"]).select_latest(Plan)
        found = None if position is None and self._sessions.are_given else self.session_of(messages)
        return None if found is None else found.select_latest(Plan)

    # What an agent asks of a capability

    async def for_run(self, ctx: RunContext[Any]) -> Planning:
        """The capability of one run, which begins where the message history ends."""
        run = copy(self)
        run._position = position = position_in(ctx.messages)
        if not self._sessions.are_given:
            run._own, run._is_lost = made_of(ctx.messages, self._sessions)
            if run._is_lost:
                warnings.warn(f"{_LOST} Keep them whole, or give Planning a session.", stacklevel=2)
            if run._own.version:
                run._position = position_of(run._own, position)
            return run
        try:
            session = self._session(ctx)
            if session is not None:
                await session.run_in_worker(partial(run._begin, session, ctx, position))
        except AWAY:
            pass  # each request and each call says so
        return run

    def _begin(self, session: Session, ctx: RunContext[Any], position: Position | None) -> None:
        with calling(session, _place(ctx), str(ctx.run_id)):
            settle(session, position)
            last = last_change(session, _place(ctx)) if self._follows else None
            is_short = position is not None or not any(unkept(ctx.messages, self._boxes))
            if last is not None and is_short and is_older(session, position, last):
                go_back(session, position, last)

    def get_instructions(self) -> str | None:
        """The section, which never changes."""
        return self._plan.copy

    def get_toolset(self) -> AbstractToolset[Any]:
        """The planning tools, and those given."""
        return PlanningToolset(self.id, self._plan, self.call)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Add the reminder to the last message of this request, and offer the tools that the plan takes."""
        if not self._section.is_enabled():
            return request_context
        reminder, schemas = await self._show(ctx)
        messages = request_context.messages
        last = messages[-1] if messages else None
        if reminder and isinstance(last, ModelRequest):
            request_context.messages = [*messages[:-1], with_tail(last, reminder, request_context.model)]
        if schemas is not None:
            parameters = request_context.model_request_parameters
            tools = offered(parameters.function_tools, self._boxes, schemas)
            request_context.model_request_parameters = replace(parameters, function_tools=tools)
        return request_context

    async def _show(self, ctx: RunContext[Any]) -> tuple[str, dict[str, dict[str, Any]] | None]:
        """The plan, as the model reads it, and the schemas of the tools that it takes."""
        try:
            session = self._session(ctx)
            if session is None:
                return "", None
            lost = [_LOST] * self._is_lost
            (reminder, kept), schemas = await session.run_in_worker(
                lambda: (self._plan.shown(session, self._position, *lost), self._plan.schemas(session))
            )
        except AWAY as error:
            return unread(error), None
        self._position, self._is_lost = kept or self._position, False
        return reminder, schemas

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Keep the position with an answer to messages without one, if only the last messages are kept."""
        await self._noting(ctx, self._plan.notice)
        if self._position is None or position_in(request_context.messages[-1:]) is not None:
            return response
        return replace(response, metadata={**(response.metadata or {}), KEY: self._position})

    async def after_node_run(self, ctx: RunContext[Any], *, node: Any, result: Any) -> Any:  # noqa: ARG002 - as below
        """Send the agent back to steps that are open, as ``finish_gate`` says; no retries are used up."""
        if not isinstance(result, End) or isinstance(result.data.output, DeferredToolRequests):
            return result
        is_new = ctx.prompt is not None and not self._has_asked
        self._has_asked = True
        finish = await self._noting(ctx, partial(self._section.may_finish, is_new_turn=is_new))
        if finish is None or finish.ok:
            return result
        return ModelRequestNode(ModelRequest([UserPromptPart(finish.message)]))

    async def _noting(self, ctx: RunContext[Any], note: Callable[[Session], Any]) -> Any:
        """Note something in the session of a run with a policy; None if there is none, or it is away."""
        if self._section.policy is None:
            return None
        with suppress(*AWAY):
            session = self._session(ctx)
            if session is None:
                return None
            with calling(session, _place(ctx), str(ctx.run_id)):
                noted = await session.run_in_worker(partial(note, session))
            if self._position is None or not is_current(session, self._position):
                self._position = position_of(session, self._position)
            return noted
        return None

    # Calls

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, handler: Any
    ) -> Any:
        """Block another tool while the plan waits for approval, and note its call."""
        name, plan = call.tool_name, self._plan
        if name in self._boxes or tool_def.kind == "output" or not plan.records:
            return await handler(args)
        if (tool_def.metadata or {}).get("read_only") is True:
            plan.reading.add(name)
        try:
            reason = await plan.refusal(self._session(ctx), name)
        except AWAY as error:
            reason = out_of_reach(name, error).message
        made = Call(call.tool_call_id, name, call.args)
        noting = partial(plan.record, call=made, actor=self._actor_of(ctx))
        if reason is not None:
            await self._noting(ctx, partial(noting, answer=reason, failed=True))
            raise ToolFailedError(ToolReturnPart(name, reason, call.tool_call_id, outcome="failed"))
        try:
            answer = await handler(args)
        except (ToolFailedError, ToolRetryError) as error:
            await self._noting(ctx, partial(noting, answer=str(error), failed=True))
            raise
        value = answer.return_value if isinstance(answer, ToolReturn) else answer
        await self._noting(ctx, partial(noting, answer=value, failed=False))
        return answer

    async def call(self, name: str, arguments: dict[str, Any], ctx: RunContext[Any]) -> ToolReturn[str]:
        """Run a call of the agent's run.

        Raises:
            ToolFailedError: It failed; the model reads why, and the tool's retries are not used up.
        """
        actor = self._actor_of(ctx)
        try:
            session = self._session(ctx)
        except AWAY as error:
            session, result = None, out_of_reach(name, error)
        else:
            turn = turn_of(ctx.messages, ctx.tool_call_id)
            sent = arguments.get(TEXT, arguments)
            call = Call(ctx.tool_call_id, name, sent, turn=turn, agent=ctx.run_id)
            with self._sessions.within(session), calling(session, _place(ctx), str(ctx.run_id)):
                result = await acarry_out(self._boxes[name], call, actor)
        if session is not None:
            self._position = position_of(session, self._position)
        kept = {KEY: self._position}
        if result.success:
            return ToolReturn(result.message, metadata=kept)
        call_id = ctx.tool_call_id or ""
        raise ToolFailedError(ToolReturnPart(name, result.message, call_id, metadata=kept, outcome="failed"))

    def _actor_of(self, ctx: RunContext[Any]) -> str | None:
        return self._actor or (None if ctx.agent is None else ctx.agent.name)

    def _session(self, ctx: RunContext[Any]) -> Session | None:
        """The session of a call: the host's, or that of the run."""
        return self._sessions.given(ctx) if self._sessions.are_given else self._own


def _place(ctx: RunContext[Any]) -> str:
    return f"pydantic_ai:{ctx.conversation_id}"
