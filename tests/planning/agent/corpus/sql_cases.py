"""What a statement of the corpus is, and the database that the statements are sent to."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

CANARY = "canary-that-sings-in-another-file"
FOLDER = "@FOLDER@"
"""Stands in a statement for the folder of the database, where the canary is."""


@dataclass(frozen=True, slots=True)
class Case:
    """One statement: its family and name, what is sent, and the codes it may fail with."""

    name: str
    sql: object
    codes: tuple[str, ...] = ("parameter",)

    def sent(self, folder: Path) -> object:
        """What is sent, with the folder where it has to stand."""
        return self.sql.replace(FOLDER, str(folder)) if isinstance(self.sql, str) else self.sql


def cases(families: Mapping[str, Mapping[str, object]], *codes: str) -> tuple[Case, ...]:
    """The statements of some families, each named ``family: name``."""
    return tuple(_named(families, codes or ("parameter",)))


def _named(families: Mapping[str, Mapping[str, object]], codes: tuple[str, ...]) -> Iterator[Case]:
    for family, members in families.items():
        for name, sql in members.items():
            yield Case(f"{family}: {name}", sql, codes)


def build_shop(folder: Path) -> Path:
    """A small database, beside a text file and another database that hold the canary."""
    (folder / "canary.txt").write_text(CANARY, encoding="utf-8")
    with closing(sqlite3.connect(folder / "other.db")) as other, other:
        other.execute("CREATE TABLE secrets (word TEXT)")
        other.execute("INSERT INTO secrets VALUES (?)", (CANARY,))
    path = folder / "shop.db"
    with closing(sqlite3.connect(path)) as shop:
        shop.executescript(_SHOP)
        shop.execute("INSERT INTO measures VALUES (4, NULL, ?, ?)", (b"\x00\xff", -(2**63)))
        shop.commit()
    return path


_SHOP = """
CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
INSERT INTO cities VALUES (1, 'Zürich'), (2, 'Oslo'), (3, 'Lima');
CREATE TABLE customers (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, city_id INTEGER REFERENCES cities (id), since TEXT);
INSERT INTO customers VALUES
  (1, 'Ada', 1, '2020-01-31'), (2, 'Grace', 2, '2021-06-01'), (3, 'Edsger', NULL, '2024-02-29');
CREATE TABLE orders (
  id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers (id), total REAL, note TEXT);
INSERT INTO orders VALUES
  (1, 1, 10.5, 'please delete'), (2, 1, 20.0, '50% off'), (3, 2, 5.25, NULL), (4, 2, 5.25, 'a;b');
CREATE TABLE "delete" (id INTEGER PRIMARY KEY, "insert" TEXT, "replace" TEXT, "order by" INTEGER);
INSERT INTO "delete" VALUES (1, 'one', 'r1', 7), (2, 'two', 'r2', 8);
CREATE TABLE "drop table" ("pragma" INTEGER, "Größe" REAL, "a""b" TEXT);
INSERT INTO "drop table" VALUES (1, 1.5, 'quoted');
CREATE TABLE measures (id INTEGER PRIMARY KEY, value REAL, raw BLOB, big INTEGER);
INSERT INTO measures VALUES (1, 9e999, x'', 9223372036854775807), (2, -9e999, x'41', 0), (3, 0.1, NULL, NULL);
CREATE TABLE documents (id INTEGER PRIMARY KEY, body TEXT);
INSERT INTO documents VALUES
  (1, '{"tags": ["a", "b"], "size": 3}'), (2, '{"tags": [], "size": null}');
CREATE VIRTUAL TABLE notes USING fts5(title, body);
INSERT INTO notes VALUES ('first', 'the quick brown fox'), ('second', 'a lazy dog; a quick nap');
CREATE VIRTUAL TABLE archive USING fts4(body);
INSERT INTO archive VALUES ('old words');
CREATE VIEW spenders AS
  SELECT customers.name AS name, sum(orders.total) AS total FROM orders
  JOIN customers ON customers.id = orders.customer_id GROUP BY customers.id;
CREATE INDEX orders_by_customer ON orders (customer_id);
"""
