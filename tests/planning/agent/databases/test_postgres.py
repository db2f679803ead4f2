"""PostgreSQL asked by its URL: values, limits, errors and the schema; and statements that only read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import monotonic, sleep
from typing import Any

import psycopg
import pytest
from chat_server import ChatServer, says
from cli_runs import run
from hypothesis import given
from hypothesis import strategies as st
from plan_findings import stored_lines
from postgres_server import ESCAPED, PASSWORD, PostgresServer
from psycopg.sql import SQL, Identifier
from run_cases import refusal
from syrupy.assertion import SnapshotAssertion

from planning.agent import SqlDatabase
from planning.agent.databases.postgres import PostgresDatabase
from planning.agent.sql.guard import Failure
from planning.tools import StorageUnavailable

pytestmark = pytest.mark.postgres

SHOP = Path(__file__).with_name("postgres_shop.sql").read_text(encoding="utf-8")
STATE = Path(__file__).with_name("postgres_state.sql").read_text(encoding="utf-8")
LARGE = Path(__file__).with_name("postgres_large.sql").read_text(encoding="utf-8").splitlines()
NUMBERS = count(1)
ERRORS: dict[str, str] = json.loads(Path(__file__).with_name("postgres_errors.json").read_text())
LOST = "the server cannot be reached, or has ended the connection: check whether it runs, and try again"


class PostgresShop:
    """A database of its own on a server, with its addresses for a reader and for a superuser."""

    def __init__(self, server: PostgresServer) -> None:
        name = f"shop_{next(NUMBERS)}"
        with psycopg.connect(server.conninfo, autocommit=True) as connection:
            connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
            if not connection.execute("SELECT 1 FROM pg_roles WHERE rolname = 'reader'").fetchall():
                connection.execute(SQL("CREATE ROLE reader LOGIN PASSWORD {}").format(PASSWORD))
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
            return [*rows, *connection.execute(STATE).fetchall()]

    @contextmanager
    def witness(self, address: str) -> Iterator[psycopg.Connection[Any]]:
        """Another connection of a role, which listens, and is still there at the end."""
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("LISTEN canary")
            yield connection
            assert connection.execute("SELECT 1").fetchall() == [(1,)]
            assert not [*connection.notifies(timeout=0)]


@pytest.fixture(scope="module")
def shop(postgres: PostgresServer) -> PostgresShop:
    return PostgresShop(postgres)


@pytest.fixture(scope="module")
def database(shop: PostgresShop) -> Iterator[SqlDatabase]:
    with SqlDatabase(shop.reader, timeout=30) as database:
        yield database


def test_a_value_is_as_json_or_sql_has_it(database: SqlDatabase, snapshot: SnapshotAssertion) -> None:
    told = ""
    for expression in stored_lines(snapshot):
        answer = database.execute(f"SELECT {expression} AS x")
        told += f"{expression}\n    {answer['data'][0][0]!a}\n"
        json.dumps(answer["data"], allow_nan=False, default=bytes.hex)
    assert told == snapshot


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(st.lists(TEXTS | st.none(), min_size=1))
def test_any_text_comes_back_as_it_is(database: SqlDatabase, texts: list[str | None]) -> None:
    values = ", ".join("NULL" if text is None else "'" + text.replace("'", "''") + "'" for text in texts)
    assert database.execute(f"SELECT ARRAY[{values}]::text[], {values}")["data"] == [[texts, *texts]]


def test_names_are_kept_also_those_that_come_twice(database: SqlDatabase) -> None:
    answer = database.execute('SELECT 1 AS a, 2 AS a, 3 AS "é", 4, name FROM cities ORDER BY name')
    assert answer["columns"] == ["a", "a", "é", "?column?", "name"]
    assert answer["data"] == [[1, 2, 3, 4, "Bern"], [1, 2, 3, 4, "Oslo"]]


def test_a_whole_division_is_an_issue(database: SqlDatabase) -> None:
    sql = "SELECT id / 2 AS half FROM customers"
    verdict = database.tools()[2].execute(query="?", sql=sql, results=database.execute(sql))["result"]
    issue = "id / 2 divides whole numbers and drops the rest; write id * 1.0 / 2 if it should not"
    assert (verdict["is_valid"], verdict["issues"]) == (True, [issue])


def test_more_rows_than_allowed_are_cut(shop: PostgresShop) -> None:
    with SqlDatabase(shop.reader, max_rows=3) as database:
        numbers = "SELECT g FROM generate_series(1, {}) AS g"
        for most, counted in ((2, (2, False)), (3, (3, False)), (4, (3, True)), (1_000_000, (3, True))):
            answer = database.execute(numbers.format(most))
            assert (answer["row_count"], answer["truncated"]) == counted


def test_rows_are_counted_in_bytes(database: SqlDatabase) -> None:
    peak = getrusage(RUSAGE_SELF).ru_maxrss
    answer = database.execute("SELECT g, repeat('x', 3000000) FROM generate_series(1, 1000) AS g")
    assert (answer["row_count"], answer["truncated"]) == (5, True)
    assert getrusage(RUSAGE_SELF).ru_maxrss - peak < 400_000  # KB, of 3 GB
    assert database.execute("SELECT repeat('x', 10000000)::bytea")["row_count"] == 1
    assert database.execute("SELECT 1")["data"] == [[1]]


TOO_LARGE = "a value in it is too large for an answer; ask for its length, or a part of it with substr"


@pytest.mark.parametrize("value", LARGE)
def test_a_large_value_is_not_sent(database: SqlDatabase, value: str) -> None:
    peak = getrusage(RUSAGE_SELF).ru_maxrss
    answer = database.execute(f"SELECT {value}")
    assert (answer["code"], answer["error"]) == ("parameter", TOO_LARGE)
    assert getrusage(RUSAGE_SELF).ru_maxrss - peak < 20_000  # KB


SLOW = "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b"
READERS = "SELECT 1 FROM pg_stat_activity WHERE usename = 'reader'"
LATE = "the query took longer than 0.5 s and was stopped; ask for less, with WHERE or LIMIT"


@pytest.mark.parametrize(
    "before",
    ["", "SELECT a FROM generate_series(1, 1000000) a WHERE a < 0 AND pg_typeof(a) IS NOT NULL UNION ALL "],
)
def test_a_statement_is_stopped_at_its_time(shop: PostgresShop, before: str) -> None:
    with SqlDatabase(shop.reader, timeout=0.5) as database:
        begun = monotonic()
        answer = database.execute(before + SLOW)
        assert (answer["code"], answer["error"]) == ("timeout", LATE)
        assert monotonic() - begun < 10
        database.timeout = 30.0
        assert database.execute("SELECT 1")["data"] == [[1]]
        assert is_never(shop, f"{READERS} AND state <> 'idle'")


def test_the_server_stops_a_statement_by_itself(shop: PostgresShop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresDatabase, "interrupt", lambda _: None)
    with SqlDatabase(shop.reader, timeout=0.5) as database:
        assert database.execute(SLOW)["code"] == "timeout"
    assert is_never(shop, f"{READERS} AND state <> 'idle'")


def is_never(shop: PostgresShop, query: str) -> bool:
    """Whether a query has no rows, within some seconds."""
    with psycopg.connect(shop.owner, autocommit=True) as connection:
        for _ in range(100):
            if not connection.execute(query.encode()).fetchall():
                return True
            sleep(0.1)
    return False


def test_no_connection_is_kept_for_long(shop: PostgresShop, database: SqlDatabase) -> None:
    database.execute("SELECT 1")
    assert is_never(shop, READERS)


def test_a_lock_is_not_waited_for(shop: PostgresShop) -> None:
    with psycopg.connect(shop.owner) as writer, SqlDatabase(shop.reader, timeout=10) as database:
        writer.execute("LOCK TABLE cities")
        answer = database.execute("SELECT * FROM cities")
        locked = f"{shop.shown} is locked by another program; try again later"
        assert (answer["code"], answer["error"]) == ("storage", locked)
        assert "\ncities -- Where customers live\n" in database.get_schema()


def test_what_goes_wrong_with_the_server_is_said(
    postgres: PostgresServer, shop: PostgresShop, snapshot: SnapshotAssertion
) -> None:
    at, told = f"127.0.0.1:{postgres.port}", ""
    closed = shop.reader.rpartition("/")[2] + "_closed"
    for statement in (f"CREATE DATABASE {closed}", f"REVOKE CONNECT ON DATABASE {closed} FROM PUBLIC"):
        shop.change(statement)
    for address in (
        f"postgresql://reader:wrong@{at}/postgres",
        f"postgresql://nobody:{ESCAPED}@{at}/postgres",
        f"postgresql://reader:{ESCAPED}@{at}/nowhere",
        f"postgresql://reader:{ESCAPED}@127.0.0.1:1/postgres",
        f"postgresql://reader:{ESCAPED}@{at}/postgres?sslmode=require",
        f"{shop.reader}_closed",
    ):
        with SqlDatabase(address) as database:
            answer = database.execute("SELECT 1")
            told += f"{answer['code']}: {answer['error']}\n"
            assert refusal(StorageUnavailable, database.get_schema) == answer["error"]
            assert repr(database) == f"SqlDatabase('postgresql://{address.rpartition('@')[2]}')"
    assert told.replace(at, "SERVER").replace(closed, "CLOSED") == snapshot


def test_an_address_that_cannot_be_read_is_not_quoted() -> None:
    with SqlDatabase(f"postgresql://me:{PASSWORD}@h/d") as database:
        answer = database.execute("SELECT 1")
    assert answer["error"] == (
        "postgresql://... cannot be read: the address cannot be read: write "
        "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, and in a password %40 for @, %3A for :, %2F for / "
        "and %25 for %"
    )


def test_a_server_that_ended_the_connection_is_asked_again(shop: PostgresShop, database: SqlDatabase) -> None:
    database.execute("SELECT 1")
    with psycopg.connect(shop.owner, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'reader'")
    assert database.execute("SELECT 1")["error"] in {  # enough: the server may still be ending it
        None,
        f"{shop.shown} cannot be read: the server is starting or ending: try again when it runs",
        f"{shop.shown} cannot be read: {LOST}",
    }
    assert database.execute("SELECT 1")["data"] == [[1]]


def test_an_error_says_what_to_change(database: SqlDatabase) -> None:
    answers = {sql: database.execute(sql) for sql in ERRORS}
    assert {sql: answer["error"] for sql, answer in answers.items()} == ERRORS
    assert {answer["code"] for answer in answers.values()} == {"parameter"}


FAILS = """
CREATE FUNCTION fails(code text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS
$$ BEGIN RAISE EXCEPTION 'it failed' USING ERRCODE = code, HINT = 'Try less.'; END $$
"""


def test_an_error_of_the_server_is_of_its_kind(shop: PostgresShop, snapshot: SnapshotAssertion) -> None:
    shop.change(FAILS)
    with SqlDatabase(shop.reader, timeout=30) as database:
        answers = {state: database.execute(f"SELECT fails('{state}')") for state in stored_lines(snapshot)}
    told = "".join(f"{state}\n    {each['code']}: {each['error']}\n" for state, each in answers.items())
    assert told.replace(shop.shown, "SHOP") == snapshot


def schema_of(database: SqlDatabase) -> str:
    """The schema, with a version of the server that is always the same."""
    return re.sub(r"(?<=\nThe SQL of PostgreSQL )\d+\.\d+(?=:\n)", "15.0", database.get_schema())


def test_the_schema_of_a_shop(shop: PostgresShop, database: SqlDatabase, snapshot: SnapshotAssertion) -> None:
    assert schema_of(database) == snapshot
    with SqlDatabase(shop.reader, samples=0) as private:
        assert schema_of(private) == snapshot(name="without values")


def test_the_schema_has_the_schemas_of_the_search_path(shop: PostgresShop) -> None:
    shop.change('CREATE SCHEMA "My Data"; CREATE TABLE "My Data".cities (x integer PRIMARY KEY)')
    with SqlDatabase(f"{shop.owner}?options=-csearch_path%3Dother%2C%22My%5C%20Data%22%2Cpublic") as database:
        assert database.get_schema().split("\n\n")[1:4] == [
            "things, 0 rows\n  x integer",
            "cities, 0 rows\n  x integer, primary key",
            '"Order", 0 rows\n  x integer',
        ]
        assert "\n\npublic.cities, 2 rows -- Where customers live\n" in database.get_schema()


def test_names_are_quoted_where_postgresql_needs_it(postgres: PostgresServer) -> None:
    other = PostgresShop(postgres)
    other.change(
        "DROP SCHEMA public CASCADE; CREATE SCHEMA public;"
        ' CREATE TABLE "Tracks" ("TrackId" integer PRIMARY KEY, "user" text,'
        ' "Order" integer REFERENCES "Tracks", ok integer, "a""b" text)'
    )
    with SqlDatabase(other.owner) as database:
        assert database.get_schema().partition("\nThe SQL of")[0] == (
            'PostgreSQL, 1 table\n\n"Tracks", 0 rows\n  "TrackId" integer, primary key\n  "user" text\n'
            '  "Order" integer -> "Tracks"."TrackId"\n  ok integer\n  "a""b" text\n'
        )
        statements = ("SELECT TrackId FROM Tracks", 'SELECT TrackId FROM "Tracks"')
        told = [database.execute(statement)["error"] for statement in statements]
        assert told[0] == 'no such table: tracks; did you mean "Tracks"?'
        assert told[1] == 'no such column: trackid; did you mean "TrackId", of Tracks?'


def test_a_database_without_tables_for_the_role(postgres: PostgresServer) -> None:
    address = f"postgresql://reader:{ESCAPED}@127.0.0.1:{postgres.port}/template1"
    with SqlDatabase(address) as database:
        message = refusal(StorageUnavailable, database.get_schema)
    assert message == (
        f"postgresql://127.0.0.1:{postgres.port}/template1 cannot be read: its role may read no table on the "
        "search path: grant it SELECT"
    )


def test_the_schema_is_read_each_minute(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    other, now = PostgresShop(postgres), [1_020.0]
    monkeypatch.setattr("planning.agent.databases.opened.monotonic", lambda: now[0])
    with SqlDatabase(other.owner) as database:
        before = database.get_schema()
        other.change("CREATE TABLE later (x integer)")
        now[0] += 59
        assert database.get_schema() == before
        now[0] += 1
        assert "\nlater, 0 rows\n" in database.get_schema()


# Statements that read, and write nothing, whatever they call


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
        for attack in statements("postgres_writes.sql"):
            with shop.witness(address), pytest.raises((Failure, StopIteration)), database._session() as it:
                it.execute("SELECT 1")
                it.execute(attack.encode())
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


def test_a_model_is_asked_for_its_sql(shop: PostgresShop) -> None:
    sql = 'SELECT "Full Name" FROM customers ORDER BY id'
    with ChatServer(says("SELECT name FROM customers"), says(sql)) as server:
        options = ("--model", "local", "--base-url", server.url, "--csv")
        shown = run("ask", "Who are the customers?", "--db", shop.reader, *options)
    assert shown.endswith("--- stdout\nFull Name\nAda\nGrace\n")
    asked = [each["body"]["messages"] for each in server.requests]
    assert "one PostgreSQL SELECT" in asked[0][0]["content"]
    assert 'no such column: name; did you mean "Full Name", of customers?' in asked[1][-1]["content"]
    assert PASSWORD not in str(asked)
