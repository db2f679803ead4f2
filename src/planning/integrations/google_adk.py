"""Google ADK: a plan for agents, as a toolset, and as a plugin for the policy of a plan."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from typing import Any, Self
from weakref import WeakKeyDictionary

from planning.integrations._agents import AgentPlan
from planning.integrations._calls import Call, acarry_out, out_of_reach
from planning.integrations._messages import record
from planning.integrations._rewind import (
    Position,
    calling,
    checked,
    is_current,
    position_of,
    settle,
    take_back,
)
from planning.integrations._sessions import AWAY, SessionSource, unread
from planning.policy.policy import PlanPolicy
from planning.prompt import PlanningStrategy, PlanningToolsSection
from planning.suite.approval import decide_approval, decision_of, pending_approval
from planning.tools import Tool, Toolbox
from planning.tools.once import Turn, TurnOrder
from planning.tools.tool import Declaration
from session import Session, SessionId, SessionView

try:
    from google.adk.agents.context import Context
    from google.adk.agents.readonly_context import ReadonlyContext
    from google.adk.events.event import Event
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse
    from google.adk.plugins import BasePlugin
    from google.adk.sessions import Session as AdkSession
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.base_toolset import BaseToolset
    from google.genai.types import Content, FunctionCall, FunctionDeclaration, Part
except ImportError as error:
    raise ImportError(
        "planning in Google ADK's agents needs google-adk: pip install 'session-planning[google-adk]'"
    ) from error

__all__ = ["PlanningToolset"]

KEY = "planning:position"
"""The position in the state of an ADK session; a colon in the key keeps it out of state schemas."""
_RUN = "planning:run"
_ASKED = "planning:asked"
"""The plan that the user was asked to approve, for each call that was blocked for it."""
_SPLITTING = {"LiteLlm", "OpenAILlm", "ApigeeLlm"}
"""Model classes of ADK that send the answers of tools and the text behind them as two messages."""
_PASSING = ("transfer_to_agent", "set_model_response", "exit_loop")
"""Tools of ADK that are not work: a plan that waits for approval does not block them."""


class PlanningToolset(BaseToolset, BasePlugin):
    """Gives an agent a plan: ``Agent(..., tools=[PlanningToolset()])``.

    The section is added to the system instruction, and the reminder to the last content of each request; it
    is not kept in the session. Without a session of the host's, the plan is a part of the ADK session's
    state, and goes wherever that goes. With a policy, give the same object to ``App(plugins=[...])`` as well.
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
    ) -> None:
        """Prepare the tools; one toolset serves any number of agents, users and sessions.

        Args:
            session: The session, or a function that returns the session of a call. It takes ADK's session,
                with its ``user_id``, ``id`` and ``state``, or nothing. Omitted, each ADK session has a plan
                of its own, in its state.
            tools: Further tools, or a toolbox that has them.
            section: The section, instead of ``session``, ``strategy`` and ``policy``.
            strategy: The mindset of the section's copy.
            policy: What the host demands of the plan. It holds for the agent's other tools as well.
            read_only: Names of the agent's other tools that change nothing, which a plan that waits for
                approval does not block; those with ``custom_metadata={"read_only": True}`` are known.
            actor: Who makes the calls, for the history; the name of the agent if omitted.
        """
        BaseToolset.__init__(self)
        BasePlugin.__init__(self, "planning")
        self._plan = plan = AgentPlan(session, tools, section, strategy, policy, read_only)
        plan.reading.update(_PASSING)
        self._sessions, self._section, self._boxes = plan.sessions, plan.section, plan.boxes
        has_gate = plan.section.policy is not None and plan.section.policy.finish_gate is not None
        self._needs_plugin = plan.records or has_gate
        if has_gate and "planning_read_plan" not in self._boxes:
            raise ValueError("finish_gate needs planning_read_plan in ADK: add it to the policy's tools")
        self._actor = actor
        self._order = TurnOrder()
        self._running = WeakKeyDictionary[Context, ExitStack]()
        self._tools = [_PlanningTool(self, each) for each in plan.tools.values()]

    def session_of(self, adk: AdkSession) -> Session | SessionView | None:
        """The session as it was at an ADK session's state, to read the plan: ``select_latest(..., Plan)``.

        Args:
            adk: What the session service's ``get_session`` returned.

        Raises:
            VersionError: The state is of another session, or of a version that the session does not have.
            SnapshotError: What the state holds of the session cannot be read.
        """
        return self._sessions.read(checked(adk.state.get(KEY)), adk)

    # Requests to the model

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:  # noqa: ARG002 - each agent has the same
        """The planning tools, and those given."""
        return list(self._tools)

    async def process_llm_request(self, *, tool_context: Context, llm_request: LlmRequest) -> None:
        """Add the section to the system instruction, and the reminder behind the conversation."""
        invocation = tool_context.get_invocation_context()
        if self._needs_plugin and self not in invocation.plugin_manager.plugins:
            raise RuntimeError(
                "the plan's policy holds for the agent's other tools: give the toolset to the app too, "
                "App(..., plugins=[planning])"
            )
        if self._plan.copy is None:
            return
        llm_request.append_instructions([self._plan.copy])
        if invocation.live_request_queue is not None:
            return  # a live connection is opened with what is sent once
        try:
            session = await self._session(tool_context)
            reminder, run = "", _Run.of(tool_context)
            run.schemas = None
            if session is not None:
                reminder = await session.run_in_worker(partial(self._show, session, tool_context))
        except AWAY as error:
            reminder = unread(error)
        if reminder:
            agent: Any = invocation.agent
            kinds = {kind.__name__ for kind in type(agent.canonical_model).__mro__}
            _add(llm_request.contents, reminder, is_split=not kinds.isdisjoint(_SPLITTING))

    def _show(self, session: Session, context: Context) -> str:
        """The plan, as the model reads it."""
        run, position = _Run.of(context), self._position(context) if self._sessions.are_given else None
        more, run.more = run.more, ""
        shown, kept = self._plan.shown(session, position, more)
        run.schemas = self._plan.schemas(session)
        if kept is not None:
            context.session.state[KEY] = kept  # for the rest of this run
            run.is_behind = True
        return shown

    async def after_model_callback(
        self, *, callback_context: Context, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Note that the model has read the reminder; send it back to steps that are open."""
        agent: Any = callback_context.get_invocation_context().agent
        if llm_response.partial or self not in agent.tools:
            return None
        with suppress(*AWAY):
            session = await self._session(callback_context)
            if session is not None:
                after = partial(self._after_model, session, callback_context, llm_response)
                return await session.run_in_worker(after)
        return None

    def _after_model(self, session: Session, context: Context, response: LlmResponse) -> LlmResponse | None:
        run, answer = _Run.of(context), None
        parts = (response.content and response.content.parts) or []
        with run.calling(session):
            self._plan.notice(session)
            is_end = parts and not any(part.function_call for part in parts)
            if is_end and not response.error_code and not run.is_nested(context):
                finish = self._section.may_finish(session, is_new_turn=not run.has_asked)
                run.has_asked, run.more = True, finish.message
                if not finish.ok:
                    call = Part(function_call=FunctionCall(name="planning_read_plan", args={}))
                    content = Content(role="model", parts=[*parts, call])
                    answer = response.model_copy(update={"content": content})
        if session.version and (run.is_behind or not is_current(session, self._position(context))):
            self._keep(session, context)
            run.is_behind = False
        return answer

    # Calls

    async def call(self, name: str, arguments: Any, context: Context) -> dict[str, Any]:
        """Run a call and return what the model reads of it."""
        run, (turn, earlier) = _Run.of(context), self._turn(context)
        call_id = context.function_call_id
        with self._order.place_of(turn.name, str(call_id), earlier) as pauses:
            for seconds in pauses:
                await asyncio.sleep(seconds)
            try:
                session = await self._session(context)
            except AWAY as error:
                return {"error": out_of_reach(name, error).message}
            with self._sessions.within(session), run.calling(session):
                made = Call(call_id, name, arguments, turn=turn, agent=str(run))
                result = await acarry_out(self._boxes[name], made, self._actor or context.agent_name)
            if session is not None:
                self._keep(session, context)
        return {"result" if result.success else "error": result.message}

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_context: Context, **_: Any
    ) -> dict[str, Any] | None:
        """Block another tool while the plan waits for approval, and ask the user for it."""
        if tool.name in self._boxes or not self._plan.records:
            return None
        if (tool.custom_metadata or {}).get("read_only") is True:
            self._plan.reading.add(tool.name)
        turn, earlier = self._turn(tool_context)
        self._running[tool_context] = stack = ExitStack()
        call_id = str(tool_context.function_call_id)
        for seconds in stack.enter_context(self._order.place_of(turn.name, call_id, earlier)):
            await asyncio.sleep(seconds)
        try:
            session = await self._session(tool_context)
            if session is None:
                return None
            self._plan.begin(session, tool.name)
            reason = await session.run_in_worker(partial(self._refusal, session, tool.name, tool_context))
        except AWAY as error:
            reason = out_of_reach(tool.name, error).message
        return None if reason is None else {"error": reason}

    def _refusal(self, session: Session, name: str, context: Context) -> str | None:
        """Why another tool may not be called; the user is asked to approve the plan, or has answered."""
        run, shown, answer = _Run.of(context), pending_approval(session), context.tool_confirmation
        asked, held = record(context.state.get(_ASKED)), self._plan.begin(session, name)
        with run.calling(session):
            if answer is not None and context.function_call_id in asked:
                context.tool_confirmation = None  # a question of the tool itself is a different one
                given = answer.payload if isinstance(answer.payload, dict) else {}
                decision = decision_of({**given, "decision": "approve" if answer.confirmed else "reject"})
                if shown and decision and asked[context.function_call_id] == shown.digest:
                    decide_approval(session, shown, decision)
                reason = held and held()
                return reason or (None if answer.confirmed else "The user rejected this call.")
            reason = held and held()
        if reason is not None and shown is not None:
            context.state[_ASKED] = {**asked, context.function_call_id: shown.digest}
            payload = {"plan": shown.data, "reason": ""}
            context.request_confirmation(hint=f"Approve this plan?\n{shown.text}", payload=payload)
            context.actions.skip_summarization = True
        return reason

    async def after_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Context, result: Any
    ) -> None:
        """Note a call of another tool."""
        is_error = isinstance(result, dict) and "error" in result and len(result) == 1
        await self._record(tool, tool_args, tool_context, result, failed=is_error)

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: Context, error: Exception
    ) -> None:
        """Note that another tool failed."""
        await self._record(tool, tool_args, tool_context, type(error).__name__, failed=True)

    async def _record(
        self, tool: BaseTool, arguments: Any, context: Context, answer: Any, *, failed: bool
    ) -> None:
        stack = self._running.pop(context, None)
        if stack is None:  # not blocked by us, or noted as failed
            return
        made = Call(context.function_call_id, tool.name, arguments)
        run, actor = _Run.of(context), self._actor or context.agent_name
        with stack, suppress(*AWAY):
            session = await self._session(context)
            if session is not None:
                with run.calling(session):
                    await self._plan.arecord(session, made, actor, answer, failed=failed)
                self._keep(session, context)

    # Where the plan is

    async def _session(self, context: Context) -> Session | None:
        """The session of a call, brought to where ADK's session is, once for each run."""
        run, position = _Run.of(context), self._position(context)
        if not self._sessions.are_given:
            return self._sessions.of_step(f"{_place_of(context.session)}:{context.invocation_id}", position)
        session = self._sessions.given(context.session)
        if session is not None and session.session_id not in run.settled:
            await session.run_in_worker(partial(self._settle, session, run, position, context.session.events))
            run.settled.add(session.session_id)
        return session

    def _settle(self, session: Session, run: _Run, position: Position | None, events: list[Event]) -> None:
        with run.calling(session):
            settle(session, position)
            take_back(session, position, run.place, _find_taken_back(events))

    def _position(self, context: ReadonlyContext) -> Position | None:
        if not self._sessions.are_given and _Run.of(context).is_nested(context):
            return None
        return checked(context.session.state.get(KEY))

    def _keep(self, session: Session, context: Context) -> None:
        """Keep a session's position with the event that a context makes."""
        if self._sessions.are_given or not _Run.of(context).is_nested(context):
            context.state[KEY] = position_of(session, self._position(context))

    def _turn(self, context: Context) -> tuple[Turn, list[str]]:
        """The turn of a call, and the ids of the calls of it to wait for."""
        own, over = str(context.function_call_id), set[str]()
        for event in reversed(context.session.events):
            calls = [(str(each.id), str(each.name)) for each in event.get_function_calls()]
            ids = [each[0] for each in calls]
            if own in ids:
                name = f"{_place_of(context.session)}:{event.id}"
                return Turn(name, ids), self._plan.earlier(calls, own, over)
            over |= {str(each.id) for each in event.get_function_responses()}
        return Turn(context.invocation_id, ()), []


class _PlanningTool(BaseTool):
    """A tool of a toolset, whose toolbox checks the arguments."""

    def __init__(self, planning: PlanningToolset, tool: Tool) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._planning, self._schema = planning, tool.parameters_schema()

    def _get_declaration(self) -> FunctionDeclaration:
        return FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._schema
        )

    async def process_llm_request(self, *, tool_context: Context, llm_request: LlmRequest) -> None:
        """Declare the tool, and only what the plan takes; a call of it is answered in any case."""
        await super().process_llm_request(tool_context=tool_context, llm_request=llm_request)
        schemas = _Run.of(tool_context).schemas
        if schemas is None:
            return
        for tool in llm_request.config.tools or ():
            declared: list[FunctionDeclaration] = getattr(tool, "function_declarations", None) or []
            for each in [each for each in declared if each.name == self.name]:
                each.parameters_json_schema = schemas.get(self.name)
                if self.name not in schemas:
                    declared.remove(each)

    async def run_async(self, *, args: dict[str, Any], tool_context: Context) -> dict[str, Any]:
        """Run a call."""
        return await self._planning.call(self.name, args, tool_context)


