"""The events that travel over the bus. Each is addressed to one session."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Any, TypeVar
from uuid import UUID, SafeUUID

import attrs

from session.errors import IdentityError, shown

E = TypeVar("E", bound="SessionEvent")

SessionId = UUID | str
"""A UUID, or a name of 1 to 128 letters, digits and ``._-:``, not only dots. Case counts."""

_CONTAINERS = frozenset({dict, list, tuple, set})
_NAME = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_random = Random()  # noqa: S311 - not a secret; a program that seeds Python's would draw the same ids again
if hasattr(os, "register_at_fork"):  # a system that cannot fork has none
    os.register_at_fork(after_in_child=_random.seed)


# Its own slots: ``UUID(int=..., version=4)`` takes 1.2 us instead of 0.3, which is 6 % of a mark.
_set_int, _set_safety = [vars(UUID)[slot].__set__ for slot in ("int", "is_safe")]
_RANDOM_BITS = ~(0xF000 << 64 | 0xC000 << 48) & (1 << 128) - 1
_VERSION_4 = 4 << 76 | 0x8000 << 48


def _new_id() -> UUID:
    """A random id, as ``uuid4`` makes it."""
    made = object.__new__(UUID)
    _set_int(made, _random.getrandbits(128) & _RANDOM_BITS | _VERSION_4)
    _set_safety(made, SafeUUID.unknown)
    return made


def session_id_of(given: SessionId) -> SessionId:
    """Check a session id. The lower-case text of a UUID is that UUID.

    Raises:
        IdentityError: It is a string that is not a name.
        TypeError: It is neither a UUID nor a string.
    """
    if isinstance(given, UUID):
        return given
    if not isinstance(given, str):
        raise TypeError(f"a session id must be a UUID or a string, got {shown(given)}")
    if _NAME.fullmatch(given) is None:
        raise IdentityError(
            "a session id must be a UUID or 1 to 128 ASCII letters, digits and the characters . _ - :, "
            f"got {shown(given)}"
        )
    if not given.strip("."):
        raise IdentityError(f"a session id must not be only dots, got {shown(given)}")
    return str(given) if _UUID.fullmatch(given) is None else UUID(given)


def _receiver(given: SessionId | None) -> SessionId | None:
    return given if type(given) is UUID or given is None else session_id_of(given)


def _own(value: Any) -> Any:
    """A copy of plain containers, so that an event does not change when its maker changes them."""
    if type(value) not in _CONTAINERS:
        return value
    try:
        return _copy(value)
    except RecursionError:
        return value  # it holds itself, or is deeper than Python's stack


def _copy(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        return {key: _copy(item) for key, item in value.items()}
    if kind is list or kind is tuple:
        return kind([_copy(item) for item in value])
    return set(value) if kind is set else value


@attrs.frozen(kw_only=True, slots=False)
class SessionEvent:
    """Base of all events: subscribe to it to receive all of them.

    A session reduces only the events that carry its own ``session_id``, keeps them in a slice of
    their type, and never rewinds that log.

    Attributes:
        session_id: The session that the event belongs to; None until a session publishes it.
        event_id: Unique for each event.
        created_at: When it happened, in UTC.
        call_id: The id that the provider gave the call that it is about, if there is one.
        actor: Who caused it, such as the agent's name; None when it is not known.
    """

    session_id: SessionId | None = attrs.field(default=None, converter=_receiver)
    event_id: UUID = attrs.field(factory=_new_id, repr=False)
    created_at: datetime = attrs.field(factory=partial(datetime.now, UTC))
    call_id: str | None = attrs.field(default=None, repr=False)
    actor: str | None = attrs.field(default=None, repr=False)


@attrs.frozen(slots=False)
class ToolInvoked(SessionEvent):
    """A tool was called and its call was accepted.

    Attributes:
        name: The tool's name.
        params: The arguments as the tool received them. Plain containers are copied.
        result: What the caller got back. Plain containers are copied.
        value: What the session reduces beside the event itself: for a command tool the normalised
            command. None when there is nothing to reduce.
        idempotency_key: A second call with this key is a repeated call; None for a call that is always made.
        fingerprint: A digest of the arguments of a call with an ``idempotency_key``, to compare a later call
            with; None if there is no key, or the arguments are private or have no JSON form.
    """

    name: str
    params: Any = attrs.field(converter=_own)
    result: Any = attrs.field(converter=_own)
    value: Any = None
    idempotency_key: str | None = attrs.field(default=None, kw_only=True, repr=False)
    fingerprint: str | None = attrs.field(default=None, kw_only=True, repr=False)


@attrs.frozen(slots=False)
class ToolFailed(SessionEvent):
    """A call failed: it was refused, stopped or cancelled, or the tool raised.

    Attributes:
        name: The name that the model called.
        result: What the caller got back. The arguments are not in the event: they were never accepted.
        idempotency_key: The call's, which stays free.
    """

    name: str
    result: Any = attrs.field(converter=_own)
    idempotency_key: str | None = attrs.field(default=None, kw_only=True, repr=False)


@attrs.frozen(slots=False)
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


@attrs.frozen(slots=False)
class PromptExecuted(SessionEvent):
    """A model answered a prompt.

    Attributes:
        ns: The prompt's namespace.
        key: The prompt's key in that namespace.
        result: The answer, in whatever form the caller keeps it.
        value: What the session reduces beside the event itself, such as the parsed answer. None when
            there is nothing to reduce.
    """

    ns: str
    key: str
    result: Any = attrs.field(converter=_own)
    value: Any = None


def addressed(event: E, session_id: SessionId) -> E:
    """The event itself, or one that is addressed to this session when it is addressed to none."""
    return event if event.session_id is not None else attrs.evolve(event, session_id=session_id)


CARRIERS = (ToolInvoked, PromptExecuted)
"""The events that carry a value."""


def value_of(event: object) -> Any:
    """The value that is reduced with an event; None if there is none."""
    return event.value if isinstance(event, CARRIERS) else None
