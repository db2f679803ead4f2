"""The planning section: the copy, the six tools, and the reducers behind them."""

from __future__ import annotations

from planning.model import Plan
from planning.prompt.section import Enabled, Section
from planning.prompt.strategies import PlanningStrategy, section_body
from planning.render import plan_text
from planning.suite import planning_tools, register_plan
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
        session: Session,
        strategy: PlanningStrategy = PlanningStrategy.REACT,
        enabled: Enabled = True,
    ) -> None:
        """Register the plan's reducers with a session, and bind the six tools to it.

        Args:
            session: The session that holds the plan.
            strategy: The mindset of the copy.
            enabled: See ``Section``.

        Raises:
            TypeError: ``session`` or ``strategy`` is of another type.
        """
        if not isinstance(session, Session):
            raise TypeError(f"session must be a Session, got {type(session).__name__}")
        if not isinstance(strategy, PlanningStrategy):
            raise TypeError(f"strategy must be a PlanningStrategy, got {strategy!r}")
        super().__init__(title="Planning", enabled=enabled)
        self.session = session
        self.strategy = strategy
        register_plan(session)
        self._tools = planning_tools(session)

    def body(self, params: None = None) -> str:  # noqa: ARG002 - it takes none
        """The copy of the strategy."""
        return section_body(self.strategy)

    def tools(self) -> tuple[Tool, ...]:
        """The six planning tools; none while the section is disabled."""
        return self._tools if self.is_enabled() else ()

    def reminder(self) -> str:
        """The live plan as text, or an empty string when no plan is active."""
        plan = self.session.select_latest(Plan)
        return plan_text(plan) if plan is not None and plan.status == "active" else ""