class _Run(str):
    """A run of the outermost agent. What its tools run in ADK sessions of their own is a part of it.

    It is the id of the invocation: a string, so that a host can write down the state that has it.

    Attributes:
        place: See ``FrameworkChange``.
        settled: The sessions for which it is settled whether they go back.
        more: What the model reads once, behind the reminder.
        is_behind: Whether the model has read more than the position that is kept says.
        schemas: Those of the tools that the newest request offers; None for those that never change.
        has_asked: Whether the agent has asked to finish.
    """

    __slots__ = ("has_asked", "is_behind", "more", "place", "schemas", "settled")
    place: str
    settled: set[SessionId]
    more: str
    is_behind: bool
    schemas: dict[str, dict[str, Any]] | None
    has_asked: bool

    def __new__(cls, at: str, place: str = "") -> Self:
        """Begin a run; without a place where it is copied."""
        run = super().__new__(cls, at)
        run.place, run.settled, run.more = place, set(), ""
        run.is_behind = run.has_asked = False
        run.schemas = None
        return run

    @classmethod
    def of(cls, context: ReadonlyContext) -> _Run:
        """The run of a context, kept in its session's state for as long as the run lasts."""
        state = context.session.state
        run = state.get(_RUN)
        if not isinstance(run, cls):  # no client sends such an object
            run = state[_RUN] = cls(context.invocation_id, _place_of(context.session))
        return run

    def is_nested(self, context: ReadonlyContext) -> bool:
        """True if a context is that of an agent which a tool runs."""
        return self.place != _place_of(context.session)

    def calling(self, session: Session | None) -> AbstractContextManager[None]:
        """Let changes of a session, in this context, carry where they were made."""
        return calling(session, self.place, str(self))


