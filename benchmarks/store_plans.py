"""Plans in stored sessions, as the measurements of stores make and mark them."""

from __future__ import annotations

from benchmarks.door import DONE, title
from planning import NewPlanStep, Plan, PlanningToolsSection, SetupPlan, Toolbox, register_plan
from session import InProcessEventBus, Session, select_latest
from session.stores import Store

__all__ = ["STEPS", "mark_text", "open_stored", "plan_of", "set_up"]

STEPS = 100
MARKED = 99
"""The last step is never marked, so that the plan is never complete."""


def open_stored(
    store: Store | None, session_id: str, bus: InProcessEventBus | None = None
) -> tuple[Session, Toolbox]:
    """Open a session, in a store or in memory, with the planning tools."""
    session = Session(store=store, session_id=session_id, bus=bus)
    return session, Toolbox(PlanningToolsSection(session=session).tools())


def set_up(toolbox: Toolbox, steps: int = STEPS) -> None:
    """Begin a plan of so many pending steps."""
    planned = tuple(NewPlanStep(title=title(n)) for n in range(steps))
    toolbox.invoke("planning_setup_plan", SetupPlan(objective="Migrate", initial_steps=planned))


def mark_text(number: int, steps: int = MARKED) -> str:
    """The n-th mark as a model writes it: step after step is done, then step after step is reopened."""
    return f'{{"step_id": "S{number % steps + 1:03}", "status": "{DONE[number // steps % 2]}"}}'


def plan_of(store: Store, session_id: str) -> Plan:
    """Open a session and read its plan.

    Raises:
        RuntimeError: The session has none.
    """
    session = Session(store=store, session_id=session_id)
    register_plan(session)
    plan = select_latest(session, Plan)
    if plan is None:
        raise RuntimeError(f"session {session_id} lost its plan")
    return plan
