"""Where an agent runs in Google ADK, and which of its runs ADK has taken back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Self

from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.events.event import Event
from google.adk.sessions import Session as AdkSession

from planning.integrations._rewind import Setting, calling
from session import Session, SessionId

_RUN = "planning:run"


class Run(str):
    """A run of the outermost agent. What its tools run in ADK sessions of their own is a part of it.

    It is the id of the invocation: a text, so that a host can write down the state that has it.

    Attributes:
        place: See ``FrameworkChange``.
        settled: The sessions of which it is settled whether they go back.
        told: What the model reads once, behind the reminder.
        is_behind: Whether the model has read more than the position that is kept says.
        has_asked: Whether the agent has asked to finish.
    """

    __slots__ = ("has_asked", "is_behind", "place", "settled", "told")
    place: str
    settled: set[SessionId]
    told: str
    is_behind: bool
    has_asked: bool

    def __new__(cls, at: str, place: str = "") -> Self:
        """Begin a run; without a place where it is copied."""
        run = super().__new__(cls, at)
        run.place, run.settled, run.told = place, set(), ""
        run.is_behind = run.has_asked = False
        return run

    @classmethod
    def of(cls, context: ReadonlyContext) -> Run:
        """The run of a context, kept in its session's state for as long as the run lasts."""
        state = context.session.state
        run = state.get(_RUN)
        if not isinstance(run, cls):  # no client sends such an object
            run = state[_RUN] = cls(context.invocation_id, place_of(context.session))
        return run

    def is_nested(self, context: ReadonlyContext) -> bool:
        """Whether a context is that of an agent which a tool runs."""
        return self.place != place_of(context.session)

    def calling(self, session: Session | None) -> Setting:
        """Let changes of a session, in this context, carry where they were made."""
        return calling(session, self.place, str(self))


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
