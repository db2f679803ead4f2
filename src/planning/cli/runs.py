"""Where ``planning run`` keeps a run: in a store, in the session of its workflow."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from hashlib import sha256
from itertools import count as numbers
from pathlib import Path
from typing import Any, Final

import attrs

from planning.cli.source import DEFAULT_STORE, name_of
from planning.cli.stores import opened_store, valid_session
from planning.cli.terminal import count
from planning.cli.usage import Refused
from planning.errors import printable, show, writable
from planning.tools.result import plain
from planning.view.stores import PastStore, open_session
from planning.workflow.capabilities import Capabilities
from planning.workflow.executors.base import AnyExecutor
from planning.workflow.failures import StepError
from planning.workflow.model import Workflow
from planning.workflow.run.claim import change_of_done
from planning.workflow.run.memory import MemoryItem, memory_of
from planning.workflow.run.records import StepRecord, WorkflowRun, states_of
from planning.workflow.run.resolve import step_with_prompt
from planning.workflow.run.result import WorkflowResult
from session import Session
from session.events import SessionId, session_id_of
from session.selectors import Selectable
from session.stores import Store

__all__ = ["ELSEWHERE", "Asked", "opened_run", "past_result"]

ELSEWHERE: Final = "name a file elsewhere with --store PATH"
"""What to do where a store cannot be written."""
_TAG: Final = "workflow"
_LONGEST_NAME: Final = 100  # characters; there is room for a number behind it


@attrs.frozen(kw_only=True)
class Asked:
    """The run that the user asked for.

    Attributes:
        workflow: What runs.
        capabilities: What its steps call.
        user_prompt: The value of ``${user_prompt}``; None if none was given.
        inputs: Values for the memory.
        file: The file of the workflow; None for standard input.
        data: What is in it.
        store: The file that keeps the run.
        session: The session in it; None for that of the workflow.
        resume: Whether to resume the last run; False to begin a session, None to begin a run in the last.
        executor: Opens the executor; None for this process.
        max_parallel: How many steps run at the same time at most.
        timeout: Seconds for an attempt of a step; None for no limit.
        is_viewed: Whether a page shows the run meanwhile.
        is_verbose: Whether the whole output of every step is shown.
        is_json: Whether only the result is printed, as JSON.
        line: The command that was given, without ``--resume``.
    """

    workflow: Workflow
    capabilities: Capabilities
    user_prompt: str | None
    inputs: Mapping[str, Any]
    file: str | None
    data: bytes
    store: str
    session: str | None
    resume: bool | None
    executor: AbstractContextManager[AnyExecutor] | None
    max_parallel: int
    timeout: float | None
    is_viewed: bool
    is_verbose: bool
    is_json: bool
    line: str

    @property
    def otherwise(self) -> str:
        """How to begin another run instead."""
        return "--restart" if self.session is None else "name another --session"


@contextmanager
def opened_run(asked: Asked) -> Iterator[tuple[Session, WorkflowRun | None]]:
    """The session that keeps a run, and the run in it that is resumed; None to begin one.

    Raises:
        Refused: It cannot start, or cannot be resumed; or the last run can, and that was not asked for.
    """
    with ExitStack() as stack:
        store = stack.enter_context(opened_store(asked.store)) if os.path.lexists(asked.store) else None
        identity, tags = _session_for(store, asked)
        run, done = None, set[str]()
        if store is not None and store.head(identity) is not None:
            run, done = _last_run(open_session(store, identity), asked)
        if asked.resume and run is None:
            what = "the workflow" if asked.file is None else name_of(asked.file)
            raise Refused(
                f"{name_of(asked.store)} holds no run of {what} to resume; omit --resume to begin one, or"
                " name its session with --session"
            )
        if run is None or run.status != "completed":
            _check_calls(asked, done)
            _check_prompt(asked.workflow, asked.user_prompt if run is None else run.user_prompt, run)
        if store is None:
            store = _begun(asked.store, stack)
        yield open_session(store, identity, tags), run


def _begun(path: str, stack: ExitStack) -> PastStore:
    """A new store, which the stack closes. The folder of the default one is for nobody else, and not for git.

    Raises:
        Refused: It cannot be created.
    """
    try:
        if path == DEFAULT_STORE:
            with suppress(FileExistsError):
                Path(path).parent.mkdir(mode=0o700)
                (Path(path).parent / ".gitignore").write_text("*\n")
        return stack.enter_context(opened_store(path, begins=True))
    except (OSError, Refused) as error:
        folder = name_of(str(Path(path).parent))
        reason = error.message if isinstance(error, Refused) else f"cannot write {folder}: {error.strerror}"
        raise Refused(f"the run cannot be kept: {reason}; {ELSEWHERE}") from None


def _session_for(store: Store | None, asked: Asked) -> tuple[SessionId, dict[str, str]]:
    """The session of a workflow, by the name of its file: ``plan`` for ``plan.json``.

    Workflows of one name have sessions of their own: the second is ``plan-2``. So has a workflow whose last
    run is left behind for a new one.

    Returns:
        The session that was changed last, or a new one; and the tags for a new one.
    """
    if asked.session is not None:
        return valid_session(asked.session, "--session"), {}
    if asked.file is None:
        stem = tag = f"stdin-{sha256(asked.data).hexdigest()[:8]}"
    else:
        file = Path(asked.file)
        stem, tag = file.stem, os.path.relpath(file.resolve(), Path(asked.store).resolve().parent)
    tag = writable(tag)
    name = re.sub(r"[^\w.:-]+", "-", stem, flags=re.ASCII)[:_LONGEST_NAME].strip("-")
    name = name if name.strip(".") else "workflow"
    heads = () if store is None else store.sessions()
    own = [head.session_id for head in heads if head.tags.get(_TAG) == tag]
    if own and asked.resume is not False:
        return own[0], {}
    taken = {str(head.session_id) for head in heads}
    names = (name if number == 1 else f"{name}-{number}" for number in numbers(1))
    return session_id_of(next(each for each in names if each not in taken)), {_TAG: tag}


def _last_run(session: Session, asked: Asked) -> tuple[WorkflowRun | None, set[str]]:
    """The run that is resumed, and its completed steps; None where another begins.

    Raises:
        Refused: It cannot be resumed with what was asked for; or it can, and that was not asked for.
    """
    run = session.select_latest(WorkflowRun)
    if run is None or (run.status == "completed" and not asked.resume):
        return None, set()
    states = states_of(run.run_id, session.select_all(StepRecord))
    done = {step_id for step_id, record in states.items() if record.status == "completed"}
    name, over = f"session {show(str(session.session_id))}", f"or {asked.otherwise} to start over"
    if not asked.resume:
        how_far = f"{len(done)} of {count(len(run.workflow.steps), 'step')} done"
        raise Refused(f"the last run in {name} is not complete: {how_far}; add --resume to resume it, {over}")
    change = change_of_done(run, states, asked.workflow)
    if change is not None:
        raise Refused(f"{name} cannot be resumed: {change}; restore that step, {over}")
    if asked.workflow.goal != run.workflow.goal:
        goal = _short(run.workflow.goal)
        raise Refused(f"{name} holds a run with another goal: {goal}; restore the goal, {over}")
    if asked.user_prompt not in (None, run.user_prompt):
        began = run.user_prompt
        was = "without a prompt" if began is None else f"with another prompt: {_short(began)}"
        raise Refused(f"{name} holds a run {was}; omit the prompt to resume with that, {over}")
    for key, value in asked.inputs.items():
        if key not in run.inputs or plain(run.inputs[key]) != plain(value):
            was = f"with {_short(run.inputs[key])}" if key in run.inputs else "without a value"
            omit = f"omit --var {printable(key)} to resume with that"
            raise Refused(f"{name} holds a run {was} for {show(key)}; {omit}, {over}")
    return run, done


def _check_calls(asked: Asked, done: set[str]) -> None:
    """Refuse a step that has yet to run and whose tool cannot be called."""
    for step in asked.workflow.steps:
        kind, name = ("agent", step.agent) if step.agent is not None else (step.type, step.name)
        if step.step_id in done or kind is None or name is None:
            continue
        known = getattr(asked.capabilities, f"{kind}s")
        if known is None or known.get(name) is None:
            why = f"but no {kind}s were given" if known is None else "which was given by its name alone"
            raise Refused(
                f"step {show(step.step_id)} calls the {kind} {show(name)}, {why}; name an object that"
                f" holds {'them' if known is None else 'it'}: --{kind}s my_app:{kind}s"
            )


def _check_prompt(workflow: Workflow, prompt: str | None, run: WorkflowRun | None) -> None:
    """Refuse a workflow that refers to the user's prompt where there is none."""
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


def _short(value: object) -> str:
    return show(value) if isinstance(value, str) else printable(f"{value!r}"[:80])