def _place_of(adk: AdkSession) -> str:
    """The place of an ADK session, as ``FrameworkChange`` names it."""
    return f"google_adk:{json.dumps([adk.app_name, adk.user_id, adk.id])}"


def _find_taken_back(events: Sequence[Event]) -> set[str]:
    """The runs of an ADK session that ``rewind_async`` has taken back, and did not bring back."""
    starts, undone, since = dict[str, int](), set[str](), len(events)
    for number, event in enumerate(events):
        starts.setdefault(event.invocation_id, number)
    for number, event in reversed(list(enumerate(events))):
        target = event.actions.rewind_before_invocation_id
        if number >= since:
            undone.add(event.invocation_id)
        elif target:
            since = starts.get(target, since)
    return undone


def _add(contents: list[Content], text: str, *, is_split: bool) -> None:
    """Add text behind the last content of a request if that is the user's, or the answers of tools."""
    last = contents[-1] if contents else None
    if last is None or last.role != "user" or not last.parts:
        contents.append(Content(role="user", parts=[Part(text=text)]))
        return
    *parts, part = last.parts
    answer = part.function_response
    if is_split and answer is not None:
        answer = answer.model_copy(update={"response": {**(answer.response or {}), "reminder": text}})
        part = part.model_copy(update={"function_response": answer})
    else:
        parts, part = last.parts, Part(text=text)
    contents[-1] = last.model_copy(update={"parts": [*parts, part]})
