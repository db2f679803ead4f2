"""Hostile, wrong and good statements, sent to a database as a model would send them."""

# ruff: noqa: S608 - the statements are the subject of these tests

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest
from agent_samples import rows
from sql_boundary import CANARY, CITIES, FOLDER, LIMIT, Shop, assert_failed, build_shop, in_time, shop_alone
from syrupy.assertion import SnapshotAssertion

from planning.agent import SqlDatabase
from planning.agent.databases import files
from planning.agent.sql import guard

# Statements that are too long, too deep or too many for a file of statements

_MOST = 30_000  # letters: many times what the databases take, and a third of what is sent at all


def _doubling(step: str, count: int = 24) -> str:
    """A chain of CTEs, each made of two of the one before."""
    chain = ["t0 (x) AS (SELECT 1)", *(f"t{i} (x) AS ({step.format(i - 1)})" for i in range(1, count + 1))]
    return f"WITH {', '.join(chain)} SELECT count(*) FROM t{count}"


_PREPARED: dict[str, object] = {
    "views of views": _doubling("SELECT x FROM t{0} UNION ALL SELECT x FROM t{0}"),
    "joins of joins": _doubling("SELECT a.x FROM t{0} AS a JOIN t{0} AS b"),
    "subqueries of subqueries": _doubling("SELECT (SELECT max(x) FROM t{0}) + (SELECT min(x) FROM t{0})"),
}


def _nested(before: str, middle: str, after: str) -> str:
    """As deep as the length that a statement may have."""
    count = _MOST // (len(before) + len(after))
    return "SELECT " + before * count + middle + after * count


