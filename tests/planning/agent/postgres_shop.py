"""A shop in a PostgreSQL database, and what shows that statements only read it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
from postgres_server import ESCAPED, PASSWORD, PostgresServer
from psycopg import sql

SHOP = Path(__file__).with_name("postgres_shop.sql").read_text(encoding="utf-8")
_STATE = Path(__file__).with_name("postgres_state.sql").read_text(encoding="utf-8")
_numbers = count(1)


class PostgresShop:
    """A database of its own on a server, with its addresses for a reader and for a superuser."""

    def __init__(self, server: PostgresServer) -> None:
        name = f"shop_{next(_numbers)}"
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'reader'").fetchall():
                connection.execute(sql.SQL("CREATE ROLE reader LOGIN PASSWORD {}").format(PASSWORD))
        self.reader, self.owner = (
            f"postgresql://{role}:{ESCAPED}@127.0.0.1:{server.port}/{name}" for role in ("reader", "planning")
        )
        self.shown = f"postgresql://127.0.0.1:{server.port}/{name}"
        self.change(SHOP)

    def change(self, statements: str) -> None:
        with psycopg.connect(self.owner, autocommit=True) as connection:
            connection.execute(statements.encode())

    def state(self) -> list[Any]:
        """All that statements could have changed: rows, the catalogue, settings, locks and files."""
        with psycopg.connect(self.owner) as connection:
            tables = connection.execute(
                "SELECT format('SELECT %L, t::text FROM %I.%I AS t ORDER BY 2', relname, nspname, relname)"
                " FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace"
                " WHERE relkind IN ('r', 'm') AND nspname IN ('public', 'other') ORDER BY 1"
            ).fetchall()
            rows = [connection.execute(query.encode()).fetchall() for (query,) in tables]
            return [*rows, *connection.execute(_STATE).fetchall()]

    @contextmanager
    def witness(self, address: str) -> Iterator[psycopg.Connection[Any]]:
        """Another connection of a role, which listens, and is still there at the end."""
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("LISTEN canary")
            yield connection
            assert connection.execute("SELECT 1").fetchall() == [(1,)]
            assert not [*connection.notifies(timeout=0)]
