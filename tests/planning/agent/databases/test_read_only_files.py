"""A file of SQLite or DuckDB, with no guard before it: it can only be read, and reaches nothing else."""

# ruff: noqa: S608 - the statements are the subject of these tests

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any

import duckdb
import pytest
from readonly_files import descriptors, make, state, until
from syrupy.assertion import SnapshotAssertion

from planning.agent import SqlDatabase
from planning.agent.databases import sqlite_file
from planning.agent.databases.duckdb_file import DuckdbFile
from planning.agent.databases.opened import fetched
from planning.agent.databases.sqlite_file import SqliteFile, check_copies
from planning.agent.sql.guard import Failure

WRITES = [
    "DELETE FROM customers",
    "WITH x AS (SELECT 1) INSERT INTO cities SELECT 8, 'x' FROM x",
    "CREATE TABLE t (a)",
    "CREATE VIRTUAL TABLE t USING fts5(a)",
    "ATTACH 'other.db' AS o",
    "VACUUM",
    "VACUUM INTO 'copy.db'",
    "REINDEX",
]
SEARCH = """
    CREATE VIRTUAL TABLE papers USING fts5(title, body);
    INSERT INTO papers VALUES ('One', 'hello world'), ('Two', 'bye');
    CREATE VIRTUAL TABLE old USING fts4(body); INSERT INTO old VALUES ('hello again');
    CREATE VIRTUAL TABLE boxes USING rtree(id, x1, x2); INSERT INTO boxes VALUES (1, 2, 3);
    CREATE VIEW found AS SELECT title FROM papers WHERE papers MATCH 'hello';
"""


@pytest.mark.parametrize("lock", ["mode=ro", "query_only = 1"])
@pytest.mark.parametrize("sql", WRITES)
def test_each_lock_alone_is_enough(
    shop_path: Path, sql: str, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop_path.parent)
    before = state(shop_path.parent)
    connect = sqlite3.connect
    if lock == "mode=ro":
        monkeypatch.setattr(sqlite_file, "_PRAGMAS", ())
    else:
        monkeypatch.setattr(
            sqlite3, "connect", lambda path, **more: connect(path.replace("=ro", "=rw"), **more)
        )
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


DOUBLING = [f"t{i} AS (SELECT x FROM t{i - 1} UNION ALL SELECT x FROM t{i - 1})" for i in range(1, 25)]
BASE = "t0 (x) AS (SELECT 1)"


CHAINS = {
    "in order": [BASE, *DOUBLING],
    "reversed": [*reversed(DOUBLING), BASE],
    "with words between": [
        BASE.replace("AS", "AS NOT MATERIALIZED"),
        *(each.replace("AS", "AS/**/", 1) for each in DOUBLING),
    ],
    "in capitals": [BASE, *(each.replace("t", '"t"').replace('"t"', "T") for each in DOUBLING)],
    "of signs": [each.replace("t", "$\u2192t") for each in (BASE, *DOUBLING)],
    "read by IN": [f"[t0] AS (SELECT 1), {', '.join(DOUBLING).replace('FROM t', 'WHERE x IN t')}"],
    "in brackets": [re.sub(r"t(\d+) AS", r"[t\1] AS", each) for each in (BASE, *DOUBLING)],
}


@pytest.mark.parametrize("tables", CHAINS.values(), ids=CHAINS)
def test_a_chain_that_doubles_is_refused(tables: list[str]) -> None:
    with pytest.raises(Failure) as caught:
        check_copies(f"WITH {', '.join(tables)} SELECT count(*) FROM t24")
    assert caught.value.kind == "expanded"


@pytest.mark.parametrize(
    "sql",
    [
        f"WITH {', '.join([BASE, *DOUBLING[:14]])} SELECT count(*) FROM t14",
        f"WITH {', '.join([BASE, *(f't{i} AS (SELECT * FROM t{i - 1})' for i in range(1, 500))])} SELECT 1",
        "WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n, n AS m) SELECT 1 AS n FROM n",
        "SELECT 'with a as (b), c as (a)' AS a",
        "WITH a AS (",
    ],
)
def test_any_other_statement_is_not(sql: str) -> None:  # enough: nothing is raised
    check_copies(sql)


SHOP = """
    CREATE TABLE cities (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL UNIQUE);
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR, city_id INTEGER REFERENCES cities(id),
        credit DECIMAL(10, 2), since TIMESTAMP, seen TIMESTAMPTZ, tags VARCHAR[], photo BLOB);
    CREATE TABLE visits (customer_id INTEGER, day DATE, number INTEGER,
        PRIMARY KEY (day, customer_id), UNIQUE (number, day));
    CREATE SCHEMA other; CREATE TABLE other.things (x INTEGER CHECK (x > 0));
    CREATE VIEW big_spenders AS SELECT name FROM customers;
    CREATE SEQUENCE numbers;
    INSERT INTO cities VALUES (1, 'Oslo'), (2, 'Bern');
    INSERT INTO customers VALUES
        (1, 'Ada', 1, 12.5, '2024-01-02 03:04:05', '2024-01-02 03:04:05+00', ['a', 'b'], 'x'::BLOB),
        (2, 'Grace', 2, NULL, NULL, NULL, NULL, NULL);
"""


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


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM cities",
        "COPY cities TO 'out.csv'",
        "EXPORT DATABASE 'out'",
        "ATTACH 'other.db'",
        "INSTALL httpfs",
        "SET threads = 1",
    ],
)
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
    assert database.execute("SELECT seen, id FROM customers ORDER BY id")["data"] == [
        ["2024-01-02 03:04:05+00", 1],
        [None, 2],
    ]


def test_the_schema_of_a_shop(database: SqlDatabase, snapshot: SnapshotAssertion) -> None:
    assert database.get_schema().replace(duckdb.__version__, "VERSION") == snapshot


def test_a_correlated_query_with_many_nulls_is_an_error(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "d.duckdb")) as shop:
        shop.execute("CREATE TABLE t AS FROM (VALUES (1, NULL), (1, NULL), (2, 1)) AS t(k, ref)")
    sql = "SELECT k FROM t AS a WHERE a.k NOT IN (SELECT b.ref FROM t AS b WHERE b.k = a.k)"
    with SqlDatabase(tmp_path / "d.duckdb") as database:
        assert database.execute(sql)["error"] == (
            "NOT a.k IN (SELECT b.ref FROM t AS b WHERE b.k = a.k) is never true, as the query in it returns "
            "NULL; add IS NOT NULL to its WHERE"
        )


@pytest.mark.slow
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


def test_a_text_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "text.duckdb").write_text("hello " * 5000)
    with SqlDatabase(tmp_path / "text.duckdb") as database:
        assert "is damaged, or not an SQLite" in database.execute("SELECT 1")["error"]


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
