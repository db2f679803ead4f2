"""The engine: runs steps when their dependencies are done, and keeps every change in the session."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from planning.errors import show
from planning.suite.tools import register_plan
from planning.tools.contract import check_timeout
from planning.workflow.capabilities import Capabilities
from planning.workflow.executors.jobs import AnyExecutor, check_executor
from planning.workflow.failures import StepFailed, WorkflowError
from planning.workflow.model import Workflow
from planning.workflow.run.callables import Callables, without_arguments
from planning.workflow.run.calls import Ended
from planning.workflow.run.claim import run_to_begin
from planning.workflow.run.records import RunChanged, WorkflowRun, bare, new_token, now, register_workflow
from planning.workflow.run.steps import Steps, WorkflowResult, schedule_of
from planning.workflow.run.values import RunValues, keep_inputs, run_in_worker, step_with_prompt
from planning.workflow.run.writer import to_the_end
from session import Session
from session.errors import StoreError

MAX_PARALLEL = 16

_KINDS: dict[str, tuple[Any, str]] = {
    "workflow": (Workflow, "a Workflow, such as validate_workflow(document).workflow"),
    "capabilities": (Capabilities, "Capabilities(tools=[...])"),
    "session": (Session | None, "a Session"),
    "user_prompt": (str | None, "text"),
    "inputs": (Mapping | None, "a mapping from memory keys, which are strings, to values"),
}


def run_workflow(
    workflow: Workflow,
    capabilities: Capabilities,
    *,
    session: Session | None = None,
    user_prompt: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    executor: AnyExecutor | None = None,
    max_parallel: int = MAX_PARALLEL,
    timeout: float | None = None,
) -> WorkflowResult:
    """Run a workflow to its end; see ``arun_workflow``, which code in an event loop awaits instead.

    Raises:
        WorkflowError: See ``arun_workflow``; or there is a running event loop in this thread.
        KeyboardInterrupt: The user pressed Ctrl-C: running steps were cancelled or awaited, and the run can
            be resumed in this session.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(
            arun_workflow(
                workflow,
                capabilities,
                session=session,
                user_prompt=user_prompt,
                inputs=inputs,
                executor=executor,
                max_parallel=max_parallel,
                timeout=timeout,
            )
        )
    raise WorkflowError("an event loop is running in this thread: await arun_workflow(...) instead")


async def arun_workflow(
    workflow: Workflow,
    capabilities: Capabilities,
    *,
    session: Session | None = None,
    user_prompt: str | None = None,
    inputs: Mapping[str, Any] | None = None,
    executor: AnyExecutor | None = None,
    max_parallel: int = MAX_PARALLEL,
    timeout: float | None = None,
) -> WorkflowResult:
    """Run a workflow: steps whose dependencies are done, several at a time.

    When the session holds an unfinished run of this workflow with the same prompt and inputs, that run is
    resumed: completed steps are not run again, failed and stopped ones are, unless their tool is not
    idempotent and may have been called. The other steps may have been edited, added or removed meanwhile.
    To resume a run elsewhere, keep it in a stored session, or roll a session back to a snapshot and run the
    workflow in it.

    Statuses in the workflow are only a view of some run. In a session without that run, all steps run.

    When the task is cancelled, async tools are cancelled, everything else that runs is awaited, and the
    remaining steps stay pending; a second cancelling waits for nothing.

    Args:
        workflow: What to run, from ``validate_workflow`` or made by hand.
        capabilities: What its steps call. All get the inputs of a step by name; a handler or an agent whose
            first parameter is called ``inputs`` gets all of them as a mapping.
        session: Where the state is kept; a new one if omitted. Its Plan mirrors the run. Its subscribers
            are called in another thread if it has a store.
        user_prompt: The value of ``${user_prompt}``. It may be omitted if no step refers to it.
        inputs: Values that the memory holds from the start, by key.
        executor: Where tools run: a ``concurrent.futures.Executor``, ``executors.processes()``,
            ``executors.dask(client)``. None for here: async tools in the event loop, others in threads.
        max_parallel: How many steps run at the same time at most.
        timeout: The seconds after which an attempt of a step times out, if neither the step nor its
            tool sets a timeout; None for no limit.

    Raises:
        WorkflowError: Nothing was started: the steps depend on each other in a cycle or on one that does not
            exist, two steps have the same id, or a step is impossible; a step refers to the prompt, and none
            was given; an input is too large, or has no form in JSON; a completed step of the unfinished run
            was changed; or a step whose tool is not idempotent has the status ``completed``, and the session
            has no such run. Or memory ran out: then the run can be resumed. Or another caller has resumed
            this run meanwhile.
        StoreError: The session's store refuses a change; the run can be resumed.
        TypeError: An argument has the wrong type.
        ValueError: ``max_parallel`` or ``timeout`` is out of range.
        ImportError: A step has retries, and the library for them is not installed.
    """
    _check_types(
        workflow=workflow,
        capabilities=capabilities,
        session=session,
        user_prompt=user_prompt,
        inputs=inputs,
    )
    if type(max_parallel) is not int or max_parallel < 1:
        raise ValueError(f"max_parallel must be a whole number of at least 1, got {max_parallel!r}")
    if executor is not None:
        check_executor(executor)
    if timeout is not None:
        check_timeout(timeout)
    session = Session() if session is None else session
    try:
        kept, size = await run_in_worker(keep_inputs, inputs or {})
    except StepFailed as error:
        raise WorkflowError(error.message) from None
    steps = bare(workflow)
    begun = list[Steps]()

    def begin() -> None:
        """Begin the run, or resume one, in one transaction; its steps are in ``begun`` then."""
        schedule = schedule_of(steps)
        if user_prompt is None and (asking := step_with_prompt(steps)) is not None:
            raise WorkflowError(
                f"step {show(asking)} refers to ${{user_prompt}}; give its value as user_prompt"
            )
        register_workflow(session)
        register_plan(session)
        is_stored = session.store is not None
        if is_stored:
            session.refresh()  # also settles a change whose answer was lost
        by_id = {step.step_id: step for step in steps.steps}
        values = RunValues(Callables(capabilities), user_prompt, by_id, size)
        new = WorkflowRun(
            run_id=str(uuid4()),
            workflow=without_arguments(steps, values.is_private, session.session_id) if is_stored else steps,
            user_prompt=user_prompt,
            inputs=kept,
            started_at=now(),
            token=new_token(),
        )
        with session.transaction():
            run = new
            has_run = any(session.select_all(kind) for kind in (WorkflowRun, RunChanged))
            if has_run or steps is not workflow:
                run = run_to_begin(session, new, workflow, values)
            found = Steps(run, steps, schedule, values, capabilities, session, executor, timeout)
            found.begin(is_new=run is new)
        begun.append(found)

    try:
        try:
            await to_the_end(session, session.run_in_worker(begin))
        except asyncio.CancelledError:
            if begun:
                await to_the_end(session, begun[0].stop())
            raise
        await _Workers(begun[0], max_parallel, session).run()
        return await to_the_end(session, begun[0].end())
    except MemoryError:
        raise WorkflowError("memory ran out; run the workflow in this session again to resume it") from None


