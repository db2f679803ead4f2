"""A database file of SQLite or DuckDB: it can only be read, within its limits, and reaches nothing else."""

# ruff: noqa: S608 - the statements are the subject of these tests

from __future__ import annotations

import builtins
import os
import shutil
import sqlite3
import subprocess
import sys
from bisect import bisect_left
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any
from unittest.mock import Mock

import duckdb
import pytest
from agent_samples import failing
from plan_findings import stored_values, whole, with_outcomes
from readonly_files import COUNTING, descriptors, make, settle, state, until
from run_cases import refusal
from syrupy.assertion import SnapshotAssertion

from planning.agent import SqlDatabase
from planning.agent.databases import files, opened, sqlite_file
from planning.agent.databases.duckdb_file import DuckdbFile
from planning.agent.databases.files import locate
from planning.agent.databases.opened import Answer, fetched
from planning.agent.databases.sqlite_file import SqliteFile
from planning.agent.sql.guard import Failure
from planning.tools import StorageUnavailable
from planning.tools.errors import ToolTimeout

TOO_LARGE = "a value in it is too large for an answer; ask for its length, or a part of it with substr"
TOOK_LONGER = "the query took longer than {} s and was stopped; ask for less, with WHERE or LIMIT"


def answer(database: SqlDatabase, sql: str) -> dict[str, Any]:
    given = database.execute(sql)
    assert isinstance(given.pop("elapsed"), float)
    return given


@pytest.mark.parametrize("most", [1, 15, 16, 17, 39, 40, 41])
def test_rows_past_the_most_are_left_out_and_said_to_be(shop_path: Path, most: int) -> None:
    with SqlDatabase(shop_path, max_rows=most) as database:
        for there in (40, 1_000_000_000):
            given = answer(database, f"{COUNTING.replace('count(*)', 'x')} LIMIT {there}")
            kept = [[number] for number in range(1, min(most, there) + 1)]
            assert (given["data"], given["row_count"]) == (kept, len(kept))
            assert given["truncated"] is (most < there)


def test_an_answer_of_too_many_bytes_is_cut_and_said_to_be(shop: SqlDatabase) -> None:
    given = answer(shop, COUNTING.replace("count(*)", "zeroblob(100000)"))
    assert (given["success"], given["truncated"]) == (True, True)
    assert given["row_count"] == len(given["data"]) == 159  # of 16 megabytes


BOUNDS = [most + more for most in (50_000, 127_936, 200_000, 1_000_000, 32_000_000) for more in (0, 1)]


def test_a_value_is_small_beside_a_slow_call(shop: SqlDatabase, snapshot: SnapshotAssertion) -> None:
    """The most bytes of a value in a statement that has a call, or many values."""

    def most(beside: object) -> int:
        sql = f"SELECT length(zeroblob({{}})), {whole(beside)}"
        place = bisect_left(BOUNDS, TOO_LARGE, key=lambda size: shop.execute(sql.format(size))["error"] or "")
        return BOUNDS[place - 1]

    assert with_outcomes(stored_values(snapshot), most) == snapshot


