"""Saving a run in a file, and resuming one from it."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from planning.cli.kinds import is_plan, kind_of, refuse_other
from planning.cli.source import name_of, read_bytes
from planning.cli.usage import Refused
from planning.errors import printable, show
from planning.model import Plan
from planning.tools.result import plain
from planning.workflow.failures import StepError
from planning.workflow.model import Workflow
from planning.workflow.run.claim import change_of_done
from planning.workflow.run.memory import MemoryItem, memory_of
from planning.workflow.run.records import (
    RunChanged,
    StepChanged,
    StepRecord,
    WorkflowRun,
    bare,
    register_workflow,
    states_of,
)
from planning.workflow.run.resolve import step_with_prompt
from planning.workflow.run.result import WorkflowResult
from planning.workflow.validate import validate_workflow
from session import Session, Snapshot, SnapshotError
from session.codec import type_name
from session.selectors import Selectable

__all__ = [
    "MOST_BYTES",
    "TYPES",
    "check_prompt",
    "check_target",
    "default_target",
    "kept_run",
    "past_result",
    "read_snapshot",
    "session_of",
    "snapshot_of",
    "write_snapshot",
]

TYPES: Final = (WorkflowRun, StepRecord, MemoryItem, Plan)
"""The slices of a run."""
MOST_BYTES: Final = 2_000_000_000
"""The bytes of the largest snapshot that is read."""
_NOT_THAT: Final = "expected a snapshot, or the plan that 'planning replay --json' prints"


def read_snapshot(path: str) -> Snapshot:
    """The snapshot in a file.

    Raises:
        Refused: It cannot be read.
    """
    data = read_bytes(path, "--resume", most=MOST_BYTES)
    refuse_other(data, path, "a snapshot of a run", "snapshot")
    return snapshot_of(data, path)


def snapshot_of(data: bytes | str, path: str | None) -> Snapshot:
    """The snapshot in the bytes of a file.

    Raises:
        Refused: This release cannot read it.
    """
    try:
        return Snapshot.from_json(data, types=TYPES)
    except (SnapshotError, UnicodeDecodeError) as error:
        raise Refused(f"{name_of(path)} is not a snapshot of a run: {_line(error)}") from None


def session_of(data: bytes, source: str | None) -> Session:
    """A session with the plan and the run in the bytes of a file: a snapshot, or what a command prints.

    Raises:
        Refused: They hold neither.
    """
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        place = isinstance(error, json.JSONDecodeError) and (error.lineno, error.colno)
        at = f" at line {place[0]}, column {place[1]}" if place else ""
        raise Refused(f"{name_of(source)} is not JSON{at}; {_NOT_THAT}") from None
    session, run = Session(), None
    kind = kind_of(data)
    if kind in {"shown", "result"}:
        document, run = (document["plan"], document["run"]) if kind == "shown" else (None, document)
    if document is None and run is None:
        return session
    empty = json.loads(session.snapshot().to_json())
    if document is None:
        document = empty
    elif is_plan(document):
        plan = {name: document[name] for name in ("objective", "status", "steps")}
        document = {**empty, "slices": {type_name(Plan): [plan]}}
    elif kind != "snapshot":
        raise Refused(f"{name_of(source)} holds neither a snapshot nor a plan; {_NOT_THAT}")
    known = {type_name(each) for each in TYPES}  # a program's own slices cannot be read here
    slices = {name: rows for name, rows in document["slices"].items() if name in known}
    session.rollback(snapshot_of(json.dumps({**document, "slices": slices}), source))
    if run is not None:
        _restore_run(session, run, source)
    return session


def _restore_run(session: Session, result: Any, source: str | None) -> None:
    """Put the run of a result, as ``WorkflowResult.to_dict`` wrote it, into a session.

    Raises:
        Refused: It is not such a result.
    """
    try:
        workflow = validate_workflow(result["workflow"]).workflow
        run = WorkflowRun(run_id="shown", workflow=bare(workflow), status=result["status"])
        events: list[object] = [RunChanged(run)]
        for step in workflow.steps:
            error = result["errors"].get(step.step_id)
            record = StepRecord(
                run_id=run.run_id,
                step_id=step.step_id,
                status=step.status,
                at=step.completed_at or "",
                called=step.name is not None or step.agent is not None,
                skipped=step.skipped,
                output=result["outputs"].get(step.step_id),
                is_withheld=step.step_id not in result["outputs"],
                error=None if error is None else StepError(**error),
            )
            if step.status != "pending":
                events.append(StepChanged(record))
        events += [
            MemoryItem(type="step_result", key=key, value=value) for key, value in result["memory"].items()
        ]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise Refused(f"{name_of(source)} is not the result of a run: {_line(error)}") from None
    register_workflow(session)
    for event in events:
        session.dispatch(event)


def kept_run(
    source: Selectable,
    name: str,
    workflow: Workflow,
    prompt: str | None,
    given: Mapping[str, Any],
    *,
    otherwise: str = "omit --resume to start over",
) -> WorkflowRun:
    """The run in a snapshot or a session, if this workflow can resume it with this prompt and these values.

    Args:
        source: The snapshot or the session.
        name: What messages call it.
        workflow: The workflow that is to be run.
        prompt: The prompt, where one was given.
        given: The values that were given.
        otherwise: How to start over instead.

    Raises:
        Refused: It holds no run, or another one.
    """
    run = source.select_latest(WorkflowRun)
    if run is None:
        raise Refused(f"{name} holds no workflow run")
    change = change_of_done(run, states_of(run.run_id, source.select_all(StepRecord)), workflow)
    if change is not None:
        raise Refused(f"{name} cannot be resumed: {change}; restore that step, or {otherwise}")
    if workflow.goal != run.workflow.goal:
        raise Refused(
            f"{name} holds a run with another goal: {_short(run.workflow.goal)}; restore the goal,"
            f" or {otherwise}"
        )
    if prompt is not None and prompt != run.user_prompt:
        began = run.user_prompt
        was = "without a prompt" if began is None else f"with another prompt: {_short(began)}"
        raise Refused(f"{name} holds a run {was}; omit the prompt to resume with that, or {otherwise}")
    for key, value in given.items():
        if key not in run.inputs or plain(run.inputs[key]) != plain(value):
            was = f"with {_short(run.inputs[key])}" if key in run.inputs else "without a value"
            raise Refused(
                f"{name} holds a run {was} for {show(key)}; omit --var {printable(key)} to resume"
                f" with that, or {otherwise}"
            )
    return run


def check_prompt(workflow: Workflow, prompt: str | None, run: WorkflowRun | None) -> None:
    """Refuse a workflow that refers to the user's prompt where there is none.

    Args:
        workflow: The workflow that is to be run.
        prompt: The prompt, where one was given, or the resumed run has one.
        run: The run that is resumed; None to begin one.

    Raises:
        Refused: A step refers to it.
    """
    asking = step_with_prompt(workflow) if prompt is None else None
    if asking is not None:
        refers = f"step {show(asking)} refers to ${{user_prompt}}"
        if run is not None:
            raise Refused(f"{refers}, and the run began without one; remove the reference, or start over")
        raise Refused(f"{refers}; give its value with --prompt TEXT")


def past_result(source: Selectable, run: WorkflowRun, session: Session) -> WorkflowResult:
    """The result of an earlier run.

    Args:
        source: Where it is: a session, or a version of one.
        run: The run.
        session: The session.
    """
    states = states_of(run.run_id, source.select_all(StepRecord))
    done = {step_id: record for step_id, record in states.items() if record.status == "completed"}
    errors: dict[str, StepError] = {
        step_id: record.error for step_id, record in states.items() if record.error is not None
    }
    return WorkflowResult(
        status="completed" if run.status == "completed" else "failed",
        outputs={step_id: record.output for step_id, record in done.items() if not record.is_withheld},
        memory=memory_of(source.select_all(MemoryItem)),
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
    """The file in the current folder in which a run is saved that was stopped or failed.

    Raises:
        Refused: The file is there, and holds something else than a run.
    """
    target = f"{name}.snapshot.json"
    if os.path.lexists(target) and not _holds_run(target):
        raise Refused(
            f"{name_of(target)} holds something else, and a run that is stopped or fails is saved under this "
            "name; name another file with --save, or rename that one"
        )
    return target


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
