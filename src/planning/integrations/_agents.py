"""The plan of a framework's agent: what the agent is given, and what a policy asks of its other tools."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from planning.integrations._calls import Call
from planning.integrations._rewind import Position, is_current, news, position_of
from planning.integrations._sessions import AWAY, SessionsOfStates, SessionSource
from planning.policy.policy import PlanPolicy
from planning.policy.reducers import PLANNING_TOOLS
from planning.prompt import PlanningStrategy, PlanningToolsSection
from planning.prompt.definitions import schemas_of
from planning.suite.kept import demands_on
from planning.suite.tools import register_plan
from planning.tools import Toolbox, ToolContext, ToolResult
from planning.tools.context import BEGAN, Gate, Refusal
from planning.tools.errors import ContextInvalid
from planning.tools.tool import Declaration
from session import Session, ToolFailed, ToolInvoked


class AgentPlan:
    """The section, the toolboxes and the sessions of an agent, and the policy for its other tools.

    Attributes:
        sessions: Where the sessions come from.
        section: The section.
        boxes: The toolbox of each tool, by the tool's name.
        tools: Each tool, by its name.
        reading: The names of other tools that change nothing: a plan that waits for approval does not block
            them. More are added as they become known.
    """

    def __init__(
        self,
        session: SessionSource | None,
        tools: Iterable[Declaration] | Toolbox,
        section: PlanningToolsSection | None,
        strategy: PlanningStrategy | str,
        policy: PlanPolicy | None,
        read_only: Iterable[str],
    ) -> None:
        if section is not None and policy is not None:
            raise TypeError("give a policy or a section, not both: the section has its policy")
        policy = policy if section is None else section.policy
        self.sessions = SessionsOfStates(_source_of(session, section, tools), policy)
        current = self.sessions.current
        self.section = section or PlanningToolsSection(session=current, strategy=strategy, policy=policy)
        self._copy = f"## {self.section.title}\n\n{self.section.body()}"
        given = tools if isinstance(tools, Toolbox) else Toolbox(tools, session=current)
        own = [tool for tool in self.section.tools() if tool.name not in given.tools]
        self.boxes = dict.fromkeys([tool.name for tool in own], Toolbox(own, session=current))
        self.boxes |= dict.fromkeys(given.tools, given)
        self.tools = {name: box.tools[name] for name, box in self.boxes.items()}
        self.reading = set(read_only)
        if isinstance(read_only, str) or not all(isinstance(each, str) for each in self.reading):
            raise TypeError('read_only must be names of tools, such as ("search", "fetch")')

    # Requests to the model

    @property
    def copy(self) -> str | None:
        """The section as it is in the system prompt, which never changes; None when it is disabled."""
        return self._copy if self.section.is_enabled() else None

    def shown(
        self, session: Session, position: Position | None = None, *more: str
    ) -> tuple[str, dict[str, Any] | None]:
        """The text behind a model's request, and the position to keep if the plan is not that of one."""
        is_given, kept = self.sessions.are_given, None
        if is_given and session.store is not None:
            session.refresh()  # other processes may have changed it
        if position is not None and not is_current(session, position):
            more, kept = (news(session, position), *more), position_of(session, position)
        if not self.section.is_enabled():
            return "", kept
        return "\n\n".join(filter(None, [self.section.reminder(session=session), *more])), kept

    def schemas(self, session: Session) -> dict[str, dict[str, Any]] | None:
        """The schemas of the tools that one request offers, by name; None where that never changes."""
        if all(tool.narrow is None for tool in self.tools.values()):
            return None
        return schemas_of(self.tools.values(), session)

    def notice(self, session: Session) -> None:
        """The model has read the reminder; a store that is away does not end the run."""
        if self.section.is_enabled():
            with suppress(*AWAY):
                self.section.take_notice(session)

    # Calls of a turn

    def is_in_order(self, tool: str) -> bool:
        """True if a tool changes the session at once: the later calls of the turn wait for it."""
        own = self.tools.get(tool)
        return own is not None and not (own.blocking or own.is_async)

    def earlier(self, calls: Sequence[tuple[str, str]], own: str, over: Collection[str]) -> list[str]:
        """The ids of the calls of a turn that a call waits for.

        With a policy that looks at other tools, a planning tool waits for all: they may be its evidence.
        """
        place = next((number for number, each in enumerate(calls) if each[0] == own), 0)
        waits_for_all = bool(calls) and self.records and self.is_in_order(calls[place][1])
        return [
            call_id
            for call_id, tool in calls[:place]
            if call_id not in over and (waits_for_all or self.is_in_order(tool))
        ]

    # The agent's other tools

    @property
    def records(self) -> bool:
        """True if the calls of other tools count: as evidence, as work without a change, or as blocked."""
        policy = demands_on(self.sessions.fixed, self.section.policy)
        return policy is not None and (
            policy.evidence is not None or policy.stale_after is not None or policy.approval
        )

    def holds(self, tool: str) -> bool:
        """True if a plan that waits for approval blocks a tool."""
        own = self.tools.get(tool)
        reads = tool in self.reading if own is None else own.read_only
        return not reads and tool not in PLANNING_TOOLS

    def begin(self, session: Session | None, tool: str) -> Refusal | None:
        """Note when a call begins, in this context; what says why it may not, as ``Gate`` has it."""
        if session is None:
            return None
        moment = session.local_object(Gate).moment
        BEGAN.set(None if moment is None else moment(session))
        return Gate.of(session, tool) if self.holds(tool) else None

    async def refusal(self, session: Session | None, tool: str) -> str | None:
        """Why a tool may not be called now; None where it may."""
        refusal = self.begin(session, tool)
        return None if refusal is None or session is None else await session.run_in_worker(refusal)

    def record(
        self, session: Session | None, call: Call, actor: str | None, answer: object, *, failed: bool
    ) -> None:
        """Note in the session that another tool was called; a store that is away does not end the run."""
        if session is None or not self.records:
            return
        is_success = not failed and not _says_failed(answer)
        text = answer if isinstance(answer, str) else type(answer).__name__
        result = ToolResult(is_success, text, error=None if is_success else text)
        of_events = ToolContext.of(call.context(actor), session).of_events
        event: ToolInvoked | ToolFailed = ToolFailed(call.name, result, **of_events)
        if is_success:
            event = ToolInvoked(call.name, call.arguments, result, **of_events)
        with suppress(*AWAY):
            session.publish(event)

    async def arecord(
        self, session: Session | None, call: Call, actor: str | None, answer: object, *, failed: bool
    ) -> None:
        """Note a call of another tool from async code."""
        if session is not None and self.records:
            await session.run_in_worker(partial(self.record, session, call, actor, answer, failed=failed))


def _says_failed(answer: object) -> bool:
    """True if a tool that returned shows that it failed: ``{"success": false}``."""
    if isinstance(answer, str) and answer.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            answer = json.loads(answer)
    return isinstance(answer, dict) and answer.get("success") is False


def _source_of(
    session: SessionSource | None, section: PlanningToolsSection | None, tools: object
) -> SessionSource | None:
    """The source of the sessions: the one that was given, or that of the section or of the toolbox."""
    if session is not None and section is not None:
        raise TypeError("give a session or a section, not both: the section has its session")
    if session is not None:
        return session
    owner = section if section is not None else tools
    if not isinstance(owner, (PlanningToolsSection, Toolbox)):
        return None

    def find() -> Session | None:
        try:
            return owner.session
        except ContextInvalid:
            return None

    try:
        given = owner.session
    except ContextInvalid:  # outside of any call
        return find
    if given is None:
        return None
    register_plan(given)  # it can be read before the first call
    return find
