"""The events that travel over the bus. Each is addressed to one session."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

import attrs

__all__ = ["PromptExecuted", "PromptRendered", "SessionEvent", "ToolInvoked"]


def _as_uuid(drawn: UUID | bytes) -> UUID:
    """Random bits become a UUID when somebody looks: making one is the dearest part of an event."""
    return UUID(bytes=drawn, version=4) if isinstance(drawn, bytes) else drawn


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
    _event_id: UUID | bytes = attrs.field(alias="event_id", factory=partial(os.urandom, 16), eq=_as_uuid)
    created_at: datetime = attrs.field(factory=partial(datetime.now, UTC))

    @property
    def event_id(self) -> UUID:
        """Unique for each event."""
        return _as_uuid(self._event_id)


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
