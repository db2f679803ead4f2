"""Statements of PostgreSQL that read, and write nothing, whatever they call."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import psycopg
import pytest
from postgres_server import PostgresServer
from postgres_shop import PostgresShop

from planning.agent import SqlDatabase
from planning.agent.databases.postgres import PostgresDatabase
from planning.agent.sql.guard import Failure

pytestmark = pytest.mark.postgres


def statements(file: str) -> list[str]:
    """The statements of a file: a line that begins with a space continues one."""
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    return text.strip().replace("\n ", "\0 ").split("\n")


@contextmanager
def opened(address: str) -> Iterator[PostgresDatabase]:
    """The database without the check of the text and the thread before it."""
    with closing(PostgresDatabase(address)) as database:
        database.deadline = monotonic() + 60
        yield database


@pytest.fixture(scope="module")
def shop(postgres: PostgresServer) -> PostgresShop:
    return PostgresShop(postgres)


@pytest.fixture(params=["reader", "owner"])
def address(request: pytest.FixtureRequest, shop: PostgresShop) -> Iterator[str]:
    """The address of a role that may only read, and of a superuser: nothing has changed at the end."""
    before = shop.state()
    yield getattr(shop, request.param)
    assert shop.state() == before


def attacks(shop: PostgresShop, other: psycopg.Connection[Any]) -> list[str]:
    named = {"{pid}": str(other.info.backend_pid), "{own}": shop.owner, "\0": "\n"}
    found = statements("attacks.sql")
    for name, meant in named.items():
        found = [each.replace(name, meant) for each in found]
    return found


def test_no_attack_changes_anything(shop: PostgresShop, address: str) -> None:
    with shop.witness(address) as other, SqlDatabase(address, timeout=20) as database:
        codes = {sql: database.execute(sql).get("code") for sql in attacks(shop, other)}
    assert codes == dict.fromkeys(codes, "parameter")


def test_no_attack_changes_anything_without_the_check_of_the_text(shop: PostgresShop, address: str) -> None:
    with shop.witness(address) as other, opened(address) as database:
        for attack in attacks(shop, other):
            with pytest.raises(Failure) as caught:
                database.run(attack, 10)
            assert caught.value.kind in {"refused", "sql"}, attack  # enough: by the guard or the server


def test_the_transaction_alone_lets_no_table_be_written(shop: PostgresShop, address: str) -> None:
    with opened(address) as database:
        for attack in (
            "DELETE FROM cities",
            "SET TRANSACTION READ WRITE; DELETE FROM cities",
            "SELECT set_config('transaction_read_only', 'off', true), wipe()",
            "SELECT nextval('numbers')",
            "SELECT lo_unlink(4711)",
            "SELECT pg_notify('canary', 'x')",
        ):
            with (
                shop.witness(address),
                pytest.raises((Failure, StopIteration)),
                database._session() as connection,
            ):
                connection.execute("SELECT 1")
                connection.execute(attack.encode())
                raise StopIteration


def test_a_sound_statement_is_run(address: str) -> None:
    with SqlDatabase(address, timeout=20) as database:
        errors = {sql: database.execute(sql)["error"] for sql in statements("sound.sql")}
    assert errors == dict.fromkeys(errors)


def test_the_server_takes_one_statement(shop: PostgresShop) -> None:
    with opened(shop.owner) as database, pytest.raises(Failure) as caught:
        database.run("SELECT 1; SELECT 2", 10)
    assert (caught.value.kind, caught.value.text) == ("refused", "more than one statement")


def test_a_function_that_is_not_on_the_search_path_refuses_no_other_of_its_name(shop: PostgresShop) -> None:
    shop.change("CREATE FUNCTION other.lower(text) RETURNS text LANGUAGE sql AS 'SELECT $1'")
    shop.change("GRANT USAGE ON SCHEMA other TO reader")
    with SqlDatabase(shop.reader) as database:
        assert database.execute("SELECT lower('A')")["data"] == [["a"]]
        assert database.execute("SELECT other.lower('A')")["code"] == "parameter"


def test_a_statement_leaves_the_session_as_it_was(shop: PostgresShop) -> None:
    with opened(shop.reader) as database:
        database.run("SELECT 1", 1)
        connection = database._connection
        assert connection is not None
        assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
        assert connection.execute("SHOW statement_timeout").fetchall() == [("0",)]
