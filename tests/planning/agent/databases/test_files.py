"""A database that can only be read."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest
from agent_samples import failing
from readonly_files import COUNTING, make, settle

from planning.agent import SqlDatabase
from planning.agent.databases import files
from planning.agent.databases.files import locate
from planning.agent.databases.opened import Answer
from planning.agent.databases.sqlite_file import SqliteFile
from planning.agent.sql.guard import Failure
from planning.tools import StorageUnavailable
from planning.tools.errors import ToolTimeout

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


def test_a_call_that_cannot_be_interrupted_is_left_behind(shop_path: Path, slow: Slow) -> None:
    with SqlDatabase(shop_path, timeout=0.05) as database:
        assert answer(database, "SELECT 1") == failing(TOOK_LONGER.format("0.05"), "timeout")
        slow.may_end.set()


def test_a_statement_waits_for_a_thread(shop_path: Path, slow: Slow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_MOST", 1)
    with SqlDatabase(shop_path, timeout=0.05) as database, ThreadPoolExecutor() as threads:
        first = threads.submit(answer, database, "SELECT 1")
        assert slow.has_begun.wait(30)
        busy = f"too many queries are running on {shop_path}; try again later"
        assert answer(database, "SELECT 2") == failing(busy, "storage")
        slow.may_end.set()
        first.result()
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


def test_a_schema_that_takes_long_is_a_timeout(shop: SqlDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SqliteFile, "tables", Mock(side_effect=Failure("timeout")))
    message = "^reading the schema took longer than 5 s and was stopped; try again, or allow more seconds$"
    with pytest.raises(ToolTimeout, match=message):
        shop.get_schema()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"timeout": 0}, "timeout must be seconds from 0.001 to 3,600, got 0"),
        ({"timeout": float("nan")}, "timeout must be seconds from 0.001 to 3,600, got nan"),
        ({"max_rows": 1.5}, "max_rows must be a whole number from 1 to 1,000,000, got 1.5"),
        ({"samples": -1}, "samples must be a whole number from 0 to 100, got -1"),
    ],
)
def test_numbers_out_of_range_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match="must be") as caught:
        SqlDatabase("a.db", **options)
    assert str(caught.value) == told


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


WANTED = (
    "give postgresql://HOST/DATABASE, the path of an SQLite or DuckDB file, or sqlite:///PATH, or "
    "duckdb:///PATH"
)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("shop.db", ("sqlite", "shop.db")),
        (Path("a/shop.db"), ("sqlite", str(Path("a/shop.db")))),
        ("a/shop.duckdb", ("duckdb", "a/shop.duckdb")),
        ("shop.DDB", ("duckdb", "shop.DDB")),
        ("sqlite:///shop.duckdb", ("sqlite", "shop.duckdb")),
        ("sqlite:////data/shop.db", ("sqlite", "/data/shop.db")),
        ("duckdb:///shop.db", ("duckdb", "shop.db")),
        ("what?.db", ("sqlite", "what?.db")),
        ("postgresql://me@h:1/d?sslmode=require", ("postgres", "postgresql://me@h:1/d?sslmode=require")),
        ("postgres:///d", ("postgres", "postgres:///d")),
        ("./a b://c.db", ("sqlite", "./a b://c.db")),
    ],
)
def test_a_source_is_a_dialect_and_a_path(source: str, found: tuple[str, str]) -> None:
    assert locate(source) == found


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (7, "a database is a path or a URL, got int"),
        ("", "'' is not the path of a file"),
        ("a\0b", "'a\\x00b' is not the path of a file"),
        ("file:a.db", "'file:a.db' is not the path of a file"),
        (":memory:", "':memory:' is not the path of a file"),
        ("sqlite:///:memory:", "':memory:' is not the path of a file"),
        ("postgresql+psycopg://h/d", "unsupported database URL postgresql+psycopg://h/d"),
        ("POSTGRESQL://me:secret@h/d", "unsupported database URL POSTGRESQL://h/d"),
        ("host=h dbname=d password=secret", "unsupported database URL postgresql://h/d"),
        ("mysql://h/d?password=secret", "unsupported database URL mysql://h/d"),
        ("sqlite://shop.db", "unsupported database URL sqlite://shop.db"),
        ("sqlite:///a.db?mode=rw", "unsupported database URL sqlite:///a.db?mode=rw"),
    ],
)
def test_what_is_no_file_is_refused_when_it_is_named(source: object, told: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        SqlDatabase(source)  # type: ignore[arg-type]  # some are none
    assert str(caught.value).removesuffix(", four slashes if it is absolute") == f"{told}; {WANTED}"


def test_naming_a_database_does_not_touch_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert repr(SqlDatabase(tmp_path / "pipe")) == f"SqlDatabase('{tmp_path}/pipe')"
