"""Statements of PostgreSQL that read, and write nothing, whatever they call."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

import psycopg
import pytest
from postgres_server import PostgresServer
from postgres_shop import PostgresShop

from planning.agent import SqlDatabase
from planning.agent.databases.postgres import PostgresDatabase
from planning.agent.sql.guard import Failure

pytestmark = pytest.mark.postgres

ATTACKS = r"""
SELECT wipe()
SELECT * FROM wipe() AS w
SELECT status(1, 2)
SELECT (1).wipe_row
SELECT id.wipe_row FROM (SELECT 1 AS id) AS id
SELECT c.id FROM cities AS c ORDER BY wipe()
SELECT 1 LIMIT wipe()
SELECT x FROM wiping
SELECT called_stable()
SELECT called_immutable()
SELECT <!> 1
SELECT "wipe it; now"()
SELECT wipe_row(id) FROM cities
SELECT count(*) OVER (ORDER BY wipe()) FROM cities
SELECT public . wipe ()
SELECT "wipe" /* a */ -- b
 ()
SELECT U&"\0077ipe"()
SELECT /* /* */ ' */ wipe() /* ' */
SELECT E'a'
 'b\'c', wipe(), 'x'
SELECT E'a' -- c
 'b\'c', wipe(), 'x'
SELECT $a$ $b$ $a$, wipe(), '$b$'
SELECT '\', wipe(), '\'
SELECT E'\\', wipe(), '\'
SELECT nextval('numbers')
SELECT setval('numbers', 99)
SELECT ('numbers'::regclass).nextval
SELECT lo_create(0)
SELECT lo_creat(-1)
SELECT lo_import('/etc/hostname')
SELECT lo_export(4711, 'attack_lo')
SELECT lo_unlink(4711)
SELECT lo_put(4711, 0, 'x')
SELECT lo_from_bytea(0, 'x')
SELECT lowrite(lo_open(4711, 131072), 'x')
SELECT lo_truncate(lo_open(4711, 131072), 0)
SELECT * FROM dblink('{own}', 'DELETE FROM cities RETURNING id') AS d(id integer)
SELECT dblink_exec('{own}', 'DELETE FROM cities')
SELECT dblink_connect('{own}')
COPY cities TO 'attack_copy'
COPY (SELECT 1) TO PROGRAM 'touch attack_program'
COPY cities FROM PROGRAM 'echo 9'
SELECT set_config('transaction_read_only', 'off', true), wipe()
SELECT set_config('default_transaction_read_only', 'off', false)
SELECT set_config('role', 'planning', true)
SELECT "set_config"('statement_timeout', '0', false)
SET TRANSACTION READ WRITE
SET SESSION AUTHORIZATION planning
SET ROLE planning
RESET ALL
SELECT 1; SET TRANSACTION READ WRITE; DELETE FROM cities
SELECT 1) AS a; DELETE FROM cities; SELECT 1 FROM (SELECT 1
COMMIT
ROLLBACK
BEGIN
SELECT pg_advisory_lock(1)
SELECT pg_try_advisory_lock(1)
SELECT (1::bigint).pg_advisory_lock
SELECT pg_terminate_backend({pid})
SELECT ({pid}).pg_terminate_backend
SELECT pg_cancel_backend({pid})
SELECT pg_sleep(60)
SELECT pg_sleep_for('1 minute')
SELECT * FROM pg_read_file('PG_VERSION')
SELECT pg_read_binary_file('PG_VERSION')
SELECT pg_ls_dir('.')
SELECT pg_stat_file('PG_VERSION')
SELECT * FROM crosstab('SELECT 1, 2, pg_terminate_backend({pid})::text') AS c(a integer, b text)
SELECT * FROM crosstab2('SELECT ''a'', ''b'', pg_terminate_backend({pid})::text')
SELECT * FROM connectby('cities', 'id', 'id', '1', 0) AS c(a integer, b integer, c integer)
SELECT query_to_xml('SELECT wipe()', true, false, '')
SELECT query_to_xml('SELECT pg_terminate_backend({pid})', true, false, '')
SELECT cursor_to_xml('answer', 1, true, false, '')
SELECT * FROM ts_stat('SELECT to_tsvector(wipe()::text)')
SELECT ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, (wipe()::text)::tsquery')
SELECT * INTO attack FROM cities
SELECT 1 INTO TEMP attack
CREATE TEMP TABLE attack (x integer)
SELECT * FROM cities FOR UPDATE
SELECT * FROM cities FOR KEY SHARE
EXPLAIN ANALYZE DELETE FROM cities
EXPLAIN SELECT 1
WITH gone AS (DELETE FROM cities RETURNING id) SELECT * FROM gone
WITH new AS (INSERT INTO cities VALUES (9, 'x') RETURNING id) SELECT * FROM new
SELECT * FROM (WITH gone AS (DELETE FROM cities RETURNING id) SELECT * FROM gone) AS g
INSERT INTO cities VALUES (9, 'x')
MERGE INTO cities USING orders ON false WHEN NOT MATCHED THEN INSERT VALUES (9, 'x')
TRUNCATE cities
LOCK TABLE cities
VACUUM
ANALYZE
CHECKPOINT
REFRESH MATERIALIZED VIEW per_city
ALTER SYSTEM SET work_mem = '1GB'
DO 'BEGIN DELETE FROM cities; END'
CALL wipe()
PREPARE p AS DELETE FROM cities
EXECUTE p
DECLARE c CURSOR FOR SELECT 1
LISTEN canary
NOTIFY canary
SELECT pg_notify('canary', 'x')
SELECT pg_logical_emit_message(false, 'a', 'b')
SELECT pg_logical_emit_message(true, 'a', 'b')
SELECT pg_stat_reset()
SELECT pg_stat_reset_shared('wal')
SELECT pg_reload_conf()
SELECT pg_rotate_logfile()
SELECT pg_switch_wal()
SELECT pg_create_restore_point('attack')
SELECT pg_create_physical_replication_slot('attack')
SELECT pg_replication_origin_create('attack')
SELECT pg_export_snapshot()
SELECT pg_promote()
SELECT txid_current()
SELECT pg_current_xact_id()
SELECT pg_import_system_collations('public')
SELECT $1
"""
SOUND = r"""
SELECT count(*) FROM cities
SELECT name FROM cities WHERE name = 'DELETE FROM cities; DROP TABLE cities'
SELECT 'wipe()', E'it\'s wipe()', $$nextval('numbers')$$, $q$pg_sleep(9)$q$ -- wipe()
SELECT 1 /* wipe(); pg_sleep(9) */ AS wipe
SELECT wipe FROM (SELECT 1 AS wipe) AS w
SELECT random() < 2, clock_timestamp() > 'epoch', gen_random_uuid() IS NOT NULL
SELECT count(*) FROM cities TABLESAMPLE SYSTEM (100)
SELECT twice(2), pg_catalog.upper('a'), now(), current_user
SELECT pg_total_relation_size('cities') > 0
SELECT EXTRACT(year FROM placed), placed AT TIME ZONE 'UTC', total::text || 'x' FROM orders
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT sum(i) FROM n
(SELECT 1) UNION (SELECT 2) ORDER BY 1
VALUES (1, 'a'), (2, 'b')
TABLE cities
SELECT * FROM cities;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY total) FROM orders
SELECT o.id, c."Full Name" FROM orders AS o JOIN customers AS c ON c.id = o.customer_id
SELECT * FROM generate_series(1, 3) AS g
SELECT o.status, o.total FROM orders AS o WHERE status::text LIKE '%a%' AND NOT status::text LIKE '{}'
SELECT nspname FROM pg_catalog.pg_namespace
SELECT table_name FROM information_schema.tables
"""


def statements(corpus: str) -> list[str]:
    """The statements of a corpus: a line that begins with a space continues one."""
    return corpus.strip().replace("\n ", "\0 ").split("\n")


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
        for statement in statements(ATTACKS):
            attack = statement.replace("\0", "\n").replace("{pid}", str(other.info.backend_pid))
            if database.execute(attack.replace("{own}", shop.owner)).get("code") != "parameter":
                allowed.append(attack)
    assert allowed == []


def test_no_attack_changes_anything_without_the_check_of_the_text(shop: PostgresShop, address: str) -> None:
    database = PostgresDatabase(address)
    with shop.witness(address) as other:
        for statement in statements(ATTACKS):
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


@pytest.mark.parametrize("statement", statements(SOUND))
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
