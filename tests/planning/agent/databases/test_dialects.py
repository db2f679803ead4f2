"""The table of databases."""

from __future__ import annotations

from importlib import import_module

import pytest

from planning.agent.sql.worker.dialects import DIALECTS, FILES, Dialect, title_of


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("sqlite", "SQLite"),
        ("DuckDB", "DuckDB"),
        ("postgres", "PostgreSQL"),
        ("postgresql", "PostgreSQL"),
        ("mysql", "MySQL"),
        ("Oracle 23", "Oracle 23"),
    ],
)
def test_a_dialect_has_the_name_that_people_write(name: str, title: str) -> None:
    assert title_of(name) == title


@pytest.mark.parametrize("row", FILES, ids=lambda row: row.name)
def test_each_kind_of_file_has_its_engine_and_its_module_for_workers(row: Dialect) -> None:
    engine = import_module(f"planning.agent.databases.{row.name}")
    worker = import_module(f"planning.agent.sql.worker.{row.worker}")
    assert DIALECTS[row.name] is row
    assert engine.wrong_answer("SELECT 1", list) is None
    assert worker.open_file("shop.db").path == "shop.db"


def test_one_kind_of_file_takes_all_files_without_a_mark() -> None:
    assert [row.name for row in FILES if not row.mark] == [FILES[0].name]
