"""One run by the command: driven, shown, and ended."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack, contextmanager, redirect_stdout, suppress
from datetime import UTC, datetime
from pathlib import Path
from signal import SIGTERM, Signals
from typing import Any, Final, Self, TextIO

import attrs

from planning.cli.drive import EXIT_CODES, Drive, leave_if_held_up, until_signalled
from planning.cli.faces import Face, face_of
from planning.cli.opening import opened_store, valid_session
from planning.cli.progress import Progress
from planning.cli.source import name_of
from planning.cli.terminal import HEADING, Line, as_json, can_redraw, count, lines_of, say
from planning.cli.usage import DEFAULT_STORE, Refused, bad_option
from planning.cli.view import open_browser
from planning.errors import line_of, printable, show
from planning.observe.health import Health, health_of_run
from planning.observe.steps import RunSteps, answer_steps, time_of
from planning.observe.stores import open_session
from planning.view.sources import StoreSource
from planning.workflow.capabilities import Capabilities
from planning.workflow.executors.jobs import AnyExecutor, ExecutorUnavailable
from planning.workflow.failures import StepFailed, WorkflowError
from planning.workflow.model import Workflow
from planning.workflow.run.callables import Callables
from planning.workflow.run.claim import change_of_done
from planning.workflow.run.engine import arun_workflow
from planning.workflow.run.memory import MemoryItem, memory_of
from planning.workflow.run.records import RunChanged, StepChanged, StepRecord, WorkflowRun, bare, states_of
from planning.workflow.run.steps import WorkflowResult
from planning.workflow.run.values import step_with_prompt
from session import Session, SessionError, StoreError
from session.json_form import json_form
from session.selectors import Selectable


class RunPage:
    """The page of a session, served in a thread of its own while the run has the others."""

    def __init__(self, store: str, session: str) -> None:
        try:
            from planning.view.server import serve
        except ImportError as error:
            raise Refused(str(error)) from None
        self._serve = serve
        self._store = store
        self._session = session
        self._thread: threading.Thread | None = None
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End it; pages in a browser hear of that, and stay as they are."""
        if self._thread is not None and self._task is not None and self._thread.is_alive():
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)
            self._thread.join()

    def open(self, *_event: object) -> None:
        """Serve the page from now on, say where, and open a browser; later calls do nothing."""
        if self._thread is not None:
            return
        link = Future[str]()

        async def served() -> None:
            self._task = asyncio.current_task()
            try:
                await self._serve(StoreSource(self._store, self._session), started=link.set_result)
            except (OSError, StoreError) as error:
                link.set_exception(error)
            except asyncio.CancelledError:
                pass

        self._thread = threading.Thread(target=asyncio.run, args=(served(),), name="page", daemon=True)
        self._thread.start()
        try:
            say(f"the run is shown at {link.result()}")
        except (OSError, StoreError) as error:
            say(f"the run cannot be shown: {line_of(error)}")
        else:
            threading.Thread(target=open_browser, args=(link.result(),), name="browser", daemon=True).start()

    def wait(self) -> Signals | None:
        """Keep the page until a signal comes, which is returned; None where it was never opened."""
        if self._thread is None or not self._thread.is_alive():
            return None
        say("press Ctrl-C to close the page")
        return until_signalled(_forever())


async def _forever() -> None:
    await asyncio.Event().wait()


ELSEWHERE: Final = "name a file elsewhere with --store PATH"
"""A hint for a store that cannot be written."""


@attrs.frozen(kw_only=True)
class Asked:
    """The run that the user asked for; ``line`` is the command that resumes it."""

    workflow: Workflow
    capabilities: Capabilities
    user_prompt: str | None
    inputs: Mapping[str, Any]
    store: str
    session: str
    resume: bool
    executor: AbstractContextManager[AnyExecutor] | None
    max_parallel: int
    timeout: float | None
    is_viewed: bool
    is_json: bool
    line: str


@contextmanager
def opened_run(asked: Asked) -> Iterator[tuple[Session, WorkflowRun | None]]:
    """The session that keeps a run, and the run in it that is resumed; None to begin one."""
    identity = valid_session(asked.session, "SESSION")
    if not asked.resume:
        _check_calls(asked, set(), asked.user_prompt)
        _make_folder(asked.store)
    with opened_store(asked.store, begins=not asked.resume) as store:
        session = open_session(store, identity)
        yield session, _last_run(session, asked)


def _make_folder(path: str) -> None:
    """Make the folder of the default store, which no other user may read, and git ignores."""
    if path != DEFAULT_STORE:
        return
    folder = Path(path).parent
    try:
        folder.mkdir(mode=0o700)
        (folder / ".gitignore").write_text("*\n")
    except OSError as error:
        if not folder.is_dir():
            raise Refused(f"cannot make {name_of(str(folder))}: {error.strerror}; {ELSEWHERE}") from None


