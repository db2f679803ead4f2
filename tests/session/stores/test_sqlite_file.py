"""The file of a store: whose it is, how it is opened, older formats, SQLite's tools; addresses as shown."""

from __future__ import annotations

import os
import socket
import sqlite3
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any, Literal
from unittest.mock import Mock

import pytest
from session_records import Note, printed
from store_places import BUSY, SETUP, lived, open_session, planned, refused, states_of, store_of
from syrupy.assertion import SnapshotAssertion

from planning import Plan
from planning.tools.ledger import ToolCall
from session import Rewound, StoreError
from session.address import database_of, hide_secrets, is_address, show_address
from session.stores import SqliteStore
from session.stores import sqlite_file as files


def refusal(path: Path | str) -> str:
    return refused(lambda: SqliteStore(path, timeout=0.2))


@pytest.mark.parametrize("suffixes", [(), ("",), ("", "-wal", "-shm")])
def test_a_file_and_what_is_beside_it_is_the_owners_alone(path: Path, suffixes: tuple[str, ...]) -> None:
    before = os.umask(0)
    try:
        for suffix in suffixes:
            path.with_name(path.name + suffix).write_text("x" if suffix == "-shm" else "")
        session = open_session(SqliteStore(path))
        session.dispatch(SETUP)
    finally:
        os.umask(before)
    modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()}
    assert modes == dict.fromkeys(("plans.db", "plans.db-wal", "plans.db-shm"), 0o600)


def test_a_link_is_refused_whether_it_leads_somewhere_or_not(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "plans.db").close()
    for name, target in (("link.db", "plans.db"), ("dangling.db", "nowhere.db")):
        link = tmp_path / name
        link.symlink_to(tmp_path / target)
        assert refusal(link) == f"{link} is a link: use a separate file"
    assert not (tmp_path / "nowhere.db").exists()
    (tmp_path / "other.db").hardlink_to(tmp_path / "plans.db")
    for name in ("other.db", "plans.db"):
        assert refusal(tmp_path / name) == (
            f"{tmp_path / name} is a file with several names: use a separate file"
        )
    (tmp_path / "other.db").unlink()
    (tmp_path / "folder").symlink_to(tmp_path)
    SqliteStore(tmp_path / "folder" / "plans.db").close()


def test_what_is_not_a_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe, plug = tmp_path / "pipe", tmp_path / "socket"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(plug))
        for path, what in (
            (pipe, "a pipe"),
            (plug, "not a file"),
            (tmp_path, "a folder"),
            (Path("/dev/full"), "not a file"),
        ):
            assert refusal(path) == f"{path} is {what}: use a separate file"


NO_PATHS = {
    **{each: repr(each) for each in ("", ":memory:", "file:plans.db", "file:plans.db?mode=memory", "a\0b")},
    "postgresql://ann:secret@host:5432/plans": "the address postgresql://host:5432/plans",
}


@pytest.mark.parametrize("path", NO_PATHS)
def test_what_is_not_a_path_is_refused(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    remedy = "" if "//" in path else ": MemoryStore needs none"
    assert refusal(path) == f"a store needs the path of a file, got {NO_PATHS[path]}{remedy}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a?b.db", "a#b.db", "a%20b.db", "ä b.db", "a&mode=memory.db"])
