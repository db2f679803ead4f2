"""The checks of a policy: pure functions of the policy, a command, the plan and what is known beside it.

Each returns what the command entails, or refuses with one sentence that says what to do instead.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final, Protocol
from unicodedata import normalize

import attrs

from planning.commands import MarkStep
from planning.errors import Problem, ToolValidationError, show
from planning.facts import EvidenceCall, PlanFacts, Proof, RecordEvidence
from planning.model import Plan, PlanStep, StepStatus, index_of
from planning.policy import PlanPolicy
from planning.step_ids import as_text, listed_ids, written_alike

__all__ = [
    "Finish",
    "HasFacts",
    "dependencies_of",
    "evidence_for",
    "is_stale",
    "latest_calls",
    "number_of_call",
    "open_steps",
    "ready_steps",
    "refuse_order",
    "refuse_replacement",
    "refuse_waiting",
    "unfinished",
    "waits",
]

_ALIAS: Final = re.compile(r"[Cc]0*([1-9][0-9]{0,8})")
_NAMED: Final = 8
_OFFERED: Final = 3
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
    done = {step.step_id for step in plan.steps if step.status == "done"} if depends_on else set()
    return tuple(
        [
            step
            for step in plan.steps
            if step.status == "pending" and done.issuperset(depends_on.get(step.step_id, ()))
        ]
    )


# What binds every change


def refuse_order(policy: PlanPolicy, marks: Sequence[MarkStep], plan: Plan, facts: PlanFacts) -> None:
    """Refuse marks that begin or finish a step too early, or begin too many; each after those before it.

    Raises:
        ToolValidationError: A prerequisite is open, or too many steps would be in progress.
    """
    marked: dict[str, StepStatus] = {}
    most = policy.most_in_progress
    if most is not None and all(mark.status != "in_progress" for mark in marks):
        most = None
    running: set[str] = set()
    if most is not None:
        running = {step.step_id for step in plan.steps if step.status == "in_progress"}
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
        marked[step_id] = status
        running.discard(step_id)
        if most is not None and status == "in_progress":
            if len(running) >= most:
                steps = "1 step" if most == 1 else f"{most} steps"
                current = listed_ids(sorted(running))
                raise ToolValidationError(
                    f"at most {steps} may be in progress; mark {current} done, blocked or pending first"
                )
            running.add(step_id)


def _is_open(step_id: str, marked: Mapping[str, StepStatus], plan: Plan) -> bool:
    if step_id in marked:
        return marked[step_id] != "done"
    index = index_of(plan.steps, step_id)
    return index is not None and plan.steps[index].status != "done"


def _first_open(step_id: str, marked: Mapping[str, StepStatus], plan: Plan, facts: PlanFacts) -> str:
    """The step to do first: an open one on which this one depends, and which depends on no open one."""
    while True:
        needed = facts.depends_on.get(step_id, ())
        before = next((each for each in needed if _is_open(each, marked, plan)), None)
        if before is None:
            return step_id
        step_id = before


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


def waits(facts: PlanFacts | None, tool: str) -> str | None:
    """Why work may not begin: the plan waits for approval, or was rejected; None when it may."""
    if facts is None or facts.approval not in {"waiting", "rejected"}:
        return None
    if facts.approval == "waiting":
        reason = "the plan waits for approval; end your turn and ask the user to approve it"
    else:
        reason = f"the plan was rejected ({facts.reason}); change the plan first"
    return f"{tool} was not called: {reason}"


def dependencies_of(
    given: Sequence[Sequence[Any]], titles: Sequence[str], first: int, ids: Sequence[str], plan: Plan | None
) -> dict[str, tuple[str, ...]]:
    """The dependencies of new steps, by id.

    Args:
        given: For each new step, what it depends on: ids, titles, or places among the new steps, from 1.
        titles: The titles of the new steps.
        first: The index in ``ids`` of the first new step.
        ids: The ids of all steps, the new ones last.
        plan: The plan that the steps are added to; None for a new plan.

    Raises:
        ToolValidationError: A step is not known, or the new steps depend on each other in a cycle.
    """
    new = ids[first:]
    by_title = {} if plan is None else {step.title: step.step_id for step in plan.steps}
    by_title.update(zip(titles, new, strict=True))
    known = set(ids)
    problems: list[Problem] = []
    found: dict[str, tuple[str, ...]] = {}
    for index, each in enumerate(given):
        needed = []
        for reference in each:
            step_id = _referred(reference, known, by_title, new)
            if step_id is None:
                problems.append(
                    Problem(
                        f"no step is {show(reference)}; use an id, a title, or a place in this call, from 1",
                        f"[{index}].depends_on",
                    )
                )
            else:
                needed.append(step_id)
        if needed:
            found[new[index]] = tuple(dict.fromkeys(needed))
    if problems:
        raise ToolValidationError(problems)
    try:
        TopologicalSorter(found).prepare()
    except CycleError as error:
        cycle = list(reversed(error.args[1]))
        shown = " -> ".join(cycle if len(cycle) <= _NAMED else [*cycle[: _NAMED - 2], "...", cycle[-1]])
        raise ToolValidationError(
            f"these steps wait for each other: {shown}; remove one of the dependencies"
        ) from None
    return found


def _referred(reference: Any, known: set[str], by_title: Mapping[str, str], new: Sequence[str]) -> str | None:
    if type(reference) is int and 1 <= reference <= len(new):
        return new[reference - 1]
    text = normalize("NFC", str(as_text(reference)).strip())
    if text in known:
        return text
    if text in by_title:
        return by_title[text]
    alike = written_alike(text, known)
    return alike[0] if len(alike) == 1 else None


def evidence_for(
    policy: PlanPolicy,
    step_id: str,
    evidence: Sequence[str],
    facts: PlanFacts,
    calls: Sequence[EvidenceCall],
    accepted: Container[str],
) -> RecordEvidence:
    """What shows that a step is done.

    Args:
        policy: The policy.
        step_id: The step.
        evidence: What the agent sent: aliases, ids of calls, texts.
        facts: What is known of the plan.
        calls: The calls on the present branch, oldest first.
        accepted: The texts that ``verify`` accepted.

    Raises:
        ToolValidationError: There is no evidence, or one of it does not hold.
    """
    since = facts.began.get(step_id, 0)
    used = {
        each: other
        for other, proof in (facts.proofs.items() if policy.evidence == "unique" else ())
        for each in proof.evidence
        if other != step_id
    }

    def refusal(reason: str) -> ToolValidationError:
        offered = latest_calls(since, calls, used)
        remedy = f"send evidence with a call made since it began: {offered}"
        if not offered:
            more = ", or send a text that shows it" if policy.verify is not None else ""
            remedy = f"call a tool that does the work of {step_id} first{more}"
        return ToolValidationError(f"{reason}; {remedy}")

    if not evidence:
        raise refusal(f"{step_id} needs evidence")
    kept: dict[str, str] = {}
    verified = False
    for each in evidence:
        number = number_of_call(each, calls)
        if number is None:
            if each in accepted:
                kept[each] = ""
                verified = True
                continue
            said = "no call has this id" if policy.verify is None else "the host does not accept it"
            raise refusal(f"{show(each)} is not evidence for {step_id}: {said}")
        alias, call = f"C{number}", calls[number - 1]
        wrong = None
        if not call.success:
            wrong = "failed"
        elif number <= since:
            wrong = f"was made before {step_id} began"
        elif alias in used:
            wrong = f"is the evidence of {used[alias]} already"
        if wrong is not None:
            raise refusal(f"{alias} ({call.tool}) {wrong}")
        kept[alias] = call.tool
    tools = {alias: tool for alias, tool in kept.items() if tool}
    return RecordEvidence(step_id, Proof(tuple(kept), verified, tools))


def number_of_call(given: str, calls: Sequence[EvidenceCall]) -> int | None:
    """The number of the call that is meant, by its alias or its id; None when there is none."""
    alias = _ALIAS.fullmatch(given.strip())
    if alias is not None and int(alias[1]) <= len(calls):
        return int(alias[1])
    return next((number for number in range(len(calls), 0, -1) if calls[number - 1].call_id == given), None)


def latest_calls(since: int, calls: Sequence[EvidenceCall], used: Container[str] = ()) -> str:
    """The newest successful calls after a number, with their aliases: ``C4 (run_tests), C5 (edit)``."""
    found: list[str] = []
    for number in range(len(calls), since, -1):
        if calls[number - 1].success and f"C{number}" not in used:
            found.insert(0, f"C{number} ({calls[number - 1].tool})")
        if len(found) == _OFFERED:
            break
    return ", ".join(found)


def is_stale(policy: PlanPolicy, plan: Plan, facts: PlanFacts) -> bool:
    """Whether the agent is to be reminded that the plan did not change for many calls."""
    return (
        policy.stale_after is not None
        and not facts.is_noticed
        and facts.calls - facts.changed >= policy.stale_after
        and any(step.status in {"pending", "in_progress"} for step in plan.steps)
    )


@attrs.frozen
class Finish:
    """Whether an agent may claim to be finished.

    Attributes:
        ok: Whether it may.
        open_steps: The ids of the steps that are open.
        message: What the agent is to read where it may not; empty where it may.
    """

    ok: bool
    open_steps: tuple[str, ...] = ()
    message: str = ""


def open_steps(plan: Plan | None) -> tuple[str, ...]:
    """The ids of the steps of an active plan on which work is left: pending and in progress."""
    if plan is None or plan.status != "active":
        return ()
    return tuple([step.step_id for step in plan.steps if step.status in {"pending", "in_progress"}])


def unfinished(step_ids: Sequence[str]) -> str:
    """What an agent reads that would stop with steps open."""
    verb = "is" if len(step_ids) == 1 else "are"
    return (
        f"{listed_ids(step_ids)} {verb} open. Do the work and mark what is done; mark a step blocked, with a "
        "note, if it cannot be done now."
    )
