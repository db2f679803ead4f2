"""Hostile, wrong and good statements, sent to a database as a model would send them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hostile_reach import REACH
from hostile_writes import WRITES
from legitimate_sql import GOOD, Good
from sql_bombs import BOMBS, HEAVY, TOO_MUCH
from sql_boundary import FAILED, LIMIT, Shop, assert_gone, children, failed, in_time, shop_alone
from sql_cases import Case
from syrupy.assertion import SnapshotAssertion
from wrong_sql import WRONG

from planning.agent.sql import SqlDatabase

TOLD = (*WRITES, *REACH, *WRONG, *TOO_MUCH)
"""What fails with the same words wherever it is sent."""


def names(cases: tuple[Case, ...] | tuple[Good, ...]) -> list[str]:
    return [case.name for case in cases]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop_alone(tmp_path_factory) as shop:
        yield shop


@pytest.fixture(scope="module")
def database(shop: Shop) -> Iterator[SqlDatabase]:
    before = children()
    with SqlDatabase(shop.path, timeout=LIMIT) as database:
        yield database
    assert_gone(before)
    shop.assert_untouched()


class Told:
    """What the database answers to each statement, which is asked once."""

    def __init__(self, database: SqlDatabase, folder: Path) -> None:
        self._database = database
        self._folder = folder
        self._answers: dict[str, dict[str, Any]] = {}

    def answer(self, case: Case) -> dict[str, Any]:
        if case.name not in self._answers:
            with in_time():
                self._answers[case.name] = self._database.execute(case.sent(self._folder))  # type: ignore[arg-type]  # some are no text
        return self._answers[case.name]


@pytest.fixture(scope="module")
def told(database: SqlDatabase, shop: Shop) -> Told:
    return Told(database, shop.folder)


def assert_it_still_answers(database: SqlDatabase) -> None:
    answer = database.execute("SELECT count(*) AS n FROM customers")
    assert (answer["data"], answer["columns"], answer["error"]) == ([[3]], ["n"], None)


@pytest.mark.parametrize("case", TOLD + HEAVY, ids=names(TOLD + HEAVY))
def test_what_is_hostile_or_wrong_fails_and_does_nothing(
    database: SqlDatabase, shop: Shop, told: Told, case: Case
) -> None:
    answer = told.answer(case)
    assert failed(answer) == FAILED
    assert answer["code"] in case.codes
    assert shop.told(answer)
    shop.assert_untouched()
    assert_it_still_answers(database)


@pytest.mark.parametrize("case", BOMBS, ids=names(BOMBS))
def test_what_never_ends_is_ended_at_the_limit(database: SqlDatabase, shop: Shop, case: Case) -> None:
    with in_time():
        answer = database.execute(str(case.sent(shop.folder)))
    assert failed(answer) == FAILED
    assert (answer["code"], answer["error"]) == (
        "timeout",
        "the query took longer than 0.5 s and was stopped; ask for less, with WHERE or LIMIT",
    )
    shop.assert_untouched()
    assert_it_still_answers(database)


@pytest.mark.parametrize("good", GOOD, ids=names(GOOD))
def test_what_reads_is_let_through(database: SqlDatabase, good: Good) -> None:
    answer = database.execute(good.sql)
    elapsed = answer.pop("elapsed")
    assert answer == {
        "success": True,
        "data": good.rows,
        "columns": good.columns,
        "row_count": len(good.rows),
        "truncated": False,
        "error": None,
    }
    assert isinstance(elapsed, float)


@pytest.mark.parametrize("good", GOOD, ids=names(GOOD))
def test_sqlite_itself_gives_the_same(shop: Shop, good: Good) -> None:
    with closing(sqlite3.connect(shop.path)) as connection:
        cursor = connection.execute(good.sql.rstrip("; \n"))
        rows = [list(row) for row in cursor]
        assert ([column[0] for column in cursor.description], rows) == (good.columns, good.rows)


def test_each_statement_has_a_name_of_its_own() -> None:
    told = names(TOLD + HEAVY + BOMBS) + names(GOOD)
    assert len(told) == len(set(told))


def test_what_a_model_reads_of_each(told: Told, shop: Shop, snapshot: SnapshotAssertion) -> None:
    lines = [f"{case.name}\n    {shop.told(told.answer(case)['error'])}\n" for case in TOLD]
    assert "".join(lines) == snapshot


def test_no_pragma_is_let_through_after_the_schema_was_read(shop: Shop) -> None:
    with SqlDatabase(shop.path, timeout=LIMIT) as database:
        database.get_schema()
        for case in REACH:
            answer = database.execute(str(case.sent(shop.folder)))
            assert failed(answer) == FAILED, case.name
            shop.told(answer)
    shop.assert_untouched()


def test_an_endless_list_is_cut_at_the_most_rows(shop: Shop) -> None:
    sql = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
    with SqlDatabase(shop.path, timeout=LIMIT, max_rows=3) as database:
        answer = database.execute(sql)
        assert (answer["data"], answer["truncated"], answer["error"]) == ([[1], [2], [3]], True, None)
        shop.assert_untouched()


def test_a_list_of_exactly_the_most_rows_is_whole(shop: Shop) -> None:
    with SqlDatabase(shop.path, timeout=LIMIT, max_rows=3) as database:
        answer = database.execute("SELECT id FROM customers ORDER BY id")
        assert (answer["data"], answer["truncated"], answer["error"]) == ([[1], [2], [3]], False, None)
