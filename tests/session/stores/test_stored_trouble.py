"""Stores in trouble: damaged or hostile files, full disks, lost answers, files that go away."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from session_records import Note, Ping, texts
from store_places import (
    PLAN,
    call,
    mark,
    numbered,
    open_session,
    refused,
    store_of,
)

from session import Session
from session.events import SessionId
from session.stores import SqliteStore, StoreError

NO_STORE = (
    "{} is not a store of sessions any more, it was overwritten or cut: end the programs that use it, and "
    "restore it from a copy"
)
CUT = "{}, or its WAL, was cut: end the programs that use it, and restore it from a copy"
OTHER = "another file has replaced {}, or its WAL: end the programs that use it, and open it again"


# Another store in the same file


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
    "another application's": (of_another_application, NO_STORE),
    "a zeroed first page": (lambda path: bytes(4096) + path.read_bytes()[4096:], NO_STORE),
    "a zeroed header": (lambda path: bytes(100) + path.read_bytes()[100:], NO_STORE),
    "cut to a part of the first page": (lambda path: path.read_bytes()[:2048], NO_STORE),
    "cut to half": (lambda path: path.read_bytes()[: path.stat().st_size // 2], CUT),
}


@pytest.mark.parametrize("way", SPOILED)
@pytest.mark.parametrize("is_in_wal", [False, True], ids=["in the file", "in the WAL"])
def test_an_open_file_that_is_overwritten_is_refused_by_every_call(
    way: str, is_in_wal: bool, path: Path
) -> None:
    session = open_session(SqliteStore(path))
    call(session, *PLAN)
    store = store_of(session)
    if not is_in_wal:
        store._writer.checkpoint()
        session.dispatch(Note("kept"))
        session.refresh()
    spoil, message = SPOILED[way]
    spoiled = spoil(path)
    path.write_bytes(spoiled)
    check_refused(session, message.format(path))
    store.close()
    if sys.version_info >= (3, 12):  # before, SQLite writes its log into what it finds
        assert path.read_bytes() == spoiled


def test_an_open_file_that_is_overwritten_with_its_times_kept_is_refused(path: Path) -> None:
    session = open_session(SqliteStore(path))
    session.dispatch(Note("kept"))
    before = path.stat()
    path.write_bytes(b"x" * before.st_size)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert refused(lambda: session.dispatch(Note("lost"))) == NO_STORE.format(path)


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
def test_what_is_acknowledged_is_never_in_a_log_that_is_gone(name: str, path: Path) -> None:
    session = open_session(SqliteStore(path))
    session.dispatch(Note("kept"))
    path.with_name(name).unlink()
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
