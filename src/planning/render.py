"""A plan as text: for the model that reads it, and for the replies to its calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Protocol

from planning.commands import AddStep, Command, MarkStep, ReadPlan, SetupPlan, UpdateStep
from planning.errors import LONGEST_MESSAGE, cut
from planning.model import Plan, PlanStep, index_of

__all__ = ["plan_text", "plan_to_dict", "reply"]

_CLOSED = ("done", "blocked")  # nothing to do on these now
_CURRENT = ("in_progress", "pending", "blocked")  # the first of these is what a long plan is shown around
_LAST_NOTES = 3
_LONGEST_BLOCK = 4_000


def plan_text(plan: Plan) -> str:
    """The whole plan: the objective, then a line a step with its details and notes below it.

    A plan that is too long for one message is shown in part: the done steps without details and notes; or
    else consecutive done steps as one line, and as many of the others as fit, from the
    current step on.
    """
    done = _count_done(plan.steps)
    head = f"{cut(plan.objective, _LONGEST_BLOCK)} ({plan.status}, {done} of {len(plan.steps)} done)"
    text = "\n".join([head, *map(_block, plan.steps)])
    if len(text) > LONGEST_MESSAGE:
        text = "\n".join([head, *map(_brief_block, plan.steps)])
    if len(text) > LONGEST_MESSAGE:
        text = cut(f"{head}\n{_excerpt(plan.steps)}", LONGEST_MESSAGE)
    return text


class HasPlan(Protocol):
    """What the selectors take: a session, ``session.at(version)``, a snapshot."""

    def select_latest(self, slice_type: type[Plan], /) -> Plan | None:
        """The plan, or None."""
        ...


def plan_to_dict(source: HasPlan | Plan | None) -> dict[str, Any] | None:
    """A plan as plain dictionaries and lists, ready for JSON; None when there is none.

    Args:
        source: The plan, or where it is.
    """
    plan = source if isinstance(source, Plan) or source is None else source.select_latest(Plan)
    if plan is None:
        return None
    done, steps = plan.progress
    return {
        "objective": plan.objective,
        "status": plan.status,
        "done": done,
        "total": steps,
        "steps": [
            {
                "step_id": step.step_id,
                "title": step.title,
                "details": step.details,
                "status": step.status,
                "notes": list(step.notes),
            }
            for step in plan.steps
        ],
    }


def _block(step: PlanStep) -> str:
    lines = [f"{step.step_id} {step.status}: {step.title}"]
    lines.extend(f"  {line}" for line in (step.details or "").splitlines())
    lines.extend("  - " + note.replace("\n", "\n    ") for note in step.notes)
    return "\n".join(lines)


def _brief_block(step: PlanStep) -> str:
    """A step in brief: a done one on one line, any other with its last notes."""
    if step.status == "done":
        step = replace(step, details=None, notes=())
    elif len(step.notes) > _LAST_NOTES:
        older = f"({len(step.notes) - _LAST_NOTES} older notes are not shown)"
        step = replace(step, notes=(older, *step.notes[-_LAST_NOTES:]))
    return cut(_block(step), _LONGEST_BLOCK)


def _excerpt(steps: tuple[PlanStep, ...]) -> str:
    """The steps from the one before the current on, then earlier ones, as many as fit."""
    blocks = list[tuple[str, tuple[PlanStep, ...]]]()
    for is_done, run in groupby(steps, key=lambda step: step.status == "done"):
        if is_done:
            done = tuple(run)
            blocks.append((f"{_span(done)} done", done))
        else:
            blocks.extend((_brief_block(step), (step,)) for step in run)
    statuses = [shown[0].status for _, shown in blocks]
    current = next((statuses.index(status) for status in _CURRENT if status in statuses), 0)
    start = end = max(0, current - 1)
    room = LONGEST_MESSAGE - 2 * _LONGEST_BLOCK
    while end < len(blocks) and len(blocks[end][0]) < room:
        room -= len(blocks[end][0]) + 1
        end += 1
    while start > 0 and len(blocks[start - 1][0]) < room:
        start -= 1
        room -= len(blocks[start][0]) + 1
    lines = [block for block, _ in blocks[start:end]]
    if start > 0:
        lines.insert(0, f"({_counted(blocks[:start])})")
    if end < len(blocks):
        lines.append(f"({_counted(blocks[end:])}; mark steps done to see the next ones)")
    return "\n".join(lines)


def _counted(blocks: Sequence[tuple[str, tuple[PlanStep, ...]]]) -> str:
    steps = tuple(step for _, shown in blocks for step in shown)
    return f"{len(steps)} not shown: {_span(steps)}"


def reply(command: Command, plan: Plan, before: Plan | None = None) -> str:
    """What the model reads after a command was carried out.

    Args:
        command: The command as the reducers saw it.
        plan: The plan that it left.
        before: The plan that it was given for.
    """
    match command:
        case MarkStep():
            return _marked(command, plan)
        case SetupPlan() if not plan.steps:
            return f"Plan set, no steps yet. {_replaced(before)}Add them with planning_add_step."
        case SetupPlan():
            return f"Plan set: {_span(plan.steps)}. {_replaced(before)}{_next(plan, 0)}"
        case AddStep():
            return f"Added {_span(plan.steps[-len(command.steps) :])}."
        case UpdateStep():
            return f"{command.step_id} updated."
        case ReadPlan():
            return plan_text(plan)
        case _:
            return "Plan abandoned."


def _replaced(before: Plan | None) -> str:
    """What a new plan took the place of, when that had steps that were not done."""
    steps = () if before is None else before.steps
    done = _count_done(steps)
    if done == len(steps):
        return ""
    steps_done = "1 step" if done == 1 else f"{done} steps"
    return f"It replaced a plan with {steps_done} done, {len(steps) - done} not done. "


def _count_done(steps: tuple[PlanStep, ...]) -> int:
    return sum(step.status == "done" for step in steps)


def _marked(command: MarkStep, plan: Plan) -> str:
    status = command.status
    marked = f"{command.step_id} {status}."
    if plan.status == "completed":
        return f"{marked} Plan completed."
    if status not in _CLOSED:
        return marked
    index = index_of(plan.steps, command.step_id)
    return f"{marked} {_next(plan, 0 if index is None else index)}"


def _next(plan: Plan, index: int) -> str:
    """The first open step from ``index`` on, or else from the start; or else another blocked one."""
    steps = plan.steps
    for place in range(index - len(steps), index):  # from the index round to it again
        step = steps[place]
        if step.status not in _CLOSED:
            return f"Next: {step.step_id} {step.title}"
    for place, step in enumerate(steps):
        if step.status == "blocked" and place != index:
            return f"Blocked: {step.step_id} {step.title}"
    return "No other step is open."


def _span(steps: tuple[PlanStep, ...]) -> str:
    first, last = steps[0].step_id, steps[-1].step_id
    return first if first == last else f"{first} to {last}"
