SELECT count(*) FROM cities
SELECT name FROM cities WHERE name = 'DELETE FROM cities; DROP TABLE cities'
SELECT 'wipe()', E'it\'s wipe()', $$nextval('numbers')$$, $q$pg_sleep(9)$q$ -- wipe()
SELECT 1 /* wipe(); pg_sleep(9) */ AS wipe
SELECT wipe FROM (SELECT 1 AS wipe) AS w
SELECT random() < 2, clock_timestamp() > 'epoch', gen_random_uuid() IS NOT NULL
SELECT count(*) FROM cities TABLESAMPLE SYSTEM (100)
SELECT count(*) FROM cities TABLESAMPLE BERNOULLI (50)
SELECT twice(2), pg_catalog.upper('a'), now(), current_user
SELECT pg_total_relation_size('cities') > 0, pg_relation_size('cities'), pg_table_size('cities')
SELECT pg_indexes_size('cities'), pg_database_size(current_database()), timeofday()
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