def _last_run(session: Session, asked: Asked) -> WorkflowRun | None:
    """The run that is resumed; None where another begins."""
    run = session.select_latest(WorkflowRun)
    name, over = f"session {show(asked.session)}", "or name another session to start over"
    if run is None:
        if asked.resume:
            raise Refused(f"{name_of(asked.store)} holds no run in {name}; omit --resume to begin one")
        return None
    if run.status == "completed":
        return run if asked.resume else None
    states = states_of(run.run_id, session.select_all(StepRecord))
    done = {step_id for step_id, record in states.items() if record.status == "completed"}
    if not asked.resume:
        how_far = f"{len(done)} of {count(len(run.workflow.steps), 'step')} done"
        raise Refused(f"the last run in {name} is not complete: {how_far}; add --resume to resume it, {over}")
    if change := change_of_done(run, states, asked.workflow):
        raise Refused(f"the last run in {name} cannot be resumed: {change}; restore that step, {over}")
    given = {**run.inputs, **asked.inputs}
    differs = {
        "goal": asked.workflow.goal != run.workflow.goal,
        "prompt": asked.user_prompt not in (None, run.user_prompt),
        "--var": json_form(given) != json_form(run.inputs),
    }
    for what, is_other in differs.items():
        if is_other:
            raise Refused(f"the last run in {name} has another {what}; resume it with the same, {over}")
    _check_calls(asked, done, run.user_prompt)
    return run


def _check_calls(asked: Asked, done: set[str], prompt: str | None) -> None:
    """Refuse a step that has yet to run and whose tool cannot be called, or whose prompt is missing."""
    for step in asked.workflow.steps:
        kind, name = ("agent", step.agent) if step.agent is not None else (step.type, step.name)
        if step.step_id in done or kind is None or name is None:
            continue
        if (getattr(asked.capabilities, f"{kind}s") or {}).get(name) is None:
            raise Refused(
                f"step {show(step.step_id)} calls the {kind} {show(name)}, which was not given; name an"
                f" object that holds it: --{kind}s my_app:{kind}s"
            )
    if prompt is None and (asking := step_with_prompt(asked.workflow)) is not None:
        raise bad_option(
            "--prompt", f"step {show(asking)} refers to ${{user_prompt}}; give it: --prompt TEXT"
        )


def past_result(source: Selectable, run: WorkflowRun, session: Session) -> WorkflowResult:
    """The result of an earlier run."""
    states = states_of(run.run_id, source.select_all(StepRecord))
    return WorkflowResult(
        status="completed" if run.status == "completed" else "failed",
        outputs={
            step_id: record.output
            for step_id, record in states.items()
            if record.status == "completed" and not record.is_withheld
        },
        memory=memory_of(source.select_all(MemoryItem)),
        errors={step_id: record.error for step_id, record in states.items() if record.error is not None},
        session=session,
        run=run,
        states=states,
    )


_REFUSALS: Final = (WorkflowError, SessionError, ImportError, ValueError, TypeError)
_NEXT: Final = {
    "failed": "to retry the failed steps, run",
    "spent": "a failed step that must not run twice is not called again: give it another step_id, and run",
    "stopped": "to resume, run",
    "completed": "to see the result, run",
}


@attrs.define
class Running:
    """A run, what shows it, and its end."""

    asked: Asked
    session: Session
    last: WorkflowRun | None
    _progress: Progress = attrs.field(init=False)
    _drive: Drive[WorkflowResult] = attrs.field(init=False)
    _output_error: OSError | None = attrs.field(init=False, default=None)

    def run(self) -> int:
        """Run the workflow, and show it; a run that is complete is only shown."""
        asked, last, past = self.asked, self.last, None
        steps = RunSteps(bare(asked.workflow), last)
        for record in () if last is None else self.session.select_all(StepRecord):
            steps.take(record)
        self._progress = Progress(steps, _now, began=None if last is None else time_of(last.started_at))
        if last is not None and last.status == "completed":
            past = past_result(self.session, last, self.session)
            self._progress.spent = health_of_run(self.session, steps, _now()).elapsed(_now())
            say(f"the run in session {show(asked.session)} is already complete")
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
        if words := self._progress.stopping():
            say(words)

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
        """True if a resumed run calls a step that failed: one that must not run twice is called once."""
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


def _now() -> datetime:
    return datetime.now(UTC)


def report_lines(
    workflow: Workflow,
    progress: Progress,
    result: WorkflowResult | None,
    *,
    is_verbose: bool = False,
    health: Health | None = None,
) -> tuple[list[Line], list[Line]]:
    """The report of a run: the answer, which comes before its steps, and what comes after them."""
    first: list[Line] = []
    last: list[Line] = []
    is_ended = health is None or health.state in {"finished", "failed"}
    status = "stopped" if result is None else result.status if is_ended or health is None else health.label
    if result is not None:
        if status == "completed":
            first = [("Answer", HEADING), *_answer_lines(workflow, result)]
        for step_id, output in result.outputs.items() if is_verbose else ():
            last += [(f"Output of {step_id}", HEADING), *_value_lines(output)]
        last += _problem_lines(result)
    style = {"completed": "green", "failed": "bold red", "working": "cyan"}.get(status, "yellow")
    summary = f"{status}: {progress.tally()}{progress.lasted()}"
    return first, [*last, *([("", "")] if first or last else []), (summary, style)]


def _answer_lines(workflow: Workflow, result: WorkflowResult) -> Iterator[Line]:
    """The outputs of the steps that no other step depends on."""
    shown = [step_id for step_id in answer_steps(workflow) if step_id in result.outputs]
    if not shown:
        yield ("No output.", "dim")
    for step_id in shown:
        if len(shown) > 1:
            yield (f"{step_id}:", "bold")
        yield from _value_lines(result.outputs[step_id])


def _value_lines(value: object) -> Iterator[Line]:
    """A value whole: text as it is, anything else as JSON."""
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
        yield (f"{head}: {error.cause or error.message}", "bold red" if is_fatal else "yellow")
        if error.cause:
            yield (f"  the model reads: {error.message}", "dim")
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