def _check_types(**given: object) -> None:
    for name, value in given.items():
        kind, wanted = _KINDS[name]
        keys = value if name == "inputs" and isinstance(value, Mapping) else ()
        if not isinstance(value, kind) or not all(isinstance(key, str) for key in keys):
            raise TypeError(f"{name} must be {wanted}, got {type(value).__name__}")


class _Workers:
    """Tasks that run one ready step after the other; as many as there are ready steps, up to a limit."""

    def __init__(self, steps: Steps, limit: int, session: Session) -> None:
        self._steps = steps
        self._session = session
        self._most = limit
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._ended = asyncio.Queue[asyncio.Task[None]]()
        self._error: BaseException | None = None

    async def run(self) -> None:
        """Work until nothing is ready and nothing runs."""
        self._hire(len(self._steps.ready))
        while self._tasks or not self._ended.empty():
            try:
                task = await self._ended.get()
                if not task.cancelled() and (error := task.exception()) is not None:
                    self._fail(error)
            except (asyncio.CancelledError, MemoryError) as error:
                self._fail(error)
        is_written = False
        try:
            await to_the_end(self._session, self._steps.writer.write())
            is_written = True
            await asyncio.sleep(0)  # a caller that cancels now gets a CancelledError, not a completed run
        except BaseException as error:  # noqa: BLE001 - the session's error, or the cancelling
            self._error = self._error or error
        if self._error is not None:
            ending = self._error.error if isinstance(self._error, Ended) else self._error
            if is_written or not isinstance(ending, StoreError):  # else it is as if the process had ended
                await to_the_end(self._session, self._steps.stop())
            raise ending

    def _hire(self, wanted: int) -> None:
        for _ in range(min(wanted, self._most - len(self._tasks))):
            task = asyncio.create_task(self._work())
            self._tasks[task] = None
            # No code of ours: an error in it is only logged by the loop, and ``run`` would wait for ever.
            task.add_done_callback(self._tasks.pop)
            task.add_done_callback(self._ended.put_nowait)

    async def _work(self) -> None:
        steps = self._steps
        while steps.ready and self._error is None:
            await steps.run(steps.ready.popleft())
            self._hire(len(steps.ready) - 1)
        await steps.writer.written()

    def _fail(self, error: BaseException) -> None:
        self._error = self._error or error
        for task in tuple(self._tasks):
            task.cancel()
