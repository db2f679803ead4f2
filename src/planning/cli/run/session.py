"""One run by the command: prepared, driven, shown, and kept."""

from __future__ import annotations

import shlex
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TextIO

import attrs
import typer

from planning.cli.printable import printable
from planning.cli.run.drive import EXIT_CODES, Drive, leave_if_held_up
from planning.cli.run.executors import executor_of
from planning.cli.run.keep import (
    KeepError,
    check_target,
    default_target,
    kept_run,
    past_result,
    read_snapshot,
    write_snapshot,
)
from planning.cli.run.options import Given, uncallable
from planning.cli.run.output import own_stdout
from planning.cli.run.progress import Progress
from planning.cli.run.views import View, view_of
from planning.model import Plan
from planning.workflow.capabilities import Capabilities
from planning.workflow.failures import WorkflowError
from planning.workflow.model import Workflow
from planning.workflow.run.engine import arun_workflow
from planning.workflow.run.records import StepChanged, StepRecord, WorkflowRun, states_of
from planning.workflow.run.result import WorkflowResult
from session import Session

__all__ = ["NothingRun", "Order", "run_order"]


_REFUSALS: Final = (WorkflowError, ImportError, ValueError, TypeError)


class NothingRun(Exception):
    """The run cannot begin; the text says why, on one line."""


@attrs.frozen(kw_only=True)
class Order:
    """What is to be run, and how.

    Attributes:
        workflow: What.
        capabilities: What its steps call.
        given: The prompt and the values for the memory.
        file: Where the plan stands; None for standard input.
        executor: The name of the executor; None for this process.
        max_parallel: How many steps run at the same time at most.
        timeout: Seconds for an attempt of a step; None for no limit.
        resume: The snapshot to go on with.
        save: Where to keep the run; None for where it was kept before, or, if it is not completed, for
            a file in the current folder.
        is_json: Whether only the result is printed, as JSON.
        line: The command that was given, without ``--resume``.
    """

    workflow: Workflow
    capabilities: Capabilities
    given: Given
    file: str | None
    executor: str | None
    max_parallel: int
    timeout: float | None
    resume: str | None
    save: str | None
    is_json: bool
    line: str


def run_order(order: Order, clock: Callable[[], float] = time.monotonic) -> int:
    """Run a workflow, show it, and keep it where it is not completed.

    Args:
        order: What to run.
        clock: The time in seconds.

    Returns:
        The exit code.

    Raises:
        NothingRun: It cannot begin.
        KeepError: The same, because of a snapshot.
        ExecutorError: The same, because of the executor.
    """
    session = Session()
    prompt, inputs = order.given.prompt, order.given.inputs
    states: dict[str, StepRecord] = {}
    past: WorkflowResult | None = None
    if order.save is not None:
        check_target(order.save)
    if order.resume is not None:
        snapshot = read_snapshot(order.resume)
        run = kept_run(snapshot, order.resume, order.workflow, prompt, inputs)
        session.rollback(snapshot)
        prompt, inputs = run.user_prompt, dict(run.inputs)
        states = states_of(run.run_id, session.select_all(StepRecord))
        past = past_result(session, run) if run.status == "completed" else None
    progress = Progress(order.workflow, clock, states)
    if past is None:
        pairs = zip(order.workflow.steps, progress.steps, strict=True)
        left = [step for step, view in pairs if not view.is_over]
        if (told := uncallable(left, order.capabilities)) is not None:
            raise NothingRun(told)
    return _Running(order, session, progress, Given(prompt, inputs)).run(past)


