"""A DuckDB file can only be read, and reaches nothing else."""

# ruff: noqa: S608 - the statements are the subject of these tests

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from readonly_files import state, until
from syrupy.assertion import SnapshotAssertion

from planning.agent import SqlDatabase
from planning.agent.databases.duckdb_file import DuckdbFile

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
