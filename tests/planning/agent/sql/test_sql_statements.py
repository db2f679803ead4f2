"""Statements of a file, and what a database answers: what to change, what was meant, or the rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from readonly_files import make
from syrupy.assertion import SnapshotAssertion

from planning.agent import SqlDatabase

_TABLES = Path(__file__).with_name("music_shop.sql").read_text(encoding="utf-8")


def make_sqlite(folder: Path) -> Path:
    """The shop as a file of SQLite, with a view whose author wrote texts in double quotes."""
    path = folder / "music.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(_TABLES)
        connection.executescript(
            'CREATE VIEW Quoted AS SELECT InvoiceId, "a text" AS note FROM Invoice '
            'WHERE BillingCountry = "USA"'
        )
    return path


def make_duckdb(folder: Path) -> Path:
    import duckdb

    path = folder / "music.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute(_TABLES)
    return path


STATEMENTS: dict[str, Any] = json.loads(
    Path(__file__).with_name("statements.json").read_text(encoding="utf-8")
)
MAKE: dict[str, Callable[[Path], Path]] = {
    "shop": lambda folder: make(folder / "shop.db"),
    "music": make_sqlite,
    "music, of any row": make_sqlite,
    "duckdb": make_duckdb,
}


class Opened:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = SqlDatabase(path)

    def by_sqlite(self, sql: str) -> tuple[list[str], list[list[Any]]]:
        with closing(sqlite3.connect(self.path)) as connection:
            cursor = connection.execute(sql)
            return [column[0] for column in cursor.description], [list(row) for row in cursor]


@pytest.fixture(scope="module")
def open_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Opened]]:
    """Opens a database by name, once for all statements of this module that are asked of it."""
    with ExitStack() as stack:

        @cache
        def open_once(name: str) -> Opened:
            opened = Opened(MAKE[name](tmp_path_factory.mktemp("sample")))
            stack.enter_context(opened.database)
            return opened

        yield open_once


@pytest.fixture
def opened(request: pytest.FixtureRequest, open_once: Callable[[str], Opened]) -> Opened:
    return open_once(request.param)


def of(*databases: str, statements: str | None = None) -> pytest.MarkDecorator:
    found = [(name, sql) for name in databases for sql in STATEMENTS[statements or name]]
    return pytest.mark.parametrize(("opened", "sql"), found, indirect=["opened"])


@of("shop", "music", "music, of any row")
def test_a_statement_that_fails_or_does_not_mean_what_was_asked_is_told_what_to_change(
    opened: Opened, sql: str, request: pytest.FixtureRequest
) -> None:
    kind = request.node.callspec.params["opened"]
    if kind == "music, of any row":
        opened.by_sqlite(sql)  # it sees nothing wrong
    answer = opened.database.execute(sql)
    assert (answer["success"], answer["data"], answer["code"]) == (False, [], "parameter")
    assert answer["error"] == STATEMENTS[kind][sql]


@of("music", statements="fair")
def test_what_looks_wrong_and_is_fair_is_answered(opened: Opened, sql: str) -> None:
    answer = opened.database.execute(sql)
    assert (answer["error"], answer["data"]) == (None, STATEMENTS["fair"][sql])


@of("music", statements="as sqlite answers")
def test_names_in_double_quotes_and_sound_aggregates_are_answered_as_sqlite_does(
    opened: Opened, sql: str
) -> None:
    answer = opened.database.execute(sql)
    assert answer["error"] is None
    assert (answer["columns"], answer["data"]) == opened.by_sqlite(sql)


def test_duckdb_says_the_same_of_names_in_double_quotes(tmp_path: Path) -> None:
    asked = ['SELECT "Nmae" FROM Artist', 'SELECT count(*) FROM Invoice WHERE BillingCountry = "USA"']
    with SqlDatabase(make_duckdb(tmp_path)) as database:
        assert [database.execute(sql)["error"] for sql in asked] == [
            STATEMENTS["music"][sql] for sql in asked
        ]


# What other databases write


@pytest.mark.parametrize("opened", ["music", "duckdb"], indirect=True)
def test_what_a_model_reads_of_what_other_databases_write(
    opened: Opened, snapshot: SnapshotAssertion
) -> None:
    told = {sql: opened.database.execute(sql)["error"] for sql in STATEMENTS["of other databases"]}
    assert "".join(f"{sql}\n    {error}\n" for sql, error in told.items()) == snapshot
