"""A plan as text: for the model that reads it, and for the replies to its calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import Any

from planning.errors import LONGEST_MESSAGE, cut
from planning.plan.commands import (
    AddStep,
    Command,
    MarkStep,
    MarkSteps,
    MoveStep,
    ReadPlan,
    RemoveStep,
    SetupPlan,
    UpdateStep,
)
from planning.plan.facts import HasPlan, PlanFacts
from planning.plan.model import Plan, PlanStep, index_of, listed_ids
from planning.plan.text import as_data

_CLOSED = ("done", "blocked")  # nothing to do on these now
_CURRENT = ("in_progress", "pending")  # the first of these is what a long plan is shown around
_LAST_NOTES = 3
_LONGEST_BLOCK = 4_000
_ASK = "Ask the user to approve it first."


def plan_text(plan: Plan, facts: PlanFacts | None = None) -> str:
    """The whole plan: the objective, then a line a step with its details and notes below it.

    A plan that is too long for one message is shown in part: the done steps without details and notes; or
    else consecutive done steps as one line, and as many of the others as fit, from the
    current step on.

    Args:
        plan: The plan.
        facts: The facts that a policy keeps: what each step waits for, and what shows that it is done.
    """
    remarks = {} if facts is None else remarks_of(plan, facts)
    done = _count_done(plan.steps)
    head = f"{as_data(cut(plan.objective, _LONGEST_BLOCK))} ({plan.status}, {done} of {len(plan.steps)} done)"
    text = "\n".join([head, *[_block(step, remarks) for step in plan.steps]])
    if len(text) > LONGEST_MESSAGE:
        text = "\n".join([head, *[_brief_block(step, remarks) for step in plan.steps]])
    if len(text) > LONGEST_MESSAGE:
        text = cut(f"{head}\n{_excerpt(plan.steps, remarks)}", LONGEST_MESSAGE)
    return text


def remarks_of(plan: Plan, facts: PlanFacts) -> Mapping[str, str]:
    """The remarks behind the status of steps: ``, after S001``, ``, verified``."""
    done = {step.step_id for step in plan.steps if step.status == "done"}
    remarks = {}
    for step in plan.steps:
        said = []
        proof = facts.proofs.get(step.step_id)
        if step.status == "done" and proof is not None:
            said.append("verified" if proof.verified else f"reported with {', '.join(proof.evidence)}")
        needed = [each for each in facts.depends_on.get(step.step_id, ()) if each not in done]
        if step.status != "done" and needed:
            said.append(f"after {listed_ids(needed)}")
        if step.step_id in facts.waiting:
            said.append("waits for approval")
        if said:
            remarks[step.step_id] = "".join(f", {each}" for each in said)
    return remarks


def plan_to_dict(source: HasPlan | Plan | None) -> dict[str, Any] | None:
    """A plan as plain dictionaries and lists, ready for JSON; None when there is none.

    With a policy the plan also has ``approval``, and the ``reason`` where it was rejected. Its steps have
    ``depends_on``, ``evidence``, ``proof`` (``"reported"`` or ``"verified"``) and ``waits_for_approval``
    if there is something to say.

    Args:
        source: The plan, or where it is.
    """
    plan = source if isinstance(source, Plan) or source is None else source.select_latest(Plan)
    if plan is None:
        return None
    facts = None if isinstance(source, Plan) or source is None else source.select_latest(PlanFacts)
    return plan_data(plan, facts)


def plan_data(plan: Plan, facts: PlanFacts | None) -> dict[str, Any]:
    """A plan as ``plan_to_dict`` returns it."""
    done, steps = plan.progress
    approval: dict[str, Any] = {}
    if facts is not None and facts.approval != "none":
        approval = {"approval": facts.approval}
        approval |= {} if facts.reason is None else {"reason": facts.reason}
    return {
        "objective": plan.objective,
        "status": plan.status,
        **approval,
        "done": done,
        "total": steps,
        "steps": [
            {
                "step_id": step.step_id,
                "title": step.title,
                "details": step.details,
                "status": step.status,
                "notes": list(step.notes),
                **({} if facts is None else _facts_of(step.step_id, facts)),
            }
            for step in plan.steps
        ],
    }


def _facts_of(step_id: str, facts: PlanFacts) -> dict[str, Any]:
    said: dict[str, Any] = {}
    if step_id in facts.depends_on:
        said["depends_on"] = list(facts.depends_on[step_id])
    if step_id in facts.proofs:
        proof = facts.proofs[step_id]
        said["evidence"] = list(proof.evidence)
        said["proof"] = "verified" if proof.verified else "reported"
    if step_id in facts.waiting:
        said["waits_for_approval"] = True
    return said


def _block(step: PlanStep, remarks: Mapping[str, str]) -> str:
    lines = [f"{step.step_id} {step.status}{remarks.get(step.step_id, '')}: {as_data(step.title)}"]
    lines.extend(f"  {line}" for line in (step.details or "").splitlines())
    lines.extend("  - " + note.replace("\n", "\n    ") for note in step.notes)
    return "\n".join(lines)


def _brief_block(step: PlanStep, remarks: Mapping[str, str]) -> str:
    """A step in brief: a done one on one line, any other with its last notes."""
    if step.status == "done":
        step = replace(step, details=None, notes=())
    elif len(step.notes) > _LAST_NOTES:
        older = f"({len(step.notes) - _LAST_NOTES} older notes are not shown)"
        step = replace(step, notes=(older, *step.notes[-_LAST_NOTES:]))
    return cut(_block(step, remarks), _LONGEST_BLOCK)


def _excerpt(steps: tuple[PlanStep, ...], remarks: Mapping[str, str]) -> str:
    """The steps from the one before the current on, then earlier ones, as many as fit."""
    blocks = list[tuple[str, tuple[PlanStep, ...]]]()
    for is_done, run in groupby(steps, key=lambda step: step.status == "done"):
        if is_done:
            done = tuple(run)
            blocks.append((f"{_span(done)} done", done))
        else:
            blocks.extend((_brief_block(step, remarks), (step,)) for step in run)
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
        lines.insert(0, f"({_count(blocks[:start])})")
    if end < len(blocks):
        lines.append(f"({_count(blocks[end:])}; mark steps done to see the next ones)")
    return "\n".join(lines)


def _count(blocks: Sequence[tuple[str, tuple[PlanStep, ...]]]) -> str:
    steps = tuple(step for _, shown in blocks for step in shown)
    return f"{len(steps)} not shown: {_span(steps)}"


def reply(
    command: Command | MarkSteps | RemoveStep | MoveStep,
    plan: Plan,
    before: Plan | None = None,
    facts: PlanFacts | None = None,
    *,
    asks: bool = False,
) -> str:
    """The message for the model after a command was applied."""
    is_same = plan is before  # nothing changed
    if isinstance(command, MarkStep):
        return _report_mark(
            f"{command.step_id} {'is already ' * is_same}{command.status}.", command, plan, facts
        )
    ask = f" {_ASK}" if asks else ""
    match command:
        case MarkSteps():
            runs = groupby(command.marks, key=attrgetter("status"))
            said = [
                f"{listed_ids([mark.step_id for mark in run])} {'already ' * is_same}{status}"
                for status, run in runs
            ]
            return _report_mark(f"{', '.join(said)}.", command.marks[-1], plan, facts)
        case RemoveStep():
            return _report_removal(command, plan, facts) + ask
        case MoveStep():
            moved = "already has this place" if is_same else "moved"
            order = listed_ids([step.step_id for step in plan.steps])
            return f"{command.step_id} {moved}. Order: {order}.{ask}"
        case SetupPlan() if not plan.steps:
            return f"Plan set, no steps yet. {_ending(before)}Add them with planning_add_step."
        case SetupPlan():
            return (
                f"Plan set: {_span(plan.steps)}. {_ending(before)}{_ASK if asks else _next(plan, 0, facts)}"
            )
        case AddStep():
            return f"Added {_span(plan.steps[-len(command.steps) :])}.{ask}"
        case UpdateStep() if is_same:
            return f"{command.step_id} already has {_fields_of(command)}."
        case UpdateStep():
            return f"{command.step_id} updated.{ask}"
        case ReadPlan():
            return plan_text(plan, facts)
        case _:
            return "Plan abandoned."


def _fields_of(command: UpdateStep) -> str:
    """The fields of a step that a command gives."""
    details = "no details" if command.details == "" else "these details"
    fields = ["this title"] * (command.title is not None) + [details] * (command.details is not None)
    return " and ".join(fields)


def _ending(before: Plan | None) -> str:
    """The sentence about a plan that was replaced before all of it was done; else empty."""
    steps = () if before is None else before.steps
    done = _count_done(steps)
    if done == len(steps):
        return ""
    steps_done = "1 step" if done == 1 else f"{done} steps"
    return f"It replaced a plan with {steps_done} done, {len(steps) - done} not done. "


def _count_done(steps: tuple[PlanStep, ...]) -> int:
    return sum(step.status == "done" for step in steps)


def _report_mark(marked: str, last: MarkStep, plan: Plan, facts: PlanFacts | None) -> str:
    if plan.status == "completed":
        return f"{marked} Plan completed."
    if last.status not in _CLOSED:
        return marked
    return f"{marked} {_next(plan, index_of(plan.steps, last.step_id) or 0, facts)}"


def _report_removal(command: RemoveStep, plan: Plan, facts: PlanFacts | None) -> str:
    freed = (
        []
        if facts is None
        else [waiting for waiting, needed in facts.depends_on.items() if command.step_id in needed]
    )
    said = f" {listed_ids(freed)} no longer {'waits' if len(freed) == 1 else 'wait'} for it." if freed else ""
    completed = " Plan completed." if plan.status == "completed" else ""
    return f"{command.step_id} removed.{said}{completed}"


def _next(plan: Plan, index: int, facts: PlanFacts | None) -> str:
    """The first open step from ``index`` on, or else from the start; or else another blocked one."""
    steps = plan.steps
    for place in range(index - len(steps), index):  # from the index round to it again
        step = steps[place]
        if step.status not in _CLOSED and not (facts is not None and _must_wait(step, plan, facts)):
            return f"Next: {step.step_id} {as_data(step.title)}"
    for place, step in enumerate(steps):
        if step.status == "blocked" and place != index:
            return f"Blocked: {step.step_id} {as_data(step.title)}"
    return "No other step is open."


def _must_wait(step: PlanStep, plan: Plan, facts: PlanFacts) -> bool:
    """True if a step cannot begin now: it waits for approval, or for steps that are not done."""
    for each in facts.depends_on.get(step.step_id, ()):
        index = index_of(plan.steps, each)
        if index is not None and plan.steps[index].status != "done":
            return True
    return step.step_id in facts.waiting


def _span(steps: Sequence[PlanStep]) -> str:
    return listed_ids([step.step_id for step in steps])
