"""Runs in stored sessions: the same as in memory, going on after any end, and stores that refuse."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from run_cases import MAYBE, TAKEN, Bench, called, cancelled, capable, flow, refusal, states

from planning.workflow import Workflow, WorkflowError, WorkflowResult, arun_workflow, run_workflow
from planning.workflow.run.records import RunChanged as RunLog
from planning.workflow.run.records import StepChanged, WorkflowRun
from session import Session, ToolInvoked
from session.errors import StoreError
from session.stores import MemoryStore, SqliteStore, Store

Opened = Callable[..., SqliteStore]


def nightly(store: Store) -> Session:
    return Session(session_id="nightly", store=store)


STEPS = flow(called("a"), called("b", "a", tool="hold"), called("c", "b"), called("m", "b", tool="mail"))


def bench(disturb: Callable[[], object] = lambda: None) -> Bench:
    """Tools of which ``hold`` does something to the store."""
    return Bench(hold=lambda: disturb() or "held")


def run(tools: Bench, session: Session) -> WorkflowResult:
    return tools.run(STEPS, session, max_parallel=1)


def test_a_run_begins_by_asking_what_became_of_a_lost_change(monkeypatch: pytest.MonkeyPatch) -> None:
    session = nightly(MemoryStore())

    def lost(*_: object, **__: object) -> None:
        raise StoreError("the answer was lost", outcome="unknown")

    with monkeypatch.context() as patch, pytest.raises(StoreError, match="the answer was lost"):
        patch.setattr(MemoryStore, "append", lost)
        run(bench(), session)
    assert run(bench(), session).status == "completed"


# Cancelled


def test_a_write_that_has_begun_is_done_before_a_cancelled_run_ends(opened: Opened) -> None:
    done = list[str]()

    async def scene() -> None:
        loop = asyncio.get_running_loop()
        run = asyncio.ensure_future(arun_workflow(STEPS, bench().tools, session=session))

        def hold(event: StepChanged) -> None:
            if event.record.status == "completed" and not done:
                for _ in range(3):
                    loop.call_soon_threadsafe(run.cancel)
                    time.sleep(0.02)
                done.append(event.record.step_id)

        session.bus.subscribe(StepChanged, hold)
        await cancelled(run)
        assert done == ["a"]

    session = nightly(opened())
    asyncio.run(scene())
    assert states(session.select_latest(Workflow)) == {"a": "completed"} | dict.fromkeys("bcm", "pending")
    assert session.select_all(WorkflowRun)[0].token == ""


# Two at once


def test_a_run_that_another_process_resumes_stops_and_calls_nothing_twice(opened: Opened) -> None:
    other = opened()

    def resume() -> None:
        if tools.calls.count("hold") == 1:
            assert tools.run(STEPS, nightly(other)).status == "completed"

    tools = bench(resume)
    assert refusal(WorkflowError, tools.run, STEPS, nightly(opened())) == TAKEN
    assert sorted(tools.calls) == ["hold", "hold", "mail", "work", "work"]
    last = nightly(opened())
    assert run_workflow(flow(), capable(), session=last).status == "completed"  # registers what runs need
    assert [each.status for each in last.select_all(WorkflowRun)] == ["completed", "completed"]


# Rewound


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("is_fork", [False, True])
@pytest.mark.parametrize("is_before_the_run", [False, True])
def test_a_run_rewound_behind_a_call_asks(is_stored: bool, is_fork: bool, is_before_the_run: bool) -> None:
    session = nightly(MemoryStore()) if is_stored else Session()
    tools, versions = bench(), list[int]()

    def note(event: StepChanged) -> None:
        if (event.record.step_id, event.record.status) == ("b", "completed"):
            versions.append(session.version)

    session.bus.subscribe(StepChanged, note)
    first = run(tools, session)
    assert (first.status, tools.took()) == ("completed", ["work", "hold", "work", "mail"])
    session = session.fork() if is_fork else session
    session.rewind(0 if is_before_the_run else versions[0])
    again = run(tools, session)
    assert (again.status, dict(again.errors)) == ("failed", {"m": MAYBE})
    assert tools.took() == (["work", "hold", "work"] if is_before_the_run else ["work"])
    assert [(each.status, each.run_id) for each in session.select_all(WorkflowRun)] == [
        ("failed", first.session.select_all(RunLog)[0].run.run_id)
    ]
    assert dict(run(tools, session).errors) == {"m": MAYBE}
    assert tools.calls == []


def test_a_run_that_was_rewound_and_had_not_called_what_must_be_once_is_another_run() -> None:
    session, tools = Session(), bench()
    assert run(bench(lambda: 1 / 0), session).status == "failed"
    (before,) = session.select_all(WorkflowRun)
    session.rewind(0)
    assert (run(tools, session).status, tools.calls[-1]) == ("completed", "mail")
    (after,) = session.select_all(WorkflowRun)
    assert after.run_id != before.run_id


# Stores that refuse

LOCKED = "another worker or program has been writing to the store for more than 0.05 s: try again"


@pytest.mark.parametrize(
    ("locked_at", "before", "after"),
    [
        (None, [], ["work", "hold", "work", "mail"]),
        ("b", ["work", "hold"], ["hold", "work", "mail"]),
        ("m", ["work", "hold", "work"], ["mail"]),  # it must be once: not without the record of it
    ],
)
def test_a_run_whose_store_is_locked_ends_with_its_error_and_goes_on_later(
    opened: Opened, other: sqlite3.Connection, locked_at: str | None, before: list[str], after: list[str]
) -> None:
    store, tools = opened(timeout=0.05), bench()
    session = nightly(store)

    def lock(event: StepChanged) -> None:
        if event.record.step_id == locked_at and not other.in_transaction:
            other.execute("BEGIN IMMEDIATE")

    session.bus.subscribe(StepChanged, lock)
    if locked_at is None:
        other.execute("BEGIN IMMEDIATE")
    assert (refusal(StoreError, run, tools, session), tools.took()) == (LOCKED, before)
    assert (store.head("nightly") is None) is (locked_at is None)
    other.execute("ROLLBACK")
    session.bus.unsubscribe(StepChanged, lock)
    result = run(tools, session)
    assert (result.status, tools.took()) == ("completed", after)
    assert dict(result.outputs) == {"a": "worked", "b": "held", "c": "worked", "m": "sent"}
    assert (len(session.select_all(WorkflowRun)), store.verify("nightly")) == (1, session.version)


def test_what_is_in_the_store_is_never_written_in_the_thread_of_the_event_loop(opened: Opened) -> None:
    threads = set[int]()

    class Watched(SqliteStore):
        def _explaining(self, timeout: float | None = None) -> Any:
            threads.add(threading.get_ident())
            return super()._explaining(timeout)

    async def scene(*wanted: str) -> None:
        session, tools = nightly(opened(Watched)), bench()
        threads.clear()
        result = await arun_workflow(steps, tools.tools, session=session, max_parallel=1)
        assert (result.status, tools.calls) == ("failed", list(wanted))

    steps = flow(*STEPS.steps, called("k", "a", done_check="x", expected_key="k"), called("n", tool="nobody"))
    asyncio.run(scene("work", "hold", "work", "work", "mail"))
    nightly(opened()).rewind(1)
    asyncio.run(scene("work", "hold", "work", "work"))
    assert threads
    assert threading.get_ident() not in threads


@dataclass
class When:
    on: date


def test_the_event_of_a_call_has_its_arguments_in_a_form_that_can_be_stored() -> None:
    def work(when: When) -> str:
        return when.on.isoformat()

    session = nightly(MemoryStore())
    steps = flow(called("a", inputs={"when": {"on": "2026-01-02"}}))
    result = run_workflow(steps, capable(work=work), session=session)
    assert dict(result.outputs) == {"a": "2026-01-02"}
    assert [each.params for each in session.select_all(ToolInvoked)] == [{"when": {"on": "2026-01-02"}}]
