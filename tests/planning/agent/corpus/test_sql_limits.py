"""The limits hold for all that is done with a statement: also for what is told of it, and around it."""

# ruff: noqa: S608 - the statements are the subject of these tests

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from database_files import written
from sql_bombs import LATE_MISTAKES
from sql_boundary import FAILED, LIMIT, Shop, failed, in_time, shop_alone

from planning.agent import SqlDatabase

pytestmark = pytest.mark.slow

ENDLESS_VIEW = """
CREATE TABLE t (name TEXT); INSERT INTO t VALUES ('a');
CREATE VIEW v AS
  WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT 'q' || x AS name FROM n;
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop_alone(tmp_path_factory) as shop:
        yield shop


@pytest.fixture(scope="module")
def views(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(ENDLESS_VIEW, tmp_path_factory.mktemp("views") / "views.db")


@pytest.mark.parametrize("sql", LATE_MISTAKES, ids=["short", "long"])
def test_looking_for_the_place_of_a_mistake_takes_no_longer_than_the_limit(shop: Shop, sql: str) -> None:
    with SqlDatabase(shop.path, timeout=LIMIT) as database:
        with in_time(2 * LIMIT + 2):
            answer = database.execute(sql)
        assert failed(answer) == FAILED
        assert database.execute("SELECT 1 AS a")["data"] == [[1]]


def test_the_place_of_a_mistake_is_told_where_looking_takes_no_time(shop: Shop) -> None:
    with SqlDatabase(shop.path, timeout=LIMIT) as database:
        answer = database.execute("SELECT id FROM cities WHERE id = 1 AND 1 1")
    assert (
        answer["error"] == "syntax error at line 1, column 42, near 1; correct the SQL there or just before"
    )


@pytest.mark.parametrize("count", [20, 8000])
def test_looking_for_values_in_an_endless_view_takes_no_longer_than_the_limit(
    views: Path, count: int
) -> None:
    listed = ", ".join(f"'b{number}'" for number in range(count))
    with SqlDatabase(views, timeout=LIMIT) as database, in_time(2 * LIMIT + 2):
        assert database.missing_values(f"SELECT name FROM v WHERE name IN ({listed}) LIMIT 0") == []


@pytest.mark.parametrize("column", ["name", "1"])
def test_looking_for_values_of_a_long_list_takes_no_longer_than_the_limit(views: Path, column: str) -> None:
    listed = ", ".join(["'a'"] * 19_000)
    with SqlDatabase(views, timeout=LIMIT) as database, in_time(2 * LIMIT + 2):
        assert database.missing_values(f"SELECT name FROM t WHERE 0 AND {column} IN ({listed})") == []
