"""Runs in stored sessions: the same as in memory, going on after any end, and stores that refuse."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from typing import Any

import pytest
from drawn_runs import Drawn, drawn_runs, working
from hypothesis import given, settings
from hypothesis import strategies as st
from run_cases import MAYBE, called, capable, flow, plain_tool, states

from planning import Plan
from planning.workflow import (
    Capabilities,
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
from session.errors import StoreError
from session.stores import MemoryStore, SqliteStore, Store

Opened = Callable[..., SqliteStore]


def nightly(store: Store) -> Session:
    return Session(session_id="nightly", store=store)


STEPS = flow(called("a"), called("b", "a", tool="hold"), called("c", "b"), called("m", "b", tool="mail"))


class Bench:
    """Tools that count their calls; ``hold`` does something to the store."""

    def __init__(self, disturb: Callable[[], None]) -> None:
        self.calls: list[str] = []
        self._disturb = disturb

    def run(self, session: Session) -> WorkflowResult:
        return run_workflow(STEPS, self.tools(), session=session, max_parallel=1)

    def tools(self) -> Capabilities:
        def hold() -> str:
            self.calls.append("hold")
            self._disturb()
            return "held"

        def mail() -> str:
            self.calls.append("mail")
            return "sent"

        def work() -> str:
            self.calls.append("work")
            return "worked"

        return capable(plain_tool("mail", mail, idempotent=False), work=work, hold=hold)


def outcome(result: WorkflowResult) -> tuple[Any, ...]:
    values = dict(result.outputs), dict(result.memory), dict(result.errors)
    return result.status, states(result.workflow), *values, result.warnings


def told(session: Session) -> dict[str, Any]:
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


def test_a_run_whose_store_is_locked_ends_with_its_error_and_goes_on_later(
    opened: Opened, other: sqlite3.Connection
) -> None:
    store = opened(timeout=0.05)

    def lock() -> None:
        other.execute("BEGIN IMMEDIATE")

    bench = Bench(lock)
    session = nightly(store)
    with pytest.raises(StoreError) as refused:
        bench.run(session)
    assert (
        str(refused.value)
        == "another worker or program is writing to the store, for more than 0.05 s: try again"
    )
    assert bench.calls == ["work", "hold"]
    other.execute("ROLLBACK")
    bench = Bench(lambda: None)
    result = bench.run(session)
    assert (result.status, bench.calls) == ("completed", ["hold", "work", "mail"])
    assert dict(result.outputs) == {"a": "worked", "b": "held", "c": "worked", "m": "sent"}
    assert (len(session.select_all(WorkflowRun)), store.verify("nightly")) == (1, session.version)


def test_a_tool_that_must_be_once_is_not_called_when_the_store_refuses_the_record_of_it(
    opened: Opened, other: sqlite3.Connection
) -> None:
    store = opened(timeout=0.05)
    session = nightly(store)

    def lock(event: StepChanged) -> None:
        if event.record.step_id == "m" and not other.in_transaction:
            other.execute("BEGIN IMMEDIATE")

    session.bus.subscribe(StepChanged, lock)
    bench = Bench(lambda: None)
    with pytest.raises(StoreError) as refused:
        bench.run(session)
    assert (
        str(refused.value)
        == "another worker or program is writing to the store, for more than 0.05 s: try again"
    )
    assert bench.calls == ["work", "hold", "work"]
    other.execute("ROLLBACK")
    session.bus.unsubscribe(StepChanged, lock)
    assert (bench.run(session).status, bench.calls[3:]) == ("completed", ["mail"])


def test_a_store_that_refuses_before_the_first_step_leaves_nothing_and_the_session_free(
    opened: Opened, other: sqlite3.Connection
) -> None:
    store = opened(timeout=0.05)
    other.execute("BEGIN IMMEDIATE")
    bench, session = Bench(lambda: None), nightly(store)
    with pytest.raises(StoreError):
        bench.run(session)
    assert (bench.calls, store.head("nightly")) == ([], None)
    other.execute("ROLLBACK")
    assert bench.run(session).status == "completed"


def test_what_is_in_the_store_is_never_written_in_the_thread_of_the_event_loop(opened: Opened) -> None:
    threads = set[int]()

    class Watched(SqliteStore):
        def _explaining(self, timeout: float | None = None) -> Any:
            threads.add(threading.get_ident())
            return super()._explaining(timeout)

    async def scene(*wanted: str) -> None:
        session = nightly(opened(Watched))
        threads.clear()
        bench = Bench(lambda: None)
        result = await arun_workflow(steps, bench.tools(), session=session, max_parallel=1)
        assert (result.status, bench.calls) == ("failed", list(wanted))

    steps = flow(*STEPS.steps, called("k", "a", done_check="x", expected_key="k"), called("n", tool="nobody"))
    asyncio.run(scene("work", "hold", "work", "work", "mail"))
    nightly(opened()).rewind(1)
    asyncio.run(scene("work", "hold", "work", "work"))
    assert threads
    assert threading.get_ident() not in threads
