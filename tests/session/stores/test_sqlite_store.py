"""The store in a file: kills, damage, full disks, other processes."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import pytest
from session_records import Note
from store_places import BUSY, SETUP, on_file, open_session

from planning import Plan
from planning.plan.commands import AddStep, MarkStep, NewPlanStep
from session import Session, StoreError, TransactionError
from session.events import SessionId
from session.stores import MemoryStore, SqliteStore, StoreBusy


@contextmanager
def written_by_another(path: Path) -> Iterator[None]:
    """While another program is in a transaction that writes."""
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def test_a_file_that_is_locked_for_long_refuses_and_the_session_goes_on(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, toolbox = on_file(path)
    toolbox.invoke("planning_setup_plan", SETUP)
    before, waited, lock = session.select_latest(Plan), list[float | None](), SqliteStore.lock

    def watched(store: SqliteStore, session_id: SessionId, timeout: float | None = None) -> Any:
        waited.append(timeout)
        return lock(store, session_id, timeout)

    monkeypatch.setattr(SqliteStore, "lock", watched)
    with written_by_another(path):
        refused = toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done"})
        assert waited == [None, 0.2]  # once for the call, and a moment to record that it failed
        with pytest.raises(StoreBusy) as caught:
            session.dispatch(MarkStep("S001", "done"))
        assert session.select_latest(Plan) is before
    assert (refused.success, refused.code, refused.message) == (
        False,
        "storage",
        "planning_mark_step could not write: another worker or program is writing to the store. Call it "
        "again.",
    )
    assert (str(caught.value), caught.value.outcome) == (BUSY.format(0.2), "refused")
    assert toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done"}).success
    assert session.version == 2


@pytest.mark.parametrize("call", [
    ("planning_read_plan", {}),
    ("planning_mark_step", {"step_id": "S001", "status": "dun"}),
    ("planning_mark_step", {}),
    ("nobody", {}),
])  # fmt: skip
def test_readers_and_refusals_answer_while_another_program_writes(
    path: Path, call: tuple[str, dict[str, object]]
) -> None:
    session, toolbox = on_file(path, timeout=60)
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


def test_a_file_of_format_1_that_can_only_be_read_names_the_remedy(
    nobody: Callable[[], None],
) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "plans.db")
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(Path(__file__).with_name("format_1.sql").read_text())
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        nobody()
        with pytest.raises(StoreError) as caught:
            SqliteStore(path)
        os.seteuid(os.getuid())
        Path(folder).chmod(0o755)
    assert str(caught.value) == (
        f"{path} has format 1 and is read-only: make it writable and open it once, which converts it to "
        "format 2"
    )


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


def test_a_direct_writer_takes_a_version_for_each_lock(path: Path) -> None:
    store = SqliteStore(path)
    open_session(store).dispatch(Note("first"))
    head = store.head("run-7")
    assert head is not None
    with store.lock("run-7"):
        store.append(head, None, expected=1)
        with pytest.raises(TransactionError, match="a lock allows one change: release it and take it"):
            store.append(head, None, expected=1)


def test_sessions_at_one_path_share_a_store_and_those_at_others_do_not(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(path.parent)
    one, same, other = (Session(store=each) for each in (path, path.name, path.with_name("other.db")))
    assert one.store is same.store
    assert (repr(one.store), repr(other.store)) == (
        f"SqliteStore({str(path)!r})",
        f"SqliteStore({str(path.with_name('other.db'))!r})",
    )


def test_a_store_says_where_it_is_and_refuses_words_that_it_does_not_know(path: Path) -> None:
    assert repr(SqliteStore(path, synchronous="full")) == f"SqliteStore({str(path)!r})"
    with pytest.raises(ValueError, match="synchronous must be 'normal' or 'full', got 'off'"):
        SqliteStore(path, synchronous="off")  # type: ignore[arg-type]
    makers: list[Callable[..., object]] = [partial(SqliteStore, path), MemoryStore]
    limits = {"0 or more": (-1, float("nan"), "5", None), "at most 1,000,000": (float("inf"), 10**400)}
    for make, (limit, wrong) in product(makers, limits.items()):
        for timeout in wrong:
            with pytest.raises(ValueError, match=f"timeout must be seconds of {limit}, got "):
                make(timeout=timeout)
