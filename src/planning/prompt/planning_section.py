"""The planning section: the copy, the six tools, and the reducers behind them."""

from __future__ import annotations

from planning.model import Plan
from planning.prompt.section import Enabled, Section
from planning.prompt.strategies import PlanningStrategy, section_body
from planning.render import plan_text
from planning.suite import planning_tools, register_plan
from planning.tools.context import SessionOfCall, SessionSource
from planning.tools.tool import Tool
from session import Session

__all__ = ["PlanningToolsSection"]


class PlanningToolsSection(Section[None]):
    """Gives an agent a plan: put it into a prompt, and its tools into a toolbox.

    Its text never changes while the agent runs, so that a provider can cache the prompt;
    ``reminder()`` is the live plan, for the end of a conversation.
    """

    def __init__(
        self,
        *,
        session: SessionSource,
        strategy: PlanningStrategy = PlanningStrategy.REACT,
        enabled: Enabled = True,
    ) -> None:
        """Register the plan's reducers with a session, and bind the six tools to it.

        Args:
            session: The session that holds the plan; or a callable without arguments that returns the
                session of the current call, so that one agent serves many: see ``Toolbox``.
            strategy: The mindset of the copy.
            enabled: See ``Section``.

        Raises:
            TypeError: ``session`` or ``strategy`` is of another type.
        """
        if not isinstance(strategy, PlanningStrategy):
            raise TypeError(f"strategy must be a PlanningStrategy, got {strategy!r}")
        super().__init__(title="Planning", enabled=enabled)
        self.strategy = strategy
        self._found = SessionOfCall(session, register_plan)
        if self._found.fixed is not None:
            self._found.prepare(self._found.fixed)
        self._tools = planning_tools(session)

    @property
    def session(self) -> Session:
        """The session that holds the plan; that of the current call, where a callable says so.

        Raises:
            ContextInvalid: The callable finds none.
        """
        return self._found.find()

    def body(self, params: None = None) -> str:
        """The copy of the strategy."""
        del params  # it takes none
        return section_body(self.strategy)

    def tools(self) -> tuple[Tool, ...]:
        """The six planning tools; none while the section is disabled."""
        return self._tools if self.is_enabled() else ()

    def reminder(self, session: Session | None = None) -> str:
        """The live plan as text, or an empty string when no plan is active.

        Args:
            session: Whose plan; the section's session, or that of the current call, when omitted.

        Raises:
            ContextInvalid: The section finds no session.
        """
        if session is None:
            session = self.session
        elif session.store is not None:  # what a store has of a plan is read by the plan's reducers
            self._found.prepare(session)
        plan = session.select_latest(Plan)
        return plan_text(plan) if plan is not None and plan.status == "active" else ""
