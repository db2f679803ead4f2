"""The conversation with this project's planning tools."""

from __future__ import annotations

from typing import Any

from benchmarks.characters import OBJECTIVE, TITLES, Conversation, compact
from planning import Plan, PlanningToolsSection, Toolbox
from planning.prompt import Prompt
from session import InProcessEventBus, Session, select_latest

__all__ = ["converse"]


def converse(*, start_steps: bool) -> Conversation:
    """Set the plan up and mark every step done, through the door for a model's JSON text.

    Args:
        start_steps: Whether each step is also marked in progress first.
    """
    session = Session(bus=InProcessEventBus())
    section = PlanningToolsSection(session=session)
    tools = section.tools()
    toolbox = Toolbox(tools)
    definitions = [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters_schema(),
            },
        }
        for tool in tools
    ]
    conversation = Conversation(
        name=f"session-planning, {'in progress and done' if start_steps else 'done only'}",
        package="session-planning",
        prompt=Prompt(ns="benchmarks", key="talk", sections=[section]).render().text,
        tools=compact(definitions),
    )

    def call(name: str, arguments: dict[str, Any]) -> None:
        result = toolbox.call(name, compact(arguments))
        conversation.add(name, arguments, result.message)

    call("planning_setup_plan", {"objective": OBJECTIVE, "initial_steps": [{"title": t} for t in TITLES]})
    for n in range(1, len(TITLES) + 1):
        for status in ("in_progress", "done") if start_steps else ("done",):
            call("planning_mark_step", {"step_id": f"S{n:03d}", "status": status})
    plan = select_latest(session, Plan)
    if plan is None or plan.status != "completed":
        raise RuntimeError("the plan did not end completed")
    return conversation