def test_any_name_is_the_name_of_a_file(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = SqliteStore(name)
    monkeypatch.chdir("/")
    session = open_session(store)
    session.dispatch(SETUP)
    store.close()
    assert [each.name for each in tmp_path.iterdir()] == [name]
    assert SqliteStore(tmp_path / name).verify("run-7") == 1


FOREIGN = {
    "tables": "CREATE TABLE orders (id INTEGER)",
    "no tables": "PRAGMA user_version = 0; VACUUM",
    "an application": "PRAGMA application_id = 7",
    "a version": "PRAGMA user_version = 1",
    "a WAL": "PRAGMA journal_mode = WAL",
    "a WAL and tables": "PRAGMA journal_mode = WAL; CREATE TABLE orders (id INTEGER)",
    "pages of another size": "PRAGMA page_size = 512; CREATE TABLE orders (id INTEGER)",
}
NOT_A_STORE = "{} is a SQLite file, but not a store of sessions: use another file"


@pytest.mark.parametrize("what", FOREIGN)
@pytest.mark.parametrize("left", ["closed", "in use", "killed"])
def test_a_file_of_another_program_is_refused_and_stays_as_it_was(what: str, left: str, path: Path) -> None:
    def files() -> dict[str, bytes]:
        return {each.name: each.read_bytes() for each in path.parent.iterdir() if each.suffix != ".db-shm"}

    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(FOREIGN[what])
        before = files()
        if left != "in use":
            connection.close()
        if left == "killed":
            for name, data in before.items():
                path.with_name(name).write_bytes(data)
        before = files()
        assert len(before["plans.db"]) > 0
        assert refusal(path) == NOT_A_STORE.format(path)
        assert files() == before


@pytest.mark.parametrize("text", ["7", "no database" * 100])
def test_a_file_of_text_is_refused_and_stays_as_it_was(path: Path, text: str) -> None:
    path.write_text(text)
    assert refusal(path) == f"the store {path} cannot be used: it is not a SQLite file"
    assert path.read_text() == text


@pytest.mark.parametrize(("synchronous", "level"), [("normal", 1), ("full", 2)])
def test_how_a_file_is_opened(path: Path, synchronous: Literal["normal", "full"], level: int) -> None:
    store = SqliteStore(path, timeout=3, synchronous=synchronous)
    open_session(store).dispatch(Note("first"))
    expected = {
        "trusted_schema": 0,
        "synchronous": level,
        "wal_autocheckpoint": 0,  # the store has its own
        "journal_size_limit": 0,
        "journal_mode": "wal",
    }
    for link, wait in ((store._reader, 3_000), (store._writer, 0)):
        connection = link.connected()
        found = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in expected}
        assert found == expected
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (wait,)
        assert connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) == 100_000_000
        assert connection.isolation_level is None


CAUSES = "FULL READONLY_DBMOVED CORRUPT NOTADB CANTOPEN IOERR_READ NOMEM TOOBIG MISUSE BUSY_SNAPSHOT LOCKED"