def _long(before: str, part: str, after: str = "") -> str:
    return before + part * ((_MOST - len(before) - len(after)) // len(part)) + after


_DEEP: dict[str, object] = {
    "parentheses": _nested("(", "1", ")"),
    "subqueries": _nested("(SELECT ", "1", ")"),
    "case": _nested("CASE WHEN 1 THEN ", "1", " END"),
    "not": _nested("NOT ", "1", ""),
    "functions": _nested("abs(", "1", ")"),
    "exists": _nested("EXISTS (SELECT ", "1", ")"),
    "CTEs": "WITH a AS (" * 3_000 + "SELECT 1" + ") SELECT * FROM a" * 3_000,
    "sums": _long("SELECT 1", " + 1"),
    "compound selects": " UNION ALL ".join(["SELECT 1"] * 501),
    "joins": _long("SELECT 1 FROM cities", " JOIN cities"),
    "columns": _long("SELECT 1", ",1"),
    "semicolons": _long("", ";"),
    "statements": _long("SELECT 1", ";SELECT 1"),
    "quotes": _long("SELECT '", "''"),
    "comments": _long("SELECT 1 ", "/**/", "; DELETE FROM cities"),
    "spaces": _long("", " ", "DELETE FROM cities"),
    "a megabyte of text": "SELECT '" + "x" * 1_000_000 + "'",
    "a megabyte of spaces": " " * 1_000_000 + "DELETE FROM customers",
}
_DOUBLED = [f"t{i} AS (SELECT x FROM t{i - 1} UNION ALL SELECT x FROM t{i - 1})" for i in range(1, 25)]
_BASE = "t0 (x) AS (SELECT 1)"
_CHAINS: dict[str, list[str]] = {
    "in order": [_BASE, *_DOUBLED],
    "reversed": [*reversed(_DOUBLED), _BASE],
    "with words between": [
        _BASE.replace("AS", "AS NOT MATERIALIZED"),
        *(each.replace("AS", "AS/**/", 1) for each in _DOUBLED),
    ],
    "in capitals": [_BASE, *(each.replace("t", '"t"').replace('"t"', "T") for each in _DOUBLED)],
    "of signs": [each.replace("t", "$\u2192t") for each in (_BASE, *_DOUBLED)],
    "read by IN": [f"[t0] AS (SELECT 1), {', '.join(_DOUBLED).replace('FROM t', 'WHERE x IN t')}"],
    "joined": [_BASE, *(f"t{i} AS (SELECT x FROM (t{i - 1}) JOIN t{i - 1})" for i in range(1, 25))],
    "listed": [_BASE, *(f"t{i} AS (SELECT x FROM t{i - 1}, t{i - 1})" for i in range(1, 25))],
    "in brackets": [re.sub(r"t(\d+) AS", r"[t\1] AS", each) for each in (_BASE, *_DOUBLED)],
}
_CHAINED: dict[str, object] = {
    name: f"WITH {', '.join(tables)} SELECT count(*) FROM t24" for name, tables in _CHAINS.items()
}
_PLACED: dict[str, object] = {
    "parentheses never opened": _nested("", "1", ")"),
    "dots": _long("SELECT x", ".x"),
}
"""Where in it the mistake is takes time to find out, and is told where that is enough."""

_CROSSED = "SELECT count(*) FROM " + ", ".join(f"notes_data AS a{i}" for i in range(40))
_LISTED = ", ".join(map(str, range(5_000)))
_DEEP_DUCKDB: dict[str, object] = {
    "parentheses": "SELECT " + "(" * 10_000 + "1" + ")" * 10_000,
    "sums": "SELECT 1" + " + 1" * 5_000,
    "not": "SELECT " + "NOT " * 5_000 + "true",
    "lists of lists": "SELECT " + "[" * 10_000 + "]" * 10_000,
    "views of views": _doubling("SELECT x FROM t{0} UNION ALL SELECT x FROM t{0}", 39),
    "joins": "SELECT count(*) FROM " + ", ".join(f"range(100) AS a{i}" for i in range(200)),
}
GOOD = {
    "a long text": [f"SELECT length('{'x' * 90_000}') AS a", ["a"], [[90_000]]],
    "some copies": [
        f"WITH {', '.join([_BASE, *_DOUBLED[:14]])} SELECT count(*) AS n FROM t14",
        ["n"],
        [[16_384]],
    ],
    "a long list": [f"SELECT 1 IN ({_LISTED}) AS a", ["a"], [[1]]],
}


class Case(NamedTuple):
    """One statement: its family and name, what is sent, and the codes it may fail with."""

    name: str
    sql: object
    codes: tuple[str, ...] = ("parameter",)

    def sent(self, folder: Path) -> object:
        """What is sent, with the folder where it has to stand."""
        return self.sql.replace(FOLDER, str(folder)) if isinstance(self.sql, str) else self.sql


class Good(NamedTuple):
    """A statement that reads, with its columns and its rows."""

    name: str
    sql: str
    columns: list[str]
    rows: list[list[Any]]


class Corpus(NamedTuple):
    """The statements for one kind of database."""

    build: Callable[[Path], Path]
    hostile: tuple[Case, ...]  # what would write, or reach for more than the database
    told: tuple[Case, ...]  # this and what is wrong or too much: it fails with the same words anywhere
    heavy: tuple[Case, ...]  # what may fail at once or at the limit
    endless: tuple[Case, ...]
    good: tuple[Good, ...]


def _read(name: str) -> Any:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return json.loads(text, object_hook=lambda each: bytes.fromhex(each["hex"]) if "hex" in each else each)


def _cases(families: dict[str, dict[str, object]], *codes: str) -> tuple[Case, ...]:
    """The statements of some families, each named ``family: name``."""
    return tuple(
        Case(f"{family}: {name}", sql, codes or ("parameter",))
        for family, members in families.items()
        for name, sql in members.items()
    )


def _build_duckdb(folder: Path) -> Path:
    """A small DuckDB file, beside files that hold the canary."""
    (folder / "canary.txt").write_text(CANARY, encoding="utf-8")
    (folder / "canary.csv").write_text(f"word\n{CANARY}\n", encoding="utf-8")
    with duckdb.connect(str(folder / "other.duckdb")) as other:
        other.execute(f"CREATE TABLE secrets AS SELECT '{CANARY}' AS word")
    path = folder / "shop.duckdb"
    with duckdb.connect(str(path)) as shop:
        shop.execute(CITIES)
        shop.execute('CREATE TABLE "delete" ("insert" TEXT)')
        shop.execute("INSERT INTO \"delete\" VALUES ('one')")
        shop.execute("CREATE VIEW counted AS SELECT count(*) AS n FROM cities")
        shop.execute("CREATE SEQUENCE numbers")
    return path


_sqlite, _duckdb = _read("sqlite.json"), _read("duckdb.json")
_hostile = _cases(_sqlite["writes"] | _sqlite["reach"])
_hostile_duckdb = _cases(_duckdb["hostile"])
_wrong = _cases(_sqlite["wrong"] | {"no text": {"None": None, "bytes": b"SELECT 1", "a list": ["SELECT 1"]}})

CORPORA = {
    "sqlite": Corpus(
        build_shop,
        _hostile,
        (
            *_hostile,
            *_wrong,
            *_cases(_sqlite["too_much"] | {"deep": _DEEP, "a chain that doubles": _CHAINED}),
        ),
        _cases(_sqlite["heavy"] | {"prepared": _PREPARED, "placed": _PLACED}, "parameter", "timeout"),
        _cases(_sqlite["endless"] | {"endless joins": {"cross joins": _CROSSED}}, "timeout"),
        tuple(Good(name, *given) for name, given in (_sqlite["good"] | GOOD).items()),
    ),
    "duckdb": Corpus(
        _build_duckdb,
        _hostile_duckdb,
        (*_hostile_duckdb, *_cases(_duckdb["wrong"])),
        _cases(_duckdb["heavy"] | {"duckdb deep": _DEEP_DUCKDB}, "parameter", "timeout"),
        _cases(_duckdb["endless"], "timeout"),
        tuple(Good(name, *given) for name, given in _duckdb["good"].items()),
    ),
}
PATIENCE = 20.0
"""Seconds for what does not take long: what is asserted must not depend on how busy the machine is."""
LATE = f"the query took longer than {LIMIT:g} s and was stopped; ask for less, with WHERE or LIMIT"
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
    of_kinds = [(name, getattr(each, kind)) for name, each in CORPORA.items() for kind in kinds]
    found = [pytest.param(name, case, id=f"{name}-{case.name}") for name, each in of_kinds for case in each]
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
    assert (answer["code"], answer["error"]) == ("timeout", LATE)
    asked.assert_unharmed(asked.database)


@cases("good")
def test_what_reads_is_let_through_and_sqlite_itself_gives_the_same(asked: Asked, case: Good) -> None:
    answer = asked.patient.execute(case.sql)
    assert isinstance(answer.pop("elapsed"), float)
    assert answer == rows(*case.rows, columns=case.columns)
    if asked.shop.is_sqlite:
        with closing(sqlite3.connect(asked.shop.path)) as connection:
            cursor = connection.execute(case.sql.rstrip("; \n"))
            assert [list(row) for row in cursor] == case.rows
        assert [column[0] for column in cursor.description] == case.columns


@each_database
def test_what_a_model_reads_of_each(asked: Asked, snapshot: SnapshotAssertion) -> None:
    told = {case.name: asked.shop.told(asked.answer(case)["error"]) for case in asked.corpus.told}
    assert len(told) == len(asked.corpus.told), "each statement has a name of its own"
    assert "".join(f"{name}\n    {error}\n" for name, error in told.items()) == snapshot


@each_database
@pytest.mark.parametrize("before", ["nothing", "the schema"])
def test_no_guard_nothing_is_written(asked: Asked, before: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
