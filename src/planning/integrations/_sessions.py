"""Which session a framework's state is about."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any
from weakref import WeakSet

from planning.integrations._rewind import Position, restored
from planning.prompt import PlanningToolsSection
from planning.suite import register_plan
from planning.tools import Toolbox
from planning.tools.errors import ContextInvalid
from session import Session

__all__ = ["SessionSource", "SessionsOfStates", "source_of"]

SessionSource = Session | Callable[..., Session | None]
_MOST = 1_000


def source_of(
    session: SessionSource | None, section: PlanningToolsSection | None, tools: object
) -> SessionSource | None:
    """Where the sessions come from: the one that was given, or that of the section or of the toolbox.

    Raises:
        TypeError: A session and a section were given.
    """
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
        return None if owner.session is None else find
    except ContextInvalid:  # outside of any call
        return find


class SessionsOfStates:
    """Finds the session of a state: the host's, or one in memory that the state itself holds.

    Of the latter, those used last are kept; any other is restored from its state.
    """

    def __init__(self, source: SessionSource | None) -> None:
        """Take the host's session, if there is one.

        Args:
            source: The session, a function that returns it, or None.

        Raises:
            TypeError: It is something else.
        """
        if source is not None and not isinstance(source, Session) and not callable(source):
            raise TypeError(f"session must be a Session or a function, got {type(source).__name__}")
        self._takes_context = callable(source) and bool(inspect.signature(source).parameters)
        self._source = source
        self._kept: OrderedDict[tuple[str, str, str], Session] = OrderedDict()
        self._known = WeakSet[Session]()
        self._lock = Lock()
        self._current: ContextVar[Session | None] = ContextVar("session of the call", default=None)

    @property
    def are_given(self) -> bool:
        """Whether the host gives the sessions."""
        return self._source is not None

    @contextmanager
    def within(self, session: Session | None) -> Iterator[None]:
        """Make ``current`` return a session, in this context."""
        token = self._current.set(session)
        try:
            yield
        finally:
            self._current.reset(token)

    def current(self) -> Session | None:
        """The session of the running call."""
        session = self._current.get()
        return self.find(None, "") if session is None and not self._takes_context else session

    def find(self, position: Position | None, thread: str, context: object = None) -> Session | None:
        """The session of a state; None when the host has none for this call.

        Args:
            position: The state's position; None for a state that has none yet.
            thread: The thread of the state: an id that a client sends is looked for in its own thread alone.
            context: What the framework knows of the run, for a function that takes it.

        Raises:
            SnapshotError: The session cannot be restored.
            TypeError: The host's function returned something else.
        """
        source: Any = self._source
        if source is None:
            return self._of_state(position, thread)
        session = source
        if callable(source):
            session = source(context) if self._takes_context else source()
        if session is not None and not isinstance(session, Session):
            raise TypeError(f"session must return a Session, got {type(session).__name__}")
        return None if session is None else self._prepared(session)

    def _prepared(self, session: Session) -> Session:
        if session not in self._known:
            register_plan(session)
            self._known.add(session)
        return session

    def _of_state(self, position: Position | None, thread: str) -> Session:
        with self._lock:
            known = None if position is None else (thread, position["session_id"], position["since"])
            session = None if known is None else self._kept.get(known)
            if session is None:
                session = self._prepared(Session())
                if position is not None:
                    session.rollback(restored(position))
            own = (thread, str(session.session_id), session.created_at.isoformat())
            for key in (known, own):  # a restored session answers to the state it came from, too
                if key is not None:
                    self._kept[key] = session
                    self._kept.move_to_end(key)
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
            return session
