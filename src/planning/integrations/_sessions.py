"""The session that belongs to a framework's state."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import partial
from typing import Any
from weakref import WeakSet

from planning.integrations._rewind import Position, restored, setting, settle
from planning.policy.policy import PlanPolicy
from planning.suite.tools import register_plan
from planning.tools.once import LastUsed
from session import Session, SessionView, StoreError, TransactionError

SessionSource = Session | Callable[..., Session | None]
AWAY = (StoreError, TransactionError)
"""Why a session may be out of reach for a while: not a reason to end a run."""
_MOST = 1_000


def unread(error: Exception) -> str:
    """The text for a model in place of its plan when that is out of reach."""
    return f"The plan cannot be read now: {error}"


class SessionsOfStates:
    """Finds the session of a state: the host's, or one in memory that is made of the state itself."""

    def __init__(self, source: SessionSource | None, policy: PlanPolicy | None = None) -> None:
        if source is not None and not isinstance(source, Session) and not callable(source):
            raise TypeError(f"session must be a Session or a function, got {type(source).__name__}")
        self._source, self.policy = source, policy
        self._takes_context = callable(source) and _needs_argument(source)
        self._of_steps = LastUsed[Session](_MOST)
        self._prepared = WeakSet[Session]()
        self._current: ContextVar[Session | None] = ContextVar("session of the call", default=None)
        if isinstance(source, Session):
            self.prepare(source)

    @property
    def are_given(self) -> bool:
        """True if the host gives the sessions."""
        return self._source is not None

    @property
    def fixed(self) -> Session | None:
        """The host's session for every call; None if there is none, or a function finds it for each."""
        return self._source if isinstance(self._source, Session) else None

    def within(self, session: Session | None) -> AbstractContextManager[None]:
        """Make ``current`` return a session, in this context."""
        return setting(self._current, session)

    def current(self) -> Session | None:
        """The session of the running call."""
        is_found_anywhere = self.are_given and not self._takes_context
        return self._current.get() or (self.given() if is_found_anywhere else None)

    def given(self, context: object = None) -> Session | None:
        """The host's session, of a function that may take the framework's context; None if it has none."""
        source: Any = self._source
        session = source
        if not isinstance(source, Session):
            session = source(context) if self._takes_context else source()
        if session is not None and not isinstance(session, Session):
            raise TypeError(f"session must return a Session, got {type(session).__name__}")
        return None if session is None else self.prepare(session)

    def of_step(self, step: str, position: Position | None) -> Session:
        """The session in memory that the calls of one step of a framework share, made of a position."""
        return self._of_steps.of(step, partial(self.made_of, position))

    def made_of(self, position: Position | None) -> Session:
        """A new session in memory with what a position holds."""
        session = self.prepare(Session())
        if position is not None:
            session.rollback(restored(position))
        return session

    def read(self, position: Position | None, context: object = None) -> Session | SessionView | None:
        """The session as it was at a position, for the selectors; the host's session if there is none."""
        if not self.are_given:
            return self.made_of(position)
        session = self.given(context)
        if session is None or position is None:
            return session
        if "plan" in position:
            return self.made_of(position)
        settle(session, position)
        return session.at(position["version"])

    def prepare(self, session: Session) -> Session:
        """Register the plan with a session, unless that is done."""
        if session not in self._prepared:
            register_plan(session, self.policy)
            self._prepared.add(session)
        return session


def _needs_argument(function: Callable[..., object]) -> bool:
    """True if a function cannot be called without an argument."""
    try:
        inspect.signature(function).bind()
    except TypeError:
        return True
    except ValueError:  # a builtin that does not say, such as the get of a context variable
        pass
    return False
