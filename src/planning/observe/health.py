"""How a session is doing: its state, the step at hand, the last error, how far it is and how long it took.

The page, its list of sessions, ``planning sessions`` and ``planning show`` say what this says.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, Literal

import attrs

from planning.errors import cut
from planning.plan.facts import PlanFacts
from planning.plan.model import Plan, PlanStep
from planning.suite.approval import is_pending
from planning.workflow.run.mirror import own_ids
from planning.workflow.run.records import StepRecord, WorkflowRun, is_alive, states_of
from session.selectors import Selectable

HealthState = Literal["working", "waiting", "finished", "failed", "stopped"]

QUIET: Final = timedelta(hours=1)
"""How long a session may be without a change and still count as working, where its process is not known."""
_LONGEST: Final = 500
_NO_FACTS: Final = PlanFacts()


@attrs.frozen(kw_only=True)
class Health:
    """How a session is doing.

    Attributes:
        state: ``working``; ``waiting`` for approval; ``finished``: all steps are done; ``failed``: the
            workflow run failed; ``stopped``: it is not finished, and nothing works on it.
        objective: What it is all for; empty where nothing says so.
        done: How many steps are done.
        total: How many steps there are.
        step: The step at hand, by the name that a person gave it; None where no step is open.
        title: What that step is for.
        others: How many other steps are in progress.
        error: The last error; None where nothing went wrong.
        began_at: When it began; None where that is not known.
        changed_at: When it was changed last; None for a recording.
    """

    state: HealthState
    objective: str
    done: int
    total: int
    step: str | None = None
    title: str | None = None
    others: int = 0
    error: str | None = None
    began_at: datetime | None = None
    changed_at: datetime | None = None
    _token: str = attrs.field(default="", repr=False)

    @property
    def words(self) -> str:
        """The state as a person reads it."""
        return "waiting for approval" if self.state == "waiting" else self.state

    def at(self, now: datetime) -> Health:
        """The same session at a later time, without a change since: what worked on it may be gone.

        Args:
            now: The time.
        """
        if self.state != "working":
            return self
        is_working = is_alive(self._token)
        if is_working is None:
            is_working = self.changed_at is not None and now - self.changed_at < QUIET
        return self if is_working else attrs.evolve(self, state="stopped")

    def seconds(self, now: datetime) -> float | None:
        """How long it has taken until now, or until its last change where it is over; None where not known.

        Args:
            now: The time.
        """
        if self.began_at is None or self.changed_at is None:
            return None
        end = now if self.state in {"working", "waiting"} else self.changed_at
        return max(0.0, (end - self.began_at).total_seconds())


def health_of(
    source: Selectable,
    now: datetime,
    *,
    began_at: datetime | None = None,
    changed_at: datetime | None = None,
) -> Health | None:
    """How a session is doing; None where it has neither a plan nor a workflow run.

    The workflow run counts where the plan shows it, or where there is no plan. One that failed is ``failed``.
    One that is in progress is ``working`` while its process lives, and ``stopped`` after that. Where that
    cannot be known, as on another machine, it is ``stopped`` after an hour without a change.

    Otherwise the agent's plan counts. It is ``finished`` when its steps are all done, and ``waiting`` while
    the user's approval is needed. It is ``stopped`` when it was abandoned, when every step that is not done
    is blocked, and after an hour without a change. Otherwise it is ``working``. It never fails: a blocked
    step is not a failure.

    Args:
        source: A session, a version of one, or a snapshot.
        now: The time.
        began_at: When the session began.
        changed_at: When it was changed last; None for a recording, on which nothing works any more.

    Raises:
        StoreError: It cannot be read.
    """
    plan, run = source.select_latest(Plan), source.select_latest(WorkflowRun)
    if run is not None and (plan is None or own_ids(plan, run)):
        return health_of_run(source, run, now, began_at=began_at, changed_at=changed_at)
    if plan is None:
        return None
    found = _of_plan(plan, source.select_latest(PlanFacts) or _NO_FACTS)
    if run is not None:  # a tool of the agent
        records = states_of(run.run_id, source.select_all(StepRecord))
        found = attrs.evolve(found, error=found.error or _error_of(run, records), token=run.token)
    return attrs.evolve(found, began_at=began_at, changed_at=changed_at).at(now)


def health_of_run(
    source: Selectable,
    run: WorkflowRun,
    now: datetime,
    *,
    began_at: datetime | None = None,
    changed_at: datetime | None = None,
) -> Health:
    """How a workflow run is doing, whatever the plan shows; see ``health_of``."""
    records = states_of(run.run_id, source.select_all(StepRecord))
    plan, facts = source.select_latest(Plan), source.select_latest(PlanFacts) or _NO_FACTS
    found = _of_run(run, records, is_waiting=plan is not None and is_pending(plan, facts))
    began_at, changed_at = found.began_at or began_at, found.changed_at or changed_at
    return attrs.evolve(found, began_at=began_at, changed_at=changed_at).at(now)


def _of_run(run: WorkflowRun, records: Mapping[str, StepRecord], *, is_waiting: bool) -> Health:
    steps = run.workflow.steps
    status = {step.step_id: records[step.step_id].status for step in steps if step.step_id in records}
    state: HealthState
    if run.status == "completed":
        state = "finished"
    elif run.status == "failed":
        state = "failed"
    elif is_waiting:
        state = "waiting"
    else:
        state = "working" if run.token else "stopped"
    running = [step for step in steps if status.get(step.step_id) == "in_progress"]
    failed = [step for step in steps if status.get(step.step_id) == "failed"] if state == "failed" else []
    open_ = [step for step in steps if status.get(step.step_id, "pending") == "pending"]
    at_hand = [] if state == "finished" else running or failed or open_
    ended = max((record.at for record in records.values()), default=run.started_at)
    is_over = state in {"finished", "failed"}
    return Health(
        state=state,
        objective=run.workflow.goal or run.user_prompt or "",
        done=sum(each == "completed" for each in status.values()),
        total=len(steps),
        step=at_hand[0].step_id if at_hand else None,
        title=at_hand[0].description if at_hand else None,
        others=max(0, len(running) - 1),
        error=_error_of(run, records),
        began_at=_time_of(run.started_at),
        changed_at=_time_of(run.completed_at or ended) if is_over else None,
        token=run.token,
    )


def _error_of(run: WorkflowRun, records: Mapping[str, StepRecord]) -> str | None:
    """Why the step that failed last failed; one whose failure the workflow does not tolerate goes first."""
    fatal = {step.step_id: step.on_failure == "fail" for step in run.workflow.steps}
    failed = [record for record in records.values() if record.error is not None and record.step_id in fatal]
    if not failed:
        return None
    last = max(failed, key=lambda record: (fatal[record.step_id], record.at))
    return cut(f"{last.step_id}: {last.error and (last.error.cause or last.error.message)}", _LONGEST)


def _time_of(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:  # made by hand
        return None
    return found if found.tzinfo is not None else None


def _of_plan(plan: Plan, facts: PlanFacts) -> Health:
    done, total = plan.progress
    at_hand, error = None, None
    if facts.approval == "rejected":
        error = f"The plan was rejected: {facts.reason}"
    state: HealthState = "stopped"
    if plan.status == "completed" or 0 < total == done:
        state = "finished"
    elif plan.status == "active":
        state, at_hand = "waiting" if is_pending(plan, facts) else "working", plan.next_step
        if at_hand is None and total:  # all that is open is blocked
            at_hand = next(step for step in plan.steps if step.status == "blocked")
            state, error = "stopped" if state == "working" else state, error or _why_blocked(at_hand)
    running = sum(step.status == "in_progress" for step in plan.steps)
    return Health(
        state=state,
        objective=plan.objective,
        done=done,
        total=total,
        step=None if at_hand is None else at_hand.step_id,
        title=None if at_hand is None else at_hand.title,
        others=max(0, running - 1),
        error=error and cut(error, _LONGEST),
    )


def _why_blocked(step: PlanStep) -> str:
    return f"{step.step_id} is blocked{f': {step.notes[-1]}' if step.notes else ''}"
