"""The statements of the corpus, from JSON files, and the databases that they are sent to."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
from sql_bombs import ENDLESS, GOOD, HEAVY, HEAVY_DUCKDB, TOO_MUCH

CANARY = "canary-that-sings-in-another-file"
FOLDER = "@FOLDER@"
"""Stands in a statement for the folder of the database, where the canary is."""

_NO_TEXT: dict[str, object] = {
    "None": None,
    "bytes": b"SELECT 1",
    "a number": 5,
    "a truth": True,
    "a list": ["SELECT 1"],
    "a mapping": {"sql": "SELECT 1"},
    "an object": object,
}


@dataclass(frozen=True, slots=True)
class Case:
    """One statement: its family and name, what is sent, and the codes it may fail with."""

    name: str
    sql: object
    codes: tuple[str, ...] = ("parameter",)

    def sent(self, folder: Path) -> object:
        """What is sent, with the folder where it has to stand."""
        return self.sql.replace(FOLDER, str(folder)) if isinstance(self.sql, str) else self.sql


@dataclass(frozen=True, slots=True)
class Good:
    """A statement that reads, with its columns and its rows."""

    name: str
    sql: str
    columns: list[str]
    rows: list[list[Any]]


@dataclass(frozen=True, slots=True)
class Corpus:
    """The statements for one kind of database.

    Attributes:
        build: Makes the database in a folder.
        hostile: What would write, or reach for more than the database.
        told: This and what is wrong or too much: it fails with the same words wherever it is sent.
        heavy: What may fail at once or at the limit.
        endless: What is ended at the limit.
        good: What reads, and what it gives.
    """

    build: Callable[[Path], Path]
    hostile: tuple[Case, ...]
    told: tuple[Case, ...]
    heavy: tuple[Case, ...]
    endless: tuple[Case, ...]
    good: tuple[Good, ...]


def _bytes(pairs: dict[str, Any]) -> Any:
    return bytes.fromhex(pairs["hex"]) if list(pairs) == ["hex"] else pairs


def _read(name: str) -> dict[str, dict[str, Any]]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    found: dict[str, dict[str, Any]] = json.loads(text, object_hook=_bytes)
    return found


def _cases(families: dict[str, dict[str, object]], *codes: str) -> tuple[Case, ...]:
    """The statements of some families, each named ``family: name``."""
    return tuple(
        Case(f"{family}: {name}", sql, codes or ("parameter",))
        for family, members in families.items()
        for name, sql in members.items()
    )


def _good(members: dict[str, Any]) -> tuple[Good, ...]:
    return tuple(Good(name, *given) for name, given in members.items())


def build_shop(folder: Path) -> Path:
    """A small database, beside a text file and another database that hold the canary."""
    (folder / "canary.txt").write_text(CANARY, encoding="utf-8")
    with closing(sqlite3.connect(folder / "other.db")) as other, other:
        other.execute("CREATE TABLE secrets (word TEXT)")
        other.execute("INSERT INTO secrets VALUES (?)", (CANARY,))
    path = folder / "shop.db"
    with closing(sqlite3.connect(path)) as shop:
        shop.executescript(_CITIES)
        shop.executescript(_SHOP)
        shop.execute("INSERT INTO measures VALUES (4, NULL, ?, ?)", (b"\x00\xff", -(2**63)))
        shop.commit()
    return path


def _build_duckdb(folder: Path) -> Path:
    """A small DuckDB file, beside files that hold the canary."""
    (folder / "canary.txt").write_text(CANARY, encoding="utf-8")
    (folder / "canary.csv").write_text(f"word\n{CANARY}\n", encoding="utf-8")
    with duckdb.connect(str(folder / "other.duckdb")) as other:
        other.execute(f"CREATE TABLE secrets AS SELECT '{CANARY}' AS word")
    path = folder / "shop.duckdb"
    with duckdb.connect(str(path)) as shop:
        shop.execute(_CITIES)
        shop.execute('CREATE TABLE "delete" ("insert" TEXT)')
        shop.execute("INSERT INTO \"delete\" VALUES ('one')")
        shop.execute("CREATE VIEW counted AS SELECT count(*) AS n FROM cities")
        shop.execute("CREATE SEQUENCE numbers")
    return path


_CITIES = """
CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
INSERT INTO cities VALUES (1, 'Zürich'), (2, 'Oslo'), (3, 'Lima');
"""
_SHOP = Path(__file__).with_name("shop.sql").read_text(encoding="utf-8")

_sqlite, _duckdb = _read("sqlite.json"), _read("duckdb.json")
_hostile = _cases(_sqlite["writes"] | _sqlite["reach"])
_hostile_duckdb = _cases(_duckdb["hostile"])
_wrong = _cases(_sqlite["wrong"] | {"no text": _NO_TEXT})

CORPORA = {
    "sqlite": Corpus(
        build_shop,
        _hostile,
        (*_hostile, *_wrong, *_cases(_sqlite["too_much"] | TOO_MUCH)),
        _cases(_sqlite["heavy"] | HEAVY, "parameter", "timeout"),
        _cases(_sqlite["endless"] | ENDLESS, "timeout"),
        _good(_sqlite["good"] | GOOD),
    ),
    "duckdb": Corpus(
        _build_duckdb,
        _hostile_duckdb,
        (*_hostile_duckdb, *_cases(_duckdb["wrong"])),
        _cases(_duckdb["heavy"] | HEAVY_DUCKDB, "parameter", "timeout"),
        _cases(_duckdb["endless"], "timeout"),
        _good(_duckdb["good"]),
    ),
}
