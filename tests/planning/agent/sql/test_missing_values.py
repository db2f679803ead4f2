"""What a statement that found nothing asks for, and what the columns hold instead."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from planning.agent import SqlDatabase, build_text_to_sql_graph
from planning.agent.sql.values import missing_values
from planning.tools import tool_calls
from session import Session

WRONG = "SELECT name FROM people WHERE status = 'Active'"
SCRIPT = """
CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT, country TEXT, "postal code" TEXT);
INSERT INTO cities VALUES (1, 'Bergen', 'Norway', '5003'), (2, 'Graz', 'Austria', '8010'),
    (3, 'O''Higgins', 'Chile', NULL), (4, 'line
break', 'Norway', '1');
CREATE TABLE people (
    id INTEGER PRIMARY KEY, name TEXT, city_id INTEGER, status TEXT, age INTEGER, photo BLOB
);
INSERT INTO people VALUES (1, 'Ada Lund', 1, 'active', 30, x'00'), (2, 'Bram Peeters', 2, 'gone', 40, NULL);
CREATE TABLE words (word TEXT);
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 40)
INSERT INTO words SELECT 'w' || x FROM n;
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("values") / "people.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCRIPT)
    return path


@pytest.fixture(scope="module")
def people(path: Path) -> Iterator[SqlDatabase]:
    with SqlDatabase(path) as database:
        yield database


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT * FROM people WHERE status = 'Active'", ["people.status has no 'Active'; it has 'active'"]),
        (
            "SELECT * FROM people WHERE status == ' ACTIVE '",
            ["people.status has no ' ACTIVE '; it has 'active'"],
        ),
        (
            "SELECT * FROM people AS p JOIN cities c ON c.id = p.city_id"
            " WHERE c.name = 'bergen' AND p.name = 'Ada Lundt'",
            [
                "cities.name has no 'bergen'; it has 'Bergen'",
                "people.name has no 'Ada Lundt'; it has 'Ada Lund'",
            ],
        ),
        (
            "SELECT * FROM people WHERE people.status IN ('gone', 'Gone', 'lost')",
            [
                "people.status has no 'Gone'; it has 'gone'",
                "people.status has no 'lost'; it has only 'active', 'gone'",
            ],
        ),
        ("SELECT * FROM words WHERE word = 'none such'", ["words.word has no 'none such'"]),
        (
            "SELECT * FROM cities WHERE \"postal code\" = '5004'",
            ["cities.\"postal code\" has no '5004'; it has '5003'"],
        ),
        (
            "SELECT * FROM cities WHERE name = 'o''higgins'",
            ["cities.name has no 'o''higgins'; it has 'O''Higgins'"],
        ),
        (
            "SELECT * FROM cities WHERE name = 'Line\nBreak'",
            [r"cities.name has no 'Line\nBreak'; it has 'line\nbreak'"],
        ),
        # A name that two tables have may mean either.
        (
            "SELECT * FROM people, cities WHERE name = 'graz'",
            [
                "people.name has no 'graz'; it has only 'Ada Lund', 'Bram Peeters'",
                "cities.name has no 'graz'; it has 'Graz'",
            ],
        ),
    ],
)
def test_a_value_that_no_row_has_is_told_with_what_there_is(
    people: SqlDatabase, sql: str, told: list[str]
) -> None:
    assert people.missing_values(sql) == told


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM people WHERE status = 'active'",
        "SELECT * FROM people WHERE age = '30'",
        "SELECT * FROM people WHERE age = 'thirty'",
        "SELECT * FROM people WHERE upper(name) = 'ADA'",
        "SELECT * FROM people WHERE name LIKE 'ada%'",
        "SELECT * FROM people WHERE name <> 'ada'",
        "SELECT 'x', 'y' FROM people",
        "SELECT * FROM people WHERE 'ada' = name",
        "SELECT * FROM people WHERE nothing = 'ada'",
        "SELECT * FROM people WHERE other.name = 'ada'",
        "SELECT * FROM strangers WHERE name = 'ada'",
        "SELECT * FROM people WHERE photo = 'x'",
        "'ada'",
        "= 'ada'",
        "IN ('ada'",
        "('ada')",
        "WHERE ('a', 'b') = 'c' 'd'",
        "SELECT 'unclosed",
        "",
    ],
)
def test_nothing_is_told_of_a_comparison_that_no_value_would_mend(people: SqlDatabase, sql: str) -> None:
    assert people.missing_values(sql) == []


def test_a_long_value_is_cut_and_no_more_than_five_values_are_looked_up(people: SqlDatabase) -> None:
    names = [f"{'x' * 50}{n}" for n in range(9)]
    listed = ", ".join(f"'{name}'" for name in names)
    told = people.missing_values(f"SELECT * FROM words WHERE word IN ({listed})")  # noqa: S608 - invented
    assert told == [f"words.word has no '{'x' * 37}...'"]
    told = people.missing_values("SELECT * FROM words WHERE word IN ('a', 'b', 'c', 'd', 'e', 'f', 'g')")
    assert told == [f"words.word has no '{name}'" for name in "abcde"]


def test_values_of_a_database_without_samples_stay_private(path: Path) -> None:
    with SqlDatabase(path, samples=0) as database:
        assert database.missing_values("SELECT * FROM people WHERE status = 'Active'") == []


def test_a_database_that_is_not_there_says_nothing(tmp_path: Path) -> None:
    with SqlDatabase(tmp_path / "none.db") as database:
        assert database.missing_values("SELECT * FROM people WHERE status = 'Active'") == []


def test_a_look_that_fails_says_nothing() -> None:
    table = {"name": "people", "columns": [{"name": "status"}]}

    def fails(_sql: str) -> dict[str, object]:
        return {"success": False, "data": []}

    assert missing_values("SELECT * FROM people WHERE status = 'x'", "sqlite", [table], fails) == []


def test_the_graph_tells_the_generator_what_the_column_holds(path: Path) -> None:
    session = Session()
    errors: list[str | None] = []

    def generate_sql(error: str | None) -> str:
        errors.append(error)
        return "SELECT name FROM people WHERE status = 'active'" if error else WRONG

    graph = build_text_to_sql_graph(path, generate_sql, session=session)
    final = graph.invoke({"resolved_query": "Which people are active?"})
    assert errors == [None, "it ran and returned no rows: people.status has no 'Active'; it has 'active'"]
    assert final["answer"] == "name: Ada Lund"
    assert [call.tool for call in reversed(tool_calls(session))] == [
        "get_schema",
        "generate_sql",
        "execute_sql",
        "validate_results",
        "missing_values",
        "generate_sql",
        "execute_sql",
        "validate_results",
    ]


def test_a_statement_that_asks_for_values_that_are_there_is_doubted_in_general_words(path: Path) -> None:
    errors: list[str | None] = []

    def generate_sql(error: str | None) -> str:
        errors.append(error)
        return "SELECT name FROM people WHERE age > 99"

    final = build_text_to_sql_graph(path, generate_sql).invoke({"resolved_query": "Which people are old?"})
    assert errors == [
        None,
        "it ran and returned no rows; compare its conditions and joins with the values in the schema,"
        " also their upper and lower case",
    ]
    assert final["answer"] == "No rows: nothing in the database fits."
    assert final["reflection"]["verdict"] == "kept"
