"""Where ``planning run`` keeps a run: in a store, in the session of its workflow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

import attrs

from planning.cli.source import DEFAULT_STORE, name_of
from planning.cli.stores import opened_store, valid_session
from planning.cli.terminal import count
from planning.cli.usage import Refused, bad_option
from planning.errors import show
from planning.observe.stores import open_session
from planning.workflow.capabilities import Capabilities
from planning.workflow.executors.jobs import AnyExecutor
from planning.workflow.model import Workflow
from planning.workflow.run.claim import change_of_done
from planning.workflow.run.memory import MemoryItem, memory_of
from planning.workflow.run.records import StepRecord, WorkflowRun, states_of
from planning.workflow.run.steps import WorkflowResult
from planning.workflow.run.values import step_with_prompt
from session import Session
from session.json_form import json_form
from session.selectors import Selectable

ELSEWHERE: Final = "name a file elsewhere with --store PATH"
"""What to do where a store cannot be written."""


@attrs.frozen(kw_only=True)
class Asked:
    """The run that the user asked for.

    Attributes:
        workflow: What runs.
        capabilities: What its steps call.
        user_prompt: The value of ``${user_prompt}``; None if none was given.
        inputs: Values for the memory.
        store: The file that keeps the run.
        session: The session in it.
        resume: Whether to resume the last run in it.
        executor: Opens the executor; None for this process.
        max_parallel: How many steps run at the same time at most.
        timeout: Seconds for an attempt of a step; None for no limit.
        is_viewed: Whether a page shows it.
        is_json: Whether only the result is printed, as JSON.
        line: The command that resumes it.
    """

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
    """The session that keeps a run, and the run in it that is resumed; None to begin one.

    Raises:
        Refused: It cannot start, or cannot be resumed; or the last run can, and that was not asked for.
    """
    identity = valid_session(asked.session, "SESSION")
    if not asked.resume:
        _check_calls(asked, set(), asked.user_prompt)
        _make_folder(asked.store)
    with opened_store(asked.store, begins=not asked.resume) as store:
        session = open_session(store, identity)
        yield session, _last_run(session, asked)


def _make_folder(path: str) -> None:
    """Make the folder of the default store, which is for nobody else, and not for git."""
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
    """The result of an earlier run.

    Args:
        source: Where it is: a session, or a version of one.
        run: The run.
        session: The session.
    """
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
