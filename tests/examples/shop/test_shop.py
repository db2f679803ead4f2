"""The sample shop: what is in its database, and what the recorded statements return."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from examples.shop import QUESTIONS, create_database, recorded_sql
from planning.agent import SqlDatabase, build_text_to_sql_graph

SHOP = Path(__file__).parents[3] / "examples" / "shop"
TRIED = [{"sql": "SELECT 1", "error": "no"}]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    create_database(str(tmp_path / "shop.db"))
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        yield connection


def test_the_shop_is_the_same_each_time(shop: sqlite3.Connection, snapshot: SnapshotAssertion) -> None:
    made = shop.execute("SELECT name, sql FROM sqlite_master WHERE sql NOT NULL ORDER BY rowid").fetchall()
    told = [f"{sql}\n{rows_of(shop, name)}" for name, sql in made]
    assert "\n".join(told) == snapshot


def rows_of(shop: sqlite3.Connection, table: str) -> str:
    statement = f"SELECT * FROM {table} ORDER BY 1, 2"  # noqa: S608 - a table of the shop
    return "".join(f"{row}\n" for row in shop.execute(statement))


def test_every_recorded_question_has_its_answer(
    shop: sqlite3.Connection, snapshot: SnapshotAssertion
) -> None:
    answers = [f"{each}\n{shop.execute(written(each, TRIED)).fetchall()}\n" for each in QUESTIONS]
    assert "\n".join(answers) == snapshot


def written(question: str, attempts: Any = ()) -> str:
    sql = recorded_sql(question, "", attempts)
    assert isinstance(sql, str)
    return sql


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_agent_answers_every_recorded_question(question: str, tmp_path: Path) -> None:
    create_database(tmp_path / "shop.db")
    with SqlDatabase(tmp_path / "shop.db") as database:
        final = build_text_to_sql_graph(database, recorded_sql).invoke({"resolved_query": question})
    assert (final["success"], final["error"]) == (True, None)
