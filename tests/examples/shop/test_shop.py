"""The sample shop: what is in its database, and what the recorded statements return."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from examples.shop import DEFAULT_QUESTION, QUESTIONS, create_database, recorded_sql
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


def test_every_row_belongs_to_another_that_is_there(shop: sqlite3.Connection) -> None:
    assert shop.execute("PRAGMA foreign_key_check").fetchall() == []
    assert shop.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_nothing_is_written_over(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("something else")
    with pytest.raises(FileExistsError):
        create_database(tmp_path / "there")
    assert (tmp_path / "there").read_text() == "something else"


ANSWERS: dict[str, list[tuple[Any, ...]]] = {
    "Which customers spent the most?": [("Eeva Salo", 725.5), ("Hugo Claes", 605.75), ("Ada Lund", 589.0)],
    "How many customers are there?": [(10,)],
    "Which orders are still open?": [
        (36, "Ada Lund", "2026-03-20"),
        (37, "Bram Peeters", "2026-03-23"),
        (38, "Clara Huber", "2026-03-25"),
        (39, "Ada Lund", "2026-03-27"),
        (40, "Eeva Salo", "2026-03-29"),
    ],
    "Which products were never ordered?": [("Letter scale",)],
    "What does each product cost?": [
        ("Desk lamp", 48.0),
        ("Fountain pen", 32.0),
        ("Letter scale", 27.5),
        ("Pencil set", 12.25),
        ("Sketch pad", 9.75),
        ("Black ink", 7.5),
        ("Blue ink", 7.5),
        ("Notebook", 4.5),
    ],
    "How much was sold in each month?": [
        ("2026-01", 14, 1236.5),
        ("2026-02", 13, 1067.0),
        ("2026-03", 13, 1036.5),
    ],
    "Which customers have no email address?": [
        ("Duarte Pinto", None, "Porto"),
        ("Greta Moser", None, "Graz"),
        ("Jonas Berg", None, "Bergen"),
    ],
    "Which customers live in Oslo?": [],
}


def test_every_recorded_question_has_its_answer(shop: sqlite3.Connection) -> None:
    found = {question: written(question, TRIED) for question in QUESTIONS}
    assert {question: shop.execute(sql).fetchall() for question, sql in found.items()} == ANSWERS


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


def test_the_file_of_statements_holds_both_that_are_recorded_for_the_first_question() -> None:
    statements = (SHOP / "spent_most.sql").read_text().strip().split("\n---\n")
    assert statements == [written(DEFAULT_QUESTION), written(DEFAULT_QUESTION, TRIED)]


def test_the_program_makes_the_database(tmp_path: Path) -> None:
    file = tmp_path / "made.db"
    assert made_by(file) == (0, "")
    create_database(tmp_path / "shop.db")
    assert file.read_bytes() == (tmp_path / "shop.db").read_bytes()
    assert made_by(file) == (1, f"cannot make {file}: File exists; name another file\n")
    assert made_by() == (1, "usage: python data.py FILE\n")


def made_by(*arguments: Path) -> tuple[int, str]:
    program = [sys.executable, str(SHOP / "data.py"), *map(str, arguments)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


def test_the_first_statement_is_as_good_as_the_last_but_for_two(shop: sqlite3.Connection) -> None:
    wrong, empty = DEFAULT_QUESTION, "Which orders are still open?"
    with pytest.raises(sqlite3.OperationalError, match=r"^no such column: customers\.nmae$"):
        shop.execute(written(wrong))
    assert shop.execute(written(empty)).fetchall() == []
    for question in set(QUESTIONS) - {wrong, empty}:
        assert written(question) == written(question, TRIED)


def test_the_last_statement_is_given_however_often_it_was_tried() -> None:
    assert written(DEFAULT_QUESTION, TRIED * 5) == written(DEFAULT_QUESTION, TRIED)


@pytest.mark.parametrize(
    "question",
    ["  how MANY customers\tare there ", "How many customers are there?!", "how-many customers are: there"],
)
def test_case_blanks_and_punctuation_do_not_count(question: str) -> None:
    assert written(question) == "SELECT count(*) AS customers FROM customers"


@pytest.mark.parametrize("question", ["How many cities are there?", "", "howmanycustomersarethere"])
def test_any_other_question_is_asked_back(question: str) -> None:
    assert recorded_sql(question, "") == {
        "needs_user_input": True,
        "input_request": (
            "No model is asked here; the recorded questions are:\n"
            "- Which customers spent the most?\n"
            "- How many customers are there?\n"
            "- Which orders are still open?\n"
            "- Which products were never ordered?\n"
            "- What does each product cost?\n"
            "- How much was sold in each month?\n"
            "- Which customers have no email address?\n"
            "- Which customers live in Oslo?\n"
            "Which of them is it?"
        ),
    }


def test_a_column_of_the_shop_needs_quotes(shop: sqlite3.Connection) -> None:
    with pytest.raises(sqlite3.OperationalError, match=re.escape("no such column: unit")):
        shop.execute("SELECT unit price FROM products")
    assert shop.execute('SELECT max("unit price") FROM products').fetchone() == (48.0,)
