"""The six planning tools bound to a session: the only joint of core, tools and session."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, TypeVar

from planning import handlers
from planning.commands import (
    AddStep,
    ClearPlan,
    Command,
    MarkStep,
    MarkSteps,
    ReadPlan,
    SetupPlan,
    UpdateStep,
)
from planning.errors import Problem, ToolError, ToolValidationError
from planning.events import announce_plan
from planning.model import Plan
from planning.reducers import REDUCERS, mark_steps
from planning.render import reply
from planning.tools.context import ToolContext
from planning.tools.contract import ToolExample
from planning.tools.result import ToolResult
from planning.tools.tool import Tool
from session import Session, ToolInvoked, replace_latest
from session.transaction import Transaction

__all__ = ["carry_out", "planning_tools", "register_plan"]

C = TypeVar("C")
Handler = Callable[[Any, Plan | None], Any]


def register_plan(session: Session) -> None:
    """Register the plan's reducers with a session, and announce its changes; once is enough."""
    session.register_reducer(Plan, replace_latest)
    for command, reducer in REDUCERS.items():
        session.register_reducer(command, reducer, Plan)
    session.register_reducer(MarkSteps, mark_steps, Plan)
    announce_plan(session)


def planning_tools(session: Session) -> tuple[Tool, ...]:
    """The six planning tools of a session, in the order in which a model reads them."""

    def bind(
        name: str,
        parameters: type[Command],
        handler: Handler,
        description: str,
        arguments: dict[str, Any],
        message: str,
    ) -> Tool:
        return Tool(
            name=name,
            description=description,
            parameters=parameters,
            function=_in_transaction(session, name, handler),
            examples=(ToolExample(arguments, message),),
            diagnose=_diagnosis(session, name, parameters),
            publishes="own",
            blocking=False,
        )

    return (
        bind(
            "planning_setup_plan",
            SetupPlan,
            handlers.setup_plan,
            "Create or replace the plan.",
            {"objective": "Fix the login bug", "initial_steps": [{"title": "Reproduce it"}]},
            "Plan set: S001. Next: S001 Reproduce it",
        ),
        bind(
            "planning_add_step",
            AddStep,
            handlers.add_step,
            "Append steps to the active plan.",
            {"steps": [{"title": "Write a test"}]},
            "Added S002.",
        ),
        bind(
            "planning_update_step",
            UpdateStep,
            handlers.update_step,
            "Change a step's title or details.",
            {"step_id": "S002", "title": "Write a failing test"},
            "S002 updated.",
        ),
        bind(
            "planning_mark_step",
            MarkStep,
            handlers.mark_step,
            "Set a step's status.",
            {"step_id": "S001", "status": "done", "note": "Fails on empty names"},
            "S001 done. Next: S002 Write a failing test",
        ),
        bind(
            "planning_clear_plan",
            ClearPlan,
            handlers.clear_plan,
            "Abandon the plan and discard its steps.",
            {},
            "Plan abandoned.",
        ),
        bind(
            "planning_read_plan",
            ReadPlan,
            handlers.read_plan,
            "Read the plan.",
            {},
            "Fix the login bug (abandoned, 0 of 0 done)",
        ),
    )


def _foreign(session: Session, name: str, context: ToolContext) -> list[Problem]:
    """What a call in the name of another session than the tool's own is refused with."""
    if context.session is None or context.session is session:
        return []
    remedy = "use the tools of this session's PlanningToolsSection"
    return [Problem(f"{name} belongs to another session; {remedy}")]


def _diagnosis(
    session: Session, name: str, command: type[Command]
) -> Callable[[Mapping[str, Any], ToolContext], list[Problem]]:
    """What the plan has against arguments that cannot be decoded; a stranger hears nothing of it."""

    def diagnose(arguments: Mapping[str, Any], context: ToolContext) -> list[Problem]:
        plan = session.select_latest(Plan)
        return _foreign(session, name, context) or handlers.diagnose(command, arguments, plan)

    return diagnose


def carry_out(transaction: Transaction, name: str, handler: Handler, command: C) -> tuple[C, Plan]:
    """Check a command against the plan, and carry it out, within an open transaction.

    Args:
        transaction: The session's.
        name: Who asks, for the message.
        handler: The command's.
        command: The command.

    Returns:
        The command as it was carried out, and the plan that it left.

    Raises:
        ToolValidationError: It is refused; nothing has changed.
        ToolError: The session's reducers did not take it.
    """
    before = transaction.latest(Plan)
    checked = handler(command, before)
    transaction.dispatch(checked)
    plan = transaction.latest(Plan)
    # Reducers build a new plan for every command that a handler let through: the old one
    # here means that something else answers for the plan, and nothing was carried out.
    if plan is None or (plan is before) is not (handler is handlers.read_plan):
        raise ToolError(f"{name} was not carried out: the session's reducers did not take it")
    return checked, plan


def _in_transaction(
    session: Session, name: str, handler: Handler
) -> Callable[[Command, ToolContext], ToolResult]:
    """A tool function that checks a command and carries it out as one."""
    session_id = session.session_id
    reads = handler is handlers.read_plan

    def run(params: Command, context: ToolContext) -> ToolResult:
        if context.session is not session and context.session is not None:
            raise ToolValidationError(_foreign(session, name, context))
        started = perf_counter()
        with session.transaction() as transaction:
            before = transaction.latest(Plan)
            command, plan = carry_out(transaction, name, handler, params)
            value = plan if reads else command
            message = reply(command, plan, before)
            result = ToolResult(True, message, value, None, None, perf_counter() - started)
            transaction.publish(ToolInvoked(name, params, result, command, session_id=session_id))
        return result

    return run