class Slow:
    """Statements that take as long as the test says, in a call that cannot be interrupted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.has_begun, self.may_end, self.ended = Event(), Event(), set[SqliteFile]()
        monkeypatch.setattr(SqliteFile, "run", self._run)
        monkeypatch.setattr(SqliteFile, "close", lambda file: self.ended.add(file))  # noqa: PLW0108 - a method, not a builtin
        monkeypatch.setattr(files, "_SHORT_WAIT", 0.001)

    def _run(self, *_: object) -> Answer:
        self.has_begun.set()
        assert self.may_end.wait(30)
        return ["n"], [[1]], False


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    slow = Slow(monkeypatch)
    yield slow
    slow.may_end.set()


def test_calls_that_cannot_be_interrupted_are_left_behind(shop_path: Path, slow: Slow) -> None:
    with SqlDatabase(shop_path, timeout=0.02) as database:
        late = failing(TOOK_LONGER.format("0.02"), "timeout")
        assert [answer(database, "SELECT 1") for _ in range(8)] == [late] * 8
        busy = f"too many queries are running on {shop_path}; try again later"
        assert answer(database, "SELECT 2") == failing(busy, "storage")
        slow.may_end.set()
        database.timeout = 30.0
        assert answer(database, "SELECT 3")["data"] == [[1]]


def test_a_thread_reads_one_statement_after_another(shop_path: Path, slow: Slow) -> None:
    slow.may_end.set()
    with SqlDatabase(shop_path) as database:
        assert [answer(database, "SELECT 1")["data"] for _ in range(3)] == [[[1]]] * 3
        assert slow.ended == set()
    assert len(slow.ended) == 1


def test_a_thread_at_work_ends_after_the_database_was_closed(shop_path: Path, slow: Slow) -> None:
    with SqlDatabase(shop_path, timeout=30) as database, ThreadPoolExecutor() as threads:
        first = threads.submit(answer, database, "SELECT 1")
        assert slow.has_begun.wait(30)
        database.close()
        assert slow.ended == set()
        slow.may_end.set()
        assert first.result()["data"] == [[1]]
        assert len(slow.ended) == 1
        assert answer(database, "SELECT 1")["data"] == [[1]], "a closed database can be asked again"


def test_no_thread_can_start(shop: SqlDatabase, shop_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start = Mock(side_effect=RuntimeError("can't start new thread"))
    cannot = f"cannot start a thread that reads {shop_path} (can't start new thread)"
    with monkeypatch.context() as patch:
        patch.setattr("_thread.start_new_thread", start)
        failed = failing(f"{cannot}; check this machine's memory", "storage")
        assert [answer(shop, "SELECT 1") for _ in range(10)] == [failed] * 10
    assert answer(shop, "SELECT 1")["data"] == [[1]]


def test_a_path_holds_in_any_folder(shop_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop_path.parent)
    with SqlDatabase("shop.db") as database:
        monkeypatch.chdir(tmp_path)
        assert answer(database, "SELECT count(*) FROM cities")["data"] == [[3]]


def test_the_schema_is_read_once(shop_path: Path, shop: SqlDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    settle(shop_path)
    first = shop.get_schema("anything")
    assert "4 tables" in first
    assert shop.get_schema() is first
    make(shop_path, "CREATE TABLE more (id)")
    monkeypatch.setattr("planning.agent.databases.files._TICK", 60)  # seconds: however slow this machine is
    fresh = shop.get_schema()
    assert shop.get_schema() is not fresh, "a change in the same tick of the clock would not be seen"
    assert "more, 0 rows" in shop.get_schema()
    with closing(sqlite3.connect(shop_path)) as writer:
        writer.execute("INSERT INTO more VALUES (1)")
        writer.commit()
    assert "more, 1 row\n" in shop.get_schema()
    shutil.rmtree(shop_path.parent)
    with pytest.raises(StorageUnavailable, match="there is no database at"):
        shop.get_schema()


def test_a_slow_schema_times_out(shop: SqlDatabase, shop_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteFile, "tables", Mock(side_effect=Failure("timeout")))
    message = "^reading the schema took longer than 5 s and was stopped; try again, or allow more seconds$"
    with pytest.raises(ToolTimeout, match=message):
        shop.get_schema()
    monkeypatch.setattr(SqliteFile, "tables", Mock(side_effect=Failure("sql", "it failed")))
    told = f"the contents of {shop_path} cannot be read (it failed); check its tables and views"
    assert refusal(StorageUnavailable, shop.get_schema) == told


def test_numbers_out_of_range_are_refused(snapshot: SnapshotAssertion) -> None:
    wrong: tuple[Any, ...] = {"timeout": 0}, {"timeout": float("nan")}, {"max_rows": 1.5}, {"samples": -1}
    assert "".join(f"{refusal(ValueError, SqlDatabase, 'a.db', **each)}\n" for each in wrong) == snapshot


@pytest.mark.parametrize(("timeout", "rows", "samples"), [(0.001, 1, 0), (3_600, 1_000_000, 100)])
def test_numbers_at_the_ends_of_their_ranges_are_taken(timeout: float, rows: int, samples: int) -> None:
    database = SqlDatabase("a.db", timeout=timeout, max_rows=rows, samples=samples)
    assert (database.timeout, database.max_rows, database.samples) == (timeout, rows, samples)
    default = SqlDatabase("a.db")
    assert (default.timeout, default.max_rows, default.samples) == (5, 1000, 3)


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [("shop.duckdb", "duckdb", "duckdb"), ("postgresql://h/d", "psycopg", "postgres")],
)
def test_without_its_package_a_database_says_what_to_install(
    name: str, package: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "planning.agent.databases.postgres", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.chdir(tmp_path)
    Path("shop.duckdb").touch()
    error = f"reading {name} needs {package}: pip install 'session-planning[{extra}]'"
    with SqlDatabase(name) as database:
        assert answer(database, "SELECT 1") == failing(error, "storage")


def test_a_source_is_a_dialect_and_a_path(snapshot: SnapshotAssertion) -> None:
    assert with_outcomes(stored_values(snapshot), locate) == snapshot
    assert locate(Path("a/shop.db")) == ("sqlite", str(Path("a/shop.db")))


def test_what_is_no_file_is_refused_when_it_is_named(snapshot: SnapshotAssertion) -> None:
    told = with_outcomes(stored_values(snapshot), lambda each: refusal(ValueError, SqlDatabase, each))
    assert told == snapshot


def test_naming_a_database_does_not_touch_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert repr(SqlDatabase(tmp_path / "pipe")) == f"SqlDatabase('{tmp_path}/pipe')"


WRITES, WRITES_DUCKDB = (
    Path(__file__).with_name(name).read_text().splitlines() for name in ("writes.sql", "writes_duckdb.sql")
)
SEARCH = Path(__file__).with_name("search.sql").read_text(encoding="utf-8")


@pytest.mark.parametrize("lock", ["mode=ro", "query_only = 1"])
@pytest.mark.parametrize("sql", WRITES)
def test_one_lock_is_enough(shop_path: Path, sql: str, lock: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shop_path.parent)
    before = state(shop_path.parent)
    connect = sqlite3.connect
    if lock == "mode=ro":
        monkeypatch.setattr(sqlite_file, "_PRAGMAS", ())
    else:
        monkeypatch.setattr(sqlite3, "connect", lambda at, **more: connect(at.replace("=ro", "=rw"), **more))
    monkeypatch.setattr(SqliteFile, "_authorize", lambda *_: sqlite3.SQLITE_OK)
    file = SqliteFile(str(shop_path), 5.0)
    file.deadline = monotonic() + 5.0
    with pytest.raises(Failure) as caught:
        file.run(sql, 1)
    file.close()
    assert caught.value.kind in {"refused", "sql"}  # enough: by the guard or by SQLite
    assert state(shop_path.parent) == before


def test_full_text_and_spatial_tables_are_read_and_not_written(tmp_path: Path) -> None:
    path = make(tmp_path / "search.db", SEARCH)
    before = state(tmp_path)
    with SqlDatabase(path) as database:
        for sql, given in {
            "SELECT title FROM papers WHERE papers MATCH 'hello'": "One",
            "SELECT highlight(papers, 1, '<', '>') FROM papers('bye') ORDER BY rank": "<bye>",
            "SELECT snippet(old) FROM old WHERE old MATCH 'again'": "hello <b>again</b>",
            "SELECT x2 FROM boxes WHERE x1 > 1": 3.0,
            "SELECT * FROM found": "One",
        }.items():
            assert database.execute(sql)["data"] == [[given]]
        for sql in ("SELECT optimize(old) FROM old", "INSERT INTO papers(papers) VALUES ('optimize')"):
            assert database.execute(sql)["code"] == "parameter"
        assert database.get_schema().startswith("SQLite, 3 tables, 1 view\n")
    assert state(tmp_path) == before


def test_a_statement_during_a_change_is_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1);"
    path = make(tmp_path / "wal.db", script)
    changes = iter([2, 3])

    def changing(*given: Any) -> Any:
        more = fetched(*given)
        for number in changes:
            make(path, f"INSERT INTO t VALUES ({number})")
            break
        return more

    monkeypatch.setattr(sqlite_file, "fetched", changing)
    with SqlDatabase(path) as database:
        assert database.execute("SELECT a FROM t")["data"] == [[1], [2], [3]]
        changes = iter(range(100))
        assert "is locked by another program" in database.execute("SELECT a FROM t")["error"]
        assert next(changes) == 5


def test_no_descriptor_is_left_open(shop_path: Path) -> None:
    before = descriptors()
    for _ in range(5):
        with SqlDatabase(shop_path) as database:
            database.execute("SELECT 1")
            database.execute("SELECT nothing")
    until(lambda: descriptors() == before)


def test_counting_a_long_table_stops_in_time(tmp_path: Path) -> None:
    many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 400000) SELECT x FROM c"
    path = make(tmp_path / "long.db", f"CREATE TABLE long (x); INSERT INTO long {many};")
    file = SqliteFile(str(path), 5.0)
    file.deadline = monotonic() + 5.0
    assert file.tables(0, monotonic() + 0.001)[0]["rows"] is None
    assert file.tables(0, monotonic() + 5.0)[0]["rows"] == 400_000
    file.close()


def test_the_locks_of_this_program_on_the_file_are_kept(shop_path: Path) -> None:
    code = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
    with closing(sqlite3.connect(shop_path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with SqlDatabase(shop_path) as database:
            assert database.execute("SELECT count(*) FROM cities")["data"] == [[3]]
        other = subprocess.run([sys.executable, "-c", code, shop_path], capture_output=True, check=False)
    assert b"database is locked" in other.stderr


SHOP = Path(__file__).with_name("shop_duckdb.sql").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(SHOP)
    return tmp_path


@pytest.fixture
def database(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqlDatabase]:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TZ", "UTC")
    with SqlDatabase(folder / "shop.duckdb", timeout=60) as database:
        yield database


@pytest.mark.parametrize("sql", WRITES_DUCKDB)
def test_the_connection_alone_writes_nothing(folder: Path, sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    before = state(folder)
    file = DuckdbFile(str(folder / "shop.duckdb"))
    file.run("SELECT 1", 1)
    assert file._connection is not None
    with pytest.raises(duckdb.Error):
        file._connection.execute(sql)
    file.close()
    assert state(folder) == before
    assert not (Path.home() / ".duckdb").exists()


def test_times_in_a_time_zone_are_read_in_this_process_too(database: SqlDatabase) -> None:
    data = database.execute("SELECT seen, id FROM customers ORDER BY id")["data"]
    assert data == [["2024-01-02 03:04:05+00", 1], [None, 2]]


def test_the_schema_of_a_shop(database: SqlDatabase, folder: Path, snapshot: SnapshotAssertion) -> None:
    assert database.get_schema().replace(duckdb.__version__, "VERSION") == snapshot
    with SqlDatabase(folder / "shop.duckdb", samples=0) as private:
        schema = private.get_schema()
    assert "\n\ncities, 2 rows\n  id INTEGER, primary key\n  name VARCHAR, not null\n" in schema
    settle(folder / "shop.duckdb")
    known = database.get_schema()
    assert database.get_schema() is known
    (folder / "shop.duckdb.wal").write_bytes(b"no log")
    assert database.get_schema() is not known, "a log shows that there are changes"


def test_an_error_of_a_library_is_of_its_kind(
    folder: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    make(folder / "shop.db")

    def outcome(name: str) -> str:
        error = {**vars(builtins), **vars(duckdb)}.get(name, sqlite3.OperationalError)("it failed")
        error.sqlite_errorcode = getattr(sqlite3, name, None)
        for module in (opened, sqlite_file):
            monkeypatch.setattr(module, "fetched", Mock(side_effect=error))
        with SqlDatabase(folder / ("shop.db" if "SQLITE" in name else "shop.duckdb"), timeout=60) as database:
            given = database.execute("SELECT 1")
        return f"{given['code']}: {given['error']}".replace(str(folder), "FOLDER")

    assert with_outcomes(stored_values(snapshot), outcome) == snapshot


def test_a_correlated_query_with_many_nulls_is_an_error(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as shop:
        shop.execute("CREATE TABLE t AS FROM (VALUES (1, NULL), (1, NULL), (2, 1)) AS t(k, ref)")
    sql = "SELECT k FROM t AS a WHERE a.k NOT IN (SELECT b.ref FROM t AS b WHERE b.k = a.k)"
    with SqlDatabase(tmp_path / "d.duckdb") as database:
        assert database.execute(sql)["error"] == (
            "NOT a.k IN (SELECT b.ref FROM t AS b WHERE b.k = a.k) is never true, as the query in it returns "
            "NULL; add IS NOT NULL to its WHERE"
        )


@pytest.mark.parametrize(
    "sql", ["SELECT list_sum(range(10000000000))", "SELECT x FROM range(30000000) t(x) ORDER BY hash(x)"]
)
def test_too_much_memory_is_refused(database: SqlDatabase, sql: str) -> None:
    assert database.execute(sql)["code"] == "parameter"
    assert database.execute("SELECT 1")["data"] == [[1]]


LONG = "repeat('x', 1000000)"


@pytest.mark.parametrize(
    "value",
    [f"{LONG}, {LONG}, {LONG}", f"[{LONG}, {LONG}, {LONG}]", f"{{'a': [{LONG} || {LONG}], 'b': {LONG}}}"],
)
def test_rows_are_counted_in_bytes_whatever_they_are_made_of(database: SqlDatabase, value: str) -> None:
    answer = database.execute(f"SELECT {value} FROM range(20)")
    assert (answer["row_count"], answer["truncated"]) == (5, True)


@pytest.mark.parametrize("place", [12_288, 2_000_000], ids=["what is read first", "data"])
def test_a_file_that_was_damaged_is_told_until_it_is_mended(tmp_path: Path, place: int) -> None:
    path = tmp_path / "long.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE long AS SELECT repeat(x::VARCHAR, 20) AS x FROM range(100000) AS t(x)")
    good = path.read_bytes()
    path.write_bytes(good[:place] + b"\xff" * 100_000 + good[place + 100_000 :])
    with SqlDatabase(path, timeout=60) as database:
        damaged = database.execute("SELECT max(x) FROM long")
        assert (damaged["code"], "is damaged, or not an SQLite" in damaged["error"]) == ("storage", True)
        path.write_bytes(good)
        assert database.execute("SELECT count(*) FROM long")["data"] == [[100_000]]


HOLD = "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('ready', flush=True); sys.stdin.read()"
CHANGE = "import duckdb, sys; duckdb.connect(sys.argv[1]).execute('INSERT INTO other.things VALUES (1)')"


def test_a_file_is_free_for_writers_soon_after_it_was_read(folder: Path) -> None:
    path = str(folder / "shop.duckdb")

    def can_be_written() -> bool:
        done = subprocess.run([sys.executable, "-c", CHANGE, path], stderr=subprocess.DEVNULL, check=False)
        return done.returncode == 0

    with SqlDatabase(path) as database:
        assert database.execute("SELECT count(*) FROM cities")["data"] == [[2]]
        until(can_be_written)
        assert database.execute("SELECT count(*) FROM other.things")["data"] == [[1]]


def test_a_file_that_another_program_writes_to_is_told(folder: Path) -> None:
    path = str(folder / "shop.duckdb")
    with SqlDatabase(path) as database:
        command = [sys.executable, "-c", HOLD, path]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            given = database.execute("SELECT 1")
            writer.communicate(b"")
        told = f"{path} is locked by another program; try again later"
        assert (given["code"], given["error"]) == ("storage", told)
        assert database.execute("SELECT 1")["success"] is True


def test_a_file_that_this_program_has_open_with_other_settings_is_told(folder: Path) -> None:
    path = folder / "shop.duckdb"
    with duckdb.connect(str(path)), SqlDatabase(path) as database:
        given = database.execute("SELECT 1")
    told = f"{path} is open in this program with other settings; close it there first"
    assert (given["code"], given["error"]) == ("storage", told)
