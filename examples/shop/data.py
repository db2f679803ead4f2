"""The shop's database: invented, and the same each time.

``python examples/shop/data.py FILE`` makes it.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

__all__ = ["create_database"]

_SCHEMA: Final = """
CREATE TABLE cities (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    country TEXT NOT NULL
);
CREATE TABLE customers (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT,
    city_id INTEGER NOT NULL REFERENCES cities (id)
);
CREATE TABLE products (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    category TEXT NOT NULL,
    "unit price" REAL NOT NULL
);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (id),
    ordered_on TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('open', 'shipped', 'returned'))
);
CREATE TABLE order_items (
    order_id INTEGER NOT NULL REFERENCES orders (id),
    product_id INTEGER NOT NULL REFERENCES products (id),
    quantity INTEGER NOT NULL CHECK (quantity > 0),
    PRIMARY KEY (order_id, product_id)
);
CREATE VIEW order_totals AS
    SELECT orders.id AS order_id, orders.customer_id, sum(quantity * "unit price") AS total
    FROM orders
    JOIN order_items ON order_items.order_id = orders.id
    JOIN products ON products.id = order_items.product_id
    GROUP BY orders.id;
"""
_CITIES: Final = (
    ("Bergen", "Norway"),
    ("Ghent", "Belgium"),
    ("Graz", "Austria"),
    ("Porto", "Portugal"),
    ("Turku", "Finland"),
    ("Utrecht", "Netherlands"),
)
_CUSTOMERS: Final = (
    ("Ada Lund", "ada@example.org", 1),
    ("Bram Peeters", "bram@example.org", 2),
    ("Clara Huber", "clara@example.org", 3),
    ("Duarte Pinto", None, 4),
    ("Eeva Salo", "eeva@example.org", 5),
    ("Femke de Wit", "femke@example.org", 6),
    ("Greta Moser", None, 3),
    ("Hugo Claes", "hugo@example.org", 2),
    ("Ines Rocha", "ines@example.org", 4),
    ("Jonas Berg", None, 1),
)
_PRODUCTS: Final = (
    ("Notebook", "paper", 4.5),
    ("Sketch pad", "paper", 9.75),
    ("Fountain pen", "pens", 32.0),
    ("Pencil set", "pens", 12.25),
    ("Blue ink", "ink", 7.5),
    ("Black ink", "ink", 7.5),
    ("Desk lamp", "office", 48.0),
    ("Letter scale", "office", 27.5),
)
_ORDERS: Final = 40
_NEVER_BOUGHT: Final = 8  # the last product; and the last customer has no order
_OPEN_FROM: Final = 36


def create_database(path: str | os.PathLike[str]) -> None:
    """Make the shop's database: what was sold in the first quarter of 2026.

    Raises:
        FileExistsError: Something is there already.
    """
    file = Path(path)
    file.open("xb").close()
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.executescript(_SCHEMA)
        for table, rows in (("cities", _CITIES), ("customers", _CUSTOMERS), ("products", _PRODUCTS)):
            marks = ", ".join("?" * len(rows[0]))
            numbered = [(number, *row) for number, row in enumerate(rows, start=1)]
            connection.executemany(f"INSERT INTO {table} VALUES (?, {marks})", numbered)  # noqa: S608 - its names are those above
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", _orders())
        connection.executemany("INSERT INTO order_items VALUES (?, ?, ?)", _items())


def _orders() -> Iterator[tuple[int, int, str, str]]:
    for number in range(1, _ORDERS + 1):
        customer = number * number % 9 + 1 if number % 2 else number % 9 + 1
        day = (number - 1) * 9 // 4  # 0 to 87
        month, day = (1, day) if day < 31 else (2, day - 31) if day < 59 else (3, day - 59)
        status = "open" if number >= _OPEN_FROM else "returned" if number % 11 == 0 else "shipped"
        yield number, customer, f"2026-{month:02}-{day + 1:02}", status


def _items() -> Iterator[tuple[int, int, int]]:
    kinds = _NEVER_BOUGHT - 1
    for number in range(1, _ORDERS + 1):
        for place in range(1 + number % 3):
            yield number, (number * 5 + place * 3) % kinds + 1, 1 + (number + place) % 4


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python data.py FILE")
    try:
        create_database(sys.argv[1])
    except OSError as error:
        raise SystemExit(f"cannot make {sys.argv[1]}: {error.strerror}; name another file") from None
