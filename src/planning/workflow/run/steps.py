"""The steps of one run: which are ready, their outcomes, and their records in the session."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Literal, get_args

import attrs

from planning.errors import show, unknown_option
from planning.graph import Graph, written
from planning.plan.model import StepStatus
from planning.tools.contract import check_timeout
from planning.tools.guard import Retry
from planning.tools.result import ToolResult
from planning.tools.tool import Tool
from planning.workflow.capabilities import Capabilities
from planning.workflow.conditions import ConditionInvalid, is_done
from planning.workflow.executors.jobs import AnyExecutor
from planning.workflow.failures import StepFailed, StepFailure, WorkflowError
from planning.workflow.model import OnFailure, StepType, Workflow, WorkflowStatus, WorkflowStep
from planning.workflow.run.callables import kept_private, key_of, task_of
from planning.workflow.run.calls import Caller, StepCall
from planning.workflow.run.claim import MAYBE, done_and_lost
from planning.workflow.run.memory import MemoryItem, extract_value
from planning.workflow.run.mirror import RunMirror
from planning.workflow.run.records import (
    Clock,
    RunChanged,
    StepChanged,
    StepRecord,
    WorkflowRun,
    now,
    workflow_of,
)
from planning.workflow.run.values import Copies, RunValues, run_in_worker
from planning.workflow.run.writer import Writer
from planning.workflow.wire.build import document_of
from session import Session
from session.json_form import json_form


@attrs.frozen(kw_only=True, eq=False)
class WorkflowResult:
    """The result of a run.

    Attributes:
        status: ``completed``, or ``failed`` when a step failed whose failure the workflow does not tolerate,
            or when not every step could be run.
        outputs: The output of each completed step, by step id; that of a thinking step is its description.
        memory: The newest value under each key.
        errors: Why steps failed, by step id, also where the workflow tolerates the failure.
        warnings: Problems that did not stop the run.
        session: Where the state is: its snapshot continues the run.
    """

    status: Literal["completed", "failed"]
    outputs: Mapping[str, Any] = attrs.field(repr=False)
    memory: Mapping[str, Any] = attrs.field(repr=False)
    errors: Mapping[str, StepFailure]
    warnings: tuple[str, ...] = ()
    session: Session = attrs.field(repr=False)
    _run: WorkflowRun = attrs.field(repr=False)
    _states: Mapping[str, StepRecord] = attrs.field(repr=False)

    @cached_property
    def workflow(self) -> Workflow:
        """The workflow with the statuses and times of its steps."""
        return workflow_of(self._run, self._states)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain dictionaries and lists, ready for JSON."""
        errors = {
            step_id: {"message": error.message, "user_message": error.user_message, "code": error.code}
            for step_id, error in self.errors.items()
        }
        return {
            "status": self.status,
            "workflow": json_form(document_of(self.workflow)),
            "outputs": dict(self.outputs),
            "memory": dict(self.memory),
            "errors": errors,
            "warnings": list(self.warnings),
        }


_ON_FAILURE = get_args(OnFailure)
_TYPES = get_args(StepType)


def schedule_of(workflow: Workflow) -> Graph[str]:
    """The steps of a workflow, to be handed out when those that they depend on are done.

    Raises:
        WorkflowError: Two steps have the same id, a step depends on one that does not exist, steps depend
            on each other in a cycle, or a step is impossible.
    """
    counts = Counter(step.step_id for step in workflow.steps)
    for step in workflow.steps:
        _check_step(step)
        if counts[step.step_id] > 1:
            raise WorkflowError(f"two steps have the id {show(step.step_id)}; give each its own id")
        for other in step.depends_on:
            if other not in counts:
                raise WorkflowError(
                    f"step {show(step.step_id)} depends on {show(other)}, which does not exist; add that "
                    "step, or remove the dependency"
                )
    graph = Graph({step.step_id: step.depends_on for step in workflow.steps})
    if graph.cycle:
        shown = written([show(step_id)[1:-1] for step_id in graph.cycle])
        raise WorkflowError(f"the steps depend on each other in a cycle: {shown}; remove one dependency")
    return graph