def test_what_a_file_cannot_be_used_for_is_said_with_what_to_do(
    path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    lines = [refusal(path.parent / "nowhere" / "a.db").replace(str(path.parent), "folder")]
    errors: list[Any] = [PermissionError("some words"), MemoryError("some words")]
    for name in CAUSES.split():
        errors.append(sqlite3.DatabaseError("some words"))
        errors[-1].sqlite_errorcode = getattr(sqlite3, f"SQLITE_{name}")
    for error in errors:
        monkeypatch.setattr("sqlite3.connect", Mock(side_effect=error))
        with pytest.raises(StoreError) as caught:
            SqliteStore(path, timeout=0.2)
        lines.append(f"{type(caught.value).__name__}: {caught.value}".replace(str(path), "plans.db"))
    assert "\n".join(lines) == snapshot


def test_an_empty_file_with_changes_beside_it_is_refused(path: Path) -> None:
    session = open_session(SqliteStore(path))
    session.dispatch(SETUP)
    wal = path.with_name("plans.db-wal").read_bytes()
    there = path.with_name("there.db")
    there.touch()
    there.with_name("there.db-wal").write_bytes(wal)
    assert refusal(there) == (f"{there} is empty, and its WAL has its content: restore it from a copy")
    assert there.with_name("there.db-wal").read_bytes() == wal


TOOLS = [
    "ANALYZE",
    "PRAGMA analysis_limit = 10; PRAGMA optimize",
    "VACUUM",
    "REINDEX",
    "PRAGMA journal_mode = DELETE",
    "PRAGMA journal_mode = DELETE; PRAGMA page_size = 8192; PRAGMA auto_vacuum = FULL; VACUUM; ANALYZE",
    "PRAGMA wal_checkpoint(TRUNCATE)",
    "PRAGMA incremental_vacuum; PRAGMA integrity_check; PRAGMA quick_check",
]


@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("is_open", [False, True])
def test_what_the_tools_of_sqlite_leave_is_no_damage(path: Path, tool: str, is_open: bool) -> None:
    plans = states_of(lived(open_session(SqliteStore(path))))
    store = SqliteStore(path, timeout=1)
    if not is_open:
        store.close()
    with closing(sqlite3.connect(path, timeout=0.1, isolation_level=None)) as connection:
        try:
            connection.executescript(tool)
        except sqlite3.OperationalError as error:
            assert is_open, error  # it is in use
    for each in (store, SqliteStore(path, timeout=1)):
        session = open_session(each)
        assert states_of(session)[: len(plans)] == plans
        session.dispatch(SETUP)
        assert each.verify("run-7") == session.version
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_file_without_its_wal_that_is_in_use_is_waited_for(path: Path) -> None:
    write(path, "first").close()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.executescript("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE")
        assert refusal(path) == BUSY.format(0.2)
        other.executescript("BEGIN IMMEDIATE")  # which commits first
        threading.Timer(0.1, other.execute, ["COMMIT"]).start()
        store = SqliteStore(path, timeout=20)
    assert store._reader.connected().execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store.verify("run-7") == 1


def test_a_backup_and_a_copy_by_vacuum_are_stores(path: Path) -> None:
    plans = states_of(lived(open_session(SqliteStore(path))))
    copies = [path.with_name("backup.db"), path.with_name("vacuum.db")]
    with closing(sqlite3.connect(path)) as connection, closing(sqlite3.connect(copies[0])) as other:
        connection.backup(other)
        connection.execute("VACUUM INTO ?", (str(copies[1]),))
    for copy in copies:
        session = open_session(SqliteStore(copy))
        assert states_of(session) == plans
        session.dispatch(SETUP)
        assert store_of(session).verify("run-7") == session.version


OTHER_TABLES = "{} has other tables than a store of sessions: it is damaged, or was changed"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("CREATE INDEX sqlitely ON changes (version)", OTHER_TABLES),
        ("CREATE TRIGGER t AFTER INSERT ON changes BEGIN DELETE FROM changes; END", OTHER_TABLES),
        ("PRAGMA user_version = 3", "{} has format 3; this release reads formats up to 2: use a newer one"),
    ],
)
def test_a_store_that_was_changed_or_is_newer_is_refused(path: Path, change: str, message: str) -> None:
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(change)
    assert refusal(path) == message.format(path)


def test_a_long_wal_is_copied_into_the_file_before_a_change_while_nobody_else_can_commit(path: Path) -> None:
    wal, store = path.with_name("plans.db-wal"), SqliteStore(path)
    session = open_session(store)
    session.dispatch(Note("x" * 5_000_000))
    # A checkpoint after the commit, beside other writers, is what loses their commits before SQLite 3.51.3.
    assert path.stat().st_size < 100_000
    assert wal.stat().st_size > 5_000_000
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT version FROM sessions").fetchall() == [(1,)]
        session.dispatch(Note("second"))
        assert path.stat().st_size > 5_000_000
        assert reader.execute("SELECT version FROM sessions").fetchall() == [(1,)]
    session.dispatch(Note("third"))
    session.dispatch(Note("fourth"))
    assert wal.stat().st_size < 100_000
    assert store.verify("run-7") == 4


PAGE = 4096  # bytes

WHILE_OTHERS_WRITE = """
import sys
from pathlib import Path
from session.stores import SqliteStore

path, names = Path(sys.argv[1]), sys.argv[2:]

def others_write(event, args):
    if event == "sqlite3.connect" and "immutable" in str(args[0]):
        while names:
            name = names.pop()
            path.with_name(f"new {name}").rename(path.with_name(name))

sys.addaudithook(others_write)
print([(str(each.session_id), each.version) for each in SqliteStore(path).sessions()], names)
"""


