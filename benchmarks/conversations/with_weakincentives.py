"""The conversation with weakincentives' planning tools, which have the same six names as ours."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from weakincentives.adapters import OPENAI_ADAPTER_NAME, shared
from weakincentives.prompt import Prompt
from weakincentives.runtime.events import InProcessEventBus
from weakincentives.runtime.session import Session, select_latest
from weakincentives.tools import planning

from benchmarks.characters import OBJECTIVE, TITLES, Conversation, compact

__all__ = ["converse"]


def converse(*, start_steps: bool) -> Conversation:
    """Set the plan up and mark every step done, through its adapters' own execution and rendering.

    Args:
        start_steps: Whether each step is also marked in progress first.
    """
    bus = InProcessEventBus()
    session = Session(bus=bus)
    section = planning.PlanningToolsSection(session=session)
    prompt = Prompt(ns="benchmarks", key="talk", name="talk", sections=[section])
    rendered = prompt.render()
    conversation = Conversation(
        name=f"weakincentives, {'in progress and done' if start_steps else 'done only'}",
        package="weakincentives",
        prompt=rendered.text,
        tools=compact([shared.tool_to_spec(tool) for tool in rendered.tools]),
    )

    def call(name: str, arguments: dict[str, Any]) -> None:
        _, result = shared.execute_tool_call(
            adapter_name=OPENAI_ADAPTER_NAME,
            adapter=None,
            prompt=prompt,
            rendered_prompt=rendered,
            tool_call=SimpleNamespace(
                id="call", function=SimpleNamespace(name=name, arguments=compact(arguments))
            ),
            tool_registry={tool.name: tool for tool in rendered.tools},
            bus=bus,
            session=session,
            prompt_name="talk",
            provider_payload=None,
            deadline=None,
            format_publish_failures=shared.format_publish_failures,
            parse_arguments=shared.parse_tool_arguments,
        )
        # Its adapters send the message, a blank line, and the rendered value.
        body = result.render()
        conversation.add(name, arguments, f"{result.message}\n\n{body}" if body else result.message)

    call("planning_setup_plan", {"objective": OBJECTIVE, "initial_steps": [{"title": t} for t in TITLES]})
    for n in range(1, len(TITLES) + 1):
        for status in ("in_progress", "done") if start_steps else ("done",):
            call("planning_mark_step", {"step_id": f"S{n:03d}", "status": status})
    plan = select_latest(session, planning.Plan)
    if plan is None or plan.status != "completed":
        raise RuntimeError("the plan did not end completed")
    return conversation
