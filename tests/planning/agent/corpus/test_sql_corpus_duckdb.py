"""Hostile, wrong and good statements, sent to a DuckDB file as a model would send them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import duckdb
import pytest
from duckdb_statements import (
    ENDLESS_DUCKDB,
    GOOD_DUCKDB,
    HEAVY_DUCKDB,
    HOSTILE_DUCKDB,
    WRONG_DUCKDB,
    build_duckdb,
)
from legitimate_sql import Good
from sql_boundary import FAILED, LIMIT, Shop, assert_gone, children, failed, in_time, shop_alone
from sql_cases import Case
from syrupy.assertion import SnapshotAssertion

from planning.agent.sql import SqlDatabase, guard

TOLD = (*HOSTILE_DUCKDB, *WRONG_DUCKDB)
HARMLESS = {
    "duckdb reach: describe",
    "duckdb reach: show",
    "duckdb reach: summarize",
}
"""What may succeed without the guard: it only reads what there is."""
PATIENCE = 20.0


def assert_writable(path: Path) -> None:
    """Nobody is kept from writing."""
    with duckdb.connect(str(path)) as writer:
        writer.execute("BEGIN")
        writer.execute("ROLLBACK")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop_alone(tmp_path_factory, build_duckdb) as shop:
        yield shop


@pytest.fixture(scope="module")
def database(shop: Shop) -> Iterator[SqlDatabase]:
    before = children()
    with SqlDatabase(shop.path, timeout=LIMIT) as database:
        yield database
    assert_gone(before)
    assert_writable(shop.path)
    shop.assert_same_files()


@pytest.fixture(scope="module")
def patient(shop: Shop) -> Iterator[SqlDatabase]:
    """For what does not take long: on a busy machine, loading DuckDB alone may take half a second."""
    with SqlDatabase(shop.path, timeout=PATIENCE) as database:
        yield database


def assert_it_still_answers(database: SqlDatabase) -> None:
    until = monotonic() + PATIENCE
    while database.execute("SELECT count(*) FROM cities")["data"] != [[3]]:
        assert monotonic() < until


@pytest.mark.parametrize("case", TOLD + HEAVY_DUCKDB, ids=[case.name for case in TOLD + HEAVY_DUCKDB])
def test_what_is_hostile_or_wrong_fails_and_does_nothing(
    database: SqlDatabase, patient: SqlDatabase, shop: Shop, case: Case
) -> None:
    if case in TOLD:
        database = patient
    with in_time(PATIENCE):
        answer = database.execute(str(case.sent(shop.folder)))
    assert failed(answer) == FAILED
    assert answer["code"] in case.codes
    shop.told(answer)
    shop.assert_same_files()
    assert_it_still_answers(database)


@pytest.mark.parametrize("case", ENDLESS_DUCKDB, ids=[case.name for case in ENDLESS_DUCKDB])
def test_what_never_ends_is_ended_at_the_limit(database: SqlDatabase, shop: Shop, case: Case) -> None:
    with in_time():
        answer = database.execute(str(case.sql))
    assert failed(answer) == FAILED
    assert (answer["code"], answer["error"]) == (
        "timeout",
        "the query took longer than 0.5 s and was stopped; ask for less, with WHERE or LIMIT",
    )
    shop.assert_same_files()
    assert_it_still_answers(database)


@pytest.mark.parametrize("good", GOOD_DUCKDB, ids=[good.name for good in GOOD_DUCKDB])
def test_what_reads_is_let_through(patient: SqlDatabase, good: Good) -> None:
    answer = patient.execute(good.sql)
    answer.pop("elapsed")
    assert answer == {
        "success": True,
        "data": good.rows,
        "columns": good.columns,
        "row_count": len(good.rows),
        "truncated": False,
        "error": None,
    }


def test_what_a_model_reads_of_each(patient: SqlDatabase, shop: Shop, snapshot: SnapshotAssertion) -> None:
    lines = []
    for case in TOLD:
        answer = patient.execute(str(case.sent(shop.folder)))
        lines.append(f"{case.name}\n    {shop.told(answer['error'])}\n")
    assert "".join(lines) == snapshot


def test_nothing_is_written_or_reached_without_the_guard(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "check", lambda sql, dialect: sql)
    succeeded = set()
    with SqlDatabase(shop.path, timeout=LIMIT) as database:
        for case in HOSTILE_DUCKDB:
            with in_time():
                answer = database.execute(str(case.sent(shop.folder)))
            shop.told(answer)
            shop.assert_same_files()
            if answer["success"]:
                succeeded.add(case.name)
        assert_it_still_answers(database)
    assert succeeded <= HARMLESS
    assert_writable(shop.path)
