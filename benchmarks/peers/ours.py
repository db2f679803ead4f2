"""This project: a typed command, a model's JSON text, a whole conversation; 0.1.0 can import it, too."""

from __future__ import annotations

from typing import Any

from benchmarks.harness import OURS
from benchmarks.peers.contest import (
    DONE,
    OBJECTIVE,
    TITLES,
    Conversation,
    Door,
    Prepared,
    compact,
    middle,
    title,
)
from planning import MarkStep, NewPlanStep, Plan, PlanningToolsSection, SetupPlan, Toolbox
from planning.prompt import Prompt
from session import Session, select_latest

__all__ = ["JSON", "MARK", "TYPED", "converse", "current", "open_plan", "open_session", "plan_of", "set_up"]

MARK = "planning_mark_step"


def open_session(store: Any = None, session_id: str | None = None) -> tuple[Session, Toolbox]:
    """Open a session, in a store or in memory, with the planning tools."""
    session = Session() if store is None else Session(store=store, session_id=session_id)
    return session, Toolbox(PlanningToolsSection(session=session).tools())


def set_up(toolbox: Toolbox, steps: int) -> None:
    """Begin a plan of so many pending steps."""
    planned = tuple(NewPlanStep(title=title(n)) for n in range(steps))
    toolbox.invoke("planning_setup_plan", SetupPlan(objective="Migrate", initial_steps=planned))


def open_plan(steps: int) -> tuple[Session, Toolbox]:
    """Open a session in memory with a plan of so many pending steps."""
    session, toolbox = open_session()
    set_up(toolbox, steps)
    return session, toolbox


def current(session: Session) -> Plan:
    """The session's plan, which is known to exist.

    Raises:
        RuntimeError: The session has none.
    """
    plan = select_latest(session, Plan)
    if plan is None:
        raise RuntimeError(f"session {session.session_id} lost its plan")
    return plan


def plan_of(store: Any, session_id: str) -> Plan:
    """Open a stored session and read its plan."""
    return current(open_session(store, session_id)[0])


def _prepare_typed(steps: int) -> Prepared:
    session, toolbox = open_plan(steps)
    step_id = current(session).steps[middle(steps)].step_id
    commands = [MarkStep(step_id=step_id, status=status) for status in DONE]
    invoke = toolbox.invoke
    return Prepared(lambda n: invoke(MARK, commands[n & 1]), lambda: _statuses(session))


def _prepare_json(steps: int) -> Prepared:
    session, toolbox = open_plan(steps)
    step_id = current(session).steps[middle(steps)].step_id
    texts = [f'{{"step_id": "{step_id}", "status": "{status}"}}' for status in DONE]
    call = toolbox.call
    return Prepared(lambda n: call(MARK, texts[n & 1]), lambda: _statuses(session))


def _statuses(session: Session) -> list[str]:
    return [step.status for step in current(session).steps]


TYPED = Door(
    OURS,
    "Toolbox.invoke with a MarkStep: handler, ToolInvoked on the bus, reducer, event log",
    _prepare_typed,
)
JSON = Door(
    f"{OURS}, JSON text",
    "Toolbox.call with the model's text: decoding and validation, then the same",
    _prepare_json,
)


def converse() -> Conversation:
    """Set the plan up and mark every step done, as a model does: with JSON text."""
    session = Session()
    section = PlanningToolsSection(session=session)
    tools = section.tools()
    toolbox = Toolbox(tools)
    prompt = Prompt(ns="benchmarks", key="talk", sections=[section]).render().text
    definitions = [_definition(tool.name, tool.description, tool.parameters_schema()) for tool in tools]
    conversation = Conversation(len(prompt), len(compact(definitions)))

    def call(name: str, arguments: dict[str, Any]) -> None:
        conversation.add(name, arguments, toolbox.call(name, compact(arguments)).message)

    call(
        "planning_setup_plan", {"objective": OBJECTIVE, "initial_steps": [{"title": each} for each in TITLES]}
    )
    for n in range(1, len(TITLES) + 1):
        call(MARK, {"step_id": f"S{n:03d}", "status": "done"})
    if current(session).status != "completed":
        raise RuntimeError("the plan did not end completed")
    return conversation


def _definition(name: str, description: str, schema: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}
