"""Runs in stored sessions: the same as in memory, going on after any end, and stores that refuse."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from drawn_runs import Drawn, drawn_runs, working
from hypothesis import given, settings
from hypothesis import strategies as st
from run_cases import MAYBE, called, cancelled, capable, flow, plain_tool, plan_of, states
from stored_cases import STEPS, Bench, Opened, nightly

from planning import Plan
from planning.workflow import (
    WorkflowError,
    WorkflowResult,
    arun_workflow,
    run_workflow,
)
from planning.workflow.model import OnFailure
from planning.workflow.run.memory import MemoryItem
from planning.workflow.run.records import RunChanged as RunLog
from planning.workflow.run.records import StepChanged, StepRecord, WorkflowRun
from session import Session
from session.stores import MemoryStore


def outcome(result: WorkflowResult) -> tuple[Any, ...]:
    """What a run came to."""
    values = dict(result.outputs), dict(result.memory), dict(result.errors)
    return result.status, states(result.workflow), *values, result.warnings


def told(session: Session) -> dict[str, Any]:
    """What a session says of its runs, without ids and times."""
    return {
        "records": [
            (each.step_id, each.status, each.attempt, each.called, each.skipped, each.output, each.error)
            for each in session.select_all(StepRecord)
        ],
        "memory": [
            (each.type, each.key, each.value, each.step_id) for each in session.select_all(MemoryItem)
        ],
        "runs": [(each.status, each.user_prompt, each.inputs) for each in session.select_all(WorkflowRun)],
        "plan": session.select_latest(Plan),
    }


@settings(deadline=None, max_examples=60)
@given(drawn_runs(8), st.integers(1, 4))
def test_a_stored_run_is_the_same_as_one_in_memory(drawn: Drawn, limit: int) -> None:
    sessions = [Session(), nightly(MemoryStore())]
    results = [
        run_workflow(drawn.workflow, working(drawn.failing), session=each, max_parallel=limit)
        for each in sessions
    ]
    assert outcome(results[0]) == outcome(results[1])
    ours, theirs = map(told, sessions)
    if limit > 1:  # which of two steps ends first is left to chance
        ours, theirs = (
            {**each, "records": sorted(each["records"], key=repr), "memory": ()} for each in (ours, theirs)
        )
    assert ours == theirs


@settings(deadline=None, max_examples=40)
@given(drawn_runs(6), st.lists(st.integers(1, 12), max_size=4), st.integers(1, 4))
def test_a_stored_run_that_is_cut_off_at_any_commit_goes_on_and_repeats_nothing(
    drawn: Drawn, cuts: list[int], limit: int
) -> None:
    """A fork of the versions up to a commit is what a killed process leaves behind."""
    whole = nightly(MemoryStore())
    alone = run_workflow(drawn.workflow, working(drawn.failing), session=whole, max_parallel=limit)
    for number, cut in enumerate(cuts):
        session = whole.fork(at=min(cut, whole.version - 1), session_id=f"cut{number}")
        newest = {each.step_id: each.status for each in session.select_all(StepRecord)}
        calls: list[str] = []
        again = run_workflow(
            drawn.workflow, working(drawn.failing, calls.append), session=session, max_parallel=limit
        )
        assert not [each for each in calls if newest.get(each) == "completed"]
        assert outcome(again) == outcome(alone)
        assert len(session.select_all(WorkflowRun)) == 1


@pytest.mark.parametrize(("first", "second"), [("skip_dependents", "fail"), ("fail", "skip_dependents")])
def test_a_step_behind_two_failures_comes_out_the_same_whichever_of_them_is_first(
    first: OnFailure, second: OnFailure
) -> None:
    """The whole run comes to b first; one that is resumed after x, to a."""
    workflow = flow(
        called("y", tool="broken", on_failure="continue"),
        called("x"),
        called("b", "y", tool="broken", on_failure=first),
        called("a", "x", tool="broken", on_failure=second),
        called("c", "a", "b"),
    )
    tools = capable(work=dict, broken=lambda: 1 / 0)
    whole = nightly(MemoryStore())
    alone = run_workflow(workflow, tools, session=whole, max_parallel=1)
    assert states(alone.workflow)["c"] == "pending"
    for version in range(whole.version):
        session = whole.fork(at=version, session_id=f"cut{version}")
        assert outcome(run_workflow(workflow, tools, session=session, max_parallel=1)) == outcome(alone)


# Cancelled


def test_a_stored_run_that_is_cancelled_says_so_in_the_store_and_is_resumed_elsewhere(
    opened: Opened,
) -> None:
    store = opened()
    begun = asyncio.Event()

    async def slow() -> str:
        begun.set()
        await asyncio.sleep(60)
        return "never"

    workflow = flow(called("a"), called("b", "a", tool="slow"))

    async def scene() -> None:
        task = asyncio.create_task(
            arun_workflow(workflow, capable(work=dict, slow=slow), session=nightly(store))
        )
        await begun.wait()
        task.cancel()
        await cancelled(task)

    asyncio.run(scene())
    store.close()
    other = nightly(opened())
    result = run_workflow(workflow, capable(work=lambda: 1 / 0, slow=lambda: "done"), session=other)
    assert (result.status, dict(result.outputs)) == ("completed", {"a": {}, "b": "done"})
    statuses = [each.status for each in other.select_all(StepRecord) if each.step_id == "b"]
    assert statuses == ["in_progress", "pending", "in_progress", "completed"]
    assert plan_of(other).status == "completed"


# Two at once


def test_a_run_that_another_process_resumes_stops_and_calls_nothing_twice(opened: Opened) -> None:
    calls: list[str] = []
    results: list[WorkflowResult] = []
    other = opened()

    def take() -> str:
        calls.append("take")
        if len(calls) == 1:
            results.append(run_workflow(STEPS, tools, session=nightly(other)))
        return "taken"

    def mail() -> str:
        calls.append("mail")
        return "sent"

    tools = capable(plain_tool("mail", mail, idempotent=False), work=dict, hold=take)
    with pytest.raises(WorkflowError) as stopped:
        run_workflow(STEPS, tools, session=nightly(opened()))
    assert str(stopped.value) == (
        "another caller has resumed this run, or the session was rewound to before it began; this caller "
        "stopped, and the session has its changes until then"
    )
    assert [each.status for each in results] == ["completed"]
    assert calls == ["take", "take", "mail"]
    last = nightly(opened())
    again = run_workflow(flow(), capable(), session=last)  # registers what runs need
    assert again.status == "completed"
    assert [each.status for each in last.select_all(WorkflowRun)] == ["completed", "completed"]


# Rewound


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("is_fork", [False, True])
@pytest.mark.parametrize("is_before_the_run", [False, True])
def test_a_run_rewound_behind_a_step_that_must_be_once_asks(
    is_stored: bool, is_fork: bool, is_before_the_run: bool
) -> None:
    session = nightly(MemoryStore()) if is_stored else Session()
    bench = Bench(lambda: None)
    versions: list[int] = []

    def note(event: StepChanged) -> None:
        if (event.record.step_id, event.record.status) == ("b", "completed"):
            versions.append(session.version)

    session.bus.subscribe(StepChanged, note)
    first = bench.run(session)
    assert (first.status, bench.calls) == ("completed", ["work", "hold", "work", "mail"])
    session = session.fork() if is_fork else session
    session.rewind(0 if is_before_the_run else versions[0])
    bench.calls.clear()
    again = bench.run(session)
    assert (again.status, dict(again.errors)) == ("failed", {"m": MAYBE})
    assert bench.calls == (["work", "hold", "work"] if is_before_the_run else ["work"])
    assert [(run.status, run.run_id) for run in session.select_all(WorkflowRun)] == [
        ("failed", first.session.select_all(RunLog)[0].run.run_id)
    ]
    bench.calls.clear()
    assert dict(bench.run(session).errors) == {"m": MAYBE}
    assert bench.calls == []


def test_a_fork_from_before_a_step_ran_runs_it(opened: Opened) -> None:
    session = nightly(opened())
    bench = Bench(lambda: None)
    bench.run(session)
    fork = session.fork(at=0, session_id="other")
    bench.calls.clear()
    assert (bench.run(fork).status, bench.calls) == ("completed", ["work", "hold", "work", "mail"])
