"""The run that a workflow resumes, and which of its steps are done or must not run again."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import attrs

from planning.errors import show
from planning.workflow.failures import StepFailure, WorkflowError
from planning.workflow.model import Workflow, WorkflowStep
from planning.workflow.run.memory import MemoryItem
from planning.workflow.run.records import (
    RunChanged,
    StepChanged,
    StepRecord,
    WorkflowRun,
    states_of,
    written,
)
from planning.workflow.run.values import RunValues
from session import Session
from session.json_form import json_form

MAYBE = StepFailure(
    "It was interrupted and may have taken effect. Check before you continue.", code="interrupted"
)

_WHAT_IT_DID = ("description", "type", "name", "agent", "inputs", "expected_key", "output_path")


def run_to_begin(session: Session, new: WorkflowRun, given: Workflow, values: RunValues) -> WorkflowRun:
    """The new run, or with its token the unfinished run that its workflow resumes.

    Call it in the transaction that begins the run.

    Raises:
        WorkflowError: A completed step of the unfinished run was changed; or the statuses of the workflow as
            it was given say that a step ran which must not run twice, and that run is not in this session.
    """
    runs = session.select_all(WorkflowRun)
    for run in reversed(runs):
        if run.status == "completed" or not _is_version(run, new):
            continue
        change = change_of_done(run, states_of(run.run_id, session.select_all(StepRecord)), new.workflow)
        if change is None:
            return _with(run, new)
        raise WorkflowError(
            f"the unfinished run in this session cannot be resumed: {change}; restore that step, or use "
            "another session to start over"
        )
    once = _once_only(given.steps, values)
    rewound = _rewound(session, {run.run_id for run in runs}, new, once)
    if rewound is None:
        _check_statuses(given, once)
    return rewound or new


def _rewound(
    session: Session, present: set[str], new: WorkflowRun, once: Collection[str]
) -> WorkflowRun | None:
    """The newest run of this workflow that the session was rewound behind and that called what must be once.

    What it did is done: it is resumed from its begin.
    """
    if not once:
        return None
    called = {
        event.record.run_id
        for event in session.select_all(StepChanged)
        if event.record.called and event.record.step_id in once and event.record.run_id not in present
    }
    steps = _by_id(new.workflow)
    for event in reversed(session.select_all(RunChanged)) if called else ():
        run = event.run
        if run.run_id in called and _is_version(run, new) and _by_id(run.workflow) == steps:
            return _with(run, new)
    return None


def _once_only(steps: Iterable[WorkflowStep], values: RunValues) -> set[str]:
    """The steps that must not run twice."""
    tools = {step.step_id: values.tool_of(step) for step in steps}
    return {step_id for step_id, tool in tools.items() if tool is not None and not tool.idempotent}


def _find_in_log(run_id: str, asked: Collection[str], session: Session) -> dict[str, StepRecord]:
    """The newest record in the event log of each of some steps, as one that has failed."""
    if not asked:
        return {}
    logged = {
        event.record.step_id: event.record
        for event in session.select_all(StepChanged)
        if event.record.run_id == run_id and event.record.step_id in asked
    }
    return {
        step_id: attrs.evolve(record, status="failed", output=None, error=MAYBE)
        for step_id, record in logged.items()
    }


def _with(run: WorkflowRun, new: WorkflowRun) -> WorkflowRun:
    return attrs.evolve(new, run_id=run.run_id, started_at=run.started_at)


def _is_version(run: WorkflowRun, new: WorkflowRun) -> bool:
    """True if two runs are of versions of one workflow.

    Versions have the same goal, prompt and inputs, and a step id in common. Workflows without a goal often
    just number their steps: those need a step in common that is the same as a whole.
    """
    goal = run.workflow.goal
    if (goal, run.user_prompt or "") != (new.workflow.goal, new.user_prompt or "") or (
        json_form(run.inputs) != json_form(new.inputs)
    ):
        return False
    before, after = _by_id(run.workflow), _by_id(new.workflow)
    return before == after or any(
        step_id in after and (goal or after[step_id] == before[step_id]) for step_id in before
    )


def _by_id(workflow: Workflow) -> dict[str, WorkflowStep]:
    """The steps of a run's workflow by id, as they are compared."""
    return {step.step_id: step for step in written(workflow).steps}


def change_of_done(run: WorkflowRun, states: Mapping[str, StepRecord], workflow: Workflow) -> str | None:
    """The change that a workflow makes to a step that a run has completed; None if it makes none.

    Only what the step did counts: when and how often a completed step would run may change.
    """
    after = _by_id(workflow)
    for old in _by_id(run.workflow).values():
        record = states.get(old.step_id)
        if record is None or record.status != "completed":
            continue
        step, new = f"step {show(old.step_id)} is completed", after.get(old.step_id)
        if new is None:
            return f"{step} and was removed"
        names = (*_WHAT_IT_DID, "done_check") if record.skipped else _WHAT_IT_DID
        changed = [name for name in names if getattr(old, name) != getattr(new, name)]
        if changed:
            return f"{step} and its {' and '.join(changed)} changed"
    return None


def _check_statuses(given: Workflow, once: Collection[str]) -> None:
    for step in given.steps:
        if step.status != "pending" and step.step_id in once:
            raise WorkflowError(
                f"step {show(step.step_id)} is already {step.status}, {step.name or step.agent} must not be "
                "called twice, and this session does not have that run; resume it in its own session or "
                "snapshot, or set the status of the step to 'pending' to call it again"
            )


def done_and_lost(
    run_id: str,
    steps: Mapping[str, WorkflowStep],
    values: RunValues,
    session: Session,
    items: tuple[MemoryItem, ...],
) -> tuple[dict[str, StepRecord], dict[str, StepRecord]]:
    """The records of completed steps, and of steps that did not complete and must not run again, by id.

    The outputs of the completed steps become known, as far as their records or the memory hold them.
    A rewind takes the records of steps back, but not what they did. So for steps that must not run again and
    whose record does not say that they were called, the event log counts.
    """
    states = states_of(run_id, session.select_all(StepRecord))
    once = _once_only(steps.values(), values)
    uncalled = {
        step_id
        for step_id in once
        if (record := states.get(step_id)) is None or not (record.called or record.status == "completed")
    }
    states |= _find_in_log(run_id, uncalled, session)
    done: dict[str, StepRecord] = {}
    lost: dict[str, StepRecord] = {}
    withheld: dict[str, tuple[WorkflowStep, str]] = {}
    for step_id, record in states.items():
        step = steps.get(step_id)
        if step is None:
            continue
        if record.status == "completed":
            done[step_id] = record
            if not record.is_withheld:
                values.keep(step, record.output)
                continue
            withheld[step_id] = (step, record.at)
            if session.store is not None and not record.skipped:
                values.private.add(step_id)
        elif record.status in {"failed", "in_progress"} and record.called and step_id in once:
            lost[step_id] = record
    if withheld:
        values.remember_all(withheld, items)
    return done, lost
