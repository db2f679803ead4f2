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

from planning.integrations._rewind import Position, restored, settle
from planning.prompt import PlanningToolsSection
from planning.suite import register_plan
from planning.tools import Toolbox
from planning.tools.errors import ContextInvalid
from session import PastState, Session

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
    """Finds the session of a state: the host's, or one in memory that is made of the state itself."""

    def __init__(self, source: SessionSource | None) -> None:
        """Take the host's session, if there is one, and register the plan with it.

        Args:
            source: The session, a function that returns it, or None.

        Raises:
            TypeError: It is something else.
        """
        if source is not None and not isinstance(source, Session) and not callable(source):
            raise TypeError(f"session must be a Session or a function, got {type(source).__name__}")
        self._takes_context = callable(source) and bool(inspect.signature(source).parameters)
        self._source = source
        self._of_steps: OrderedDict[str, Session] = OrderedDict()
        self._prepared = WeakSet[Session]()
        self._lock = Lock()
        self._current: ContextVar[Session | None] = ContextVar("session of the call", default=None)
        if isinstance(source, Session):
            self._prepare(source)

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
        return self.given() if session is None and self.are_given and not self._takes_context else session

    def given(self, context: object = None) -> Session | None:
        """The host's session; None when it has none for this call.

        Args:
            context: What the framework knows of the run, for a function that takes it.

        Raises:
            TypeError: The host's function returned something else.
            StoreError: The session cannot be read.
        """
        source: Any = self._source
        session = source
        if not isinstance(source, Session):
            session = source(context) if self._takes_context else source()
        if session is not None and not isinstance(session, Session):
            raise TypeError(f"session must return a Session, got {type(session).__name__}")
        return None if session is None else self._prepare(session)

    def of_step(self, step: str, position: Position | None) -> Session:
        """The session in memory that the calls of one step of a framework share.

        Args:
            step: The step, unlike that of any other run.
            position: The position that the state has at its start.

        Raises:
            SnapshotError: The position cannot be read.
        """
        with self._lock:
            session = self._of_steps.get(step) or self.made_of(position)
            self._of_steps[step] = session
            self._of_steps.move_to_end(step)
            while len(self._of_steps) > _MOST:
                self._of_steps.popitem(last=False)
            return session

    def made_of(self, position: Position | None) -> Session:
        """A new session in memory with what a position holds.

        Raises:
            SnapshotError: The position cannot be read.
        """
        session = self._prepare(Session())
        if position is not None:
            session.rollback(restored(position))
        return session

    def read(self, position: Position | None, context: object = None) -> Session | PastState | None:
        """What a session was at a position, for the selectors; the host's session where there is no position.

        Raises:
            VersionError: The session does not have that version, or the position is of another.
            SnapshotError: The position cannot be read.
        """
        if not self.are_given:
            return self.made_of(position)
        session = self.given(context)
        if session is None or position is None:
            return session
        if "plan" in position:
            return self.made_of(position)
        settle(session, position)
        return session.at(position["version"])

    def _prepare(self, session: Session) -> Session:
        if session not in self._prepared:
            register_plan(session)
            self._prepared.add(session)
        return session
