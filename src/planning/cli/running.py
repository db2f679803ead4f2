"""One run by the command: driven, shown, and ended."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Final, TextIO

import attrs
import typer

from planning.cli.drive import EXIT_CODES, Drive, leave_if_held_up
from planning.cli.faces import face_of
from planning.cli.lines import Face
from planning.cli.output import own_stdout
from planning.cli.progress import Progress
from planning.cli.runs import ELSEWHERE, Asked, past_result
from planning.cli.terminal import HEADING, Line, as_json, is_terminal, lines_of
from planning.cli.usage import Refused
from planning.errors import printable, show
from planning.tools.result import plain
from planning.view.text import line_of
from planning.workflow.executors.base import AnyExecutor, ExecutorUnavailable
from planning.workflow.failures import StepError, WorkflowError
from planning.workflow.model import Workflow
from planning.workflow.run.engine import arun_workflow
from planning.workflow.run.records import StepChanged, StepRecord, WorkflowRun, states_of
from planning.workflow.run.result import WorkflowResult
from session import Session, SessionError, StoreError

__all__ = ["Running", "report_lines"]

_REFUSALS: Final = (WorkflowError, SessionError, ImportError, ValueError, TypeError)
_MOST_LISTED: Final = 20
_NEXT: Final = {"failed": "retry the failed steps", "stopped": "resume", "completed": "see the result"}


@attrs.define
class Running:
    """A run, what shows it, and its end.

    Attributes:
        asked: What the user asked for.
        session: The session that keeps the run.
        last: The run in it that is resumed; None to begin one.
        clock: The time in seconds.
    """

    asked: Asked
    session: Session
    last: WorkflowRun | None
    clock: Callable[[], float] = time.monotonic
    _version: int = attrs.field(init=False)
    _progress: Progress = attrs.field(init=False)
    _drive: Drive[WorkflowResult] = attrs.field(init=False)
    _face: Face | None = attrs.field(init=False, default=None)
    _pool: AnyExecutor | None = attrs.field(init=False, default=None)
    _output_error: OSError | None = attrs.field(init=False, default=None)

    def run(self) -> int:
        """Run the workflow, and show it; a run that is complete is only shown.

        Returns:
            The exit code.

        Raises:
            Refused: It cannot start.
        """
        past, states = None, dict[str, StepRecord]()
        if self.last is not None:
            states = states_of(self.last.run_id, self.session.select_all(StepRecord))
            if self.last.status == "completed":
                past = past_result(self.session, self.last, self.session)
                _say(f"the run in session {show(str(self.session.session_id))} is already complete")
        self._progress = Progress.of_run(self.asked.workflow, self.clock, states)
        self._drive, self._version = Drive(self._start, self._stopping), self.session.version
        code = 0
        with ExitStack() as stack:
            own = stack.enter_context(own_stdout())
            stack.enter_context(self._drive.heeding_signals())
            stack.enter_context(leave_if_held_up(lambda: code))
            if self.asked.is_viewed:
                _say(f"the run is shown at {stack.enter_context(self._page())}")
            if past is None and self.asked.executor is not None:
                try:
                    self._pool = stack.enter_context(self.asked.executor)
                except ExecutorUnavailable as error:
                    raise Refused(f"--executor {printable(str(error))}") from None
            self._show(own, past)
            code = self._with_output(0) if past is not None else self._ended()
        return code

    def _page(self) -> AbstractContextManager[str]:
        """A page that shows the session; yields its link.

        Raises:
            Refused: It cannot be served.
        """
        try:
            from planning.view.server import serving
        except ImportError as error:
            raise Refused(str(error)) from None
        from planning.view.sources import StoreSource

        return serving(StoreSource(Path(self.asked.store), str(self.session.session_id)))

    def _show(self, own: TextIO, past: WorkflowResult | None) -> None:
        """Run it, and show it meanwhile and at its end."""
        drive, bus, progress, asked = self._drive, self.session.bus, self._progress, self.asked
        try:
            with face_of(own, progress, is_json=asked.is_json) as face:
                self._face = face
                if past is None:
                    bus.subscribe(StepChanged, self._changed)
                    drive.run()
                    bus.unsubscribe(StepChanged, self._changed)
                    face.show(progress.stop())
                if drive.error is not None or self._output_error is not None:
                    return
                result = drive.result or past
                most = _MOST_LISTED if is_terminal(own) and not asked.is_verbose else None
                first, last = report_lines(
                    asked.workflow, progress, result, is_verbose=asked.is_verbose, most=most
                )
                face.end(first, last, is_whole=False)
                if asked.is_json and result is not None:
                    own.write(json.dumps(result.to_dict(), indent=2) + "\n")
                    own.flush()
        except OSError as error:
            self._output_error = self._output_error or error

    def _start(self) -> Any:
        asked, last = self.asked, self.last
        return arun_workflow(
            asked.workflow,
            asked.capabilities,
            session=self.session,
            user_prompt=asked.user_prompt if last is None else last.user_prompt,
            inputs=asked.inputs if last is None else last.inputs,
            executor=self._pool,
            max_parallel=asked.max_parallel,
            timeout=asked.timeout,
        )

    def _changed(self, event: StepChanged) -> None:
        """A step changed: show it."""
        lines = self._progress.take_record(event.record)
        if self._face is None:
            return
        try:
            self._face.show(lines)
        except OSError as error:
            if self._output_error is None:  # the reader of the output is gone, or the disk is full
                self._output_error = error
                self._drive.stop()

    def _stopping(self) -> None:
        if self._face is not None:
            self._face.stopping()

    # The end

    def _ended(self) -> int:
        """Say how to resume the run unless it is complete; returns the exit code."""
        drive, asked = self._drive, self.asked
        if isinstance(drive.error, _REFUSALS) and self.session.version == self._version:  # nothing ran
            raise Refused(self._reason(drive.error)) from None
        if self._output_error is not None and self.session.version == self._version:
            return self._with_output(1)
        status, code = self._outcome()
        code = self._with_output(code)
        if status != "completed" or self._output_error is not None:
            piped, name = ("", "")
            if asked.file is None:
                piped = " with the workflow on standard input"
                name = "" if asked.session else f" --session {self.session.session_id}"
            _say(f"{status}; to {_NEXT[status]}, run{piped}: {asked.line}{name} --resume")
        return code

    def _reason(self, error: Exception) -> str:
        if isinstance(error, StoreError):
            return f"the run cannot be kept: {line_of(error)}; {ELSEWHERE}"
        return line_of(error)

    def _outcome(self) -> tuple[str, int]:
        """How the run ended, and the exit code."""
        drive = self._drive
        if drive.result is not None:
            return drive.result.status, 0 if drive.result.status == "completed" else 1
        if drive.error is not None:
            kind = "" if isinstance(drive.error, _REFUSALS) else f"{type(drive.error).__name__}: "
            _say(f"the run was aborted: {kind}{line_of(drive.error)}")
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
                last += [(f"Output of {step_id}", HEADING), *_value_lines(output)]
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
            yield (f"{step_id}:", "bold")
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
        yield (f"warning: {warning}", "yellow")
    left = sum(max(0, len(each) - (most or len(each))) for each in (result.errors, result.warnings))
    if left:
        yield (f"and {left:,} more; --verbose shows all", "dim")


def _error_lines(step_id: str, error: StepError, *, is_fatal: bool) -> Iterator[Line]:
    head = f"error: step {step_id}" if is_fatal else f"warning: step {step_id} failed"
    yield (f"{head}: {error.message}", "bold red" if is_fatal else "yellow")
    if error.cause is not None:
        yield (f"  cause: {error.cause}", "dim")


def _say(text: str) -> None:
    typer.echo(f"planning: {text}", err=True)
