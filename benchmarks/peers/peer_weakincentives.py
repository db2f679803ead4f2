"""weakincentives: its planning section on a session and an in-process bus."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
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

from benchmarks.door import DONE, Door, Prepared, Takes, middle, title

__all__ = ["DOORS", "Opened"]

PACKAGE = "weakincentives"
MARK = "planning_mark_step"


class Opened:
    """A session with a plan, and what an adapter holds beside it."""

    def __init__(self, steps: int) -> None:
        self.bus = InProcessEventBus()
        self.session = Session(bus=self.bus)
        section = planning.PlanningToolsSection(session=self.session)
        self.prompt = Prompt(ns="benchmarks", key="mark", name="mark", sections=[section])
        self.rendered = self.prompt.render()
        self.tools = {tool.name: tool for tool in self.rendered.tools}
        new_steps = tuple(planning.NewPlanStep(title(n)) for n in range(steps))
        self.invoke("planning_setup_plan", planning.SetupPlan("Migrate", new_steps))
        self.step_id = self.plan.steps[middle(steps)].step_id

    @property
    def plan(self) -> Any:
        """The plan of the session."""
        return select_latest(self.session, planning.Plan)

    def statuses(self) -> Sequence[str]:
        """Every step's status."""
        return [step.status for step in self.plan.steps]

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


def _prepare_typed(steps: int) -> Prepared:
    opened = Opened(steps)
    commands = [planning.MarkStep(opened.step_id, status) for status in DONE]
    invoke = opened.invoke

    def mark(n: int) -> None:
        invoke(MARK, commands[n & 1])

    return Prepared(mark, opened.statuses)


def _prepare_json(steps: int) -> Prepared:
    opened = Opened(steps)
    arguments = [json.dumps({"step_id": opened.step_id, "status": status}) for status in DONE]
    calls = [
        SimpleNamespace(id="call", function=SimpleNamespace(name=MARK, arguments=text)) for text in arguments
    ]
    execute: Callable[..., Any] = shared.execute_tool_call

    def mark(n: int) -> None:
        execute(
            adapter_name=OPENAI_ADAPTER_NAME,
            adapter=None,
            prompt=opened.prompt,
            rendered_prompt=opened.rendered,
            tool_call=calls[n & 1],
            tool_registry=opened.tools,
            bus=opened.bus,
            session=opened.session,
            prompt_name="mark",
            provider_payload=None,
            deadline=None,
            format_publish_failures=shared.format_publish_failures,
            parse_arguments=shared.parse_tool_arguments,
        )

    return Prepared(mark, opened.statuses)


DOORS = (
    Door(
        name=PACKAGE,
        package=PACKAGE,
        takes=Takes.TYPED,
        description=(
            "the tool's handler with a MarkStep, then ToolInvoked published on its bus; without the "
            "session snapshot that its adapters take before publishing"
        ),
        prepare=_prepare_typed,
    ),
    Door(
        name=PACKAGE,
        package=PACKAGE,
        takes=Takes.JSON,
        description=(
            "adapters.shared.execute_tool_call with a provider's tool call, as its OpenAI adapter runs it: "
            "parse, handler, snapshot of the session, publish"
        ),
        prepare=_prepare_json,
    ),
)
