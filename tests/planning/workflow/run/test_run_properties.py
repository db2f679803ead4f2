"""Random workflows: their runs, whole, interrupted and taken up again, against a plain account of them."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

from drawn_runs import Drawn, drawn_runs, expected, working
from hypothesis import given
from hypothesis import strategies as st
from run_cases import plan_states

from planning import Plan
from planning.workflow import Workflow, WorkflowResult, arun_workflow, run_workflow
from planning.workflow.run.records import RunChanged, StepChanged, StepRecord
from session import Session, Snapshot

limits = st.integers(1, 4)


def check(result: WorkflowResult, drawn: Drawn) -> None:
    """Hold a result against what must come of the workflow."""
    wanted = expected(drawn)
    statuses = {step.step_id: step.status for step in result.workflow.steps}
    assert (result.status, statuses, dict(result.outputs)) == (wanted.status, wanted.statuses, wanted.outputs)
    assert (result.workflow.completed_at is None) is (wanted.status == "failed")
    failed = [each for each in statuses if each in wanted.failed]
    assert (list(result.outputs), list(result.errors)) == (list(wanted.outputs), failed)
    assert all(step.skipped is wanted.skipped[step.step_id] for step in result.workflow.steps)
    assert result.session.select_latest(Workflow) == result.workflow
    assert plan_states(result.session) == wanted.plan
    events = [event for kind in (RunChanged, StepChanged) for event in result.session.select_all(kind)]
    assert {event.session_id for event in events} == {result.session.session_id}
    keys = [step.expected_key for step in drawn.workflow.steps if step.step_id in wanted.outputs]
    assert set(result.memory) == {key for key in keys if key is not None}


@given(drawn_runs(10), limits)
def test_a_run_comes_out_as_a_plain_account_says_and_a_step_begins_after_all_that_it_depends_on(
    drawn: Drawn, limit: int
) -> None:
    calls: list[str] = []
    result = run_workflow(drawn.workflow, working(drawn.failing, calls.append), max_parallel=limit)
    check(result, drawn)
    assert len(calls) == len(set(calls))
    steps = {step.step_id: step for step in drawn.workflow.steps}
    now, failed = dict[str, StepRecord](), expected(drawn).failed
    running = set()
    for record in result.session.select_all(StepRecord):
        before = now.get(record.step_id)
        assert (None if before is None else before.status) in {
            "in_progress": (None,),
            "completed": ("in_progress",) if steps[record.step_id].type else (None,),
            "failed": ("in_progress", None),
            "pending": (None, "pending"),  # skipped, and then blocked by a failure that counts for more
        }[record.status]
        if record.status == "in_progress":
            running.add(record.step_id)
            assert len(running) <= limit
        else:
            running.discard(record.step_id)
        if record.status in {"in_progress", "completed"}:
            for other in steps[record.step_id].depends_on:
                is_borne = steps[other].on_failure == "continue" and other in failed
                assert now[other].status == ("failed" if is_borne else "completed")
        now[record.step_id] = record
    times = [record.at for record in result.session.select_all(StepRecord)]
    assert times == sorted(times)


def interrupted(
    drawn: Drawn, at: int, session: Session, capabilities: Any, limit: int
) -> WorkflowResult | None:
    """Run, and cancel at a change of a step; None when it was stopped."""

    async def scene() -> WorkflowResult | None:
        run = asyncio.create_task(
            arun_workflow(drawn.workflow, capabilities, session=session, max_parallel=limit)
        )
        left = [at]

        def count(_event: StepChanged) -> None:
            left[0] -= 1
            if left[0] == 0:
                run.cancel()

        session.bus.subscribe(StepChanged, count)
        try:
            return await run
        except asyncio.CancelledError:
            return None
        finally:
            session.bus.unsubscribe(StepChanged, count)
            assert asyncio.all_tasks() == {asyncio.current_task()}

    return asyncio.run(scene())


@given(drawn_runs(), st.lists(st.integers(1, 8), max_size=6), limits)
def test_a_run_that_is_cancelled_any_number_of_times_ends_the_same_and_repeats_nothing(
    drawn: Drawn, cancellings: list[int], limit: int
) -> None:
    others = set(threading.enumerate())  # such as tools of other tests that never end
    session = Session()
    calls: Counter[str] = Counter()
    completed: set[str] = set()

    def called(step_id: str) -> None:
        assert step_id not in completed
        calls[step_id] += 1

    result = None
    for at in [*cancellings, 0]:
        result = interrupted(drawn, at, session, working(drawn.failing, called), limit)
        if result is not None and result.status == "completed":
            break
        workflow, plan = session.select_latest(Workflow), session.select_latest(Plan)
        assert workflow is not None
        assert plan is not None
        completed = {step.step_id for step in workflow.steps if step.status == "completed"}
        assert all(step.status != "in_progress" for step in workflow.steps)
        assert all(step.status != "in_progress" for step in plan.steps)
    assert result is not None
    check(result, drawn)
    left = set(threading.enumerate()) - others
    assert not [each for each in left if each.name.startswith("tool ")]


@given(drawn_runs(), st.lists(st.tuples(st.integers(1, 8), st.booleans()), max_size=6), limits)
def test_a_step_that_must_not_happen_twice_never_does_however_a_run_is_interrupted(
    drawn: Drawn, stops: list[tuple[int, bool]], limit: int
) -> None:
    calls: Counter[str] = Counter()
    session = Session()
    for at, is_crash in [*stops, (0, False)]:
        dead: list[str] = []
        if is_crash:
            text = crash(drawn, at, session, calls, dead, limit)
            if not dead:
                break
            session = Session()
            session.rollback(Snapshot.from_json(text))
        else:
            capabilities = working(drawn.failing, lambda each: calls.update([each]), idempotent=False)
            result = interrupted(drawn, at, session, capabilities, limit)
            if result is not None and result.status == "completed":
                break
    assert all(count == 1 for count in calls.values())


def crash(drawn: Drawn, at: int, session: Session, calls: Counter[str], dead: list[str], limit: int) -> str:
    """Run until a change of a step, as if the process ended there; returns what was kept."""

    def keep(_event: StepChanged) -> None:
        nonlocal at
        at -= 1
        if at == 0:
            dead.append(session.snapshot().to_json())

    def called(step_id: str) -> None:
        if not dead:
            calls[step_id] += 1

    session.bus.subscribe(StepChanged, keep)
    capabilities = working(drawn.failing, called, idempotent=False)
    run_workflow(drawn.workflow, capabilities, session=session, max_parallel=limit)
    session.bus.unsubscribe(StepChanged, keep)
    return dead[0] if dead else session.snapshot().to_json()