class _Running:
    """A run, its view, and its end."""

    def __init__(self, order: Order, session: Session, progress: Progress, given: Given) -> None:
        self._order = order
        self._session = session
        self._progress = progress
        self._given = given
        self._executor: Executor | None = None
        self._view: View | None = None
        self._drive = Drive(self._start, self._tell_stopping)
        self._output_error: OSError | None = None
        self._code = 0

    def run(self, past: WorkflowResult | None) -> int:
        """Run it; a completed one is only shown."""
        if past is not None:
            self._tell(f"{self._name(self._order.resume)} is of a completed run: there is nothing left to do")
        with ExitStack() as stack:
            stack.enter_context(_sockets_allowed())
            own = stack.enter_context(own_stdout())
            stack.enter_context(self._drive.heeding_signals())
            stack.enter_context(leave_if_held_up(lambda: self._code))
            if past is None:
                self._executor = stack.enter_context(
                    executor_of(self._order.executor, self._order.max_parallel)
                )
            self._show(own, past)
            self._code = self._ended(past)
        return self._code

    def _show(self, own: TextIO, past: WorkflowResult | None) -> None:
        """Run it, and show it meanwhile and at its end."""
        drive, bus = self._drive, self._session.bus
        try:
            with view_of(own, self._progress, is_json=self._order.is_json) as view:
                self._view = view
                if past is None:
                    bus.subscribe(StepChanged, self._changed)
                    drive.run()
                    bus.unsubscribe(StepChanged, self._changed)
                    for step in self._progress.stopped():
                        view.changed(step)
                if drive.error is None and self._output_error is None:
                    view.end(drive.result or past)
        except OSError as error:
            self._output_error = self._output_error or error

    def _start(self) -> Any:
        order = self._order
        return arun_workflow(
            order.workflow,
            order.capabilities,
            session=self._session,
            user_prompt=self._given.prompt or "",
            inputs=self._given.inputs,
            executor=self._executor,
            max_parallel=order.max_parallel,
            timeout=order.timeout,
        )

    def _changed(self, event: StepChanged) -> None:
        """A step changed: note it, and show it."""
        step = self._progress.take(event.record, self._session.select_latest(Plan))
        if step is None or self._view is None:
            return
        try:
            self._view.changed(step)
        except OSError as error:
            if self._output_error is None:  # the reader of the output is gone, or the disk is full
                self._output_error = error
                self._drive.stop()

    def _tell_stopping(self) -> None:
        count = len(self._progress.running)
        if self._view is not None and count:
            with suppress(OSError):
                self._view.stopping(count)

    # The end

    def _ended(self, past: WorkflowResult | None) -> int:
        """Say and keep what there is to be said and kept; returns the exit code."""
        drive = self._drive
        if past is not None:
            return self._told_output(0)
        if self._session.select_latest(WorkflowRun) is None:  # nothing was begun
            if isinstance(drive.error, _REFUSALS):
                raise NothingRun(printable(" ".join(str(drive.error).split()))) from None
            if self._output_error is not None:
                return self._told_output(1)
        status, code = self._outcome()
        self._told_output(code)
        is_lost = self._output_error is not None
        file = self._order.save or self._resumed_file()
        if status == "completed" and file is None and not is_lost:
            return code
        file = file or default_target(self._stem())
        try:
            write_snapshot(self._session, file)
        except KeepError as error:
            self._tell(str(error) if status == "completed" else f"{error}; the run cannot be resumed")
            return code or 1
        if status != "completed" or is_lost:
            next_ = {"failed": "to try again what failed", "stopped": "to go on"}.get(
                status, "to see the result"
            )
            piped = ", with the same plan on standard input" if self._order.file is None else ""
            self._tell(f"{status}; {next_}{piped}: {self._order.line} --resume {shlex.quote(file)}")
        return code

    def _outcome(self) -> tuple[str, int]:
        """How the run ended, and the exit code."""
        drive = self._drive
        if drive.result is not None:
            code = 0 if drive.result.status == "completed" else 1
            return drive.result.status, code or bool(self._output_error)
        if drive.error is not None:
            told = printable(" ".join(f"{type(drive.error).__name__}: {drive.error}".split()))
            self._tell(f"the run broke off: {told}")
            return "stopped", 1
        if drive.ended_by is not None:
            self._tell(f"a tool ended the program with {_call(drive.ended_by)}, which stopped the run")
            return "stopped", 1
        return "stopped", EXIT_CODES[drive.signal] if drive.signal is not None else 1

    def _told_output(self, code: int) -> int:
        if self._output_error is None:
            return code
        reason = self._output_error.strerror or type(self._output_error).__name__
        self._tell(f"the output could not be written: {reason}")
        return code or 1

    def _resumed_file(self) -> str | None:
        """The file that the run was resumed from, which keeps it on; None for what only can be read."""
        resume = self._order.resume
        return resume if resume is not None and Path(resume).is_file() else None

    def _stem(self) -> str:
        return "stdin" if self._order.file is None else Path(self._order.file).stem or "plan"

    def _name(self, path: str | None) -> str:
        return f"'{printable(path or '')}'"

    def _tell(self, text: str) -> None:
        typer.echo(f"planning: {text}", err=True)


def _call(error: BaseException) -> str:
    return printable(f"{type(error).__name__}({', '.join(map(repr, error.args))})"[:80])


@contextmanager
def _sockets_allowed() -> Iterator[None]:
    """Let a write to a closed pipe be an error, not the end: worker processes and tools have such pipes."""
    if not hasattr(signal, "SIGPIPE"):
        yield
        return
    try:
        before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    except ValueError:  # not the main thread: signals are another's
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGPIPE, before)
