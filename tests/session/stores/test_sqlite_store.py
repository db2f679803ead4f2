"""The store in a file: kills, damage, full disks, other processes."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import pytest
from store_cases import SETUP

from planning import Plan, PlanningToolsSection, Toolbox
from planning.plan.commands import AddStep, MarkStep, NewPlanStep
from session import Session, StoreError
from session.events import SessionId
from session.stores import SqliteStore, StoreBusy

KILLS = int(os.environ.get("KILLS", "4"))  # make soak kills more often

WORKER = """
import sys
from planning import PlanningToolsSection, Toolbox
from session import Session
from session.stores import SqliteStore, StoreBusy
session = Session(session_id="run-7", store=SqliteStore(sys.argv[1]))
toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
if not session.version:
    steps = [{"title": f"Step {number}"} for number in range(20)]
    toolbox.invoke("planning_setup_plan", {"objective": "Go on", "initial_steps": steps})
    print(session.version, flush=True)
while True:
    step = f"S{session.version % 20 + 1:03}"
    result = toolbox.call("planning_mark_step", {"step_id": step, "status": "pending", "note": "again"})
    assert result.success, result
    print(session.version, flush=True)
"""

BUSY = "another worker or program is writing to the store"


@contextmanager
def written_by_another(path: Path) -> Iterator[None]:
    """While another program is in a transaction that writes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def on_file(path: Path, session_id: str = "run-7", timeout: float = 0.2) -> tuple[Session, Toolbox]:
    session = Session(session_id=session_id, store=SqliteStore(path, timeout=timeout))
    return session, Toolbox(PlanningToolsSection(session=session).tools(), session=session)


@pytest.mark.slow
def test_what_was_acknowledged_survives_a_kill_at_any_moment(path: Path) -> None:
    for _ in range(KILLS):
        with subprocess.Popen([sys.executable, "-c", WORKER, path], stdout=subprocess.PIPE) as worker:
            assert worker.stdout is not None
            lines = [worker.stdout.readline()]
            timer = threading.Timer(random.uniform(0, 0.05), worker.kill)  # noqa: S311 - a moment
            timer.start()
            lines += worker.stdout.readlines()
            timer.join()
        acknowledged = int([line for line in lines if line.endswith(b"\n")][-1])
        session, _ = on_file(path)
        assert session.store is not None
        assert session.version in {acknowledged, acknowledged + 1}
        assert session.store.verify("run-7") == session.version
        plan = session.select_latest(Plan)
        assert plan is not None
        assert sum(len(step.notes) for step in plan.steps) == session.version - 1
        session.store.close()


