"""What a plan's policy asks of a framework's agent, beside its planning tools."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from planning.integrations._common import Call
from planning.integrations._sessions import AWAY, AgentTools
from planning.policy.reducers import PLANNING_TOOLS
from planning.suite.kept import demands_on
from planning.tools import ToolContext, ToolResult
from planning.tools.context import BEGAN, Gate, Refusal
from session import Session, ToolFailed, ToolInvoked


class Steered:
    """The policy of a section, for an agent that has other tools than those of our toolboxes.

    Attributes:
        section: The section.
        reading: The names of other tools that change nothing: a plan that waits for approval does not hold
            them back. More are added as they become known.
    """

    def __init__(self, given: AgentTools, read_only: Iterable[str]) -> None:
        """Take what the agent is given, and the names of other tools that read.

        Raises:
            TypeError: ``read_only`` is not names of tools.
        """
        self.section, self._boxes, self._sessions = given.section, given.boxes, given.sessions
        self.reading = set(read_only)
        if isinstance(read_only, str) or not all(isinstance(each, str) for each in self.reading):
            raise TypeError('read_only must be names of tools, such as ("search", "fetch")')

    @property
    def records(self) -> bool:
        """Whether the calls of other tools count: as evidence, as work without a change, or as held back."""
        policy = demands_on(self._sessions.fixed, self.section.policy)
        return policy is not None and (
            policy.evidence is not None or policy.stale_after is not None or policy.approval
        )

    def holds(self, tool: str) -> bool:
        """Whether a plan that waits for approval holds a tool back."""
        box = self._boxes.get(tool)
        reads = tool in self.reading if box is None else box.tools[tool].read_only
        return not reads and tool not in PLANNING_TOOLS

    def refusal(self, session: Session | None, tool: str) -> str | None:
        """Why a tool may not be called now; None where it may.

        Raises:
            StoreError: The session's store cannot be reached.
        """
        refusal = self.begin(session, tool)
        return None if refusal is None else refusal()

    async def arefusal(self, session: Session | None, tool: str) -> str | None:
        """The same from async code."""
        refusal = self.begin(session, tool)
        return None if refusal is None or session is None else await session.off_loop(refusal)

    def begin(self, session: Session | None, tool: str) -> Refusal | None:
        """Note when a call begins, in this context; what says why it may not, as ``Gate`` has it."""
        if session is None:
            return None
        moment = session.companion(Gate).moment
        BEGAN.set(None if moment is None else moment(session))
        return Gate.of(session, tool) if self.holds(tool) else None

    def record(
        self, session: Session | None, call: Call, actor: str | None, answer: object, *, failed: bool
    ) -> None:
        """Note in the session that another tool was called; a store that is away does not end the run.

        Args:
            session: The session.
            call: The call.
            actor: Who made it.
            answer: What it returned, or why it failed.
            failed: Whether it failed.
        """
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
        """The same from async code."""
        if session is not None and self.records:
            await session.off_loop(partial(self.record, session, call, actor, answer, failed=failed))

    def notice(self, session: Session | None) -> None:
        """The model has read the reminder; a store that is away does not end the run."""
        if session is not None and self.section.is_enabled():
            with suppress(*AWAY):
                self.section.take_notice(session)


def _says_failed(answer: object) -> bool:
    """Whether a tool that returned says of itself that it failed: ``{"success": false}``."""
    if isinstance(answer, str) and answer.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            answer = json.loads(answer)
    return isinstance(answer, dict) and answer.get("success") is False
