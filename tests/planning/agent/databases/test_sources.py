"""From a path or a URL to a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from readonly_files import make

from planning.agent import SqlDatabase
from planning.agent.databases.source import locate

WANTED = "give the path of a SQLite or DuckDB file, or sqlite:///PATH, or duckdb:///PATH"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("shop.db", (None, "shop.db")),
        (Path("a/shop.db"), (None, str(Path("a/shop.db")))),
        ("a/shop.duckdb", ("duckdb", "a/shop.duckdb")),
        ("shop.DDB", ("duckdb", "shop.DDB")),
        ("sqlite:///shop.db", ("sqlite", "shop.db")),
        ("sqlite:////data/shop.db", ("sqlite", "/data/shop.db")),
        ("SQLite:///shop.duckdb", ("sqlite", "shop.duckdb")),
        ("duckdb:///shop.db", ("duckdb", "shop.db")),
        ("file:shop.db", ("sqlite", "shop.db")),
        ("file:/data/my%20shop.db?mode=ro", ("sqlite", "/data/my shop.db")),
        ("file:///data/shop.db", ("sqlite", "/data/shop.db")),
        ("file://localhost/data/shop.db#x", ("sqlite", "/data/shop.db")),
        ("what?.db", (None, "what?.db")),
        ("./a b://c.db", (None, "./a b://c.db")),
    ],
)
def test_a_source_is_a_dialect_and_a_path(source: str, found: tuple[str | None, str]) -> None:
    assert locate(source) == found


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (7, f"a database is a path or a URL, got int; {WANTED}"),
        ("", f"there is no path in ''; {WANTED}"),
        ("a\0b", f"there is no path in 'a\\x00b'; {WANTED}"),
        ("file:", f"there is no path in 'file:'; {WANTED}"),
        (":memory:", f"a database in memory has no file; {WANTED}"),
        ("file::memory:", f"a database in memory has no file; {WANTED}"),
        ("sqlite:///:memory:", f"a database in memory has no file; {WANTED}"),
        ("postgres://u@h/d", f"unsupported database URL postgres://; {WANTED}"),
        (
            "postgresql+psycopg://h/d",
            f"unsupported database URL postgresql+psycopg://; {WANTED}",
        ),
        ("sqlite://", "a file's URL has three slashes, sqlite:///PATH, four before an absolute path"),
        ("sqlite://shop.db", "a file's URL has three slashes, sqlite:///PATH, four before an absolute path"),
        ("sqlite:///a.db?mode=rw", "sqlite:// takes no options; remove the part after the question mark"),
        ("file:a.db?mode=rw", "file: takes no options but mode=ro; remove the part after the question mark"),
        ("file://host/a.db", f"file: must name a file of this machine; {WANTED}"),
    ],
)
def test_what_is_no_file_is_refused_when_it_is_named(source: object, told: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        SqlDatabase(source)  # type: ignore[arg-type]  # some are none
    assert str(caught.value) == told


def test_the_dialect_is_told_by_how_the_file_begins(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    duckdb.connect(str(tmp_path / "a.db")).close()
    make(tmp_path / "b.db")
    with SqlDatabase(tmp_path / "a.db") as first, SqlDatabase(tmp_path / "b.db") as second:
        assert (first.dialect, second.dialect) == ("duckdb", "sqlite")
        assert (first.dialect, second.dialect) == ("duckdb", "sqlite")
        assert "DuckDB" in first.tools()[1].description


def test_a_file_that_is_not_there_yet_is_taken_for_sqlite_until_it_is(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with SqlDatabase(tmp_path / "a.db") as database:
        assert database.dialect == "sqlite"
        duckdb.connect(str(tmp_path / "a.db")).close()
        assert database.dialect == "duckdb"


def test_naming_a_database_does_not_touch_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert repr(SqlDatabase(tmp_path / "pipe")) == f"SqlDatabase('{tmp_path}/pipe')"
