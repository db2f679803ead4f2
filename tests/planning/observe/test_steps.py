"""When a step of a run was in progress: its attempts, without the pauses between them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from planning.observe.steps import RunSteps, Step
from planning.workflow import StepFailure, Workflow, WorkflowStep
from planning.workflow.run.records import StepRecord

START = datetime(2026, 1, 2, tzinfo=UTC)
FLOW = Workflow(goal="Look", steps=(WorkflowStep(step_id="a", description="Do it"),))


def after(*changes: tuple[float, Any, int]) -> Step:
    """A step after records, each at a second with a status and the number of an attempt."""
    steps = RunSteps(FLOW)
    for second, status, attempt in changes:
        at = (START + timedelta(seconds=second)).isoformat()
        error = StepFailure("no") if status == "failed" else None
        steps.take(StepRecord("r", "a", status, at, attempt, called=True, error=error))
    return steps.steps["a"]


RUNS: dict[str, tuple[list[tuple[float, Any, int]], list[tuple[float, str, int]], float | None]] = {
    "at once": ([(0, "in_progress", 1), (2, "completed", 1)], [(0, "completed", 1)], 2),
    "tried again": (
        [(0, "in_progress", 1), (2, "in_progress", 2), (5, "completed", 2)],
        [(0, "failed", 1), (2, "completed", 2)],
        5,
    ),
    "failed and resumed": (
        [(0, "in_progress", 1), (2, "failed", 1), (100, "in_progress", 1), (103, "completed", 1)],
        [(0, "failed", 1), (100, "completed", 1)],
        5,
    ),
    "killed and resumed": (
        [(0, "in_progress", 1), (100, "in_progress", 1), (103, "completed", 1)],
        [(0, "stopped", 1), (100, "completed", 1)],
        3,
    ),
    "stopped": ([(0, "in_progress", 1), (4, "pending", 0)], [(0, "stopped", 1)], 4),
    "without a call": ([(0, "completed", 0)], [(0, "completed", 0)], None),
    "in progress": ([(0, "in_progress", 1)], [(0, "in_progress", 1)], None),
}


@pytest.mark.parametrize("name", RUNS)
def test_the_time_of_a_step_is_that_of_its_attempts(name: str) -> None:
    changes, spans, seconds = RUNS[name]
    step = after(*changes)
    found = [((each.began - START).total_seconds(), each.state, each.attempt) for each in step.spans]
    assert (found, step.seconds()) == (spans, seconds)


def test_a_step_in_progress_has_begun_with_its_first_attempt_and_lasts_until_now() -> None:
    step = after((0, "in_progress", 1), (2, "in_progress", 2))
    assert (step.at, step.attempt) == (START, 2)
    assert step.seconds(START + timedelta(seconds=7)) == 7
    resumed = after((0, "in_progress", 1), (100, "in_progress", 1))
    assert resumed.at == START + timedelta(seconds=100)


def test_what_was_in_progress_when_its_run_stopped_is_stopped_and_can_be_resumed() -> None:
    steps = RunSteps(FLOW)
    steps.take(StepRecord("r", "a", "in_progress", START.isoformat(), 1, called=True))
    (cut,) = steps.stop(START + timedelta(seconds=3))
    assert (cut.state, cut.seconds(), steps.states) == ("stopped", 3, {"a": "stopped"})
    assert steps.stop() == []
    later = (START + timedelta(seconds=10)).isoformat()
    steps.take(StepRecord("r", "a", "in_progress", later, 1, called=True))
    assert steps.states == {"a": "in_progress"}


@pytest.mark.parametrize("at", ["yesterday", "", "2026-01-02T03:04:05"])
def test_a_time_that_is_none_leaves_the_state(at: str) -> None:
    steps = RunSteps(FLOW)
    step = steps.take(StepRecord("r", "a", "completed", at, 1, called=True))
    assert step is not None
    assert (step.state, step.at, step.spans, step.seconds()) == ("completed", None, (), None)
