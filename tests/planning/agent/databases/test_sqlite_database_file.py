"""What a file of SQLite's lets through by itself, with no guard before it: it can only be read."""

# ruff: noqa: S608 - the statements are the subject of these tests

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from readonly_files import descriptors, make, state, until

from planning.agent import SqlDatabase
from planning.agent.databases import sqlite_file
from planning.agent.databases.opened import fetched
from planning.agent.databases.sqlite_file import SqliteFile, check_copies
from planning.agent.sql.guard import Failure

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


@pytest.mark.parametrize("lock", ["mode=ro", "query_only = 1"])
@pytest.mark.parametrize("sql", WRITES)
def test_each_lock_alone_holds(shop_path: Path, sql: str, lock: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
    path = make(
        tmp_path / "wal.db", "PRAGMA journal_mode = WAL; CREATE TABLE t (a); INSERT INTO t VALUES (1);"
    )
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
    file = SqliteFile(
        str(make(tmp_path / "long.db", f"CREATE TABLE long (x); INSERT INTO long {many};")), 5.0
    )
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
