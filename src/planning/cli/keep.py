"""Saving a run in a file, and resuming one from it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

from planning.cli.source import name_of, read_bytes
from planning.cli.usage import Refused
from planning.errors import printable, show
from planning.model import Plan
from planning.tools.result import plain
from planning.workflow.failures import StepError
from planning.workflow.model import Workflow
from planning.workflow.run.claim import change_of_done
from planning.workflow.run.memory import MemoryItem, memory_of
from planning.workflow.run.records import StepRecord, WorkflowRun, states_of
from planning.workflow.run.result import WorkflowResult
from session import Session, Snapshot, SnapshotError

__all__ = [
    "MOST_BYTES",
    "TYPES",
    "check_target",
    "default_target",
    "kept_run",
    "past_result",
    "read_snapshot",
    "snapshot_of",
    "write_snapshot",
]

TYPES: Final = (WorkflowRun, StepRecord, MemoryItem, Plan)
"""The slices of a run."""
MOST_BYTES: Final = 2_000_000_000
"""The bytes of the largest snapshot that is read."""


def read_snapshot(path: str) -> Snapshot:
    """The snapshot in a file.

    Raises:
        Refused: It cannot be read.
    """
    return snapshot_of(read_bytes(path, "--resume", most=MOST_BYTES), path)


def snapshot_of(data: bytes | str, path: str | None) -> Snapshot:
    """The snapshot in the bytes of a file.

    Raises:
        Refused: This release cannot read it.
    """
    try:
        return Snapshot.from_json(data, types=TYPES)
    except (SnapshotError, UnicodeDecodeError) as error:
        raise Refused(f"{name_of(path)} is not a snapshot of a run: {_line(error)}") from None


def kept_run(
    snapshot: Snapshot, path: str, workflow: Workflow, prompt: str | None, given: Mapping[str, Any]
) -> WorkflowRun:
    """The run in a snapshot, if this workflow can resume it with this prompt and these values.

    Args:
        snapshot: The snapshot.
        path: Its file.
        workflow: The workflow that is to be run.
        prompt: The prompt, where one was given.
        given: The values that were given.

    Raises:
        Refused: It holds no run, or another one.
    """
    run = snapshot.select_latest(WorkflowRun)
    if run is None:
        raise Refused(f"{name_of(path)} holds no workflow run")
    change = change_of_done(run, states_of(run.run_id, snapshot.select_all(StepRecord)), workflow)
    if change is not None:
        raise Refused(
            f"{name_of(path)} cannot be resumed: {change}; restore that step, or omit --resume to start over"
        )
    if workflow.goal != run.workflow.goal:
        raise Refused(
            f"{name_of(path)} holds a run with another goal: {_short(run.workflow.goal)}; restore the goal,"
            " or omit --resume to start over"
        )
    if prompt is not None and prompt != run.user_prompt:
        raise Refused(
            f"{name_of(path)} holds a run with another prompt: {_short(run.user_prompt)}; omit the prompt to"
            " resume with that, or omit --resume to start over"
        )
    for name, value in given.items():
        if name not in run.inputs or plain(run.inputs[name]) != plain(value):
            was = f"with {_short(run.inputs[name])}" if name in run.inputs else "without a value"
            raise Refused(
                f"{name_of(path)} holds a run {was} for {show(name)}; omit --var {printable(name)} to resume"
                " with that, or omit --resume to start over"
            )
    return run


def past_result(session: Session, run: WorkflowRun) -> WorkflowResult:
    """The result of an earlier run."""
    states = states_of(run.run_id, session.select_all(StepRecord))
    done = {step_id: record for step_id, record in states.items() if record.status == "completed"}
    errors: dict[str, StepError] = {
        step_id: record.error for step_id, record in states.items() if record.error is not None
    }
    return WorkflowResult(
        status="completed" if run.status == "completed" else "failed",
        outputs={step_id: record.output for step_id, record in done.items() if not record.is_withheld},
        memory=memory_of(session.select_all(MemoryItem)),
        errors=errors,
        session=session,
        run=run,
        states=states,
    )


def check_target(path: str) -> None:
    """Refuse a file that cannot be written, before anything runs.

    Raises:
        Refused: It is something else than a file, or its folder does not exist.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        raise Refused(f"--save {name_of(path)} is not a regular file; name another")
    if not target.resolve().parent.is_dir():
        raise Refused(f"--save {name_of(path)} is in a folder that does not exist; create the folder first")


def default_target(name: str) -> str:
    """The file in the current folder to save a run in; a run that is there already is replaced.

    A file of that name that holds something else is left alone: the name gets a number.
    """
    targets = (f"{name}.snapshot{'' if number == 1 else f'-{number}'}.json" for number in count(1))
    return next(target for target in targets if not os.path.lexists(target) or _holds_run(target))


def _holds_run(path: str) -> bool:
    try:
        return read_snapshot(path).select_latest(WorkflowRun) is not None
    except Refused:
        return False


def write_snapshot(session: Session, path: str) -> None:
    """Write the state of a session to a file, which is replaced where it exists, whole or not at all.

    Raises:
        Refused: It cannot be written.
    """
    try:
        _write(session.snapshot().to_json() + "\n", Path(path).resolve())
    except SnapshotError as error:
        raise Refused(f"cannot write the snapshot: {_line(error)}") from None
    except OSError as error:
        raise Refused(f"cannot write the snapshot: {error.strerror or _line(error)}") from None


def _write(text: str, target: Path) -> None:
    number, path = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(path).replace(target)
    except BaseException:
        with suppress(OSError):
            Path(path).unlink()
        raise


def _short(value: object) -> str:
    return show(value) if isinstance(value, str) else printable(f"{value!r}"[:80])


def _line(error: Exception) -> str:
    return printable(" ".join(str(error).split()))