def _check_step(step: WorkflowStep) -> None:
    """Refuse mistakes that a workflow in Python code can hold and a document cannot."""
    if step.type is not None and step.type not in _TYPES:
        problem = unknown_option(step.type, _TYPES)
    elif (step.type is None) is not (step.name is None):
        problem = "type and name belong together: give both, or neither"
    elif step.name is not None and step.agent is not None:
        problem = f"it names the {step.type} {show(step.name)} and the agent {show(step.agent)}; keep one"
    elif step.inputs and step.name is None and step.agent is None:
        problem = "it has inputs and calls nothing; name its tool, handler or agent, or remove the inputs"
    elif step.on_failure not in _ON_FAILURE:
        problem = unknown_option(step.on_failure, _ON_FAILURE)
    elif type(step.retries) is not int or step.retries < 0:
        problem = f"retries must be a whole number of at least 0, got {step.retries!r}"
    elif step.timeout is not None:
        try:
            check_timeout(step.timeout)
        except ValueError as error:
            problem = str(error)
        else:
            return
    else:
        return
    raise WorkflowError(f"step {show(step.step_id)}: {problem}")


_SKIPPED = "Skipped: its done_check is true"
_STOPPED = "Stopped before it was done"
_NOT_AGAIN = (
    "step {} may have taken effect before and must not be called twice, so it was not called; give it "
    "another step_id to call it"
)


