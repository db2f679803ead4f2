"""One run by the command: driven, shown, and ended."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from signal import SIGTERM
from typing import TYPE_CHECKING, Final, TextIO

import attrs

from planning.cli.drive import EXIT_CODES, Drive, leave_if_held_up
from planning.cli.faces import Face, face_of
from planning.cli.progress import Progress
from planning.cli.runs import ELSEWHERE, Asked, past_result
from planning.cli.terminal import HEADING, Line, as_json, can_redraw, lines_of, say
from planning.cli.usage import Refused
from planning.errors import printable, show
from planning.observe.text import line_of
from planning.workflow.executors.jobs import AnyExecutor, ExecutorUnavailable
from planning.workflow.failures import StepFailed, WorkflowError
from planning.workflow.model import Workflow
from planning.workflow.run.callables import Callables
from planning.workflow.run.engine import arun_workflow
from planning.workflow.run.records import RunChanged, StepChanged, StepRecord, WorkflowRun, states_of
from planning.workflow.run.steps import WorkflowResult
from session import Session, SessionError, StoreError
from session.json_form import json_form

if TYPE_CHECKING:
    from planning.cli.run_page import RunPage
    from planning.observe.health import Health

_REFUSALS: Final = (WorkflowError, SessionError, ImportError, ValueError, TypeError)
_NEXT: Final = {
    "failed": "to retry the failed steps, run",
    "spent": "a failed step that must not run twice is not called again: give it another step_id, and run",
    "stopped": "to resume, run",
    "completed": "to see the result, run",
}


@attrs.define
class Running:
    """A run, what shows it, and its end.

    Attributes:
        asked: What the user asked for.
        session: The session that keeps the run.
        last: The run in it that is resumed; None to begin one.
    """

    asked: Asked
    session: Session
    last: WorkflowRun | None
    _progress: Progress = attrs.field(init=False)
    _drive: Drive[WorkflowResult] = attrs.field(init=False)
    _output_error: OSError | None = attrs.field(init=False, default=None)

    def run(self) -> int:
        """Run the workflow, and show it; a run that is complete is only shown.

        Returns:
            The exit code.

        Raises:
            Refused: It cannot start.
        """
        asked, last, past, records = self.asked, self.last, None, list[StepRecord]()
        if last is not None:
            records = list(states_of(last.run_id, self.session.select_all(StepRecord)).values())
            if last.status == "completed":
                past = past_result(self.session, last, self.session)
                say(f"the run in session {show(asked.session)} is already complete")
        self._progress = Progress.of_run(asked.workflow, time.monotonic, records)
        self._drive, code = Drive(self._stopping), 0
        before = self.session.version
        with ExitStack() as stack:
            own = stack.enter_context(own_stdout())
            stack.enter_context(leave_if_held_up(lambda: code))
            page = self._page(stack, past)
            pool = None
            if past is None and asked.executor is not None:
                try:
                    pool = stack.enter_context(asked.executor)
                except ExecutorUnavailable as error:
                    raise Refused(f"--executor {printable(str(error))}") from None
            try:
                with face_of(own, self._progress, is_json=asked.is_json) as face:
                    result = past or self._driven(face, pool)
                    is_begun = past is not None or self.session.version != before
                    if is_begun and self._output_error is None:
                        self._show_end(face, own, result)
            except OSError as error:
                self._output_error = self._output_error or error
            if past is None and self.session.version == before:
                self._refuse()
            code = self._ended(past)
            if page is not None and self._drive.signal is None and (received := page.wait()) == SIGTERM:
                code = EXIT_CODES[received]
        return code

    def _page(self, stack: ExitStack, past: WorkflowResult | None) -> RunPage | None:
        """The page of the run, if it is asked for; it opens with the first change of the run."""
        if not self.asked.is_viewed:
            return None
        from planning.cli.run_page import RunPage

        page = stack.enter_context(RunPage(self.asked.store, self.asked.session))
        if past is not None:
            page.open()
        self.session.bus.subscribe(RunChanged, page.open)
        return page

    def _driven(self, face: Face, pool: AnyExecutor | None) -> WorkflowResult | None:
        """Run it, and show it meanwhile."""

        def changed(event: StepChanged) -> None:
            try:
                face.show(self._progress.take_record(event.record))
            except OSError as error:
                if self._output_error is None:  # the reader of the output is gone, or the disk is full
                    self._output_error = error
                    self._drive.stop()

        asked, last = self.asked, self.last
        self.session.bus.subscribe(StepChanged, changed)
        self._drive.run(
            arun_workflow(
                asked.workflow,
                asked.capabilities,
                session=self.session,
                user_prompt=asked.user_prompt if last is None else last.user_prompt,
                inputs=asked.inputs if last is None else last.inputs,
                executor=pool,
                max_parallel=asked.max_parallel,
                timeout=asked.timeout,
            )
        )
        self.session.bus.unsubscribe(StepChanged, changed)
        face.show(self._progress.stop())
        return self._drive.result

    def _stopping(self) -> None:
        if self._progress.running:
            say(self._progress.stopping())

    def _show_end(self, face: Face, own: TextIO, result: WorkflowResult | None) -> None:
        face.end(*report_lines(self.asked.workflow, self._progress, result))
        if self.asked.is_json and result is not None:
            own.write(json.dumps(result.to_dict(), indent=2) + "\n")
            own.flush()

    def _refuse(self) -> None:
        """Refuse a run that the engine did not begin."""
        if self._output_error is not None:
            raise self._output_error
        if isinstance(error := self._drive.error, StoreError):
            raise Refused(f"the run cannot be kept: {line_of(error)}; {ELSEWHERE}") from None
        if isinstance(error, _REFUSALS):
            raise Refused(line_of(error)) from None

    def _ended(self, past: WorkflowResult | None) -> int:
        """Say how to resume the run unless it is complete; returns the exit code."""
        drive, result = self._drive, self._drive.result or past
        status, code = "stopped" if result is None else result.status, 1
        if status == "completed":
            code = 0
        elif drive.error is not None:
            say(f"the run was stopped by {type(drive.error).__name__}: {line_of(drive.error)}")
        elif result is None and drive.signal is not None:
            code = EXIT_CODES[drive.signal]
        if self._output_error is not None:
            say(f"cannot write the output: {self._output_error.strerror}")
            code = code or 1
        if code:
            is_spent = result is not None and status == "failed" and not self._can_retry(result)
            say(f"{status}; {_NEXT['spent' if is_spent else status]}: {self.asked.line}")
        return code

    def _can_retry(self, result: WorkflowResult) -> bool:
        """Whether a resumed run calls a step that failed: one that must not run twice is called once."""
        run = self.session.select_latest(WorkflowRun)
        states = states_of("" if run is None else run.run_id, self.session.select_all(StepRecord))
        callables = Callables(self.asked.capabilities)
        for step in self.asked.workflow.steps:
            if step.step_id in result.errors:
                record, tool = states.get(step.step_id), None
                with suppress(StepFailed):
                    tool = callables.find(step)
                if tool is None or tool.idempotent or record is None or not record.called:
                    return True
        return False


def report_lines(
    workflow: Workflow,
    progress: Progress,
    result: WorkflowResult | None,
    *,
    is_verbose: bool = False,
    health: Health | None = None,
) -> tuple[list[Line], list[Line]]:
    """The report of a run: the answer, which comes before its steps, and what comes after them.

    Args:
        workflow: What ran.
        progress: Its steps.
        result: The result; None where the run was stopped.
        is_verbose: Whether the whole output of every step is shown.
        health: How a run is doing that is not over, and has only the result of a part; None for another.
    """
    first: list[Line] = []
    last: list[Line] = []
    status = health.words if health is not None else "stopped" if result is None else result.status
    if result is not None:
        if status == "completed":
            first = [("Answer", HEADING), *_answer_lines(workflow, result)]
        for step_id, output in result.outputs.items() if is_verbose else ():
            last += [(f"Output of {step_id}", HEADING), *_value_lines(output)]
        last += _problem_lines(result)
    style = {"completed": "green", "failed": "bold red", "working": "cyan"}.get(status, "yellow")
    summary = f"{status}: {progress.tally()}{progress.spent()}"
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
    text = json_form(value)
    if not isinstance(text, str):
        text = json.dumps(json.loads(as_json(text)), indent=2, ensure_ascii=False)
    return ((line, "") for line in lines_of(text))


def _problem_lines(result: WorkflowResult) -> Iterator[Line]:
    """Why steps failed, and the warnings; a failure that a completed run tolerates is a warning too."""
    is_fatal = result.status != "completed"
    if result.errors or result.warnings:
        yield ("", "")
    for step_id, error in result.errors.items():
        head = f"error: step {step_id}" if is_fatal else f"warning: step {step_id} failed"
        yield (f"{head}: {error.message}", "bold red" if is_fatal else "yellow")
        if error.cause is not None:
            yield (f"  cause: {error.cause}", "dim")
    for warning in result.warnings:
        yield (f"warning: {warning}", "yellow")


@contextmanager
def own_stdout() -> Iterator[TextIO]:
    """Keep standard output for the command, which writes to what this yields.

    What tools and their processes print goes to standard error meanwhile; in a terminal, it appears above the
    steps.
    """
    stdout = sys.stdout
    if can_redraw(stdout):
        yield stdout
        return
    with redirect_stdout(sys.stderr):
        try:
            number, target = stdout.fileno(), sys.stderr.fileno()
        except (OSError, ValueError):  # not a file: the command is called from a program
            yield stdout
            return
        stdout.flush()
        own = os.fdopen(os.dup(number), "w", buffering=1, encoding=stdout.encoding, errors=stdout.errors)
        os.dup2(target, number)
        try:
            yield own
        finally:
            stdout.flush()
            os.dup2(own.fileno(), number)
            with suppress(OSError):  # the writer has flushed it, and knows
                own.close()
