"""A column that is neither grouped by nor aggregated, of which SQLite would give any value."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from grouping_sql import ARBITRARY, SOUND
from music_shop import make_sqlite
from readonly_files import make
from syrupy.assertion import SnapshotAssertion

from planning.agent.sql import SqlDatabase
from planning.tools import StorageUnavailable


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_sqlite(tmp_path_factory.mktemp("music"))


@pytest.fixture(scope="module")
def music(path: Path) -> Iterator[SqlDatabase]:
    with SqlDatabase(path) as database:
        yield database


@pytest.mark.parametrize("sql", ARBITRARY)
def test_an_answer_that_sqlite_would_take_from_any_row_is_an_error(
    music: SqlDatabase, path: Path, sql: str
) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(sql)  # SQLite itself sees nothing wrong
    answer = music.execute(sql)
    assert (answer["success"], answer["data"], answer["code"]) == (False, [], "parameter")


def test_what_a_model_reads_of_a_column_without_a_value_of_its_own(
    music: SqlDatabase, snapshot: SnapshotAssertion
) -> None:
    assert "".join(f"{sql}\n    {music.execute(sql)['error']}\n" for sql in ARBITRARY) == snapshot


@pytest.mark.parametrize("sql", SOUND)
def test_a_sound_statement_with_aggregates_is_answered_as_sqlite_does(
    music: SqlDatabase, path: Path, sql: str
) -> None:
    with closing(sqlite3.connect(path)) as connection:
        expected = [list(row) for row in connection.execute(sql)]
    answer = music.execute(sql)
    assert (answer["error"], answer["data"]) == (None, expected)


def test_the_columns_of_a_row_that_min_or_max_found_are_those_of_that_row(music: SqlDatabase) -> None:
    assert music.execute("SELECT Name, max(Milliseconds), COUNT(*) FROM Track")["data"] == [["Walk", 300, 3]]
    assert music.execute("SELECT Name, min(Milliseconds) FROM Track")["data"] == [["Fast", 100]]


def test_an_aggregate_of_a_table_whose_key_may_be_null_needs_each_column_in_the_group(tmp_path: Path) -> None:
    script = "CREATE TABLE t (code TEXT UNIQUE, name TEXT); INSERT INTO t VALUES (NULL, 'a'), (NULL, 'b')"
    with SqlDatabase(make(tmp_path / "t.db", script)) as database:
        assert database.execute("SELECT code, name, COUNT(*) FROM t GROUP BY code")["error"] == (
            "name has many values in a group, and SQLite would use any of them; add it to GROUP BY, or "
            "aggregate it, as in max(name)"
        )


def test_nothing_is_said_of_columns_when_the_tables_cannot_be_read(
    music: SqlDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(_samples: int, _seconds: float) -> None:
        raise StorageUnavailable("x")

    monkeypatch.setattr(music, "_facts", unreadable)
    monkeypatch.setattr(music, "_tables", None)
    assert music.execute("SELECT Name, COUNT(*) FROM Track GROUP BY TrackId")["error"] is None


def test_names_with_strange_letters_are_told_apart(tmp_path: Path) -> None:
    script = "CREATE TABLE t (a TEXT, b TEXT); INSERT INTO t VALUES ('x', 'y')"
    with SqlDatabase(make(tmp_path / "t.db", script)) as database:
        sql = "SELECT '\x010\x01\x02', upper(a) || '\x02', COUNT(*) FROM t GROUP BY upper(a) || '\x02'"
        assert database.execute(sql)["data"] == [["\x010\x01\x02", "X\x02", 1]]
