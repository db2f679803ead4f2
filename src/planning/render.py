"""A plan as text: for the model that reads it, and for the replies to its calls."""

from __future__ import annotations

from planning.commands import AddStep, Command, MarkStep, ReadPlan, SetupPlan, UpdateStep
from planning.model import Plan, PlanStep, index_of

__all__ = ["plan_text", "reply"]

_CLOSED = ("done", "blocked")  # nothing to do on these now


def plan_text(plan: Plan) -> str:
    """The whole plan: the objective, then a line a step with its details and notes below it."""
    done = _count_done(plan.steps)
    lines = [f"{plan.objective} ({plan.status}, {done} of {len(plan.steps)} done)"]
    for step in plan.steps:
        lines.append(f"{step.step_id} {step.status}: {step.title}")
        lines.extend(f"  {line}" for line in (step.details or "").splitlines())
        lines.extend("  - " + note.replace("\n", "\n    ") for note in step.notes)
    return "\n".join(lines)


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
    return f"It replaced a plan with {done} {'step' if done == 1 else 'steps'} done, {len(steps) - done} not done. "


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
