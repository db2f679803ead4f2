"""The checks of a policy: pure functions of the policy, a command, the plan and its facts.

Each returns what the command entails, or refuses with one sentence that says what to do instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, Protocol
from unicodedata import normalize

from planning.errors import Problem, ToolValidationError, cut, show
from planning.plan.commands import MarkStep
from planning.plan.facts import PlanFacts
from planning.plan.model import Plan, PlanStep, StepStatus, index_of
from planning.plan.step_ids import alike_key, listed_ids
from planning.policy.policy import PlanPolicy

_NAMED: Final = 8
_MOST_MARKS: Final = 100
_LONGEST_NAME: Final = 80
_BEGINS: Final = ("in_progress", "done")


class HasFacts(Protocol):
    """What the selectors take: a session, ``session.at(version)``, a snapshot."""

    def select_latest(self, slice_type: type[Any], /) -> Any:
        """The newest item of a slice, or None."""
        ...


def ready_steps(source: HasFacts | Plan) -> tuple[PlanStep, ...]:
    """The pending steps whose prerequisites are all done, in the plan's order.

    Args:
        source: A session, ``session.at(version)`` or a snapshot; a plan alone has no dependencies.
    """
    facts: PlanFacts | None = None if isinstance(source, Plan) else source.select_latest(PlanFacts)
    plan: Plan | None = source if isinstance(source, Plan) else source.select_latest(Plan)
    if plan is None:
        return ()
    depends_on = {} if facts is None else facts.depends_on
    open_ = {step.step_id for step in plan.steps if step.status != "done"} if depends_on else set()
    return tuple(
        [
            step
            for step in plan.steps
            if step.status == "pending" and open_.isdisjoint(depends_on.get(step.step_id, ()))
        ]
    )


# What binds every change


def refuse_order(policy: PlanPolicy, marks: Sequence[MarkStep], plan: Plan, facts: PlanFacts) -> None:
    """Refuse marks that begin or finish a step too early, or begin too many; each after those before it.

    Raises:
        ToolValidationError: A prerequisite is open, or too many steps would be in progress.
    """
    marked: dict[str, StepStatus] = {}
    begins = "in_progress" in [mark.status for mark in marks]
    most = policy.most_in_progress if begins else None
    running = 0 if most is None else [step.status for step in plan.steps].count("in_progress")
    for mark in marks:
        step_id, status = mark.step_id, mark.status
        if policy.dependencies and status in _BEGINS and step_id in facts.depends_on:
            open_ = [each for each in facts.depends_on[step_id] if _is_open(each, marked, plan)]
            if open_:
                verb = "is" if len(open_) == 1 else "are"
                first = _first_open(open_[0], marked, plan, facts)
                raise ToolValidationError(
                    f"{step_id} depends on {listed_ids(open_)}, which {verb} not done; do {first} first"
                )
        if most is not None:
            running -= _status(step_id, marked, plan) == "in_progress"
            if status == "in_progress":
                if running >= most:
                    raise ToolValidationError(_too_many(most, step_id, marked, plan))
                running += 1
        marked[step_id] = status


def _too_many(most: int, step_id: str, marked: Mapping[str, StepStatus], plan: Plan) -> str:
    steps = "1 step" if most == 1 else f"{most} steps"
    others = [step.step_id for step in plan.steps if step.step_id != step_id]
    running = listed_ids([each for each in others if _status(each, marked, plan) == "in_progress"])
    return f"at most {steps} may be in progress; mark {running} done, blocked or pending first"


def _status(step_id: str, marked: Mapping[str, StepStatus], plan: Plan) -> StepStatus | None:
    """The status of a step after the marks before; None where there is no such step."""
    if step_id in marked:
        return marked[step_id]
    index = index_of(plan.steps, step_id)
    return None if index is None else plan.steps[index].status


def _is_open(step_id: str, marked: Mapping[str, StepStatus], plan: Plan) -> bool:
    return _status(step_id, marked, plan) not in {"done", None}


def _first_open(step_id: str, marked: Mapping[str, StepStatus], plan: Plan, facts: PlanFacts) -> str:
    """The step to do first: an open one on which this one depends, and which depends on no open one."""
    for _ in plan.steps:
        needed = facts.depends_on.get(step_id, ())
        before = next((each for each in needed if _is_open(each, marked, plan)), None)
        if before is None:
            break
        step_id = before
    return step_id


# What binds the agent


def refuse_replacement(policy: PlanPolicy, plan: Plan | None) -> None:
    """Refuse a new plan over one with open steps.

    Raises:
        ToolValidationError: The plan has open steps.
    """
    if policy.replace is None or plan is None or plan.status != "active":
        return
    open_ = [step.step_id for step in plan.steps if step.status != "done"]
    if open_:
        verb = "is" if len(open_) == 1 else "are"
        clear = "planning_clear_plan" in policy.names
        remedy = "finish the plan" + (", or drop it with planning_clear_plan" if clear else "")
        raise ToolValidationError(f"{listed_ids(open_)} {verb} not done; {remedy} before you set up another")


def refuse_waiting(marks: Iterable[MarkStep], facts: PlanFacts) -> None:
    """Refuse to begin or finish steps that wait for approval by themselves.

    Raises:
        ToolValidationError: One of them waits.
    """
    if not facts.waiting:
        return
    waiting = [mark.step_id for mark in marks if mark.status in _BEGINS and mark.step_id in facts.waiting]
    if waiting:
        verb = "waits" if len(waiting) == 1 else "wait"
        raise ToolValidationError(
            f"{listed_ids(waiting)} {verb} for approval; work on another step, or ask the user to approve it"
        )


def waits(facts: PlanFacts | None, plan: Plan | None, tool: str) -> str | None:
    """Why work may not begin: the plan waits for approval, or was rejected; None when it may."""
    if facts is None or facts.approval not in {"waiting", "rejected"}:
        return None
    if plan is not None and plan.status == "abandoned":
        reason = "the plan was abandoned before it was approved; set up another plan first"
    elif facts.approval == "waiting":
        reason = "the plan waits for approval; end your turn and ask the user to approve it"
    else:
        reason = f"the plan was rejected ({facts.reason}); change the plan first"
    return f"{tool} was not called: {reason}"


def dependencies_of(
    given: Sequence[Sequence[Any]], steps: Sequence[PlanStep], field: str
) -> dict[str, tuple[str, ...]]:
    """The dependencies of new steps, by id.

    Args:
        given: For each new step, what it depends on: ids, titles, or places among the new steps, from 1.
        steps: The steps of the plan, the new ones last.
        field: The argument that has the new steps.

    Raises:
        ToolValidationError: A step is not known, or the new steps depend on each other in a cycle.
    """
    new = [step.step_id for step in steps[len(steps) - len(given) :]]
    titles: dict[str, list[str]] = {}
    alike: dict[str, list[str]] = {}
    for step in steps:
        titles.setdefault(step.title, []).append(step.step_id)
        alike.setdefault(alike_key(step.step_id), []).append(step.step_id)

    def meant(reference: Any) -> Sequence[str]:
        text = normalize("NFC", str(reference).strip())
        key = alike_key(text)
        if text in alike.get(key, ()):
            return (text,)
        if text in titles:
            return titles[text]
        if key.isdecimal() and text.isdecimal() and len(key) < _NAMED and int(key) <= len(new):
            return (new[int(key) - 1],)
        return alike.get(key, ())

    problems: list[Problem] = []
    found: dict[str, tuple[str, ...]] = {}
    for index, references in enumerate(given):
        needed: dict[str, None] = {}
        for reference in references:
            ids = meant(reference)
            if len(ids) == 1:
                needed[ids[0]] = None
                continue
            shown = cut(show(str(reference)), _LONGEST_NAME)
            said = f"{shown} is {listed_ids(ids)}; use one of these ids"
            if not ids:
                said = f"no step is {shown}; use an id, a title, or a place in this call, from 1"
            problems.append(Problem(said, f"{field}[{index}].depends_on"))
        if needed:
            found[new[index]] = tuple(needed)
    if problems:
        raise ToolValidationError(problems)
    try:
        TopologicalSorter(found).prepare()
    except CycleError as error:
        cycle = list(reversed(error.args[1]))
        if cycle[0] == cycle[1]:
            raise ToolValidationError(
                f"{cycle[0]} cannot depend on itself; name another step by its id or its title"
            ) from None
        shown = " -> ".join(cycle if len(cycle) <= _NAMED else [*cycle[: _NAMED - 2], "...", cycle[-1]])
        raise ToolValidationError(
            f"these steps wait for each other: {shown}; remove one of the dependencies"
        ) from None
    return found


def refuse_marks(marks: Sequence[Any], step_id: str | None) -> None:
    """Refuse several marks beside a single one, too many of them, or none at all.

    Raises:
        ToolValidationError: There is one of these.
    """
    if marks and step_id is not None:
        raise ToolValidationError("send a step_id or marks, not both")
    if len(marks) > _MOST_MARKS:
        raise ToolValidationError(f"{len(marks)} marks; send at most {_MOST_MARKS} in one call")
    if not marks and step_id is None:
        raise ToolValidationError("send a step_id and its status, or marks")
