"""Problems in the history of a session's plan, and the policy settings that would have prevented them.

Only what an agent did through the planning tools is judged: a host and a workflow, which dispatch commands
themselves, know what they do. For a history with rewinds, the present branch is judged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Literal

import attrs

from planning.errors import cut, one_line
from planning.observe.calls import characters_of, is_planning
from planning.observe.timeline import Moment, refusal_of
from planning.plan.commands import AddStep, ClearPlan, MarkStep, MarkSteps, RemoveStep, SetupPlan
from planning.plan.facts import PlanFacts
from planning.plan.model import Plan, index_of, listed_ids
from planning.policy.gates import open_steps
from planning.policy.reducers import RecordEvidence
from planning.workflow.run.records import RunChanged, WorkflowRun
from session import Change, ToolFailed, ToolInvoked
from session.history import Restored, Rewound

STALE_AFTER: Final = 10
"""The calls in a row without a change of the plan that are a stale stretch."""
_LONGEST_REASON: Final = 200


@attrs.frozen
class Rule:
    """A kind of finding."""

    severity: Literal["warning", "notice"]  # a plan cannot be relied on; it is worth a look
    meaning: str
    prevented_by: str | None  # the setting of ``PlanPolicy`` against it


# fmt: off
FINDINGS: Final = MappingProxyType({
    "done_without_call": Rule(
        "warning", "No tool was called for a step that was marked done.", 'evidence="required"'),
    "done_after_failures": Rule(
        "warning", "Every call failed that was made for a step that was marked done.", 'evidence="required"'),
    "done_at_once": Rule(
        "warning", "Steps that had not begun were marked done with others in one call.", 'evidence="unique"'),
    "marked_ahead": Rule(
        "warning", "A step was marked done while an earlier one had not begun.", "dependencies=True"),
    "skipped": Rule("warning", "A step has not begun, though a later one is done.", "finish_gate=3"),
    "unfinished": Rule("warning", "Steps are open at the end.", "finish_gate=3"),
    "replaced": Rule("warning", "A plan with open steps was replaced.", 'replace="refuse_unfinished"'),
    "cleared": Rule("warning", "A plan with open steps was abandoned.", 'tools=("setup", "mark", "read")'),
    "run_failed": Rule("warning", "The last workflow run failed.", None),
    "reopened": Rule("notice", "A step that was done was marked otherwise.", None),
    "several_in_progress": Rule("notice", "Several steps were in progress at once.", "most_in_progress=1"),
    "stale": Rule(
        "notice", f"{STALE_AFTER} or more calls did not change the plan.", f"stale_after={STALE_AFTER}"),
    "refused": Rule("notice", "A planning call was refused.", None),
})
# fmt: on
"""Every kind of finding by its code; the same table is in docs/howto/audit-a-run.md."""


@attrs.frozen
class AuditFinding:
    """A finding about the plan in the history."""

    code: str
    version: int  # at which it shows; when that was committed, and by whom
    at: datetime | None
    actor: str | None
    steps: tuple[str, ...]
    message: str


@attrs.frozen
class Audit:
    """The findings about the plan in the history of a session.

    Attributes:
        findings: On the present branch, by version.
        totals: Of the whole history ``changes``, ``calls`` of other tools, ``planning_calls``, those that
            were ``refused``, and the ``characters`` of their arguments and replies; of the plan at the end
            its ``steps``, those that are ``done``, and those ``verified`` and ``reported`` under a policy.
        abandoned: The first and the last version of each stretch that a rewind left; it is not judged.
    """

    findings: tuple[AuditFinding, ...]
    totals: Mapping[str, int]
    abandoned: tuple[tuple[int, int], ...]


def audit_plan(
    moments: Iterable[Moment],
    plan: Plan | None = None,
    facts: PlanFacts | None = None,
    run: WorkflowRun | None = None,
) -> Audit:
    """Judge the history of a session; linear in its changes, and little of them is kept."""
    reader, judge = _Reader(plan), _Judge()
    if run is not None:
        judge.take(_Record(0, acts=(("ran", run.status),)))
    branch, abandoned = _present([reader.read(moment) for moment in moments])
    for record in branch:
        judge.take(record)
    judge.finish(reader.plan, attrs.evolve(branch[-1], actor=None) if branch else _Record(0))
    steps = () if reader.plan is None else reader.plan.steps
    done = {step.step_id for step in steps if step.status == "done"}
    known = {step_id: proof.verified for step_id, proof in (facts.proofs if facts else {}).items()}
    proofs = Counter(
        is_verified for step_id, is_verified in (known | judge.proofs).items() if step_id in done
    )
    counted = ("changes", "calls", "planning_calls", "refused", "characters")
    totals = {name: reader.totals[name] for name in counted}
    totals |= {"steps": len(steps), "done": len(done), "verified": proofs[True], "reported": proofs[False]}
    return Audit(tuple(sorted(judge.findings, key=lambda each: each.version)), totals, abandoned)


@attrs.frozen
class _Record:
    """The record of a change: who made it, and what happened in it (see ``_Judge.take``)."""

    version: int
    at: datetime | None = None
    actor: str | None = None
    is_agents: bool = False
    moves: bool = False
    is_open: bool = False
    back_to: int | None = None
    acts: tuple[tuple[Any, ...], ...] = ()


class _Reader:
    """Reads changes as what happened in them, and follows the plan."""

    def __init__(self, plan: Plan | None) -> None:
        self.plan = plan
        self.totals = Counter[str]()
        self._is_open = False
        self._front = 0  # no step before it is pending

    def read(self, moment: Moment) -> _Record:
        change, before, moves = moment.change, self.plan, moment.plan is not None
        if moment.plan is not None:
            self.plan = moment.plan.after
            self._is_open = _is_open(self.plan)
        acts = tuple(self._acts(change, before, moves=moves))
        kinds = {act[0] for act in acts}
        self.totals["changes"] += 1
        if kinds & {"refused", "accepted"}:
            self.totals["characters"] += characters_of(change)
        back_to = next((each.version for each in change.events if isinstance(each, Rewound)), None)
        made = (change.version, change.at, change.actor, "accepted" in kinds, moves, self._is_open)
        return _Record(*made, back_to, acts)

    def _acts(self, change: Change, before: Plan | None, *, moves: bool) -> Iterator[tuple[Any, ...]]:
        for event in change.events:
            command = event
            if isinstance(event, RunChanged):
                yield "ran", event.run.status
            if isinstance(event, (ToolInvoked, ToolFailed)):
                is_own = is_planning(event)
                self.totals["planning_calls" if is_own else "calls"] += 1
                if not is_own:
                    is_success = getattr(event.result, "success", True) is True
                    yield "called", is_success and isinstance(event, ToolInvoked)
                    continue
                if isinstance(event, ToolFailed):
                    is_refused, reason = refusal_of(event)
                    self.totals["refused"] += is_refused
                    if is_refused:
                        yield "refused", event.name, "" if event.result.is_private else reason
                    continue
                yield "accepted", event.name
                command = event.value
            if moves or isinstance(command, RecordEvidence):
                yield from self._done_by(command, before)

    def _done_by(self, command: Any, before: Plan | None) -> Iterator[tuple[Any, ...]]:
        """The effect of a command, or of what restored the plan."""
        steps = () if before is None else before.steps
        is_mark = isinstance(command, (MarkStep, MarkSteps))
        marks = getattr(command, "marks", (command,)) if is_mark else ()
        if not is_mark or any(mark.status == "pending" for mark in marks):
            self._front = 0
        match command:
            case SetupPlan() | ClearPlan():
                is_active = before is not None and before.status == "active"
                left = [step.step_id for step in steps if is_active and step.status != "done"]
                yield "replaced" if isinstance(command, SetupPlan) else "cleared", left
            case Restored() if not isinstance(command, Rewound):
                yield "replaced", []
            case AddStep() if self.plan is not None:
                yield "added", [step.step_id for step in self.plan.steps[len(steps) :]]
            case RemoveStep():
                yield "marked", command.step_id, "removed", "removed", None
            case RecordEvidence():
                yield "proved", command.step_id, command.proof.verified
        for mark in marks:
            index = index_of(steps, mark.step_id)
            if index is not None and steps[index].status != mark.status:
                yield "marked", mark.step_id, steps[index].status, mark.status, self._pending_before(index)

    def _pending_before(self, index: int) -> str | None:
        """The id of the first pending step before an index; looked for from where the last one was."""
        steps = () if self.plan is None else self.plan.steps
        while self._front < len(steps) and steps[self._front].status != "pending":
            self._front += 1
        return steps[self._front].step_id if self._front < min(index, len(steps)) else None


class _Judge:
    """Judges what happened, in order.

    A time is how many calls of other tools had succeeded, and how many had failed.
    """

    def __init__(self) -> None:
        self.findings: list[AuditFinding] = []
        self._now = (0, 0)
        self._refused: dict[tuple[str, str | None], list[tuple[_Record, str]]] = {}
        self._failed: _Record | None = None  # where the newest run failed
        self._begin_plan(is_agents=False)

    def _begin_plan(self, *, is_agents: bool) -> None:
        self._is_agents, self._is_crowded = is_agents, False
        self._last = self._now  # when a step was last marked done
        self._added: dict[str, tuple[int, int]] = {}  # or reopened
        self._begun: dict[str, tuple[int, int]] = {}  # steps in progress
        self._done: set[str] = set()  # what the agent marked done
        self.proofs: dict[str, bool] = {}
        self._quiet: tuple[int, int] = (0, 0)  # calls without a change of the plan, and the first's version

    def take(self, record: _Record) -> None:
        """Judge one more change."""
        self._is_agents = self._is_agents or record.is_agents
        finished: list[str] = []
        if record.moves:
            self._end_quiet(record)
        for act in record.acts:
            match act:
                case ("called", success):
                    self._now = (self._now[0] + success, self._now[1] + (not success))
                    if self._is_agents and record.is_open:
                        self._quiet = (self._quiet[0] + 1, self._quiet[1] or record.version)
                case ("refused", tool, reason):
                    self._refused.setdefault((tool, record.actor), []).append((record, reason))
                case ("accepted", tool):
                    self._end_refusals((tool, record.actor), "then accepted")
                case ("ran", status):
                    self._failed = record if status == "failed" else None
                case ("added", step_ids):
                    self._added.update(dict.fromkeys(step_ids, self._now))
                case ("proved", step_id, verified):
                    self.proofs[step_id] = verified
                case ("marked", step_id, *how):
                    self._mark(record, step_id, *how)
                    finished += [step_id] if how[1] == "done" else []
                case (code, left):
                    self._end_plan(code, record, left)
        if finished:
            self._judge_done(record, finished)

    def _end_plan(self, code: str, record: _Record, left: list[str]) -> None:
        if left and record.is_agents:
            how = "replaced" if code == "replaced" else "abandoned"
            self._find(code, record, left, f"The plan was {how} with {listed_ids(left)} open.")
        self._begin_plan(is_agents=record.is_agents)

    def _mark(self, record: _Record, step_id: str, before: str, after: str, ahead: str | None) -> None:
        if before == "done":
            self.proofs.pop(step_id, None)
            self._added[step_id] = self._now
            if record.is_agents:
                self._find("reopened", record, [step_id], f"{step_id} was done, then marked {after}.")
        if after == "in_progress":
            self._begun[step_id] = self._now
            if len(self._begun) > 1 and record.is_agents and not self._is_crowded:
                self._is_crowded, running = True, sorted(self._begun)
                said = f"In progress at once: {listed_ids(running)}."
                self._find("several_in_progress", record, running, said)
        elif after != "done":
            self._begun.pop(step_id, None)
        elif ahead is not None and record.is_agents:
            said = f"{step_id} was marked done while {ahead} had not begun."
            self._find("marked_ahead", record, [step_id], said)

    def _judge_done(self, record: _Record, finished: list[str]) -> None:
        """Judge the steps that one change marked done, by the calls since each began."""
        kinds: dict[str, list[str]] = {"without a call": [], "only after failed calls": [], "at once": []}
        none, failed, at_once = kinds.values()
        for step_id in finished:
            begun = self._begun.pop(step_id, None)
            since = begun or max(self._last, self._added.get(step_id, self._last))
            if not record.is_agents:
                continue
            self._done.add(step_id)
            if step_id in self.proofs:
                continue
            if since[0] == self._now[0]:
                (none if since == self._now else failed).append(step_id)
            elif begun is None and len(finished) > 1:
                at_once.append(step_id)
        self._last = self._now
        codes = ("done_without_call", "done_after_failures", "done_at_once")
        for code, (how, steps) in zip(codes, kinds.items(), strict=True):
            if steps:
                self._find(code, record, steps, f"Marked done {how}: {listed_ids(steps)}.")

    def finish(self, plan: Plan | None, last: _Record) -> None:
        """Judge what is left at the end: the plan there, after the last change."""
        self._end_quiet(last)
        for key in tuple(self._refused):
            self._end_refusals(key, "and not accepted afterwards")
        steps = () if plan is None else plan.steps
        done = [at for at, step in enumerate(steps) if step.status == "done" and step.step_id in self._done]
        skipped = [step.step_id for step in steps[: max(done, default=0)] if step.status == "pending"]
        if skipped:
            said = f"Not begun, though a later step is done: {listed_ids(skipped)}."
            self._find("skipped", last, skipped, said)
        if self._failed is not None:
            self._find("run_failed", self._failed, [], "The workflow run failed; 'planning show' says why.")
        if left := open_steps(plan):
            self._find("unfinished", last, left, f"Open at the end: {listed_ids(left)}.")

    def _end_quiet(self, record: _Record) -> None:
        calls, first = self._quiet
        if calls >= STALE_AFTER:
            said = f"{calls} calls from version {first} on did not change the plan."
            self._find("stale", record, [], said)
        self._quiet = (0, 0)

    def _end_refusals(self, key: tuple[str, str | None], outcome: str) -> None:
        refused = self._refused.pop(key, [])
        if refused:
            times = "once" if len(refused) == 1 else f"{len(refused)} times"
            record, reason = refused[0]
            why = f": {cut(one_line(reason), _LONGEST_REASON)}" if reason else "."
            self._find("refused", record, [], f"{key[0]} was refused {times}, {outcome}{why}")

    def _find(self, code: str, record: _Record, steps: Iterable[str], message: str) -> None:
        self.findings.append(
            AuditFinding(code, record.version, record.at, record.actor, tuple(steps), message)
        )


def _present(records: list[_Record]) -> tuple[list[_Record], tuple[tuple[int, int], ...]]:
    """The changes of the present branch; and the first and the last version of each stretch beside it."""
    branch: list[_Record] = []
    beside: list[tuple[int, int]] = []
    index, first = len(records) - 1, records[0].version if records else 0
    while index >= 0:
        record = records[index]
        branch.append(record)
        target = index - 1 if record.back_to is None else min(record.back_to - first, index - 1)
        if target < index - 1:
            beside.append((records[max(target + 1, 0)].version, record.version - 1))
        index = target
    return branch[::-1], tuple(beside[::-1])


def _is_open(plan: Plan | None) -> bool:
    """True if a plan has open steps; looked for from the end, where they usually are."""
    steps = reversed(plan.steps if plan is not None and plan.status == "active" else ())
    return any(step.status in {"pending", "in_progress"} for step in steps)
