"""The context of a call: what a tool gets in addition to its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any
from weakref import WeakSet

import attrs

from planning.tools.errors import ContextInvalid
from session import Session, StoreError, TransactionError

SessionSource = Session | Callable[[], Session | None]
"""A session, or what returns the session of the current call; None if there is none."""

BEGAN: ContextVar[int | None] = ContextVar("began", default=None)
"""The moment at which the call began whose event is published; None if it is not known."""

Refusal = Callable[[], str | None]
LONGEST_ID = 200
"""The most characters of a call's id, of its idempotency key and of an actor's name."""

AGENT = "planning/agent"
"""Among the values of a context: which of the agents with the actor's name calls, such as its connection."""

_IDS = ("call_id", "actor")
_KEY = "idempotency_key"


class Gate:
    """The gate that may block the tools of a session's toolboxes; a companion of the session.

    Attributes:
        refusal: Given the session and the name of a tool that changes something, it returns a function that
            says why the tool may not run now, or None if it may; that may read the store. None if no
            plan needs approval.
        moment: Returns the moment at which a call of the session begins, which is kept with the call. None
            if no call is evidence.
    """

    refusal: Callable[[Session, str], Refusal | None] | None = None
    moment: Callable[[Session], int] | None = None

    @staticmethod
    def of(session: Session, tool: str) -> Refusal | None:
        """The reason why a tool may not run now, by a session and those that it works for; None as above."""
        refusal, parent = session.local_object(Gate).refusal, session.parent
        own = None if refusal is None else refusal(session, tool)
        above = None if parent is None else Gate.of(parent, tool)
        if above is None:
            return own
        said = (
            f"{tool} was not called: the plan of the parent session is not approved; end your turn and say so"
        )
        return lambda: (own and own()) or (above() and said)


def frozen(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """A copy that cannot be changed."""
    return MappingProxyType(dict(given))


@attrs.frozen
class ToolContext:
    """The values that a tool receives beside its parameters.

    Attributes:
        session: The session of the agent that calls; None outside any session.
        values: Values from the caller, such as ``trace_id`` and ``conversation_id``. ``call_id`` (the id that
            the provider gave the call) and ``actor`` (who makes it) are in its events, in the ledger and in
            the session's history.
        idempotency_key: A second call with this key is a repeated call; None for a call that is always
            made. The caller gives it among the values. A tool does not see it there: the calls that it
            makes itself are others.
        agent: Which of the agents with the actor's name makes the call: the id of its run, or an object that
            only its run, its connection or its toolbox has. It is not among the values.
        of_events: The fields of all events of the call: its session, its id, who makes it, and its key.
    """

    session: Session | None = None
    values: Mapping[str, Any] = attrs.field(factory=dict, converter=frozen, repr=False)
    idempotency_key: str | None = attrs.field(default=None, repr=False)
    agent: object = attrs.field(default=None, repr=False, eq=False)
    of_events: Mapping[str, Any] = attrs.field(init=False, repr=False, eq=False)

    @property
    def call_id(self) -> str | None:
        """The id that the provider gave the call; None when there is none."""
        return self.values.get("call_id")

    @property
    def actor(self) -> str | None:
        """Who makes the call; None when it is not known."""
        return self.values.get("actor")

    @of_events.default
    def _fields_of_events(self) -> dict[str, Any]:
        return {
            "session_id": None if self.session is None else self.session.session_id,
            "call_id": self.values.get("call_id"),
            "actor": self.values.get("actor"),
            _KEY: None if self.idempotency_key is None else str(self.idempotency_key),
        }

    @classmethod
    def of(cls, values: object, session: Session | None = None, agent: object = None) -> ToolContext:
        """The context that a caller gives as a mapping; names that are not text are omitted.

        Raises:
            ContextInvalid: It is not a mapping, or its ``call_id``, ``actor`` or ``idempotency_key`` is not a
                short text.
        """
        if not isinstance(values, Mapping):
            raise ContextInvalid(f"its context must be a dict, got {type(values).__name__}")
        try:
            named = {name: value for name, value in values.items() if isinstance(name, str)}
        except Exception:  # noqa: BLE001 - a custom mapping may fail in any way
            raise ContextInvalid(f"its context cannot be read: a {type(values).__name__}") from None
        key, agent = named.pop(_KEY, None), named.pop(AGENT, None) or agent
        wrong = [name for name in _IDS if not _is_id(named.get(name))] + [_KEY] * (
            not _is_id(str(key) if isinstance(key, str) else key)
        )
        if wrong:
            wanted = f"text of 1 to {LONGEST_ID} printable characters, or None"
            raise ContextInvalid(f"the {wrong[0]} in its context must be {wanted}")
        return cls(session, named, key, agent)


class SessionOfCall:
    """Finds the session of each call.

    Attributes:
        source: The session, or what returns that of the current call.
        fixed: The session of every call; None if it is found again for each.
    """

    def __init__(self, source: SessionSource, prepare: Callable[[Session], object]) -> None:
        """Wrap a session, or a function that returns the session of the current call."""
        if not isinstance(source, Session) and (isinstance(source, type) or not callable(source)):
            raise TypeError(f"session must be a Session or return one, got {source!r}"[:200])
        self.fixed = source if isinstance(source, Session) else None
        self.source = source
        self._prepare = prepare
        self._prepared: WeakSet[Session] = WeakSet()

    def find(self) -> Session:
        """The session of the current call; a ``ContextInvalid`` or ``StoreError`` if there is none."""
        if isinstance(self.source, Session):
            return self.source
        try:
            found = self.source()
        except (ContextInvalid, StoreError):
            raise  # another one like this found none, or its store is out of reach
        except Exception as error:
            raise ContextInvalid(f"the session of this call was not found: {type(error).__name__}") from error
        if found is None:
            raise ContextInvalid("no session for this call")
        if not isinstance(found, Session):
            raise ContextInvalid(f"the session of this call must be a Session, got {type(found).__name__}")
        self.prepare_for_call(found)
        return found

    def prepare_for_call(self, session: Session) -> None:
        """Prepare the session of the current call, unless that is done."""
        try:
            self.prepare(session)
        except TransactionError:
            raise ContextInvalid(
                "the session of this call has an open transaction; make its first call outside of one"
            ) from None

    def prepare(self, session: Session) -> None:
        """Prepare a session, unless that is done, which cannot be done in an open transaction."""
        if session not in self._prepared:
            self._prepare(session)
            self._prepared.add(session)


def _is_id(value: object) -> bool:
    return value is None or (type(value) is str and 0 < len(value) <= LONGEST_ID and value.isprintable())


def context_values(state: Mapping[str, Any]) -> dict[str, Any]:
    """The values that tools get of a pipeline's request: its three ids, each None if it is missing."""

    def inside(key: str, name: str) -> Any:
        part = state.get(key)
        return part.get(name) if part is not None and isinstance(part, Mapping) else None

    return {
        "trace_id": state.get("trace_id"),
        "conversation_id": inside("conversation_context", "conversation_id"),
        "conference_id": inside("user_context", "conference_id"),
    }
