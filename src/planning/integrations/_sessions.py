"""Which session a framework's state is about."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from threading import Lock
from typing import Any
from weakref import WeakSet

from planning.integrations._rewind import Position, Setting, restored, settle
from planning.policy.policy import PlanPolicy
from planning.prompt import PlanningStrategy, PlanningToolsSection
from planning.suite.tools import register_plan
from planning.tools import Toolbox
from planning.tools.errors import ContextInvalid
from planning.tools.tool import Declaration
from session import PastState, Session, StoreError, TransactionError

SessionSource = Session | Callable[..., Session | None]
AWAY = (StoreError, TransactionError)
"""Why a session may be out of reach for a while: not a reason to end a run."""
_MOST = 1_000


def unread(error: Exception) -> str:
    """What a model reads in place of its plan when that is out of reach."""
    return f"The plan cannot be read now: {error}"


class AgentTools:
    """What an agent of a framework is given: sessions, the section and toolboxes.

    Attributes:
        sessions: Where the sessions come from.
        section: The section.
        boxes: The toolbox of each tool, by the tool's name.
        tools: Each tool, by its name.
        in_order: The names of those that change the session at once: the calls of a turn wait for them.
    """

    def __init__(
        self,
        session: SessionSource | None,
        tools: Iterable[Declaration] | Toolbox,
        section: PlanningToolsSection | None,
        strategy: PlanningStrategy,
        policy: PlanPolicy | None = None,
    ) -> None:
        """Make the section unless one is given, and a toolbox of its tools and of the others.

        Raises:
            TypeError: An argument is of another type, or a section and what it has already were given.
            ValueError: Two tools have the same name.
        """
        if section is not None and policy is not None:
            raise TypeError("give a policy or a section, not both: the section has its policy")
        policy = policy if section is None else section.policy
        self.sessions = SessionsOfStates(_source_of(session, section, tools), policy)
        current = self.sessions.current
        self.section = section or PlanningToolsSection(session=current, strategy=strategy, policy=policy)
        self._copy = f"## {self.section.title}\n\n{self.section.body()}"
        given = tools if isinstance(tools, Toolbox) else Toolbox(tools, session=current)
        own = [tool for tool in self.section.tools() if tool.name not in given.tools]
        self.boxes = dict.fromkeys([tool.name for tool in own], Toolbox(own, session=current))
        self.boxes |= dict.fromkeys(given.tools, given)
        self.tools = {name: box.tools[name] for name, box in self.boxes.items()}
        self.in_order = {name for name, each in self.tools.items() if not (each.blocking or each.is_async)}

    @property
    def copy(self) -> str | None:
        """The section as it is in the system prompt, which never changes; None when it is disabled."""
        return self._copy if self.section.is_enabled() else None


def _source_of(
    session: SessionSource | None, section: PlanningToolsSection | None, tools: object
) -> SessionSource | None:
    """Where the sessions come from: the one that was given, or that of the section or of the toolbox."""
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
        given = owner.session
    except ContextInvalid:  # outside of any call
        return find
    if given is None:
        return None
    register_plan(given)  # it can be read before the first call
    return find


class SessionsOfStates:
    """Finds the session of a state: the host's, or one in memory that is made of the state itself."""

    def __init__(self, source: SessionSource | None, policy: PlanPolicy | None = None) -> None:
        """Take the host's session, if there is one, and register the plan with it.

        Args:
            source: The session, a function that returns it, or None.
            policy: What the host demands of the plan.

        Raises:
            TypeError: It is something else.
        """
        if source is not None and not isinstance(source, Session) and not callable(source):
            raise TypeError(f"session must be a Session or a function, got {type(source).__name__}")
        self._policy = policy
        self._takes_context = callable(source) and _needs_argument(source)
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

    @property
    def fixed(self) -> Session | None:
        """The host's session for every call; None if there is none, or a function finds it for each."""
        return self._source if isinstance(self._source, Session) else None

    def within(self, session: Session | None) -> Setting:
        """Make ``current`` return a session, in this context."""
        return Setting(self._current, session)

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
            register_plan(session, self._policy)
            self._prepared.add(session)
        return session


def _needs_argument(function: Callable[..., object]) -> bool:
    """Whether a function cannot be called without an argument."""
    try:
        inspect.signature(function).bind()
    except TypeError:
        return True
    except ValueError:  # a builtin that does not say, such as the get of a context variable
        pass
    return False
