"""One run by the command: prepared, driven, shown, and saved."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Final, TextIO

import attrs
import typer

from planning.cli.drive import EXIT_CODES, Drive, leave_if_held_up
from planning.cli.faces import Face, face_of
from planning.cli.keep import (
    check_prompt,
    check_target,
    default_target,
    kept_run,
    past_result,
    read_snapshot,
    write_snapshot,
)
from planning.cli.output import own_stdout
from planning.cli.progress import Progress, Stopped
from planning.cli.source import name_of
from planning.cli.terminal import HEADING, Line, as_json, is_terminal, lines_of
from planning.cli.usage import Refused
from planning.errors import one_line, printable, show
from planning.tools.result import plain
from planning.workflow.capabilities import Capabilities
from planning.workflow.executors.base import AnyExecutor, ExecutorUnavailable
from planning.workflow.failures import StepError, WorkflowError
from planning.workflow.model import Workflow
from planning.workflow.run.engine import arun_workflow
from planning.workflow.run.records import StepChanged, StepRecord, WorkflowRun, states_of
from planning.workflow.run.result import WorkflowResult
from session import Session, SessionError

__all__ = ["Running", "report_lines"]

_REFUSALS: Final = (WorkflowError, SessionError, ImportError, ValueError, TypeError)
_TICK: Final = 0.1  # seconds between two drawings
_MOST_LISTED: Final = 20
_NEXT: Final = {"failed": "retry the failed steps", "stopped": "resume", "completed": "see the result"}


@attrs.define(kw_only=True)
class Running:
    """A run, what shows it, and its end.

    Attributes:
        workflow: What runs.
        capabilities: What its steps call.
        user_prompt: The value of ``${user_prompt}``; None if none was given.
        inputs: Values for the memory.
        file: The file of the workflow; None for standard input.
        executor: Opens the executor; None for this process.
        max_parallel: How many steps run at the same time at most.
        timeout: Seconds for an attempt of a step; None for no limit.
        stored: The session in a store that the run is kept in; None to save it in a file.
        resume: The snapshot to resume, or the name of that session; None to begin a run, or to resume the
            unfinished one of the session.
        save: The file to save the run in; None for the one that it was resumed from, or, if it is not
            completed, for one in the current folder.
        is_viewed: Whether a page shows the run meanwhile.
        is_verbose: Whether the whole output of every step is shown.
        is_json: Whether only the result is printed, as JSON.
        line: The command that was given, without ``--resume``.
        clock: The time in seconds.
    """

    workflow: Workflow
    capabilities: Capabilities
    user_prompt: str | None
    inputs: Mapping[str, Any]
    file: str | None
    executor: AbstractContextManager[AnyExecutor] | None
    max_parallel: int
    timeout: float | None
    stored: Session | None
    resume: str | None
    save: str | None
    is_viewed: bool
    is_verbose: bool
    is_json: bool
    line: str
    clock: Callable[[], float] = time.monotonic
    _session: Session = attrs.field(init=False, factory=Session)
    _progress: Progress = attrs.field(init=False)
    _drive: Drive = attrs.field(init=False)
    _face: Face | None = attrs.field(init=False, default=None)
    _pool: AnyExecutor | None = attrs.field(init=False, default=None)
    _output_error: OSError | None = attrs.field(init=False, default=None)

    def run(self) -> int:
        """Run the workflow, show it, and save it unless it is completed.

        Returns:
            The exit code.

        Raises:
            Refused: It cannot start.
        """
        past = self._prepared()
        if past is not None:
            where = name_of(self.resume) if self.stored is None else f"the session {show(str(self.resume))}"
            _say(f"the run in {where} is already complete")
        code = 0
        with ExitStack() as stack:
            own = stack.enter_context(own_stdout())
            stack.enter_context(self._drive.heeding_signals())
            stack.enter_context(leave_if_held_up(lambda: code))
            if self.is_viewed:
                _say(f"the run is shown at {stack.enter_context(self._page())}")
            if past is None and self.executor is not None:
                try:
                    self._pool = stack.enter_context(self.executor)
                except ExecutorUnavailable as error:
                    raise Refused(f"--executor {printable(str(error))}") from None
            self._show(own, past)
            code = self._ended(past)
        return code

    def _prepared(self) -> WorkflowResult | None:
        """Read what is resumed, and check what is called; returns the result of a completed run."""
        self._check_target()
        run = self._kept()
        states: dict[str, StepRecord] = {}
        past: WorkflowResult | None = None
        if run is not None:
            self.user_prompt, self.inputs = run.user_prompt, dict(run.inputs)
            states = states_of(run.run_id, self._session.select_all(StepRecord))
            if run.status == "completed":
                past = past_result(self._session, run, self._session)
        self._progress = Progress.of_run(self.workflow, self.clock, states)
        if past is None:
            self._check_calls()
            check_prompt(self.workflow, self.user_prompt, run)
        self._drive = Drive(self._start, self._stopping)
        return past

    def _check_target(self) -> None:
        """Refuse a file in which the run could not be saved, before anything runs."""
        if self.save is not None:
            check_target(self.save)
        elif self.stored is None and not self._is_file_resumed():
            self._default_target()

    def _default_target(self) -> str:
        return default_target("stdin" if self.file is None else Path(self.file).stem or "plan")

    def _is_file_resumed(self) -> bool:
        return self.resume is not None and Path(self.resume).is_file()

    def _kept(self) -> WorkflowRun | None:
        """The run that is resumed, which is in the session then; None to begin one."""
        asked = (self.workflow, self.user_prompt, self.inputs)
        if self.stored is not None:
            self._session = self.stored
            run = self.stored.select_latest(WorkflowRun)
            if self.resume is None and (run is None or run.status == "completed"):
                return None
            name = f"the session {show(str(self.stored.session_id))}"
            return kept_run(self.stored, name, *asked, otherwise="name another --session to start over")
        if self.resume is None:
            return None
        snapshot = read_snapshot(self.resume)
        run = kept_run(snapshot, name_of(self.resume), *asked)
        self._session.rollback(snapshot)
        return run

    def _check_calls(self) -> None:
        """Refuse a step that has yet to run and whose tool cannot be called."""
        for step, shown in zip(self.workflow.steps, self._progress.steps, strict=True):
            kind, name = ("agent", step.agent) if step.agent is not None else (step.type, step.name)
            if shown.is_over or kind is None or name is None:
                continue
            known = getattr(self.capabilities, f"{kind}s")
            if known is None or known.get(name) is None:
                why = f"but no {kind}s were given" if known is None else "which was given by its name alone"
                raise Refused(
                    f"step {show(step.step_id)} calls the {kind} {show(name)}, {why}; name an object that"
                    f" holds {'them' if known is None else 'it'}: --{kind}s my_app:{kind}s"
                )

    def _page(self) -> AbstractContextManager[str]:
        """A page that shows the session; yields its link.

        Raises:
            Refused: It cannot be served.
        """
        try:
            from planning.view.server import serving
        except ImportError as error:
            raise Refused(str(error)) from None
        from planning.view.sources import MemorySource, StoreSource
        from planning.view.stores import PastStore

        store = self._session.store
        if isinstance(store, PastStore):
            return serving(StoreSource(store.path, str(self._session.session_id)))
        return serving(MemorySource(self._session, "standard input" if self.file is None else self.file))

    def _show(self, own: TextIO, past: WorkflowResult | None) -> None:
        """Run it, and show it meanwhile and at its end."""
        drive, bus, progress = self._drive, self._session.bus, self._progress
        streams = [sys.stdout, *([sys.stderr] if is_terminal(sys.stderr) else [])]
        try:
            with face_of(own, progress, is_json=self.is_json, tick=_TICK, streams=streams) as face:
                self._face = face
                if past is None:
                    bus.subscribe(StepChanged, self._changed)
                    drive.run()
                    bus.unsubscribe(StepChanged, self._changed)
                    face.show(progress.take(Stopped()))
                if drive.error is not None or self._output_error is not None:
                    return
                result = drive.result or past
                most = _MOST_LISTED if is_terminal(own) and not self.is_verbose else None
                first, last = report_lines(
                    self.workflow, progress, result, is_verbose=self.is_verbose, most=most
                )
                face.end(first, last, is_whole=False)
                if self.is_json and result is not None:
                    own.write(json.dumps(result.to_dict(), indent=2) + "\n")
                    own.flush()
        except OSError as error:
            self._output_error = self._output_error or error

    def _start(self) -> Any:
        return arun_workflow(
            self.workflow,
            self.capabilities,
            session=self._session,
            user_prompt=self.user_prompt,
            inputs=self.inputs,
            executor=self._pool,
            max_parallel=self.max_parallel,
            timeout=self.timeout,
        )

    def _changed(self, event: StepChanged) -> None:
        """A step changed: show it."""
        changes = self._progress.take(event.record)
        if self._face is None:
            return
        try:
            self._face.show(changes)
        except OSError as error:
            if self._output_error is None:  # the reader of the output is gone, or the disk is full
                self._output_error = error
                self._drive.stop()

    def _stopping(self) -> None:
        if self._face is not None:
            self._face.stopping()

    # The end

    def _ended(self, past: WorkflowResult | None) -> int:
        """Save the run, and say how to resume it; returns the exit code."""
        drive = self._drive
        if past is None and self._session.select_latest(WorkflowRun) is None:  # nothing ran
            if isinstance(drive.error, _REFUSALS):
                raise Refused(printable(" ".join(str(drive.error).split()))) from None
            if self._output_error is not None:
                return self._with_output(1)
        if past is not None:
            return self._with_output(0)
        status, code = self._outcome()
        code = self._with_output(code)
        is_lost = self._output_error is not None
        if self.stored is not None:
            resume = str(self.stored.session_id)
        else:
            file = self.save or (self.resume if self._is_file_resumed() else None)
            if status == "completed" and file is None and not is_lost:
                return code
            try:
                resume = file or self._default_target()
                write_snapshot(self._session, resume)
            except Refused as error:
                _say(
                    error.message if status == "completed" else f"{error.message}; the run cannot be resumed"
                )
                return code or 1
        if status != "completed" or is_lost:
            piped = " with the same workflow on standard input" if self.file is None else ""
            _say(f"{status}; to {_NEXT[status]}, run{piped}: {self.line} --resume {shlex.quote(resume)}")
        return code

    def _outcome(self) -> tuple[str, int]:
        """How the run ended, and the exit code."""
        drive = self._drive
        if drive.result is not None:
            return drive.result.status, 0 if drive.result.status == "completed" else 1
        if drive.error is not None:
            reason = f"{type(drive.error).__name__}: {drive.error}"
            _say(f"the run was aborted: {printable(' '.join(reason.split()))}")
            return "stopped", 1
        if drive.ended_by is not None:
            error = drive.ended_by
            call = printable(f"{type(error).__name__}({', '.join(map(repr, error.args))})"[:80])
            _say(f"a tool ended the program with {call}, which stopped the run")
            return "stopped", 1
        return "stopped", EXIT_CODES[drive.signal] if drive.signal is not None else 1

    def _with_output(self, code: int) -> int:
        """The exit code; an output that could not be written makes it 1, and is reported."""
        if self._output_error is None:
            return code
        _say(f"cannot write the output: {self._output_error.strerror or type(self._output_error).__name__}")
        return code or 1


def report_lines(
    workflow: Workflow,
    progress: Progress,
    result: WorkflowResult | None,
    *,
    is_verbose: bool,
    most: int | None = None,
    is_stopped: bool = False,
) -> tuple[list[Line], list[Line]]:
    """The report of a run: the answer, which comes before its steps, and what comes after them.

    Args:
        workflow: What ran.
        progress: Its steps.
        result: The result; None where the run was stopped.
        is_verbose: Whether the whole output of every step is shown.
        most: How many errors and how many warnings are shown; None for all.
        is_stopped: Whether the run was stopped, and has only the result of a part.
    """
    first: list[Line] = []
    last: list[Line] = []
    status = "stopped" if result is None or is_stopped else result.status
    if result is not None:
        if status == "completed":
            first = [("Answer", HEADING), *_answer_lines(workflow, result)]
        if is_verbose:
            for step_id, output in result.outputs.items():
                last += [(f"Output of {printable(step_id)}", HEADING), *_value_lines(output)]
        last += _problem_lines(result, most)
    style = {"completed": "green", "failed": "bold red"}.get(status, "yellow")
    summary = f"{status}: {progress.tally()}{progress.time_text}"
    return first, [*last, *([("", "")] if first or last else []), (summary, style)]


def _answer_lines(workflow: Workflow, result: WorkflowResult) -> Iterator[Line]:
    """The outputs of the steps that no other step depends on."""
    needed = {other for step in workflow.steps for other in step.depends_on}
    ids = [step.step_id for step in workflow.steps if step.step_id not in needed]
    shown = [step_id for step_id in ids if step_id in result.outputs]
    if not shown:
        yield ("No output.", "dim")
    for step_id in shown:
        if len(shown) > 1:
            yield (f"{printable(step_id)}:", "bold")
        yield from _value_lines(result.outputs[step_id])


def _value_lines(value: object) -> Iterator[Line]:
    """A value whole: a text as it is, anything else as JSON."""
    text = plain(value)
    if not isinstance(text, str):
        text = json.dumps(json.loads(as_json(text)), indent=2, ensure_ascii=False)
    return ((line, "") for line in lines_of(text))


def _problem_lines(result: WorkflowResult, most: int | None) -> Iterator[Line]:
    """Why steps failed, and the warnings; a failure that a completed run tolerates is a warning too."""
    is_fatal = result.status != "completed"
    if result.errors or result.warnings:
        yield ("", "")
    for step_id, error in list(result.errors.items())[:most]:
        yield from _error_lines(step_id, error, is_fatal=is_fatal)
    for warning in result.warnings[:most]:
        yield (f"warning: {one_line(warning)}", "yellow")
    left = sum(max(0, len(each) - (most or len(each))) for each in (result.errors, result.warnings))
    if left:
        yield (f"and {left:,} more; --verbose shows all", "dim")


def _error_lines(step_id: str, error: StepError, *, is_fatal: bool) -> Iterator[Line]:
    head = f"error: step {printable(step_id)}" if is_fatal else f"warning: step {printable(step_id)} failed"
    yield (f"{head}: {one_line(error.message)}", "bold red" if is_fatal else "yellow")
    if error.cause is not None:
        yield (f"  cause: {one_line(error.cause)}", "dim")


def _say(text: str) -> None:
    typer.echo(f"planning: {text}", err=True)