def write(path: Path, text: str) -> SqliteStore:
    store = SqliteStore(path)
    open_session(store).dispatch(Note(text))
    return store


def test_a_file_that_another_process_writes_is_not_called_damaged(path: Path) -> None:
    write(path, "before").close()
    before = path.read_bytes()
    store = write(path, "x" * 99_999)
    wal = path.with_name("plans.db-wal").read_bytes()
    store.close()
    # Another process begins its WAL, and its checkpoint has written the first page so far.
    path.with_name("new plans.db").write_bytes(path.read_bytes()[:PAGE] + before[PAGE:])
    path.with_name("new plans.db-wal").write_bytes(wal)
    path.write_bytes(before)
    assert printed(WHILE_OTHERS_WRITE, path, "plans.db", "plans.db-wal") == "[('run-7', 2)] []\n"


@pytest.mark.parametrize("pages", [0, 1, 3])
def test_a_process_killed_while_it_begins_a_file_leaves_one_to_begin(path: Path, pages: int) -> None:
    SqliteStore(path).close()
    whole = path.read_bytes()
    with closing(sqlite3.connect(path.with_name("other.db"), isolation_level=None)) as other:
        other.execute("PRAGMA cache_size = 1")
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE a (text TEXT)")
        other.execute("INSERT INTO a VALUES (?)", ("x" * 99 * PAGE,))  # more than stays in memory
        journal = path.with_name("other.db-journal").read_bytes()
    path.write_bytes(whole[: pages * PAGE])
    path.with_name("plans.db-journal").write_bytes(journal)
    write(path, "first").close()
    with closing(SqliteStore(path)) as store:
        assert ([each.version for each in store.sessions()], store.verify("run-7")) == ([1], 1)
    assert {each.name for each in path.parent.iterdir()} == {"plans.db", "other.db"}


FORMAT_1 = Path(__file__).with_name("format_1.sql")
"""A dump of a file that the last release with format 1 wrote: a session with a rewind, a call id that was
used twice and claims, and its fork."""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "plans.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"PRAGMA journal_mode = WAL; {FORMAT_1.read_text()}")
    return path


