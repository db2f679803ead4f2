"""From a path or a URL to a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from planning.agent import SqlDatabase
from planning.agent.databases.files import locate

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
