"""Strings in a statement that no row has."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest
from readonly_files import make

from planning.agent import SqlDatabase

PEOPLE = """
CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT, "postal code" TEXT);
INSERT INTO cities VALUES (1, 'Bergen', '5003'), (3, 'O''Higgins', NULL);
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, city_id INTEGER, status TEXT, age INTEGER);
INSERT INTO people VALUES (1, 'Ada Lund', 1, 'active', 30), (2, 'Bram Peeters', 2, 'gone', 40);
CREATE VIEW endless AS
  WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT 'q' || x AS name FROM n;
"""


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("SELECT * FROM people WHERE status = 'Active'", ["people.status has no 'Active'; it has 'active'"]),
        (
            "SELECT * FROM people AS p JOIN cities c ON c.id = p.city_id "
            "WHERE c.name = 'bergen' AND p.name = 'Ada Lundt'",
            [
                "people.name has no 'Ada Lundt'; it has 'Ada Lund'",
                "cities.name has no 'bergen'; it has 'Bergen'",
            ],
        ),
        (
            "SELECT * FROM people WHERE status IN ('gone', 'lost')",
            ["people.status has no 'lost'; it has only 'active', 'gone'"],
        ),
        (
            "SELECT * FROM cities WHERE name = 'o''higgins' AND \"postal code\" = '5004'",
            [
                "cities.name has no 'o''higgins'; it has 'O''Higgins'",
                "cities.\"postal code\" has no '5004'; it has '5003'",
            ],
        ),
        ("SELECT * FROM people WHERE status = 'active'", []),
        ("SELECT * FROM people WHERE age = '30' OR age = 'thirty' OR name <> 'ada'", []),
        ("SELECT * FROM people WHERE upper(name) = 'ADA' OR nothing = 'ada'", []),
        ("SELECT * FROM strangers WHERE name = 'ada'", []),
        ("SELECT 'unclosed", []),
    ],
)
def test_a_string_that_no_row_has_is_named_with_what_there_is(
    tmp_path: Path, sql: str, told: list[str]
) -> None:
    path = make(tmp_path / "people.db", PEOPLE)
    with SqlDatabase(path) as database, SqlDatabase(path, samples=0) as private:
        assert sorted(database.missing_values(sql)) == sorted(told)
        assert private.missing_values(sql) == []


@pytest.mark.parametrize("count", [20, 8000])
def test_an_endless_view_or_a_long_list_takes_no_longer_than_the_limit(tmp_path: Path, count: int) -> None:
    listed = ", ".join(f"'b{number}'" for number in range(count))
    with SqlDatabase(make(tmp_path / "people.db", PEOPLE), timeout=0.5) as database:
        started = monotonic()
        assert database.missing_values(f"SELECT name FROM endless WHERE name IN ({listed})") == []  # noqa: S608 - numbers
        assert monotonic() - started < 3
