"""Runs in stored sessions whose store refuses or is held by another process."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from typing import Any

import pytest
from run_cases import called, capable, flow, plain_tool, thought
from stored_cases import STEPS, Bench, Opened, nightly

from planning.workflow import arun_workflow
from planning.workflow.run.records import StepChanged, WorkflowRun
from session.errors import StoreError
from session.stores import SqliteStore


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


def test_the_event_loop_goes_on_while_another_process_holds_the_lock(
    opened: Opened, other: sqlite3.Connection
) -> None:
    store = opened(timeout=30)
    workflow = flow(
        called("a", expected_key="key"),
        called("s", done_check="'key' in memory"),
        called("f", tool="nobody", on_failure="continue"),
        called("r", tool="broken", on_failure="continue"),
        called("m", "a", tool="mail"),
        thought("t", "m"),
    )

    def broken() -> None:
        raise ValueError("no")

    async def scene() -> list[str]:
        turns: list[str] = []
        capabilities = capable(plain_tool("mail", dict, idempotent=False), work=dict, broken=broken)
        run = asyncio.create_task(arun_workflow(workflow, capabilities, session=nightly(store)))
        while not run.done():
            # Each time that the run waits for the store, the loop turns a hundred times before it may go on.
            other.execute("BEGIN IMMEDIATE")
            for _ in range(100):
                await asyncio.sleep(0.0001)
            turns.append("turned")
            other.execute("ROLLBACK")
            await asyncio.sleep(0.02)
        assert run.result().status == "completed"
        return turns

    assert asyncio.run(scene())


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
