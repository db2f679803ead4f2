"""Random arguments, sent to tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from promises import demand, demand_readable

from planning import NewPlanStep, Plan, PlanningToolsSection, Toolbox
from planning.tools import ErrorKind, Tool, ToolResult, tool
from session import Session, select_latest

STATUSES = ("pending", "in_progress", "blocked", "done")
CORPUS = (
    '{"objective": "Fix the login", "initial_steps": ["Reproduce", {"title": "Fix", "details": "x"}]}',
    '{"steps": [{"title": "Write a test"}, "Review"]}',
    '{"step_id": "S001", "title": "Reproduce it", "details": ""}',
    '{"step_id": "s1", "status": "In Progress", "note": "seen"}',
    '{"step_id": 2, "status": "done"}',
    '{"count": "5", "ratio": 0.5, "names": ["a"], "choice": "b"}',
    '{"count": 5, "nested": {"title": "t"}, "flags": {"x": true}}',
    '{"count": 1, "count": 2}',
    '"{\\"count\\": 1}"',
    "{}",
    "null",
)
WORDS = r"""
null true false NaN 1e999 \ud800 \u0000 "step_id" "status" "note" "title" "details" "objective"
"initial_steps" "steps" "done" "S001" "s1" "count" "ratio" "names" "choice" "nested" "flags"
"""
TOKENS = (*'[]{},:"\\0-1', *WORDS.split())


def check(text: str) -> None:
    """Send one text to every tool.

    Raises:
        BrokenPromise: A promise is not kept.
    """
    session = Session()
    section = PlanningToolsSection(session=session)
    received: list[tuple[Any, ...]] = []
    toolbox = Toolbox([*section.tools(), _custom(received)])
    for name in toolbox.tools:
        toolbox.call("planning_setup_plan", {"objective": "Goal", "initial_steps": ["One", "Two"]})
        before = select_latest(session, Plan)
        result = toolbox.call(name, text)
        demand(type(result) is ToolResult, "a call always has a result")
        demand_readable(result.message)
        plan = select_latest(session, Plan)
        if result.success:
            demand(plan is not None and _is_sound(plan), "a plan keeps its rules")
        else:
            demand(isinstance(result.code, ErrorKind), "a failure has a code")
            demand(plan is before, "a refused call changes nothing")
    for values in received:
        demand(_is_as_declared(*values), "a tool is called with what it declares")


def _custom(received: list[tuple[Any, ...]]) -> Tool:
    def custom(
        count: int,
        ratio: float = 1.0,
        names: tuple[str, ...] = (),
        choice: Literal["a", "b"] | None = None,
        nested: NewPlanStep | None = None,
        flags: dict[str, bool] | None = None,
    ) -> str:
        """Take a value of each kind."""
        received.append((count, ratio, names, choice, nested, flags))
        return "taken"

    return tool(custom)


def _is_as_declared(count: Any, ratio: Any, names: Any, choice: Any, nested: Any, flags: Any) -> bool:
    return (
        type(count) is int
        and type(ratio) in {int, float}
        and type(names) is tuple
        and all(type(name) is str for name in names)
        and choice in {None, "a", "b"}
        and (nested is None or type(nested.title) is str)
        and (flags is None or all(type(flag) is bool for flag in flags.values()))
    )


def _is_sound(plan: Any) -> bool:
    ids = [step.step_id for step in plan.steps]
    texts = [plan.objective, *(step.title for step in plan.steps)]
    return (
        len(set(ids)) == len(ids)
        and plan.status in {"active", "completed", "abandoned"}
        and all(step.status in STATUSES for step in plan.steps)
        and all(text.isascii() and text.isprintable() and text == text.strip() and text for text in texts)
        and len(plan.objective) <= 240
        and all(len(step.title) <= 160 for step in plan.steps)
        and all(len(note) <= 512 for step in plan.steps for note in step.notes)
        and (plan.status != "completed" or all(step.status == "done" for step in plan.steps))
    )


def corpus() -> Iterator[str]:
    """Good and bad arguments."""
    return iter(CORPUS)
