SELECT wipe()
SELECT * FROM wipe() AS w
SELECT status(1, 2)
SELECT STATUS(1, 2)
SELECT a_status_whose_name_has_as_many_letters_as_a_name_may_have_here_too()
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