class Steps:
    """The steps of one run; the one place where a step's state changes.

    The changes of several steps in the same turn of the event loop are written in one transaction. The begin
    of a step, and every change before it, is written before its tool is called.

    Attributes:
        ready: The steps that can be run now, in the order in which they became so.
        writer: Writes their changes.
    """

    def __init__(
        self,
        run: WorkflowRun,
        workflow: Workflow,
        schedule: Graph[str],
        values: RunValues,
        capabilities: Capabilities,
        session: Session,
        executor: AnyExecutor | None,
        timeout: float | None,
    ) -> None:
        """Prepare to run; nothing changes yet.

        All steps of ``workflow`` are pending. The run's own workflow may lack private inputs.
        """
        self.ready: deque[WorkflowStep] = deque()
        self._run = run
        self._workflow = workflow
        self._session = session
        self._session_id = session.session_id
        self._schedule = schedule
        self._steps = values.steps
        if any(step.retries for step in workflow.steps):
            Retry()  # its ImportError says what to install
        self._mirror = RunMirror(session, workflow, run.user_prompt)
        self.writer = Writer(session, self._mirror, run)
        self._states = values.states
        self._values = values
        self._warnings: list[str] = []
        self._clock = Clock()
        self._caller = Caller(
            session,
            executor,
            timeout,
            {"goal": workflow.goal, "user_prompt": run.user_prompt},
            values,
            capabilities.limiter,
            self.writer,
            self._begun,
        )

    # The run

    def begin(self, *, is_new: bool) -> None:
        """Begin the run, or resume it."""
        session, run = self._session, self._run
        with session.transaction() as transaction:
            runs = session.select_all(WorkflowRun)
            transaction.publish(RunChanged(run))
            if all(each.run_id != run.run_id for each in runs):
                for key, value in run.inputs.items():
                    transaction.dispatch(MemoryItem(type="input", key=key, value=value, created_at=now()))
            items = session.select_all(MemoryItem)
            self._values.recall(items)
            done: dict[str, StepRecord] = {}
            lost: dict[str, StepRecord] = {}
            if not is_new:
                done, lost = done_and_lost(run.run_id, self._steps, self._values, session, items)
            self._states |= {**done, **lost}
            self._mirror.begin(transaction, dict.fromkeys(done, ("done", "Done before")), runs, run.run_id)
            for step_id, record in lost.items():
                self._warnings.append(_NOT_AGAIN.format(show(step_id)))
                self._fail(self._steps[step_id], record.error or MAYBE, called=True)
            self.writer.put()
        self._advance()

    async def stop(self) -> None:
        """Record that the run is cut short: what still counts as running was interrupted."""
        self.writer.discard()  # the session refused these
        for step_id, record in list(self._states.items()):
            if record.status == "in_progress":
                step = self._steps[step_id]
                self._interrupted(step, self._values.tool_of(step), called=record.called)
        run = attrs.evolve(self._run, token="")
        self.writer.tell(RunChanged(run))
        await self.writer.write()

    async def end(self) -> WorkflowResult:
        """Close the run when all its changes are written, and make its result."""
        failed = any(
            record.status == "failed" and self._steps[step_id].on_failure == "fail"
            for step_id, record in self._states.items()
        )
        status: Literal["completed", "failed"] = "failed" if failed else "completed"
        completed_at = None if failed else now()
        self._run = attrs.evolve(self._run, status=status, completed_at=completed_at, token="")
        self._values.recall(await self._session.run_in_worker(partial(self._close, is_completed=not failed)))
        outputs = self._values.outputs
        errors = {
            step_id: record.error
            for step_id in self._steps
            if (record := self._states.get(step_id)) is not None and record.error is not None
        }
        return WorkflowResult(
            status=status,
            outputs=Copies({step_id: outputs[step_id] for step_id in self._steps if step_id in outputs}),
            memory=Copies(dict(self._values.memory)),
            errors=MappingProxyType(errors),
            warnings=(*self._warnings, *self._mirror.warnings),
            session=self._session,
            run=attrs.evolve(self._run, workflow=self._workflow),
            states=self._states,
        )

    def _close(self, *, is_completed: bool) -> tuple[MemoryItem, ...]:
        """Write the end of the run; returns the memory."""
        with self._session.transaction() as transaction:
            self.writer.require_token()
            if is_completed:
                self._mirror.finish(transaction)
            transaction.publish(RunChanged(self._run))
            return self._session.select_all(MemoryItem)

    # One step

    async def run(self, step: WorkflowStep) -> None:
        """Run a step that is ready, then make the steps ready that waited for it."""
        call: StepCall | None = None
        try:
            if step.done_check is None or not await self._is_skipped(step, step.done_check):
                tool = self._values.callables.find(step)
                if tool is None:
                    output = await self._values.take(step.description, f"step {show(step.step_id)[1:-1]}")
                    self._complete(step, None, output, "Thought through")
                elif step.inputs:
                    call = await self._call_with_inputs(step, tool)
                else:
                    call = StepCall(step, tool, task_of(step, tool))
        except StepFailed as error:
            self._fail(step, error.error)
        if call is None:  # a call waits before it is made: no step keeps the event loop to itself
            await self.writer.written()
        else:
            outcome = await self._caller.call(call)
            if outcome is None:
                self._interrupted(step, call.tool, called=call.called)
            elif isinstance(outcome, ToolResult):
                self._complete(step, call, outcome.value, "Done" if outcome.is_private else outcome.message)
            else:
                self._fail(step, outcome, attempt=call.attempt, called=call.called)
        self._advance()

    async def _call_with_inputs(self, step: WorkflowStep, tool: Tool) -> StepCall:
        inputs = await run_in_worker(self._values.resolve, step.inputs)
        if self.writer.is_stored and self._values.uses_private(step.inputs):
            tool = kept_private(tool)
        return StepCall(step, tool, inputs)

    async def _is_skipped(self, step: WorkflowStep, condition: str) -> bool:
        """True if a step's ``done_check`` is true; then it is recorded as skipped."""
        tool = self._values.tool_of(step)
        key = key_of(step, tool)
        await self.writer.write()
        waiting = [item for _, item, _ in self.writer.waiting]
        self._values.recall(self._session.select_all(MemoryItem), waiting)
        try:
            if not is_done(condition, self._values.memory, key):
                return False
        except ConditionInvalid as error:
            self._warnings.append(f"step {step.step_id}: done_check ignored: {error}")
            return False
        item = MemoryItem(type="step_skipped", key=key, step_id=step.step_id, created_at=now())
        self._values.remember(step, self._values.memory)
        if self.writer.is_stored and key in self._values.private_keys:
            self._values.private.add(step.step_id)
        withheld = step.step_id not in self._values.outputs or step.step_id in self._values.private
        output = None if withheld else self._values.outputs[step.step_id]
        known = {"skipped": True, "output": output, "is_withheld": withheld}
        self._change(self._record(step.step_id, "completed", **known), "done", _SKIPPED, item)
        self._schedule.done(step.step_id)
        return True

    def _complete(self, step: WorkflowStep, call: StepCall | None, output: Any, note: str) -> None:
        step_id, stored = step.step_id, output
        tool, attempt = (None, 0) if call is None else (call.tool, call.attempt)
        private = tool is not None and tool.returns_private_data
        if step.output_path is not None:
            try:
                stored = extract_value(output, step.output_path, show_value=not private)
            except StepFailed as error:
                self._fail(step, error.error, attempt=attempt, called=call is not None)
                return
        at, key, item = self._clock.now(), key_of(step, tool), None
        if key is not None:
            is_withheld = private and self.writer.is_stored
            item = MemoryItem(
                type="step_withheld" if is_withheld else "step_result",
                key=key,
                value=None if is_withheld else stored,
                step_id=step_id,
                created_at=at,
            )
            self._values.store(item, stored)
        self._values.outputs[step_id] = output
        if private:
            self._values.private.add(step_id)
        kept, called = None if private else output, call is not None
        record = StepRecord(self._run.run_id, step_id, "completed", at, attempt, called, False, kept, private)
        self._change(record, "done", note, item)
        self._schedule.done(step_id)

    def _fail(
        self, step: WorkflowStep, error: StepFailure, *, attempt: int = 0, called: bool = False
    ) -> None:
        note = f"Failed: {error}"
        record = self._record(step.step_id, "failed", attempt=attempt, called=called, error=error)
        self._change(record, "blocked", note)
        if step.on_failure == "continue":
            with suppress(ValueError):  # it was lost before, and is not ready yet
                self._schedule.done(step.step_id)
        else:
            skipped = step.on_failure == "skip_dependents"
            note = f"{'Skipped' if skipped else 'Blocked'}: step {step.step_id} failed"
            for step_id in self._schedule.behind(step.step_id):
                known = self._states.get(step_id)
                # A failure that is not tolerated counts for more, whichever of them comes first.
                if known is None or (
                    known.status == "pending" and (known.after is None or known.skipped > skipped)
                ):
                    record = self._record(step_id, "pending", skipped=skipped, after=step.step_id)
                    self._change(record, "blocked", note)
        if not self.writer.is_stored:
            self.writer.put()

    def _interrupted(self, step: WorkflowStep, tool: Tool | None, *, called: bool) -> None:
        if called and tool is not None and not tool.idempotent:
            self._fail(step, MAYBE, called=True)
        else:
            self._change(self._record(step.step_id, "pending"), "pending", _STOPPED)

    def _begun(self, call: StepCall) -> None:
        """Record that a call is about to be made, or made again, or that its function may run now."""
        step_id, at = call.step.step_id, self._clock.now()
        before = self._states.get(step_id)
        is_shown = before is not None and before.status == "in_progress"  # by the plan, already
        record = StepRecord(self._run.run_id, step_id, "in_progress", at, call.attempt, call.called)
        self._change(record, None if is_shown else "in_progress", None)

    def _record(self, step_id: str, status: WorkflowStatus, **fields: Any) -> StepRecord:
        return StepRecord(self._run.run_id, step_id, status, self._clock.now(), **fields)

    def _change(
        self, record: StepRecord, mark: StepStatus | None, note: str | None, item: MemoryItem | None = None
    ) -> None:
        """Change a step: its record, its memory item and its mark in the plan are written together."""
        step_id = record.step_id
        self._states[step_id] = record
        shown = None if mark is None else (step_id, mark, note)
        event = StepChanged(record, session_id=self._session_id, created_at=self._clock.moment)
        self.writer.waiting.append((event, item, shown))

    def _advance(self) -> None:
        """Make the steps ready whose dependencies are done; pass over those that were done before."""
        while found := self._schedule.ready():
            for step_id in found:
                step, record = self._steps[step_id], self._states.get(step_id)
                if record is None or record.status == "pending":
                    self.ready.append(step)
                elif record.status == "completed" or step.on_failure == "continue":
                    self._schedule.done(step_id)
