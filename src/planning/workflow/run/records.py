"""The slices of a session's workflow runs; they change only through events.

``WorkflowRun`` is a run and its status. ``StepRecord`` grows by one for each change of a step: the newest
record of a step is its state. ``MemoryItem`` is the memory. ``Workflow`` is a view of these.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from hashlib import blake2b
from operator import attrgetter
from pathlib import Path
from time import time
from typing import Any, Final
from uuid import uuid4

import attrs

from planning.workflow.failures import StepFailure
from planning.workflow.model import Workflow, WorkflowStatus, WorkflowStep
from planning.workflow.run.memory import MemoryItem
from session import Session, append, append_part
from session.events import SessionEvent
from session.json_form import json_form

_TOKEN: Final = re.compile(
    r"[-0-9a-f]{36}\.(?P<place>[0-9a-f]{16})\.(?P<process>[0-9]{1,9})\.(?P<start>[0-9]*)"
)


def new_token() -> str:
    """A token for a run of this process. It names the process; of the machine it has only a hash."""
    process = os.getpid()
    return f"{uuid4()}.{_place()}.{process}.{_start_of(process)[1]}"


def is_alive(token: str) -> bool | None:
    """True if the process that made a token lives; None where that cannot be known, as on another machine."""
    found = _TOKEN.fullmatch(token)
    if found is None or found["place"] != _place() or os.name != "posix":
        return None
    process = int(found["process"])
    try:
        with suppress(PermissionError):  # another user's
            os.kill(process, 0)
    except ProcessLookupError:
        return False
    state, start = _start_of(process)
    if not (start and found["start"]):
        return None  # another process may have its number now
    return start == found["start"] and state not in "ZX"


@cache
def _place() -> str:
    """A hash that distinguishes this machine, its last start and its container from others."""
    known = [platform.node()]
    with suppress(OSError):  # not Linux
        known.append(Path("/proc/sys/kernel/random/boot_id").read_text("ascii"))
        known.append(str(Path("/proc/self/ns/pid").readlink()))
    return blake2b("\n".join(known).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _start_of(process: int) -> tuple[str, str]:
    """The state of a process and when it began, as Linux has them; empty where they cannot be read."""
    try:
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
        return fields[0].decode("ascii"), fields[19].decode("ascii")
    except (OSError, IndexError):
        return "", ""


_MOMENT = 0.001  # seconds


def written(workflow: Workflow) -> Workflow:
    """A workflow with inputs as JSON has them: one that was made by hand may hold tuples."""
    steps = [(step, json_form(step.inputs)) for step in workflow.steps]
    if all(inputs == step.inputs for step, inputs in steps):
        return workflow
    return replace(workflow, steps=tuple(replace(step, inputs=inputs) for step, inputs in steps))


def bare(workflow: Workflow) -> Workflow:
    """A workflow whose steps are all pending: the statuses in a document are only a view of some run."""
    if workflow.status == "pending" and not any(
        step.status != "pending" or step.skipped or step.completed_at for step in workflow.steps
    ):
        return workflow
    steps = (replace(step, status="pending", completed_at=None, skipped=False) for step in workflow.steps)
    return replace(workflow, status="pending", completed_at=None, steps=tuple(steps))


@attrs.frozen(kw_only=True)
class WorkflowRun:
    """One run of a workflow.

    Attributes:
        run_id: Its identity.
        workflow: The workflow; here all its steps are pending.
        user_prompt: The value of ``${user_prompt}``; None if none was given.
        inputs: The values that the memory held at the start.
        status: Its status; ``in_progress`` also for a run that was stopped and can be resumed.
        started_at: When it began, as ISO 8601 in UTC.
        completed_at: When it was completed; None unless it was.
        token: Identifies the caller that runs it, and its process: each caller that begins or resumes it sets
            a new one. Empty once it has ended or was stopped, but not if its process was killed: see
            ``is_alive``.
    """

    run_id: str
    workflow: Workflow = attrs.field(eq=written, metadata={"snapshot": written})
    user_prompt: str | None = None
    inputs: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    status: WorkflowStatus = "in_progress"
    started_at: str = ""
    completed_at: str | None = None
    token: str = attrs.field(default="", eq=False, repr=False)


@attrs.frozen(slots=False)  # made in half the time, and by place in two thirds of that; each step makes two
class StepRecord:
    """One change of a step.

    Attributes:
        run_id: The run.
        step_id: The step.
        status: Its new status; ``pending`` after it was stopped, or where a failure blocks it.
        at: When, as ISO 8601 in UTC.
        attempt: The number of the attempt, from 1; 0 if nothing is called.
        called: Whether its tool was called, or may have been.
        skipped: Whether it is skipped: with the status ``completed`` because its ``done_check`` is true,
            with ``pending`` because a step failed that it depends on.
        output: Its output; None if it has none or it is withheld. In a snapshot's JSON, its form in
            JSON.
        is_withheld: Whether the output is not in the record: it is private, or was never known.
        error: Why it failed.
        after: The step whose failure keeps it from running.
    """

    run_id: str
    step_id: str
    status: WorkflowStatus
    at: str
    attempt: int = 0
    called: bool = False
    skipped: bool = False
    output: Any = attrs.field(default=None, repr=False)
    is_withheld: bool = False
    error: StepFailure | None = None
    after: str | None = None


@attrs.frozen(slots=False)
class RunChanged(SessionEvent):
    """A run began or ended.

    Attributes:
        run: The run as it is now.
    """

    run: WorkflowRun


@attrs.frozen(slots=False)
class StepChanged(SessionEvent):
    """A step of a run changed.

    Attributes:
        record: The change.
    """

    record: StepRecord


def register_workflow(session: Session) -> None:
    """Register the slices of workflow runs with a session; registering them again changes nothing."""
    session.register_reducer(RunChanged, _keep_run, WorkflowRun)
    session.register_reducer(StepChanged, _APPEND_RECORD, StepRecord)
    session.register_reducer(MemoryItem, append)
    session.register_view(Workflow, _latest_workflow)


_APPEND_RECORD = append_part(attrgetter("record"))


def _keep_run(runs: tuple[WorkflowRun, ...], event: RunChanged) -> tuple[WorkflowRun, ...]:
    return (*(run for run in runs if run.run_id != event.run.run_id), event.run)


def _latest_workflow(select: Callable[[type[Any]], tuple[Any, ...]]) -> tuple[Workflow, ...]:
    runs = select(WorkflowRun)
    return (workflow_of(runs[-1], states_of(runs[-1].run_id, select(StepRecord))),) if runs else ()


def states_of(run_id: str, records: tuple[StepRecord, ...]) -> dict[str, StepRecord]:
    """The newest record of each step of a run."""
    return {record.step_id: record for record in records if record.run_id == run_id}


def workflow_of(run: WorkflowRun, states: Mapping[str, StepRecord]) -> Workflow:
    """The workflow with the statuses and times of a run."""

    def as_recorded(step: WorkflowStep) -> WorkflowStep:
        record = states.get(step.step_id)
        if record is None:
            return step
        completed_at = record.at if record.status == "completed" else None
        return replace(step, status=record.status, completed_at=completed_at, skipped=record.skipped)

    return replace(
        run.workflow,
        steps=tuple(map(as_recorded, run.workflow.steps)),
        status=run.status,
        created_at=run.workflow.created_at or run.started_at,
        completed_at=run.completed_at,
    )


def now() -> str:
    """The time, as ISO 8601 in UTC."""
    return datetime.now(UTC).isoformat()


class Clock:
    """The time to the millisecond: the changes of one moment have the same, and its text is made once.

    Attributes:
        moment: The time as of the last ``now``.
    """

    moment: datetime

    def __init__(self) -> None:
        self._seconds = 0.0
        self._text = ""

    def now(self) -> str:
        """The time, as ISO 8601 in UTC."""
        seconds = time()
        if not 0 <= seconds - self._seconds < _MOMENT:
            self.moment = datetime.fromtimestamp(seconds, UTC)
            self._text = self.moment.isoformat()
            self._seconds = seconds  # last: Ctrl-C may come between any two lines
        return self._text
