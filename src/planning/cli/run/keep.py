"""Keeping a run in a file, and going on with one that was kept."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from planning.cli.printable import printable
from planning.cli.source import SourceError, read_bytes
from planning.errors import show
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
    "KeepError",
    "check_target",
    "default_target",
    "kept_run",
    "past_result",
    "read_snapshot",
    "write_snapshot",
]

_TYPES = (WorkflowRun, StepRecord, MemoryItem, Plan)
_MOST_OF_SNAPSHOT = 2_000_000_000


class KeepError(Exception):
    """A snapshot cannot be read, written, or gone on with; the text says why, on one line."""


def read_snapshot(path: str) -> Snapshot:
    """The snapshot in a file.

    Raises:
        KeepError: There is none, or one that this release does not read.
    """
    try:
        return Snapshot.from_json(read_bytes(path, most=_MOST_OF_SNAPSHOT), types=_TYPES)
    except SourceError as error:
        raise KeepError(str(error)) from None
    except (SnapshotError, UnicodeDecodeError) as error:
        raise KeepError(f"{_shown(path)} is no snapshot of a run: {_line(error)}") from None


def kept_run(
    snapshot: Snapshot, path: str, workflow: Workflow, prompt: str | None, given: Mapping[str, Any]
) -> WorkflowRun:
    """The run in a snapshot, which must be one that this workflow can resume, with this prompt and values.

    Args:
        snapshot: The snapshot.
        path: Its file.
        workflow: The workflow that is to be run.
        prompt: The prompt, where one was given.
        given: The values that were given.

    Raises:
        KeepError: It holds no run, or that of something else.
    """
    run = snapshot.select_latest(WorkflowRun)
    if run is None:
        raise KeepError(f"{_shown(path)} holds no run of a workflow")
    change = change_of_done(run, states_of(run.run_id, snapshot.select_all(StepRecord)), workflow)
    if change is not None:
        raise KeepError(
            f"{_shown(path)} cannot be resumed: {change}; restore that step, or leave --resume out to start"
            " over"
        )
    if workflow.goal != run.workflow.goal:
        raise KeepError(
            f"{_shown(path)} is of a run with another goal: {_short(run.workflow.goal)}; restore the goal, or"
            " leave --resume out to start over"
        )
    if prompt is not None and prompt != run.user_prompt:
        raise KeepError(
            f"{_shown(path)} is of a run with another prompt: {_short(run.user_prompt)}; leave the prompt out"
            " to go on with that, or leave --resume out to begin anew"
        )
    for name, value in given.items():
        if name not in run.inputs or plain(run.inputs[name]) != plain(value):
            was = f"has {_short(run.inputs[name])}" if name in run.inputs else "was not given it"
            raise KeepError(
                f"{_shown(path)} is of a run that {was} for {show(name)}; leave --var {printable(name)} out"
                " to go on with that, or leave --resume out to begin anew"
            )
    return run


def past_result(session: Session, run: WorkflowRun) -> WorkflowResult:
    """What came of a run that was completed before."""
    states = states_of(run.run_id, session.select_all(StepRecord))
    done = {step_id: record for step_id, record in states.items() if record.status == "completed"}
    errors: dict[str, StepError] = {
        step_id: record.error for step_id, record in states.items() if record.error is not None
    }
    return WorkflowResult(
        status="completed",
        outputs={step_id: record.output for step_id, record in done.items() if not record.is_withheld},
        memory=memory_of(session.select_all(MemoryItem)),
        errors=errors,
        session=session,
        run=run,
        states=states,
    )


def check_target(path: str) -> None:
    """Refuse a file that cannot be written, before anything is run.

    Raises:
        KeepError: It is none, or in no folder.
    """
    target = Path(path)
    if target.exists() and not target.is_file():
        raise KeepError(f"--save {_shown(path)} is no regular file; name another")
    if not target.resolve().parent.is_dir():
        raise KeepError(f"--save {_shown(path)} is in no folder that exists; make the folder first")


def default_target(name: str) -> str:
    """The file in the current folder that keeps a run, which replaces what was kept there before.

    A file of that name that does not hold a run is left alone: then the name has a number.
    """
    targets = (f"{name}.snapshot{'' if number == 1 else f'-{number}'}.json" for number in count(1))
    return next(target for target in targets if not os.path.lexists(target) or _holds_run(target))


def _holds_run(path: str) -> bool:
    try:
        return read_snapshot(path).select_latest(WorkflowRun) is not None
    except KeepError:
        return False


def write_snapshot(session: Session, path: str) -> None:
    """Write the state of a session to a file, which is replaced where it exists, whole or not at all.

    Raises:
        KeepError: It cannot be written.
    """
    try:
        _write(session.snapshot().to_json() + "\n", Path(path).resolve())
    except SnapshotError as error:
        raise KeepError(f"the snapshot cannot be written: {_line(error)}") from None
    except OSError as error:
        raise KeepError(f"the snapshot cannot be written: {error.strerror or _line(error)}") from None


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


def _shown(path: str) -> str:
    return f"'{printable(path)}'"


def _short(value: object) -> str:
    return show(value) if isinstance(value, str) else printable(f"{value!r}"[:80])


def _line(error: Exception) -> str:
    return printable(" ".join(str(error).split()))
