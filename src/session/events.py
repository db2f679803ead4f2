"""The events that travel over the bus. Each is addressed to one session."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import attrs

__all__ = ["PromptExecuted", "PromptRendered", "SessionEvent", "ToolFailed", "ToolInvoked"]


class _Undrawn:
    """An id that is drawn when somebody first asks for it: drawing is the dearest part of an event."""

    def draw(self) -> UUID:
        """The id, the same at every call and in every thread."""
        known: UUID | None = vars(self).get("drawn")
        return vars(self).setdefault("drawn", uuid4()) if known is None else known

    def __reduce__(self) -> tuple[type[UUID], tuple[str]]:
        return UUID, (self.draw().hex,)  # a copy is drawn already, and equal


def _drawn(event_id: UUID | _Undrawn) -> UUID:
    return event_id.draw() if isinstance(event_id, _Undrawn) else event_id


@attrs.frozen(kw_only=True)
class SessionEvent:
    """Base of all events: subscribe to it to hear every one.

    A session reduces only the events that carry its own ``session_id``, keeps them in a slice of
    their type, and never rewinds that log.

    Attributes:
        session_id: The session that the event belongs to.
        created_at: When it happened, in UTC.
    """

    session_id: UUID
    _event_id: UUID | _Undrawn = attrs.field(alias="event_id", factory=_Undrawn, eq=_drawn, repr=False)
    created_at: datetime = attrs.field(factory=partial(datetime.now, UTC))

    @property
    def event_id(self) -> UUID:
        """Unique for each event."""
        return _drawn(self._event_id)


@attrs.frozen
class ToolInvoked(SessionEvent):
    """A tool was called and its call was accepted.

    Attributes:
        name: The tool's name.
        params: The arguments as the tool received them.
        result: What the caller got back.
        value: What the session reduces beside the event itself: for a command tool the normalised
            command. None when there is nothing to reduce.
    """

    name: str
    params: Any
    result: Any
    value: Any = None


@attrs.frozen
class ToolFailed(SessionEvent):
    """A call did not come to its end: it was refused, stopped, cancelled, or the tool raised.

    Attributes:
        name: The tool's name, as far as it is one.
        result: What the caller got back. The arguments are not in the event: nobody accepted them.
    """

    name: str
    result: Any


@attrs.frozen
class PromptRendered(SessionEvent):
    """A prompt became text.

    Attributes:
        ns: The prompt's namespace.
        key: The prompt's key in that namespace.
        text: The text that a model will read.
    """

    ns: str
    key: str
    text: str


@attrs.frozen
class PromptExecuted(SessionEvent):
    """A model answered a prompt.

    Attributes:
        ns: The prompt's namespace.
        key: The prompt's key in that namespace.
        result: The answer, in whatever form the caller keeps it.
    """

    ns: str
    key: str
    result: Any