def tables(path: Path) -> tuple[int, dict[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        (number,) = connection.execute("PRAGMA user_version").fetchone()
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return number, dict(found)


def test_a_file_of_format_1_is_brought_to_format_2_with_all_that_is_in_it(old: Path, tmp_path: Path) -> None:
    store = SqliteStore(old)
    session, toolbox = planned(store)
    assert (store.verify("run-7"), store.verify("fork")) == (6, 2)
    listed = [(str(each.session_id), each.version, dict(each.tags)) for each in store.sessions()]
    assert listed == [(name, version, {"project": "login"}) for name, version in (("fork", 2), ("run-7", 6))]
    plans = [session.at(version).select_latest(Plan) for version in range(7)]
    states = [None, ("active", (0, 2)), ("active", (1, 2)), ("abandoned", (0, 0)), *[("active", (1, 2))] * 3]
    assert [plan and (plan.status, plan.progress) for plan in plans] == states
    assert [line.call_id for line in session.select_all(ToolCall)] == [f"call_{n}" for n in (1, 2, 3, 1, 4)]
    assert isinstance(session.history(after=3)[0].events[0], Rewound)
    assert (session.claim("mailed the report"), session.claim("another")) == (False, True)
    by = {"call_id": "call_1", "idempotency_key": "1"}
    for _ in "ab":
        assert toolbox.call("planning_mark_step", {"step_id": "S002", "status": "done"}, context=by).success
    assert (session.version, store.verify("run-7")) == (7, 7)
    store.close()
    SqliteStore(tmp_path / "new.db").close()
    assert tables(old) == tables(tmp_path / "new.db")


def test_a_migration_that_is_cut_off_changes_nothing(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tables(old)

    def killed(_row: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(files, "check_of", killed)
        with pytest.raises(KeyboardInterrupt):
            SqliteStore(old)
    assert tables(old) == before
    assert SqliteStore(old).verify("run-7") == 6


def test_two_processes_that_open_it_at_once_migrate_it_once(old: Path) -> None:
    program = (
        "import sys; from session.stores import SqliteStore; print(SqliteStore(sys.argv[1]).verify('run-7'))"
    )
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(printed, [program] * 3, [old] * 3)) == ["6\n"] * 3


# Addresses of stores as messages show them


MESSAGES = (
    "at postgresql://ann:secret@h/d: no",
    "at //ann@h/d",
    "ann:secret@h is not a file",
    "/data/a:b@c/plans.db is not a file",
    "mail ann@h",
    "write postgresql://USER:PASSWORD@HOST:PORT/DATABASE",
    "host=h password=secret dbname=d",
    "host=h password = 'se cret' dbname=d",
    "postgresql://h/d?sslPassword=secret&a=b",
)


def test_a_message_hides_users_and_passwords(snapshot: SnapshotAssertion) -> None:
    assert "\n".join(map(hide_secrets, MESSAGES)) == snapshot


PLACES = (
    "postgresql://ann:secret@h:5432/d?schema=a&sslmode=require",
    "postgresql://h/d?connect_timeout=3&target_session_attrs=any",
    "postgresql://h/d?schema=a&password=secret",
    "Postgres://[::1]:5,k.l/d",
    *("my+sql://a@b@c", "a b://h", "postgresql://h/d e", "garbage"),
    "host='h' port=5432 dbname='d' password='se cret'",
    "hostaddr=1.2.3.4 host=h dbname=d",
    *("host=h dbname='a b'", "host=h dbname=d more", "dbname=d"),
    "postgresql://me:s@cret@db:5433/plans-1.0",
    "postgresql://db/plans?user=me&password=a@secret",
    *("postgresql://db:5432,%2Frun%2Fpg/plans", "dbname=postgresql://me:secret@db/plans"),
    "host=/run/pg port=5433 password='a \\'secret' dbname=plans",
)


def test_an_address_is_shown_by_its_host_its_port_and_its_database(snapshot: SnapshotAssertion) -> None:
    assert "\n".join(f"{place}: {show_address(place)}" for place in PLACES) == snapshot


ADDRESSES = (
    *("host = h", "  dbname=d", "x host=h", "a=1 b=2", "postgresql://", "ann:word@h", "pg:/h"),
    "x\nsslmode=a",
)
PATHS = (
    *("plans.db", "a=b.db", "/a/host=h.db", "hosts=h", "C:\\x", "file:plans.db", "sub/a://b", "a@b"),
    "p:/h",
)


def test_an_address_is_known_from_a_path() -> None:
    assert [each for each in (*ADDRESSES, *PATHS) if is_address(each)] == [*ADDRESSES]


@pytest.mark.parametrize(
    ("place", "database"),
    [
        ("postgresql://h/d", ("postgresql://h/d", "sessions")),
        ("Postgres://h/d?schema=a%20b&x=1&y=2", ("postgres://h/d?x=1&y=2", "a b")),
        ("postgresql://h/d?schema=a&schema=b", ("postgresql://h/d", "b")),
        ("host=h dbname=d", ("host=h dbname=d", "sessions")),
    ],
)
def test_an_address_names_a_database_and_the_schema_in_it(place: str, database: tuple[str, str]) -> None:
    assert database_of(place) == database


@pytest.mark.parametrize(
    ("place", "shown"),
    [("mysql+x://ann:secret@h/d", "mysql+x://"), ("a b://h", "this place"), ("h", "this place")],
)
def test_an_address_of_something_else_is_refused(place: str, shown: str) -> None:
    assert refused(lambda: database_of(place)) == (
        f"stores at {shown} are not supported; give a SQLite file, or postgresql://HOST/DATABASE"
    )
