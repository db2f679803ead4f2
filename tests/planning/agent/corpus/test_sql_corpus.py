"""Hostile, wrong and good statements, sent to a database as a model would send them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from sql_boundary import LIMIT, Shop, assert_failed, in_time, shop_alone
from sql_cases import CORPORA, Case, Corpus, Good
from syrupy.assertion import SnapshotAssertion

from planning.agent import SqlDatabase
from planning.agent.databases import files
from planning.agent.sql import guard

PATIENCE = 20.0
"""Seconds for what does not take long: what is asserted must not depend on how busy the machine is."""
HARMLESS = {
    "sqlite": {"upkeep: explain", "upkeep: explain query plan"},
    "duckdb": {"duckdb reach: describe", "duckdb reach: show", "duckdb reach: summarize"},
}
"""What succeeds without the guard: it only reads what there is, or how a SELECT would be run."""


class Asked:
    """A database of the corpus: what it answers to each statement, which is asked once."""

    def __init__(self, corpus: Corpus, shop: Shop) -> None:
        self.corpus = corpus
        self.shop = shop
        self.database = SqlDatabase(shop.path, timeout=LIMIT)
        self.patient = SqlDatabase(shop.path, timeout=PATIENCE)  # for what does not take long
        self._answers: dict[str, dict[str, Any]] = {}

    def database_for(self, case: Case) -> SqlDatabase:
        return self.patient if case in self.corpus.told else self.database

    def answer(self, case: Case) -> dict[str, Any]:
        if case.name not in self._answers:
            sent: Any = case.sent(self.shop.folder)  # some are no text
            with in_time(PATIENCE + 5):
                self._answers[case.name] = self.database_for(case).execute(sent)
        return self._answers[case.name]

    def assert_unharmed(self, database: SqlDatabase) -> None:
        """Nothing was written, nobody is kept from writing, and the next statement is answered."""
        self.shop.assert_untouched()
        limit, database.timeout = database.timeout, PATIENCE
        assert database.execute("SELECT count(*) AS n FROM cities")["data"] == [[3]]
        database.timeout = limit


@pytest.fixture(scope="module")
def asked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    corpus = CORPORA[request.param]
    with shop_alone(tmp_path_factory, corpus.build) as shop, pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_EXPLAINING", PATIENCE)
        asked = Asked(corpus, shop)
        with asked.database, asked.patient:
            yield asked
        shop.assert_untouched()
        shop.assert_writable()


def cases(*kinds: str) -> pytest.MarkDecorator:
    found = [
        pytest.param(dialect, case, id=f"{dialect}-{case.name}")
        for dialect, corpus in CORPORA.items()
        for kind in kinds
        for case in getattr(corpus, kind)
    ]
    return pytest.mark.parametrize(("asked", "case"), found, indirect=["asked"], scope="module")


each_database = pytest.mark.parametrize("asked", CORPORA, indirect=True)


@cases("told", "heavy")
def test_what_is_hostile_or_wrong_fails_and_does_nothing(asked: Asked, case: Case) -> None:
    answer = asked.answer(case)
    assert_failed(answer)
    assert answer["code"] in case.codes
    assert asked.shop.told(answer)
    asked.assert_unharmed(asked.database_for(case))


@cases("endless")
def test_what_never_ends_is_ended_at_the_limit(asked: Asked, case: Case) -> None:
    with in_time():
        answer = asked.database.execute(str(case.sql))
    assert_failed(answer)
    assert (answer["code"], answer["error"]) == (
        "timeout",
        f"the query took longer than {LIMIT:g} s and was stopped; ask for less, with WHERE or LIMIT",
    )
    asked.assert_unharmed(asked.database)


@cases("good")
def test_what_reads_is_let_through_and_sqlite_itself_gives_the_same(asked: Asked, case: Good) -> None:
    answer = asked.patient.execute(case.sql)
    assert isinstance(answer.pop("elapsed"), float)
    assert answer == {
        "success": True,
        "data": case.rows,
        "columns": case.columns,
        "row_count": len(case.rows),
        "truncated": False,
        "error": None,
    }
    if asked.shop.is_sqlite:
        with closing(sqlite3.connect(asked.shop.path)) as connection:
            cursor = connection.execute(case.sql.rstrip("; \n"))
            rows = [list(row) for row in cursor]
        assert ([column[0] for column in cursor.description], rows) == (case.columns, case.rows)


@each_database
def test_what_a_model_reads_of_each(asked: Asked, snapshot: SnapshotAssertion) -> None:
    told = {case.name: asked.shop.told(asked.answer(case)["error"]) for case in asked.corpus.told}
    assert len(told) == len(asked.corpus.told), "each statement has a name of its own"
    assert "".join(f"{name}\n    {error}\n" for name, error in told.items()) == snapshot


@each_database
@pytest.mark.parametrize("before", ["nothing", "the schema"])
def test_nothing_is_written_or_reached_without_the_guard(
    asked: Asked, before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "check", lambda sql, dialect: sql)
    succeeded = set()
    with SqlDatabase(asked.shop.path, timeout=PATIENCE) as database:
        if before == "the schema":
            database.get_schema()
        for case in asked.corpus.told if before == "nothing" else asked.corpus.hostile:
            if isinstance(case.sql, str):
                with in_time(PATIENCE + 5):
                    answer = database.execute(str(case.sent(asked.shop.folder)))
                asked.shop.told(answer)
                asked.assert_unharmed(database)
                succeeded |= {case.name} if answer["success"] else set()
    assert succeeded == HARMLESS["sqlite" if asked.shop.is_sqlite else "duckdb"]
