"""The store in a file: kills, damage, full disks, other processes."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import Mock

import attrs
import pytest
from served_calls import held
from session_records import Note, Ping, elsewhere, in_child, texts
from store_places import BUSY, PLAN, SETUP, call, mark, numbered, on_file, open_session, refused, store_of

from planning import Plan
from planning.plan.commands import AddStep, MarkStep, NewPlanStep
from session import Session, StoreError, TransactionError
from session.events import SessionId
from session.stores import MemoryStore, SqliteStore, StoreBusy


def test_a_call_waits_once_for_a_file_that_is_locked_and_a_moment_to_record_that_it_failed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, toolbox = on_file(path)
    toolbox.invoke("planning_setup_plan", SETUP)
    before, lock = session.select_latest(Plan), Mock(side_effect=store_of(session).lock)
    done = partial(toolbox.call, "planning_mark_step", {"step_id": "S001", "status": "done"})
    with held([str(path)]), monkeypatch.context() as patch:
        patch.setattr(session.store, "lock", lock)
        result = done()
        assert (result.success, result.code) == (False, "storage")
        assert [call.args for call in lock.call_args_list] == [("run-7", None), ("run-7", 0.2)]
        with pytest.raises(StoreBusy) as caught:
            session.dispatch(MarkStep("S001", "done"))
        assert session.select_latest(Plan) is before
    assert (str(caught.value), caught.value.outcome) == (BUSY.format(0.2), "refused")
    assert (done().success, session.version) == (True, 2)


@pytest.mark.parametrize("call", [
    ("planning_read_plan", {}),
    ("planning_mark_step", {"step_id": "S001", "status": "dun"}),
    ("planning_mark_step", {}),
    ("nobody", {}),
])  # fmt: skip
def test_readers_answer_while_another_program_writes(path: Path, call: tuple[str, dict[str, object]]) -> None:
    session, toolbox = on_file(path, timeout=60)
    toolbox.invoke("planning_setup_plan", SETUP)
    expected = attrs.evolve(toolbox.call(*call), elapsed=0.0)
    with held([str(path)]):
        assert attrs.evolve(toolbox.call(*call), elapsed=0.0) == expected
        assert attrs.evolve(asyncio.run(toolbox.acall(*call)), elapsed=0.0) == expected
    assert [change.version for change in session.history()] == [1, 2]


def test_a_read_waits_for_no_transaction_of_another_thread_and_sees_what_is_committed(path: Path) -> None:
    session, toolbox = on_file(path)
    toolbox.invoke("planning_setup_plan", SETUP)
    with session.transaction() as transaction:
        transaction.dispatch(MarkStep("S001", "done"))
        with ThreadPoolExecutor(1) as thread:
            read = thread.submit(toolbox.call, "planning_read_plan", {}).result(20)
    assert read.value.progress == (0, 2)
    assert session.select_latest(Plan).progress == (1, 2)  # type: ignore[union-attr]  # it was set up


@contextmanager
def read_only(folder: str, mode: int) -> Iterator[None]:
    """Let files only be read, by a user who may not write: permissions do not bind root."""
    for file in Path(folder).iterdir():
        file.chmod(0o444)
    Path(folder).chmod(mode)
    if os.getuid() == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(os.getuid())
        Path(folder).chmod(0o755)


@pytest.mark.parametrize("is_open", [True, False], ids=["written meanwhile", "closed"])
@pytest.mark.parametrize("mode", [0o755, 0o555])
def test_a_file_that_can_only_be_read_can_be_read(mode: int, is_open: bool) -> None:
    with TemporaryDirectory() as folder:
        writing, toolbox = on_file(Path(folder, "plans.db"))
        toolbox.invoke("planning_setup_plan", SETUP)
        if not is_open:
            store_of(writing).close()
        with read_only(folder, mode):
            session, toolbox = on_file(Path(folder, "plans.db"))
            assert toolbox.call("planning_read_plan", {}).value.progress == (0, 2)
            refused = toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done"})
            assert (refused.success, refused.code) == (False, "storage")
            assert session.select_latest(Plan).progress == (0, 2)  # type: ignore[union-attr]  # it was set up
            assert [change.version for change in session.history()] == [1]
            assert store_of(session).verify("run-7") == 1
            store_of(session).close()


def test_a_file_of_format_1_that_can_only_be_read_names_the_remedy() -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "plans.db")
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(Path(__file__).with_name("format_1.sql").read_text())
        with read_only(folder, 0o555):
            assert refused(lambda: SqliteStore(path)) == (
                f"{path} has format 1 and is read-only: make it writable and open it once, which converts it "
                "to format 2"
            )


def test_a_full_disk_refuses_and_nothing_has_changed(path: Path) -> None:
    session, toolbox = on_file(path)
    toolbox.invoke("planning_setup_plan", SETUP)
    store = store_of(session)
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


def test_compacting_gives_the_space_of_deleted_sessions_back(path: Path) -> None:
    store = SqliteStore(path)
    kept = open_session(store)
    kept.dispatch(Note("kept"))
    open_session(store, "big").dispatch(Note("x" * 5_000_000))
    store.delete("big")
    assert path.stat().st_size > 5_000_000
    store.compact()
    assert sum(each.stat().st_size for each in path.parent.iterdir()) < 200_000
    kept.dispatch(Note("after"))
    assert store.verify("run-7") == 2


def test_a_file_that_is_gone_refuses_and_is_not_made_anew(path: Path) -> None:
    session, toolbox = on_file(path)
    toolbox.invoke("planning_setup_plan", SETUP)
    for file in path.parent.iterdir():
        file.unlink()
    assert refused(lambda: session.dispatch(MarkStep("S001", "done"))) == f"the store {path} is gone"
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


def test_sessions_at_one_path_alone_share_a_store(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(path.parent)
    one, same, other = (Session(store=each) for each in (path, path.name, path.with_name("other.db")))
    assert one.store is same.store
    assert (repr(one.store), repr(other.store)) == (
        f"SqliteStore({str(path)!r})",
        f"SqliteStore({str(path.with_name('other.db'))!r})",
    )


def test_a_store_says_where_it_is_and_refuses_words_that_it_does_not_know(path: Path) -> None:
    assert repr(SqliteStore(path, synchronous="full")) == f"SqliteStore({str(path)!r})"
    with pytest.raises(ValueError, match=r"^synchronous must be 'normal' or 'full', got 'off'$"):
        SqliteStore(path, synchronous="off")  # type: ignore[arg-type]  # what is refused
    makers: list[Callable[..., object]] = [partial(SqliteStore, path), MemoryStore]
    limits = {"0 or more": (-1, float("nan"), "5", None), "at most 1,000,000": (float("inf"), 10**400)}
    for make, (limit, wrong) in product(makers, limits.items()):
        make(timeout=1_000_000 if "most" in limit else 0)
        for timeout in wrong:
            with pytest.raises(ValueError, match=f"^timeout must be seconds of {limit}, got "):
                make(timeout=timeout)


def test_a_lock_is_waited_for_no_longer_than_asked_also_within_a_process(path: Path) -> None:
    store = SqliteStore(path)
    with store.lock("one"):
        (caught,) = elsewhere(lambda: store.lock("two", 0).__enter__())
    assert (type(caught), str(caught)) == (StoreBusy, BUSY.format(0))


def test_a_fork_has_no_connection_and_leaves_the_file_free_for_its_parent(path: Path) -> None:
    session = open_session(SqliteStore(path))
    session.dispatch(Note("before"))
    links = (store_of(session)._writer, store_of(session)._reader)

    def closed() -> None:
        assert [link.connection for link in links] == [None, None]

    assert in_child(closed) == 0
    assert elsewhere(lambda: session.dispatch(Note("after"))) == [None]


@pytest.mark.parametrize("is_taken", [False, True])
def test_a_fork_waits_a_while_for_a_transaction_which_begins_again_in_the_parent(
    path: Path, is_taken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, begun, go = open_session(SqliteStore(path)), threading.Event(), threading.Event()

    def hold() -> None:
        with session.transaction() as transaction:
            transaction.dispatch(Note("held"))
            begun.set()
            go.wait(60)

    monkeypatch.setattr("session.stores.sqlite_link._PATIENCE", 0.01)
    with ThreadPoolExecutor(1) as thread, monkeypatch.context() as patch:
        held_one = thread.submit(hold)
        begun.wait(60)
        if is_taken:
            patch.setattr("session.stores.sqlite_link.Link.begin", Mock(side_effect=sqlite3.OperationalError))
        assert in_child(lambda: None) == 0
        patch.undo()
        go.set()
        held_one.result(60)
    assert texts(open_session(SqliteStore(path))) == ["held"]


def test_a_writer_waits_for_another_program(path: Path) -> None:
    session = open_session(SqliteStore(path, timeout=20))
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        threading.Timer(0.1, other.execute, ["COMMIT"]).start()
        session.dispatch(Note("first"))
    assert texts(open_session(SqliteStore(path))) == ["first"]


# Another store in the same file

NO_STORE = (
    "{} is not a store of sessions any more, it was overwritten or cut: end the programs that use it, and "
    "restore it from a copy"
)
CUT = "{}, or its WAL, was cut: end the programs that use it, and restore it from a copy"
OTHER = "another file has replaced {}, or its WAL: end the programs that use it, and open it again"


def check_refused(session: Session, message: str) -> None:
    """Whatever is asked of a session is refused, and it stays as it is."""
    before, store = (session.version, texts(session)), store_of(session)
    uses: list[Callable[[], object]] = [
        lambda: session.dispatch(Note("lost")),
        lambda: session.claim("x"),
        session.fork,
        session.refresh,
        session.history,
        lambda: store.head("run-7"),
        lambda: store.verify("run-7"),
        lambda: list(store.watch("run-7", after=0, timeout=0)),
        store.sessions,
        lambda: store.delete("run-7"),
    ]
    for use in uses:
        assert refused(use) == message
    assert mark(session, "S001").success is call(session, "planning_read_plan", {}).success is False
    assert (session.version, texts(session)) == before


def copied(path: Path, other: Path) -> None:
    path.write_bytes(other.read_bytes())


def copied_alone(path: Path, other: Path) -> None:
    copied(path, other)
    for beside in ("-wal", "-shm"):
        path.with_name(path.name + beside).unlink()


def backed_up(path: Path, other: Path) -> None:
    with closing(sqlite3.connect(other)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)


def renamed(path: Path, other: Path) -> None:
    other.replace(path)


@pytest.mark.parametrize("overwrite", [copied, copied_alone, backed_up, renamed])
@pytest.mark.parametrize("is_closed", [False, True])
def test_a_file_that_another_store_is_written_over_is_refused(
    overwrite: Callable[[Path, Path], None], is_closed: bool, path: Path
) -> None:
    other = path.with_name("other.db")
    theirs, session = open_session(SqliteStore(other)), open_session(SqliteStore(path))
    for each in (theirs, session):
        call(each, *PLAN)
        each.dispatch(Note("mine" if each is session else "theirs"))
    store_of(theirs).close()
    if is_closed:
        store_of(session).close()
        path.with_name("plans.db-wal").touch()
        path.with_name("plans.db-shm").touch()
    overwrite(path, other)
    check_refused(session, OTHER.format(path))
    store_of(session).close()
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT version FROM sessions").fetchall() == [(2,)]


def of_another_application(path: Path) -> bytes:
    with closing(sqlite3.connect(path.with_name("notes.db"))) as connection:
        connection.execute("CREATE TABLE store AS SELECT 'mine' AS id")
        connection.commit()
    return path.with_name("notes.db").read_bytes()


SPOILED: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "emptied": (lambda _: b"", NO_STORE),
    "text": (lambda _: b"notes\n" * 1_000, NO_STORE),
    "text of its length": (lambda path: b"x" * path.stat().st_size, NO_STORE),
    "text with its times kept": (lambda path: b"x" * path.stat().st_size, NO_STORE),
    "another application's": (of_another_application, NO_STORE),
    "a zeroed first page": (lambda path: bytes(4096) + path.read_bytes()[4096:], NO_STORE),
    "a zeroed header": (lambda path: bytes(100) + path.read_bytes()[100:], NO_STORE),
    "cut to a part of the first page": (lambda path: path.read_bytes()[:2048], NO_STORE),
    "cut to half": (lambda path: path.read_bytes()[: path.stat().st_size // 2], CUT),
}


@pytest.mark.parametrize("way", SPOILED)
@pytest.mark.parametrize("is_in_wal", [False, True], ids=["in the file", "in the WAL"])
def test_an_overwritten_open_file_is_refused_by_every_call(way: str, is_in_wal: bool, path: Path) -> None:
    session = open_session(SqliteStore(path))
    call(session, *PLAN)
    store = store_of(session)
    if not is_in_wal:
        store._writer.checkpoint()
        session.dispatch(Note("kept"))
        session.refresh()
    spoil, message = SPOILED[way]
    spoiled, before = spoil(path), path.stat()
    path.write_bytes(spoiled)
    if way == "text with its times kept":
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    check_refused(session, message.format(path))
    store.close()
    if sys.version_info >= (3, 12):  # before, SQLite writes its log into what it finds
        assert path.read_bytes() == spoiled


def test_an_open_log_that_is_emptied_is_refused(path: Path) -> None:
    session = open_session(SqliteStore(path))
    call(session, *PLAN)
    os.truncate(f"{path}-wal", 0)
    for _ in range(2):
        assert refused(lambda: session.dispatch(Note("lost"))) in {  # enough: by what it read before
            CUT.format(path),
            f"the store {path} cannot be used: the disk reports an error: check whether it is full",
        }


@pytest.mark.parametrize("name", ["plans.db-wal", "plans.db-shm"])
@pytest.mark.parametrize("is_copied", [False, True])
def test_what_is_acknowledged_is_never_in_a_log_that_is_gone(name: str, is_copied: bool, path: Path) -> None:
    session = open_session(SqliteStore(path))
    session.dispatch(Note("kept"))
    there = path.with_name(name)
    copy = there.read_bytes()
    there.rename(path.with_name("before"))
    if is_copied:
        there.write_bytes(copy)
    check_refused(session, OTHER.format(path))


def test_a_checkpoint_that_a_reader_stops_halfway_is_no_damage(path: Path) -> None:
    """The file alone then holds pages of several moments, for as long as the reader reads."""
    session = open_session(SqliteStore(path))
    call(session, *PLAN)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        for _ in range(40):
            session.dispatch(Note("x" * 3_000))  # the file grows
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM store").fetchone()
            session.dispatch(Note("y"))  # its last pages are written again
            with closing(sqlite3.connect(path)) as other:
                other.execute("PRAGMA wal_checkpoint(PASSIVE)")
            session.dispatch(Note("z"))
            reader.execute("COMMIT")
    assert store_of(session).verify("run-7") == session.version == 1 + 40 * 3


def test_a_store_that_fails_while_changes_are_taken_over_is_read_on_from_there(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = (open_session(SqliteStore(path)) for _ in range(2))
    reader.dispatch(Ping(0))
    for number in range(1, 601):
        writer.dispatch(Ping(number))
    store, read = store_of(reader), SqliteStore.changes

    def lost(self: SqliteStore, session_id: SessionId, first: int, last: int) -> object:
        if last > 400:
            raise StoreError("the store is gone")
        return read(self, session_id, first, last)

    with monkeypatch.context() as patch:
        patch.setattr(type(store), "changes", lost)
        for attempt in (reader.refresh, lambda: reader.dispatch(Ping(601)), reader.refresh):
            assert refused(attempt) == "the store is gone"
    reader.dispatch(Ping(601))
    assert numbered(reader) == list(range(602))
    assert reader.version == store.verify("run-7") == 602
