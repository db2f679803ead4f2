"""This project's doors: a typed command, and a model's JSON text."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.door import DONE, Door, Prepared, Takes, middle, title
from planning import MarkStep, NewPlanStep, Plan, PlanningToolsSection, SetupPlan, Toolbox
from session import InProcessEventBus, Session, select_latest

__all__ = ["DOORS", "current", "open_plan"]

MARK = "planning_mark_step"


def open_plan(steps: int) -> tuple[Session, Toolbox]:
    """Open a session with a plan of so many pending steps."""
    session = Session(bus=InProcessEventBus())
    section = PlanningToolsSection(session=session)
    toolbox = Toolbox(section.tools())
    toolbox.invoke(
        "planning_setup_plan",
        SetupPlan(
            objective="Migrate", initial_steps=tuple(NewPlanStep(title=title(n)) for n in range(steps))
        ),
    )
    return session, toolbox


def current(session: Session) -> Plan:
    """The session's plan, which is known to exist."""
    plan = select_latest(session, Plan)
    if plan is None:
        raise RuntimeError("the session lost its plan")
    return plan


def _prepare_typed(steps: int) -> Prepared:
    session, toolbox = open_plan(steps)
    step_id = current(session).steps[middle(steps)].step_id
    commands = [MarkStep(step_id=step_id, status=status) for status in DONE]
    invoke = toolbox.invoke

    def mark(n: int) -> object:
        return invoke(MARK, commands[n & 1])

    return Prepared(mark, lambda: _statuses(session))


def _prepare_json(steps: int) -> Prepared:
    session, toolbox = open_plan(steps)
    step_id = current(session).steps[middle(steps)].step_id
    texts = [f'{{"step_id": "{step_id}", "status": "{status}"}}' for status in DONE]
    call = toolbox.call

    def mark(n: int) -> object:
        return call(MARK, texts[n & 1])

    return Prepared(mark, lambda: _statuses(session))


def _statuses(session: Session) -> Sequence[str]:
    return [step.status for step in current(session).steps]


DOORS = (
    Door(
        name="session-planning",
        package="session-planning",
        takes=Takes.TYPED,
        description="Toolbox.invoke with a MarkStep: handler, ToolInvoked on the bus, reducer, event log",
        prepare=_prepare_typed,
    ),
    Door(
        name="session-planning",
        package="session-planning",
        takes=Takes.JSON,
        description="Toolbox.call with the model's text: decoding and validation, then the same line",
        prepare=_prepare_json,
    ),
)
