"""weakincentives: its planning section on a session and an in-process bus, with the same six tools."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from weakincentives.adapters import OPENAI_ADAPTER_NAME, shared
from weakincentives.prompt import Prompt
from weakincentives.prompt.tool import ToolContext
from weakincentives.runtime.events import InProcessEventBus, ToolInvoked
from weakincentives.runtime.session import Session, select_latest
from weakincentives.tools import planning

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

__all__ = ["WEAKINCENTIVES", "Opened", "converse"]

MARK = "planning_mark_step"


class Opened:
    """A session with the planning tools, and what an adapter holds beside it."""

    def __init__(self) -> None:
        self.bus = InProcessEventBus()
        self.session = Session(bus=self.bus)
        section = planning.PlanningToolsSection(session=self.session)
        self.prompt = Prompt(ns="benchmarks", key="mark", name="mark", sections=[section])
        self.rendered = self.prompt.render()
        self.tools = {tool.name: tool for tool in self.rendered.tools}

    @property
    def plan(self) -> Any:
        """The plan of the session."""
        return select_latest(self.session, planning.Plan)

    def set_up(self, steps: int) -> None:
        """Begin a plan of so many pending steps."""
        new_steps = tuple(planning.NewPlanStep(title(n)) for n in range(steps))
        self.invoke("planning_setup_plan", planning.SetupPlan("Migrate", new_steps))

    def invoke(self, name: str, params: Any) -> None:
        """Run the handler and publish the event with the fields that the package's adapters fill in."""
        context = ToolContext(
            prompt=self.prompt,
            rendered_prompt=self.rendered,
            adapter=None,
            session=self.session,
            event_bus=self.bus,
        )
        result = self.tools[name].handler(params, context=context)
        event = ToolInvoked(
            prompt_name="mark",
            adapter=OPENAI_ADAPTER_NAME,
            name=name,
            params=params,
            result=result,
            session_id=self.session.session_id,
            created_at=datetime.now(UTC),
            value=result.value,
            rendered_output=result.render(),
            event_id=uuid4(),
        )
        published = self.bus.publish(event)
        if not published.ok:
            published.raise_if_errors()

    def call(self, name: str, text: str) -> str:
        """Run a model's call as its OpenAI adapter does: the answer to the model."""
        _, result = shared.execute_tool_call(
            adapter_name=OPENAI_ADAPTER_NAME,
            adapter=None,
            prompt=self.prompt,
            rendered_prompt=self.rendered,
            tool_call=SimpleNamespace(id="call", function=SimpleNamespace(name=name, arguments=text)),
            tool_registry=self.tools,
            bus=self.bus,
            session=self.session,
            prompt_name="mark",
            provider_payload=None,
            deadline=None,
            format_publish_failures=shared.format_publish_failures,
            parse_arguments=shared.parse_tool_arguments,
        )
        # Its adapters send the message, a blank line, and the rendered value.
        body = result.render()
        return f"{result.message}\n\n{body}" if body else result.message


def _prepare(steps: int) -> Prepared:
    opened = Opened()
    opened.set_up(steps)
    commands = [planning.MarkStep(opened.plan.steps[middle(steps)].step_id, status) for status in DONE]
    invoke = opened.invoke
    return Prepared(
        lambda n: invoke(MARK, commands[n & 1]), lambda: [step.status for step in opened.plan.steps]
    )


WEAKINCENTIVES = Door(
    "weakincentives",
    (
        "the tool's handler with a MarkStep, then ToolInvoked published on its bus; without the session"
        " snapshot that its adapters take before publishing"
    ),
    _prepare,
)


def converse() -> Conversation:
    """Set the plan up and mark every step done, through its adapters' own execution and rendering."""
    opened = Opened()
    definitions = [shared.tool_to_spec(tool) for tool in opened.rendered.tools]
    conversation = Conversation(len(opened.rendered.text), len(compact(definitions)))

    def call(name: str, arguments: dict[str, Any]) -> None:
        conversation.add(name, arguments, opened.call(name, compact(arguments)))

    call(
        "planning_setup_plan", {"objective": OBJECTIVE, "initial_steps": [{"title": each} for each in TITLES]}
    )
    for n in range(1, len(TITLES) + 1):
        call(MARK, {"step_id": f"S{n:03d}", "status": "done"})
    if opened.plan.status != "completed":
        raise RuntimeError("the plan did not end completed")
    return conversation