def mark(path: Path, number: int, count: int) -> None:
    _, toolbox = on_file(path, timeout=60)

    def work(thread: int) -> None:
        for each in range(count // 2):
            note = {"step_id": "S001", "status": "pending", "note": f"{number} {thread} {each}"}
            assert toolbox.call("planning_mark_step", note).success

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.slow
def test_processes_and_threads_lose_nothing_and_do_nothing_twice(path: Path) -> None:
    session, toolbox = on_file(path)
    toolbox.invoke("planning_setup_plan", SETUP)
    count = 400 if "KILLS" in os.environ else 100  # make soak writes more
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=mark, args=(path, number, count)) for number in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * 4
    assert session.refresh() == 1 + 4 * count
    plan = session.select_latest(Plan)
    assert plan is not None
    notes = plan.steps[0].notes
    assert sorted(notes) == sorted(
        f"{number} {thread} {each}"
        for number in range(4)
        for thread in range(2)
        for each in range(count // 2)
    )
    for number in range(4):
        for thread in range(2):
            mine = [note for note in notes if note.startswith(f"{number} {thread} ")]
            assert mine == [f"{number} {thread} {each}" for each in range(count // 2)]
    assert [change.version for change in session.history()] == list(range(1, session.version + 1))
    assert session.store is not None
    assert session.store.verify("run-7") == session.version


def test_a_file_that_is_locked_for_long_refuses_and_the_session_goes_on(path: Path) -> None:
    session, toolbox = on_file(path)
    toolbox.invoke("planning_setup_plan", SETUP)
    before = session.select_latest(Plan)
    with written_by_another(path):
        refused = toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done"})
        with pytest.raises(StoreBusy) as caught:
            session.dispatch(MarkStep("S001", "done"))
        unknown = toolbox.call("planning_mark_step", {"step_id": "S009", "status": "done"})
        assert session.select_latest(Plan) is before
    assert (refused.success, refused.code, refused.message) == (
        False,
        "storage",
        f"planning_mark_step could not write: {BUSY}. Call it again.",
    )
    assert (
        str(caught.value)
        == "another worker or program is writing to the store, for more than 0.2 s: try again"
    )
    assert caught.value.outcome == "refused"
    assert not unknown.success
    assert toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done"}).success
    assert session.version == 2


def test_a_refusal_is_returned_where_it_cannot_be_recorded(path: Path) -> None:
    session, toolbox = on_file(path)
    toolbox.invoke("planning_setup_plan", SETUP)
    with written_by_another(path):
        refused = toolbox.call("planning_mark_step", {"step_id": "S001", "status": "dun"})
    assert (refused.code, session.version) == ("parameter", 1)


@pytest.mark.parametrize("call", [
    ("planning_read_plan", {}),
    ("planning_mark_step", {"step_id": "S001", "status": "dun"}),
    ("planning_mark_step", {}),
    ("nobody", {}),
])  # fmt: skip
def test_readers_and_refusals_do_not_wait_for_a_program_that_writes(
    path: Path, call: tuple[str, dict[str, object]]
) -> None:
    session = Session(session_id="run-7", store=SqliteStore(path, timeout=60))  # a second is not waited
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    toolbox.invoke("planning_setup_plan", SETUP)
    expected = attrs.evolve(toolbox.call(*call), elapsed=0.0)
    with written_by_another(path):
        assert attrs.evolve(toolbox.call(*call), elapsed=0.0) == expected
        assert attrs.evolve(asyncio.run(toolbox.acall(*call)), elapsed=0.0) == expected
    assert [change.version for change in session.history()] == [1, 2]


def test_a_read_does_not_wait_for_the_transaction_of_another_thread_and_sees_what_is_committed(
    path: Path,
) -> None:
    session, toolbox = on_file(path)
    toolbox.invoke("planning_setup_plan", SETUP)
    with session.transaction() as transaction:
        transaction.dispatch(MarkStep("S001", "done"))
        with ThreadPoolExecutor(1) as thread:
            read = thread.submit(toolbox.call, "planning_read_plan", {}).result(20)
    assert read.value.progress == (0, 2)
    assert session.select_latest(Plan).progress == (1, 2)  # type: ignore[union-attr]  # it was set up


def test_a_call_that_must_write_waits_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toolbox = on_file(path)[1]
    toolbox.invoke("planning_setup_plan", SETUP)
    waited = list[float | None]()
    lock = SqliteStore.lock

    def watched(store: SqliteStore, session_id: SessionId, timeout: float | None = None) -> Any:
        waited.append(timeout)
        return lock(store, session_id, timeout)

    monkeypatch.setattr(SqliteStore, "lock", watched)
    with written_by_another(path):
        refused = toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done"})
    assert (refused.code, refused.message) == (
        "storage",
        f"planning_mark_step could not write: {BUSY}. Call it again.",
    )
    assert waited == [None, 0.2]  # once for the call, and a moment to record that it failed


@pytest.fixture
def nobody() -> Iterator[Callable[[], None]]:
    """Become a user who may only read; permissions do not bind root."""
    yield lambda: os.seteuid(65534) if os.getuid() == 0 else None
    os.seteuid(os.getuid())


@pytest.mark.parametrize("is_open", [True, False], ids=["written meanwhile", "closed"])
@pytest.mark.parametrize("folder_mode", [0o755, 0o555])
def test_a_file_that_can_only_be_read_can_be_read(
    nobody: Callable[[], None], folder_mode: int, is_open: bool
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "plans.db")
        session, toolbox = on_file(path)
        toolbox.invoke("planning_setup_plan", SETUP)
        if not is_open:
            session.store.close()  # type: ignore[union-attr]  # it has one
        for file in Path(folder).iterdir():
            file.chmod(0o444)
        Path(folder).chmod(folder_mode)
        nobody()
        session, toolbox = on_file(path)
        assert toolbox.call("planning_read_plan", {}).value.progress == (0, 2)
        refused = toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done"})
        assert (refused.success, refused.code) == (False, "storage")
        assert session.select_latest(Plan).progress == (0, 2)  # type: ignore[union-attr]  # it was set up
        assert [change.version for change in session.history()] == [1]
        assert session.store.verify("run-7") == 1  # type: ignore[union-attr]  # it has one
        session.store.close()  # type: ignore[union-attr]  # it has one
        os.seteuid(os.getuid())
        Path(folder).chmod(0o755)


def test_a_full_disk_refuses_and_nothing_has_changed(path: Path) -> None:
    session, toolbox = on_file(path)
    toolbox.invoke("planning_setup_plan", SETUP)
    store = session.store
    assert isinstance(store, SqliteStore)
    version, plan = session.version, session.select_latest(Plan)
    connection = store._writer.connected()
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError) as caught:
        for number in range(2_000):
            version, plan = session.version, session.select_latest(Plan)
            session.dispatch(AddStep((NewPlanStep(f"Step {number}", "x" * 500),)))
    assert str(caught.value) == (
        f"the store {path} cannot be used: there is no space left: free some and try again"
    )
    assert (session.version, session.select_latest(Plan)) == (version, plan)
    connection.execute("PRAGMA max_page_count = 100000")
    session.dispatch(MarkStep("S001", "done"))
    assert (session.version, store.verify("run-7")) == (version + 1, version + 1)


def test_a_file_that_is_gone_refuses_and_is_not_made_anew(path: Path) -> None:
    session, toolbox = on_file(path)
    toolbox.invoke("planning_setup_plan", SETUP)
    for file in path.parent.iterdir():
        file.unlink()
    with pytest.raises(StoreError) as caught:
        session.dispatch(MarkStep("S001", "done"))
    assert str(caught.value) == f"the store {path} is gone"
    assert (session.version, list(path.parent.iterdir())) == (1, [])


def test_the_event_loop_is_free_while_another_process_holds_the_lock(path: Path) -> None:
    _, toolbox = on_file(path, timeout=60)
    toolbox.invoke("planning_setup_plan", SETUP)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    async def run() -> tuple[int, bool]:
        call = asyncio.ensure_future(
            toolbox.acall("planning_mark_step", {"step_id": "S001", "status": "done"})
        )
        ticks = 0
        for _ in range(20):
            await asyncio.sleep(0.001)
            ticks += not call.done()
        other.execute("ROLLBACK")
        return ticks, (await call).success

    assert asyncio.run(run()) == (20, True)
    other.close()
