"""Statements of PostgreSQL that read, and write nothing, whatever they call."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import monotonic

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


@pytest.fixture(scope="module")
def shop(postgres: PostgresServer) -> PostgresShop:
    return PostgresShop(postgres)


@pytest.fixture(params=["reader", "owner"])
def address(request: pytest.FixtureRequest, shop: PostgresShop) -> Iterator[str]:
    """The address of a role that may only read, and of a superuser: nothing has changed at the end."""
    before = shop.state()
    yield getattr(shop, request.param)
    assert shop.state() == before


def test_no_attack_changes_anything(shop: PostgresShop, address: str) -> None:
    allowed = list[str]()
    with shop.witness(address) as other, SqlDatabase(address, timeout=20) as database:
        for statement in statements("attacks.sql"):
            attack = statement.replace("\0", "\n").replace("{pid}", str(other.info.backend_pid))
            if database.execute(attack.replace("{own}", shop.owner)).get("code") != "parameter":
                allowed.append(attack)
    assert allowed == []


def test_no_attack_changes_anything_without_the_check_of_the_text(shop: PostgresShop, address: str) -> None:
    database = PostgresDatabase(address)
    with shop.witness(address) as other:
        for statement in statements("attacks.sql"):
            attack = statement.replace("\0", "\n").replace("{pid}", str(other.info.backend_pid))
            database.deadline = monotonic() + 20
            with pytest.raises(Failure) as caught:
                database.run(attack.replace("{own}", shop.owner), 10)
            assert caught.value.kind in {"refused", "sql"}, attack
    database.close()


def test_the_transaction_alone_lets_no_table_be_written(shop: PostgresShop, address: str) -> None:
    database = PostgresDatabase(address)
    for attack in (
        "DELETE FROM cities",
        "SET TRANSACTION READ WRITE; DELETE FROM cities",
        "SET LOCAL transaction_read_only = off; DELETE FROM cities",
        "SELECT set_config('transaction_read_only', 'off', true), wipe()",
        "SELECT nextval('numbers')",
        "SELECT lo_unlink(4711)",
        "SELECT pg_notify('canary', 'x')",
    ):
        database.deadline = monotonic() + 20
        with (
            shop.witness(address),
            pytest.raises((Failure, StopIteration)),
            database._session() as connection,
        ):
            connection.execute("SELECT 1")
            connection.execute(attack.encode())
            raise StopIteration
    database.close()


@pytest.mark.parametrize("statement", statements("sound.sql"))
def test_a_sound_statement_is_run(shop: PostgresShop, address: str, statement: str) -> None:
    with SqlDatabase(address) as database:
        assert database.execute(statement)["error"] is None


@pytest.mark.parametrize(
    ("statement", "refused"),
    [
        ("SELECT nextval('numbers')", "calling nextval, which may change something,"),
        ("SELECT (1).wipe_row", "calling wipe_row, which may change something,"),
        ("SELECT 1 /* a /* b */ */", "a comment in a comment, or a name in Unicode escapes,"),
        ("SELECT * FROM cities FOR UPDATE", "writing"),
        ("WITH w AS (DELETE FROM cities RETURNING id) SELECT * FROM w", "writing"),
        ("COPY cities TO '/tmp/x'", "COPY"),
        ("EXPLAIN ANALYZE DELETE FROM cities", "EXPLAIN"),
    ],
)
def test_a_refusal_says_what_is_refused(shop: PostgresShop, statement: str, refused: str) -> None:
    with SqlDatabase(shop.reader) as database:
        assert database.execute(statement)["error"] == (
            f"{refused} is refused: only queries that read are run; send one SELECT "
            "(WITH ... SELECT is one too)"
        )


def test_the_server_takes_one_statement(shop: PostgresShop) -> None:
    database = PostgresDatabase(shop.owner)
    database.deadline = monotonic() + 20
    with pytest.raises(Failure) as caught:
        database.run("SELECT 1; SELECT 2", 10)
    assert (caught.value.kind, caught.value.text) == ("refused", "more than one statement")
    database.close()


def test_a_function_that_is_not_on_the_search_path_refuses_no_other_of_its_name(shop: PostgresShop) -> None:
    shop.change("CREATE FUNCTION other.lower(text) RETURNS text LANGUAGE sql AS 'SELECT $1'")
    shop.change("GRANT USAGE ON SCHEMA other TO reader")
    with SqlDatabase(shop.reader) as database:
        assert database.execute("SELECT lower('A')")["data"] == [["a"]]
        assert database.execute("SELECT other.lower('A')")["code"] == "parameter"


def test_a_statement_leaves_the_session_as_it_was(shop: PostgresShop) -> None:
    database = PostgresDatabase(shop.reader)
    database.deadline = monotonic() + 20
    database.run("SELECT 1", 1)
    connection = database._connection
    assert connection is not None
    assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE
    assert connection.execute("SHOW statement_timeout").fetchall() == [("0",)]
    database.close()
