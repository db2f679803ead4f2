"""The health of a session: its state, its current step, the last error, the progress and the time.

The page, its list of sessions, ``planning sessions`` and ``planning show`` say what this says.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Literal

import attrs

from planning.errors import cut
from planning.observe.fact_words import NO_FACTS
from planning.observe.steps import RunSteps, time_of
from planning.plan.facts import PlanFacts
from planning.plan.model import Plan, PlanStep
from planning.suite.approval import is_pending
from planning.workflow.run.mirror import own_ids
from planning.workflow.run.records import is_alive
from session.selectors import Selectable

HealthState = Literal["working", "waiting", "finished", "failed", "stopped"]

QUIET: Final = timedelta(hours=1)
"""The time that a session may be without a change and still count as working, without a known process."""
_LONGEST: Final = 500


@attrs.frozen(kw_only=True)
class Health:
    """The health of a session.

    Attributes:
        state: ``working``; ``waiting`` for approval; ``finished``: all steps are done; ``failed``: the
            workflow run failed; ``stopped``: it is not finished, and nothing works on it.
        objective: What it is all for; empty if nothing says so.
        done: How many steps are done.
        total: How many steps there are.
        step: The current step, by the name that a person gave it; None if all steps are closed.
        title: What that step is for.
        other_steps: How many other steps are in progress.
        error: The last error; None if nothing went wrong.
        began_at: When it began; None where that is not known.
        changed_at: When it was changed last; None for a recording.
    """

    state: HealthState
    objective: str
    done: int
    total: int
    step: str | None = None
    title: str | None = None
    other_steps: int = 0
    error: str | None = None
    began_at: datetime | None = None
    changed_at: datetime | None = None
    _token: str = attrs.field(default="", repr=False)

    @property
    def label(self) -> str:
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

    def elapsed(self, now: datetime) -> float | None:
        """The time until now, or until its last change if it is over; None where not known.

        Args:
            now: The time.
        """
        if self.began_at is None or self.changed_at is None:
            return None
        end = self.changed_at if is_over(self) else now
        return max(0.0, (end - self.began_at).total_seconds())


def is_over(health: Health) -> bool:
    """True if nothing works on a session."""
    return health.state not in {"working", "waiting"}


def health_of(
    source: Selectable, now: datetime, *, began_at: datetime | None = None, changed_at: datetime | None = None
) -> Health | None:
    """The health of a session; None if it has neither a plan nor a workflow run.

    The workflow run counts if the plan shows it, or without a plan. One that failed is ``failed``.
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
    plan, steps = source.select_latest(Plan), RunSteps.of(source)
    if steps is not None and (plan is None or own_ids(plan, steps.run)):
        return health_of_run(source, steps, now, began_at=began_at, changed_at=changed_at)
    if plan is None:
        return None
    found = _of_plan(plan, source.select_latest(PlanFacts) or NO_FACTS)
    if steps is not None and steps.run is not None:  # a tool of the agent
        found = attrs.evolve(found, error=found.error or _error_of(steps), token=steps.run.token)
    return attrs.evolve(found, began_at=began_at, changed_at=changed_at).at(now)


def health_of_run(
    source: Selectable,
    steps: RunSteps,
    now: datetime,
    *,
    began_at: datetime | None = None,
    changed_at: datetime | None = None,
) -> Health:
    """The health of a workflow run, whatever the plan shows; see ``health_of``."""
    plan, facts = source.select_latest(Plan), source.select_latest(PlanFacts) or NO_FACTS
    found = _of_run(steps, is_waiting=plan is not None and is_pending(plan, facts))
    began_at, changed_at = found.began_at or began_at, found.changed_at or changed_at
    return attrs.evolve(found, began_at=began_at, changed_at=changed_at).at(now)


def _of_run(steps: RunSteps, *, is_waiting: bool) -> Health:
    run, every = steps.run, list(steps.steps.values())
    state: HealthState
    if run is None or run.status not in {"completed", "failed"}:
        state = "waiting" if is_waiting else "working" if run is not None and run.token else "stopped"
    else:
        state = "finished" if run.status == "completed" else "failed"
    has_ended = state in {"finished", "failed"}
    running = steps.in_state("in_progress")
    failed = steps.in_state("failed") if state == "failed" else []
    open_ = steps.in_state("pending", "blocked", "stopped")
    at_hand = [] if state == "finished" else running or failed or open_
    began, completed = (None, None) if run is None else (run.started_at, run.completed_at)
    ended = max((step.record.at for step in every if step.record is not None), default=began)
    return Health(
        state=state,
        objective=steps.workflow.goal or ("" if run is None else run.user_prompt or ""),
        done=sum(step.is_done for step in every),
        total=len(every),
        step=at_hand[0].step_id if at_hand else None,
        title=at_hand[0].title if at_hand else None,
        other_steps=max(0, len(running) - 1),
        error=_error_of(steps),
        began_at=time_of(began),
        changed_at=time_of(completed or ended) if has_ended else None,
        token="" if run is None else run.token,
    )


def _error_of(steps: RunSteps) -> str | None:
    failure = steps.failure
    return None if failure is None else cut(f"{failure.step_id}: {failure.reason}", _LONGEST)


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
        other_steps=max(0, running - 1),
        error=error and cut(error, _LONGEST),
    )


def _why_blocked(step: PlanStep) -> str:
    return f"{step.step_id} is blocked{f': {step.notes[-1]}' if step.notes else ''}"
