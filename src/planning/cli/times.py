"""When the steps of a session got into their states, and how long they took: for ``planning show``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import attrs

from planning.observe.timeline import Moment
from planning.workflow.run.records import StepRecord, WorkflowRun


@attrs.frozen
class StepTime:
    """When a step got into its state.

    Attributes:
        at: The time, in UTC.
        seconds: How long it was in progress before; None where it was not, or still is.
    """

    at: datetime
    seconds: float | None = None


def of_plan(moments: Iterable[Moment]) -> dict[str, StepTime]:
    """The times of the last plan's steps by their ids; a pending step has none.

    Args:
        moments: The changes of the session, in order.
    """
    times, began = dict[str, StepTime](), dict[str, datetime]()
    plan = None
    for moment in moments:
        if moment.plan is None:
            continue
        at, diff, plan = moment.change.at, moment.plan.diff, moment.plan.after
        marked = {each.step_id: each.after for each in diff.marked}
        marked |= {each.step.step_id: each.step.status for each in diff.added}
        for step_id, status in marked.items():
            start = began.pop(step_id, None)
            times[step_id] = StepTime(at, None if start is None else (at - start).total_seconds())
            if status == "in_progress":
                began[step_id], times[step_id] = at, StepTime(at)
            elif status == "pending":
                del times[step_id]
    left = set() if plan is None else {step.step_id for step in plan.steps}
    return {step_id: time for step_id, time in times.items() if step_id in left}


def of_run(records: Iterable[StepRecord]) -> dict[str, StepTime]:
    """The times of a run's steps by their ids; a step took as long as all of its attempts together.

    Args:
        records: The changes of the steps of one run, in order.
    """
    times, began = dict[str, StepTime](), dict[str, datetime]()
    for record in records:
        at = _moment(record.at)
        if at is None:
            continue
        if record.status == "in_progress":
            if record.attempt <= 1 or record.step_id not in began:
                began[record.step_id] = at
            times[record.step_id] = StepTime(began[record.step_id])
            continue
        start = began.pop(record.step_id, None)
        times[record.step_id] = StepTime(at, None if start is None else (at - start).total_seconds())
    return times


def lasted(run: WorkflowRun, times: Mapping[str, StepTime]) -> float | None:
    """How many seconds a run took from its beginning to its end; None while it goes on.

    Args:
        run: The run.
        times: The times of its steps.
    """
    began = _moment(run.started_at)
    end = _moment(run.completed_at) or max((time.at for time in times.values()), default=None)
    if run.status not in {"completed", "failed"} or began is None or end is None:
        return None
    return (end - began).total_seconds()


def _moment(text: str | None) -> datetime | None:
    """A time of a run; None where there is none, or where a file has something else in its place."""
    try:
        return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
