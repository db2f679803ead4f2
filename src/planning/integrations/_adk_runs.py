"""Where an agent runs in Google ADK, and which of its runs ADK has taken back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager

import attrs
from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.events.event import Event
from google.adk.sessions import Session as AdkSession

from planning.integrations._rewind import calling
from session import Session, SessionId

__all__ = ["Run", "place_of", "taken_back"]

_RUN = "planning:run"


@attrs.define
class Run:
    """A run of the outermost agent. What its tools run in ADK sessions of their own is a part of it."""

    place: str
    at: str
    settled: set[SessionId] = attrs.Factory(set)
    told: str = ""
    is_behind: bool = False
    has_asked: bool = False

    @classmethod
    def of(cls, context: ReadonlyContext) -> Run:
        """The run of a context, kept in its session's state for as long as the run lasts."""
        state = context.session.state
        run = state.get(_RUN)
        if not isinstance(run, cls):  # no client sends such an object
            run = state[_RUN] = cls(place_of(context.session), context.invocation_id)
        return run

    def is_nested(self, context: ReadonlyContext) -> bool:
        """Whether a context is that of an agent which a tool runs."""
        return self.place != place_of(context.session)

    def calling(self, session: Session | None) -> AbstractContextManager[None]:
        """Let changes of a session, in this context, carry where they were made."""
        return calling(session, self.place, self.at)


def place_of(adk: AdkSession) -> str:
    """The place of an ADK session, as ``FrameworkChange`` names it."""
    return f"google_adk:{json.dumps([adk.app_name, adk.user_id, adk.id])}"


def taken_back(events: Sequence[Event]) -> set[str]:
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
