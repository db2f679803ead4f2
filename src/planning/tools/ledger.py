"""The ledger: one line for every call, made or refused, read from the session's events."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from heapq import merge
from itertools import islice
from operator import attrgetter
from typing import Any
from uuid import UUID

import attrs

from planning.tools.once import RepeatedIds
from planning.tools.result import ToolResult
from session import Session, ToolFailed, ToolInvoked

_CREATED = attrgetter("created_at")


@attrs.frozen
class ToolCall:
    """One call in the ledger, without its arguments and its result.

    Attributes:
        event_id: The id of its event.
        tool: The tool's name.
        outcome: ``success``, or the code of the failure.
        elapsed: How long it took, in seconds.
        created_at: When it ended, in UTC.
        call_id: The id that the provider gave the call, when there is one.
        actor: Who made the call, when it is known.
        idempotency_key: A second call with this key is a repeated call; if the caller gave one.
    """

    event_id: UUID
    tool: str
    outcome: str
    elapsed: float
    created_at: datetime
    call_id: str | None = None
    actor: str | None = None
    idempotency_key: str | None = None

    @property
    def success(self) -> bool:
        """True if the tool did what was asked."""
        return self.outcome == "success"


def register_ledger(session: Session) -> None:
    """Let ``select_all(session, ToolCall)`` read the ledger, oldest first; toolboxes do so themselves."""
    session.register_types(ToolResult, RepeatedIds)
    session.register_view(ToolCall, _ledger)


def tool_calls(
    session: Session, *, tool: str | None = None, outcome: str | None = None, limit: int | None = None
) -> tuple[ToolCall, ...]:
    """The calls of a session, newest first.

    Args:
        session: Whose calls.
        tool: Only of this tool.
        outcome: Those that ended so: ``success``, or a code of ``ErrorKind``.
        limit: The most calls.
    """
    made: tuple[ToolInvoked | ToolFailed, ...] = session.select_all(ToolInvoked)
    refused: tuple[ToolInvoked | ToolFailed, ...] = session.select_all(ToolFailed)
    newest = merge(reversed(refused), reversed(made), key=_CREATED, reverse=True)
    calls = (
        call for call in map(_line, newest) if tool in {None, call.tool} and outcome in {None, call.outcome}
    )
    return tuple(islice(calls, None if limit is None else max(limit, 0)))


def _ledger(select: Callable[[type[Any]], tuple[Any, ...]]) -> tuple[ToolCall, ...]:
    return tuple(map(_line, merge(select(ToolInvoked), select(ToolFailed), key=_CREATED)))


def _line(event: ToolInvoked | ToolFailed) -> ToolCall:
    result = event.result
    success = getattr(result, "success", isinstance(event, ToolInvoked))
    code = getattr(result, "code", None)
    outcome = "success" if success else str(code or "tool")
    elapsed = getattr(result, "elapsed", 0.0)
    return ToolCall(
        event.event_id,
        event.name,
        outcome,
        elapsed,
        event.created_at,
        event.call_id,
        event.actor,
        event.idempotency_key,
    )
