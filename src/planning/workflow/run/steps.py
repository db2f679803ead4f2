"""The steps of one run: which are ready, their outcomes, and their records in the session."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, Literal

import attrs

from planning.errors import show
from planning.graph import Graph
from planning.plan.model import StepStatus
from planning.tools.guard import Retry
from planning.tools.result import ToolResult
from planning.tools.tool import Tool
from planning.workflow.capabilities import Capabilities
from planning.workflow.conditions import ConditionInvalid, is_done
from planning.workflow.executors.base import AnyExecutor
from planning.workflow.failures import StepError, StepFailed
from planning.workflow.model import Workflow, WorkflowStatus, WorkflowStep
from planning.workflow.references import StepIds
from planning.workflow.run.callables import key_of, task_of
from planning.workflow.run.calls import Caller, StepCall
from planning.workflow.run.claim import MAYBE, done_and_lost
from planning.workflow.run.known import Known
from planning.workflow.run.memory import MemoryItem, extract_value
from planning.workflow.run.mirror import RunMirror
from planning.workflow.run.private import kept_private
from planning.workflow.run.records import (
    Clock,
    RunChanged,
    StepChanged,
    StepRecord,
    WorkflowRun,
    now,
)
from planning.workflow.run.resolve import Values
from planning.workflow.run.result import WorkflowResult
from planning.workflow.run.writer import Writer
from planning.workflow.values import Copies, off_loop
from session import Session

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
        known: Known,
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
        self._steps = {step.step_id: step for step in workflow.steps}
        if any(step.retries for step in workflow.steps):
            Retry()  # its ImportError says what to install
        self._callables = known.callables
        self._mirror = RunMirror(session, workflow, run.user_prompt)
        self.writer = Writer(session, self._mirror, run)
        self._states: dict[str, StepRecord] = {}
        self._known = known
        self._warnings: list[str] = []
        self._clock = Clock()
        self._caller = Caller(
            session,
            executor,
            timeout,
            {"goal": workflow.goal, "user_prompt": run.user_prompt},
            known,
            capabilities.limiter,
            self.writer,
            self._begun,
        )

    @cached_property
    def _values(self) -> Values:
        return Values(self._known, self._run.user_prompt, StepIds(self._steps), self._states)

    # The run

    def begin(self, *, is_new: bool) -> None:
        """Begin the run, or resume it."""
        session, run = self._session, self._run
        with session.transaction() as transaction:
            runs = session.select_all(WorkflowRun)
            transaction.publish(RunChanged(run, session_id=self._session_id))
            if all(each.run_id != run.run_id for each in runs):
                for key, value in run.inputs.items():
                    transaction.dispatch(MemoryItem(type="input", key=key, value=value, created_at=now()))
            items = session.select_all(MemoryItem)
            self._known.recall(items)
            done: dict[str, StepRecord] = {}
            lost: dict[str, StepRecord] = {}
            if not is_new:
                done, lost = done_and_lost(run.run_id, self._steps, self._known, session, items)
            self._states |= {**done, **lost}
            marks: dict[str, tuple[StepStatus, str | None]] = {
                **dict.fromkeys(done, ("done", "Done before")),
                **dict.fromkeys(lost, ("blocked", None)),
            }
            self._mirror.begin(transaction, marks, runs, run.run_id)
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
                self._interrupted(step, self._known.tool_of(step), called=record.called)
        run = attrs.evolve(self._run, token="")
        self.writer.tell(RunChanged(run, session_id=self._session_id))
        await self.writer.write()

    async def end(self) -> WorkflowResult:
        """Close the run, all of whose changes are written, and make its result."""
        failed = any(
            record.status == "failed" and self._steps[step_id].on_failure == "fail"
            for step_id, record in self._states.items()
        )
        status: Literal["completed", "failed"] = "failed" if failed else "completed"
        completed_at = None if failed else now()
        self._run = attrs.evolve(self._run, status=status, completed_at=completed_at, token="")
        self._known.recall(await self._session.off_loop(partial(self._close, is_completed=not failed)))
        outputs = self._known.outputs
        errors = {
            step_id: record.error
            for step_id in self._steps
            if (record := self._states.get(step_id)) is not None and record.error is not None
        }
        return WorkflowResult(
            status=status,
            outputs=Copies({step_id: outputs[step_id] for step_id in self._steps if step_id in outputs}),
            memory=Copies(dict(self._known.memory)),
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
            transaction.publish(RunChanged(self._run, session_id=self._session_id))
            return self._session.select_all(MemoryItem)

    # One step

    async def run(self, step: WorkflowStep) -> None:
        """Run a step that is ready, then make the steps ready that waited for it."""
        call: StepCall | None = None
        try:
            if step.done_check is None or not await self._is_skipped(step, step.done_check):
                tool = self._callables.find(step)
                if tool is None:
                    output = await self._known.take(step.description, f"step {show(step.step_id)[1:-1]}")
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
        inputs = await off_loop(self._values.resolve, step.inputs)
        if self.writer.is_stored and self._values.uses_private(step.inputs):
            tool = kept_private(tool)
        return StepCall(step, tool, inputs)

    async def _is_skipped(self, step: WorkflowStep, condition: str) -> bool:
        """Whether a step's ``done_check`` is true; then it is recorded as skipped."""
        tool = self._known.tool_of(step)
        key = key_of(step, tool)
        await self.writer.write()
        waiting = [item for _, item, _ in self.writer.waiting]
        self._known.recall(self._session.select_all(MemoryItem), waiting)
        try:
            if not is_done(condition, self._known.memory, key):
                return False
        except ConditionInvalid as error:
            self._warnings.append(f"step {step.step_id}: done_check ignored: {error}")
            return False
        item = MemoryItem(type="step_skipped", key=key, step_id=step.step_id, created_at=now())
        self._known.remember(step, self._known.memory)
        if self.writer.is_stored and key in self._known.private_keys:
            self._known.private.add(step.step_id)
        withheld = step.step_id not in self._known.outputs or step.step_id in self._known.private
        output = None if withheld else self._known.outputs[step.step_id]
        known = {"skipped": True, "output": output, "is_withheld": withheld}
        self._change(self._record(step.step_id, "completed", **known), "done", _SKIPPED, item)
        self._schedule.done(step.step_id)
        return True

    def _complete(self, step: WorkflowStep, call: StepCall | None, output: Any, note: str) -> None:
        step_id, tool, attempt = step.step_id, None, 0
        if call is not None:
            tool, attempt = call.tool, call.attempt
        private = tool is not None and tool.returns_private_data
        stored = output
        if step.output_path is not None:
            try:
                stored = extract_value(output, step.output_path, tells=not private)
            except StepFailed as error:
                self._fail(step, error.error, attempt=attempt, called=call is not None)
                return
        key, item = key_of(step, tool), None
        if key is not None:
            is_withheld = private and self.writer.is_stored
            item = MemoryItem(
                type="step_withheld" if is_withheld else "step_result",
                key=key,
                value=None if is_withheld else stored,
                step_id=step_id,
                created_at=self._clock.now(),
            )
            self._known.store(item, stored)
        self._known.outputs[step_id] = output
        if private:
            self._known.private.add(step_id)
        kept, called, at = None if private else output, call is not None, self._clock.now()
        record = StepRecord(self._run.run_id, step_id, "completed", at, attempt, called, False, kept, private)
        self._change(record, "done", note, item)
        self._schedule.done(step_id)

    def _fail(self, step: WorkflowStep, error: StepError, *, attempt: int = 0, called: bool = False) -> None:
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
        mark: StepStatus | None = "in_progress"
        if before is not None and before.status == "in_progress":
            mark = None  # the plan shows it already
        record = StepRecord(self._run.run_id, step_id, "in_progress", at, call.attempt, call.called)
        self._change(record, mark, None)

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
