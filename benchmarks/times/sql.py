"""Statements of a public set of questions, judged: what is right at once, refused, or wrong and not noticed.

Nothing is fetched. ``SQL_EVAL`` names a folder with the set, such as that of defog-ai:

- ``NAME.db`` or ``NAME.duckdb``: its databases, files of SQLite or DuckDB.
- ``gold.csv``: a row for each statement, with the columns ``db_name`` (the name of a database), ``dialect``
  (the SQL that the statement is written in, such as ``postgres``), ``query``, and ``answer``: the true rows,
  as a JSON list of lists. Several right answers are a JSON object with the list of them under ``any``.

Rows may be in any order, and numbers may differ in the sixth digit.
"""

from __future__ import annotations

import csv
import json
import os
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from benchmarks.harness import OURS, Cell, Check, Section, table
from planning.agent import SqlDatabase

__all__ = ["judged", "measure"]

VARIABLE = "SQL_EVAL"
SKIPPED = f"Skipped: {VARIABLE} does not name the folder of a public set of questions."
METHOD = """\
Each statement of the set, in every dialect, sent once to `SqlDatabase`. Right at once: its rows are the true
ones. Wrong: it has other rows, and no error says so. Refused: an error. Sound and refused: SQLite or DuckDB
by itself gives the true rows."""
OUTCOMES = ("right at once", "wrong", "refused", "sound and refused")


def measure(rounds: int) -> Section:  # noqa: ARG001 - it counts, and each statement is sent once
    """Judge the statements of the set."""
    folder = os.environ.get(VARIABLE)
    counts = {} if folder is None else judged(Path(folder))
    if not counts:
        return Section("SQL of a public set", (OURS,), [SKIPPED])
    rows: list[list[Cell]] = [
        [*key, *(each[outcome] for outcome in OUTCOMES)] for key, each in sorted(counts.items())
    ]
    total: Counter[str] = sum(counts.values(), Counter())
    return Section(
        "SQL of a public set",
        (OURS, "sqlglot"),
        [METHOD, table(["database", "dialect", *OUTCOMES], rows)],
        [
            Check(f"{name}: none", f"{total[name]:,}", not total[name])
            for name in OUTCOMES
            if name in {"wrong", OUTCOMES[3]}
        ],
    )


def judged(folder: Path) -> dict[tuple[str, str], Counter[str]]:
    """How many statements had which outcome, by the kind of database and the dialect of the statement."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    with (folder / "gold.csv").open(encoding="utf-8", newline="") as file:
        statements = list(csv.DictReader(file))
    for path in sorted([*folder.glob("*.db"), *folder.glob("*.duckdb")]):
        with SqlDatabase(path, max_rows=100_000, timeout=60) as database:
            for each in statements:
                if each["db_name"] == path.stem:
                    outcomes = counts.setdefault((database.dialect, each["dialect"]), Counter())
                    outcomes.update(_outcomes(database, path, each["query"], json.loads(each["answer"])))
    return counts


def _outcomes(database: SqlDatabase, path: Path, sql: str, answer: Any) -> Iterator[str]:
    right = [_shown(rows) for rows in (answer["any"] if isinstance(answer, dict) else [answer])]
    result = database.execute(sql)
    if result["success"]:
        yield "right at once" if _shown(result["data"]) in right else "wrong"
        return
    yield "refused"
    try:
        if _shown(_alone(path, sql)) in right:
            yield "sound and refused"
    except Exception:  # noqa: BLE001 - the database takes no such statement either
        return


def _alone(path: Path, sql: str) -> Sequence[Sequence[Any]]:
    """The rows that the database itself gives."""
    if path.suffix == ".db":
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return connection.execute(sql).fetchall()
    import duckdb  # noqa: PLC0415 - only for files of it

    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def _shown(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Rows that can be compared: in order, numbers with six digits."""
    return sorted(" | ".join(_cell(value) for value in row) for row in rows)


def _cell(value: Any) -> str:
    try:
        return f"{float(value):.6g}"
    except (TypeError, ValueError):
        return str(value)
