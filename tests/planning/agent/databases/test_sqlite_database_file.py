"""What a file of SQLite's lets through by itself, with no guard before it: it can only be read."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from readonly_files import descriptors, make, state

from planning.agent import SqlDatabase
from planning.agent.databases import sqlite_boundary, sqlite_file
from planning.agent.databases.rows import fetched
from planning.agent.databases.sqlite_file import SqliteFile
from planning.agent.sql.failures import Failure

WRITES = [
    "DELETE FROM customers",
    "INSERT INTO cities VALUES (9, 'x')",
    "WITH x AS (SELECT 1) INSERT INTO cities SELECT 8, 'x' FROM x",
    "UPDATE customers SET name = 'x'",
    "CREATE TABLE t (a)",
    "CREATE VIRTUAL TABLE t USING fts5(a)",
    "DROP TABLE customers",
    "ALTER TABLE customers RENAME TO c",
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


class Asked:
    """One file, asked in this thread."""

    def __init__(self, path: Path) -> None:
        self.file = SqliteFile(str(path), 0.4)

    def rows(self, sql: str, most_rows: int = 100, seconds: float = 5.0) -> list[list[Any]]:
        self.file.deadline = monotonic() + seconds
        return self.file.run(sql, most_rows)[1]

    def failure(self, sql: str, seconds: float = 5.0) -> tuple[str, str]:
        with pytest.raises(Failure) as caught:
            self.rows(sql, seconds=seconds)
        return caught.value.kind, caught.value.text

    def tables(self, samples: int = 3, budget: float = 1.0, seconds: float = 5.0) -> list[dict[str, Any]]:
        self.file.deadline = monotonic() + seconds
        return self.file.tables(samples, monotonic() + budget)


@pytest.fixture
def asked(shop_path: Path) -> Iterator[Asked]:
    asked = Asked(shop_path)
    yield asked
    asked.file.close()


@pytest.mark.parametrize("lock", ["mode=ro", "query_only = 1"])
@pytest.mark.parametrize("sql", WRITES)
def test_each_lock_alone_lets_nothing_be_written(
    asked: Asked, shop_path: Path, sql: str, lock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop_path.parent)
    before = state(shop_path.parent)
    connect = sqlite3.connect
    if lock == "mode=ro":
        monkeypatch.setattr(sqlite_boundary, "_PRAGMAS", ())
    else:
        monkeypatch.setattr(
            sqlite3, "connect", lambda path, **more: connect(path.replace("=ro", "=rw"), **more)
        )
    monkeypatch.setattr(sqlite_boundary.Boundary, "_authorize", lambda *_: sqlite3.SQLITE_OK)
    assert asked.failure(sql)[0] in {"refused", "sql"}
    asked.file.close()
    assert state(shop_path.parent) == before


def test_full_text_and_spatial_tables_are_read_and_not_written(tmp_path: Path) -> None:
    path = make(tmp_path / "search.db", SEARCH)
    before = state(tmp_path)
    asked = Asked(path)
    assert asked.rows("SELECT title FROM papers WHERE papers MATCH 'hello'") == [["One"]]
    assert asked.rows("SELECT highlight(papers, 1, '<', '>') FROM papers('bye') ORDER BY rank") == [["<bye>"]]
    assert asked.rows("SELECT snippet(old) FROM old WHERE old MATCH 'again'") == [["hello <b>again</b>"]]
    assert asked.rows("SELECT x1, x2 FROM boxes WHERE x1 > 1") == [[2.0, 3.0]]
    assert asked.rows("SELECT * FROM found") == [["One"]]
    assert asked.failure("SELECT optimize(old) FROM old") == ("refused", "more than reading")
    assert asked.failure("INSERT INTO papers(papers) VALUES ('optimize')") == ("refused", "more than reading")
    assert [table["name"] for table in asked.tables()] == ["papers", "old", "boxes", "found"]
    assert state(tmp_path) == before
    asked.file.close()


def test_a_change_during_a_statement_on_an_unchanging_file_has_it_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make(
        tmp_path / "wal.db", "PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1);"
    )
    asked = Asked(path)
    changes = iter([2, 3])

    def changing(*given: Any) -> Any:
        more = fetched(*given)
        for number in changes:
            make(path, f"INSERT INTO t VALUES ({number})")  # noqa: S608 - a number
            break
        return more

    monkeypatch.setattr(sqlite_file, "fetched", changing)
    assert asked.rows("SELECT a FROM t") == [[1], [2], [3]]
    changes = iter(range(100))
    assert asked.failure("SELECT a FROM t") == ("locked", "")
    asked.file.close()


def test_no_descriptor_is_left_open(shop_path: Path) -> None:
    before = descriptors()
    for _ in range(5):
        asked = Asked(shop_path)
        asked.rows("SELECT 1")
        asked.failure("SELECT nothing")
        asked.file.close()
    assert descriptors() == before


def test_counting_a_long_table_stops_in_time(tmp_path: Path) -> None:
    many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 400000) SELECT x FROM c"
    asked = Asked(make(tmp_path / "long.db", f"CREATE TABLE long (x); INSERT INTO long {many};"))
    assert asked.tables(0, 0.001)[0]["rows"] is None
    assert asked.tables(0, 5.0)[0]["rows"] == 400_000
    asked.file.close()


def test_the_locks_of_this_program_on_the_file_are_kept(shop_path: Path) -> None:
    code = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
    with closing(sqlite3.connect(shop_path, isolation_level=None)) as writer:
        writer.execute("BEGIN IMMEDIATE")
        with SqlDatabase(shop_path) as database:
            assert database.execute("SELECT count(*) FROM cities")["data"] == [[3]]
        other = subprocess.run([sys.executable, "-c", code, shop_path], capture_output=True, check=False)
    assert b"database is locked" in other.stderr
