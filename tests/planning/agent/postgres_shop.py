"""A shop in a PostgreSQL database, and what shows that statements only read it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import psycopg
from postgres_server import ESCAPED, PASSWORD, PostgresServer
from psycopg import sql

SHOP = """
    CREATE TYPE order_status AS ENUM ('new', 'paid', 'sent');
    CREATE DOMAIN email AS text CHECK (VALUE LIKE '%@%');
    CREATE TABLE cities (id integer PRIMARY KEY, name text NOT NULL);
    COMMENT ON TABLE cities IS 'Where customers live';
    CREATE TABLE customers (id integer PRIMARY KEY, "Full Name" varchar(40) NOT NULL,
        city_id integer REFERENCES cities, mail email, photo bytea, since timestamptz, tags text[],
        salary numeric(10, 2));
    COMMENT ON COLUMN customers.since IS E'First order,\\nor registration';
    CREATE TABLE orders (id bigint PRIMARY KEY, customer_id integer REFERENCES customers,
        status order_status, placed date NOT NULL, total numeric(10, 2));
    CREATE TABLE lines (order_id bigint REFERENCES orders, number integer, note text,
        PRIMARY KEY (order_id, number));
    CREATE TABLE returns (order_id bigint, number integer,
        FOREIGN KEY (order_id, number) REFERENCES lines (order_id, number));
    CREATE TABLE events (day date, what text) PARTITION BY RANGE (day);
    CREATE TABLE events_2024 PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
    CREATE TABLE "Order" (x integer);
    CREATE TABLE secret (x integer);
    CREATE SCHEMA other; CREATE TABLE other.things (x integer);
    CREATE VIEW big_orders AS SELECT id FROM orders WHERE total > 10;
    CREATE SEQUENCE numbers;
    INSERT INTO cities VALUES (1, 'Oslo'), (2, 'Bern');
    INSERT INTO customers VALUES (1, 'Ada', 1, 'a@b', 'x', '2024-01-02 03:04:05+00', '{a,b}', 12.5),
        (2, 'Grace', NULL, NULL, NULL, NULL, NULL, NULL);
    INSERT INTO orders VALUES (1, 1, 'new', '2024-01-02', 10), (2, 1, 'paid', '2024-02-02', 20.5);
    INSERT INTO events VALUES ('2024-05-05', 'start');
    CREATE MATERIALIZED VIEW per_city AS SELECT city_id, count(*) AS customers FROM customers GROUP BY 1;
    CREATE FUNCTION wipe() RETURNS integer LANGUAGE plpgsql SECURITY DEFINER
        AS 'BEGIN DELETE FROM cities; INSERT INTO secret VALUES (1); RETURN 1; END';
    CREATE FUNCTION wipe_row(integer) RETURNS integer LANGUAGE sql SECURITY DEFINER
        AS 'DELETE FROM cities; SELECT 1';
    CREATE FUNCTION "wipe it; now"() RETURNS integer LANGUAGE sql SECURITY DEFINER
        AS 'DELETE FROM cities; SELECT 1';
    CREATE FUNCTION called_stable() RETURNS integer LANGUAGE plpgsql STABLE SECURITY DEFINER
        AS 'BEGIN DELETE FROM cities; RETURN 1; END';
    CREATE FUNCTION called_immutable() RETURNS integer LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER AS
        'BEGIN PERFORM set_config(''transaction_read_only'', ''off'', true); PERFORM wipe(); RETURN 1; END';
    CREATE FUNCTION twice(integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 2 * $1';
    CREATE OPERATOR <!> (FUNCTION = wipe_row, RIGHTARG = integer);
    CREATE FUNCTION total() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
    CREATE FUNCTION status(integer, integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
    CREATE VIEW wiping AS SELECT wipe() AS x;
    CREATE EXTENSION dblink; CREATE EXTENSION tablefunc;
    SELECT lo_create(4711);
    GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
    REVOKE ALL ON secret, customers FROM reader;
    GRANT SELECT (id, "Full Name", city_id, mail, photo, since, tags) ON customers TO reader;
"""
_STATE = """
    SELECT ARRAY(SELECT concat(oid, relname, relacl, reloptions) FROM pg_class ORDER BY oid),
        ARRAY(SELECT oid::text || proname FROM pg_proc ORDER BY oid),
        ARRAY(SELECT lomowner::text || oid FROM pg_largeobject_metadata ORDER BY oid),
        ARRAY(SELECT p::text FROM pg_largeobject AS p ORDER BY p::text),
        ARRAY(SELECT a::text FROM pg_authid AS a ORDER BY oid),
        ARRAY(SELECT d::text FROM pg_db_role_setting AS d ORDER BY d::text),
        ARRAY(SELECT name || setting FROM pg_settings ORDER BY name),
        ARRAY(SELECT slot_name FROM pg_replication_slots),
        ARRAY(SELECT roname FROM pg_replication_origin),
        ARRAY(SELECT objid FROM pg_locks WHERE locktype = 'advisory'),
        ARRAY(SELECT stats_reset FROM pg_stat_database WHERE datname = current_database()),
        ARRAY(SELECT name FROM pg_ls_dir('.') AS name WHERE name LIKE 'attack%' ORDER BY name),
        ARRAY(SELECT pg_sequence_last_value('numbers')), pg_conf_load_time()
"""
_numbers = count(1)


class PostgresShop:
    """A database of its own on a server.

    Attributes:
        reader: Its address for a role that may only read.
        owner: Its address for a superuser.
    """

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
