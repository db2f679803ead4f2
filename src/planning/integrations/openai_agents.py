"""The OpenAI Agents SDK: a plan for its agents, as tools and what a run of them needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from typing import Any

from planning.integrations._agents import AgentPlan
from planning.integrations._calls import Call, acarry_out, in_turn, out_of_reach
from planning.integrations._messages import with_tail
from planning.integrations._sessions import AWAY, SessionSource, unread
from planning.policy.policy import PlanPolicy
from planning.prompt import PlanningStrategy, PlanningToolsSection
from planning.prompt.definitions import tool_definitions
from planning.suite.approval import decide_approval, decision_of, pending_approval
from planning.tools import Toolbox
from planning.tools.tool import Declaration
from session import Session, ToolFailed, VersionError

try:
    from agents import FunctionTool, RunConfig, RunContextWrapper, Tool, default_tool_error_function
    from agents.run_config import CallModelData, CallModelInputFilter, ModelInputData, ToolExecutionConfig
    from agents.tool_context import ToolContext
except ImportError as error:
    raise ImportError(
        "planning in the OpenAI Agents SDK needs openai-agents: pip install 'session-planning[openai-agents]'"
    ) from error

__all__ = ["PlanningTools", "planning_tools"]

_MOST_SINCE = 200
"""The most changes of a session while the user is asked about a plan."""
_Invoked = Callable[[ToolContext[Any], str], Awaitable[Any]]


class PlanningTools(list[Tool]):
    """The tools of an agent that plans, for ``Agent(tools=[*planning, ...])``, and what its runs need.

    One of these serves any number of agents, runs and sessions. Make one with ``planning_tools``.

    Attributes:
        section: The section; its ``may_finish()`` says whether work is left.
        instructions: The section's text, which never changes. A run with ``run_config()`` adds it by itself.
    """

    def __init__(self, plan: AgentPlan, others: Iterable[FunctionTool], actor: str | None) -> None:
        self.section, self.instructions = plan.section, plan.copy or ""
        self._plan, self._sessions, self._boxes, self._actor = plan, plan.sessions, plan.boxes, actor
        self._has_approval = plan.section.policy is not None and plan.section.policy.approval
        super().__init__(map(self._of_box, plan.boxes))
        self._own = {id(each.on_invoke_tool) for each in self if isinstance(each, FunctionTool)}
        self.extend(map(self._hold, others))

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """The configuration of a run: each request has the section, and its last item ends with the reminder.

        An unknown tool is answered, and does not end the run. Where a policy looks at other tools, the calls
        of a turn are made one after the other, so that each sees what those before it did.

        Args:
            config: Your own, which stays as it is otherwise; your ``call_model_input_filter`` comes first.

        Raises:
            TypeError: It is something else.
        """
        config = RunConfig() if config is None else config
        if not isinstance(config, RunConfig):
            raise TypeError(f"config must be a RunConfig, got {type(config).__name__}")
        in_order = ToolExecutionConfig(max_function_tool_concurrency=1) if self._plan.records else None
        is_private = any(each.returns_private_data for each in self._plan.tools.values())
        return replace(
            config,
            call_model_input_filter=partial(self._filter, config.call_model_input_filter),
            tool_not_found_behavior="return_error_to_model",
            tool_execution=config.tool_execution or in_order,
            trace_include_sensitive_data=config.trace_include_sensitive_data and not is_private,
        )

    # Requests to the model

    async def _filter(self, before: CallModelInputFilter | None, data: CallModelData[Any]) -> ModelInputData:
        """Add the section and the reminder to a request of an agent that has the planning tools."""
        own = {id(each) for each in data.model_data.input}
        if before is not None:
            changed = before(data)
            data = replace(data, model_data=await changed if isawaitable(changed) else changed)
        sent, named = data.model_data, (getattr(each, "on_invoke_tool", None) for each in data.agent.tools)
        if not self.section.is_enabled() or self._own.isdisjoint(map(id, named)):
            return sent
        if self.instructions not in (sent.instructions or ""):
            text = "\n\n".join(filter(None, [sent.instructions, self.instructions]))
            sent = replace(sent, instructions=text)
        try:
            session = self._sessions.given(data.context)
            reminder = "" if session is None else await session.run_in_worker(partial(self._show, session))
        except AWAY as error:
            reminder = unread(error)
        items = with_tail(sent.input, reminder)
        last: Any = sent.input[-1] if sent.input else None
        if len(items) == len(sent.input) and id(last) in own and isinstance(last, dict):
            # The SDK made this copy for the request, and goes by it for what a server already has.
            last.update(items[-1])
            items[-1] = last
        return replace(sent, input=items)

    def _show(self, session: Session) -> str:
        reminder, _ = self._plan.shown(session)
        self._plan.notice(session)
        return reminder

    # Calls

    def _of_box(self, name: str) -> FunctionTool:
        """A tool of a toolbox, which checks the arguments itself."""
        (definition,) = tool_definitions("openai-responses", tools=[self._plan.tools[name]])
        return FunctionTool(
            name,
            definition["description"],
            definition["parameters"],
            partial(self._call, None, name),
            strict_json_schema=False,
            needs_approval=self._asking(name),
        )

    def _hold(self, tool: FunctionTool) -> FunctionTool:
        """A tool of the SDK, whose calls the policy sees."""
        if tool.name in self._boxes:
            raise ValueError(f"there are two tools named {tool.name}: rename one")
        if not self._plan.records:
            return tool
        held, asking = copy(tool), self._asking(tool.name)
        if asking and callable(tool.needs_approval):
            raise ValueError(
                f"{tool.name} has a needs_approval function, and would wait for the plan's approval as well: "
                "remove the function, or name the tool in read_only"
            )
        held.on_invoke_tool = partial(self._call, tool.on_invoke_tool, tool.name)
        held.needs_approval = tool.needs_approval or asking
        return held

    def _asking(self, name: str) -> Any:
        """The ``needs_approval`` of a tool: a function where a plan that waits holds the tool back."""
        is_held = self._has_approval and self._plan.holds(name)
        return partial(self._needs_approval, name) if is_held else False

    async def _needs_approval(
        self, name: str, ctx: RunContextWrapper[Any], _arguments: dict[str, Any], call_id: str
    ) -> bool:
        """True if the user is asked about a call, because the plan waits; noted in the history."""
        with suppress(*AWAY):  # the call itself says so
            session = self._sessions.given(ctx.context)
            if session is None:
                return False
            await session.run_in_worker(partial(self._decide, session, ctx))
            reason = await self._plan.refusal(session, name)
            if reason is not None and pending_approval(session) is not None:
                call = Call(call_id, name, None)
                await self._plan.arecord(session, call, self._actor, reason, failed=True)
                return True
        return False

    async def _call(self, tool: _Invoked | None, name: str, ctx: ToolContext[Any], arguments: str) -> Any:
        """Run a call: of a tool of the SDK, or else of one in a toolbox."""
        actor = self._actor or (None if ctx.agent is None else ctx.agent.name)
        item = getattr(ctx.tool_call, "id", None)  # the server's id of this call in this response
        (call,) = in_turn({"id": item}, [Call(ctx.tool_call_id, name, arguments, agent=ctx.usage)])
        try:
            session = self._sessions.given(ctx.context)
            if session is not None and self._has_approval:
                await session.run_in_worker(partial(self._decide, session, ctx, call))
            reason = None if tool is None else await self._plan.refusal(session, name)
        except AWAY as error:
            return out_of_reach(name, error).message
        with self._sessions.within(session):
            if tool is None:
                return (await acarry_out(self._boxes[name], call, actor)).message
            answer = await tool(ctx, arguments) if reason is None else reason
            is_failed = reason is not None or answer == default_tool_error_function(ctx, Exception())
            await self._plan.arecord(session, call, actor, answer, failed=is_failed)
            return answer

    def _decide(self, session: Session, ctx: RunContextWrapper[Any], call: Call | None = None) -> None:
        """Approve the plan if the user approved this call; else reject it if the user rejected another.

        The plan is the one that waited when the user was asked about that call.
        """
        if pending_approval(session) is None:
            return
        is_approved = call is not None and ctx.is_tool_approved(call.name, call.call_id) is True
        own = None if call is None else call.context(None)["call_id"]
        with suppress(VersionError):  # a session in memory may keep a part of its history
            for change in reversed(session.history(max(0, session.version - _MOST_SINCE))):
                for held in change.events:
                    if not isinstance(held, ToolFailed) or held.call_id is None:
                        continue
                    is_rejected = ctx.is_tool_approved(held.name, held.call_id) is False
                    if held.call_id == own if is_approved else is_rejected:
                        reason = ctx.get_rejection_message(held.name, held.call_id)
                        said = {"decision": "approve" if is_approved else "reject", "reason": reason}
                        shown, decision = pending_approval(session.at(change.version)), decision_of(said)
                        if shown is not None and decision is not None:
                            decide_approval(session, shown, decision)
                        return


def planning_tools(
    session: SessionSource | None = None,
    *,
    tools: Iterable[Declaration | FunctionTool] | Toolbox = (),
    section: PlanningToolsSection | None = None,
    strategy: PlanningStrategy | str = PlanningStrategy.REACT,
    policy: PlanPolicy | None = None,
    read_only: Iterable[str] = (),
    actor: str | None = None,
) -> PlanningTools:
    """The planning tools for agents of the OpenAI Agents SDK, and what their runs need.

    Args:
        session: The session, or a function that returns the session of a call. It takes the run's context,
            which is what ``Runner.run(context=...)`` was given, or nothing.
        tools: Further tools, or a toolbox that has them. Function tools of the SDK may be among them: a
            policy blocks them, and counts their calls as evidence.
        section: The section, instead of ``session``, ``strategy`` and ``policy``.
        strategy: The mindset of the section's copy.
        policy: What the host demands of the plan.
        read_only: Names of function tools of the SDK that change nothing, which a plan that waits for
            approval does not block.
        actor: Who makes the calls, for the history; the name of the agent if omitted.

    Raises:
        TypeError: There is no session, or an argument has the wrong type.
        ValueError: Two tools have the same name, or one has a name that OpenAI does not take.
    """
    others: list[FunctionTool] = []
    if not isinstance(tools, Toolbox):
        declared: list[Declaration] = []
        for each in tools:
            others.append(each) if isinstance(each, FunctionTool) else declared.append(each)
        tools = declared
    plan = AgentPlan(session, tools, section, strategy, policy, read_only)
    if not plan.sessions.are_given:
        raise TypeError(
            "planning_tools needs a session, or a function that returns one: the SDK does not keep the plan"
        )
    return PlanningTools(plan, others, actor)
