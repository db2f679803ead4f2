"""A small music shop, as a file of SQLite and of DuckDB: its dates are texts, some with a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

_TABLES = Path(__file__).with_name("music_shop.sql").read_text(encoding="utf-8")


def make_sqlite(folder: Path) -> Path:
    """The shop as a file of SQLite, with a view whose author wrote texts in double quotes."""
    path = folder / "music.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(_TABLES)
        connection.executescript(
            'CREATE VIEW Quoted AS SELECT InvoiceId, "a text" AS note FROM Invoice '
            'WHERE BillingCountry = "USA"'
        )
    return path


def make_duckdb(folder: Path) -> Path:
    import duckdb

    path = folder / "music.duckdb"
    with closing(duckdb.connect(str(path))) as connection:
        connection.execute(_TABLES)
    return path


MAKE: dict[str, Callable[[Path], Path]] = {"sqlite": make_sqlite, "duckdb": make_duckdb}
