CREATE TYPE order_status AS ENUM ('new', 'paid', 'sent');
CREATE DOMAIN email AS text CHECK (VALUE LIKE '%@%');
CREATE TABLE cities (id integer PRIMARY KEY, name text NOT NULL);
COMMENT ON TABLE cities IS 'Where customers live';
CREATE TABLE customers (id integer PRIMARY KEY, "Full Name" varchar(40) NOT NULL,
    city_id integer REFERENCES cities, mail email, photo bytea, since timestamptz, tags text[],
    salary numeric(10, 2));
COMMENT ON COLUMN customers.since IS E'First order,\nor registration';
CREATE TABLE orders (id bigint PRIMARY KEY, customer_id integer REFERENCES customers,
    status order_status, placed date NOT NULL, total numeric(10, 2));
CREATE TABLE lines (order_id bigint REFERENCES orders, number integer, note text,
    PRIMARY KEY (order_id, number));
CREATE TABLE returns (order_id bigint, number integer,
    FOREIGN KEY (order_id, number) REFERENCES lines (order_id, number));
CREATE TABLE events (day date, what text) PARTITION BY RANGE (day);
CREATE TABLE events_2024 PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE amounts (small smallint, whole real, precise double precision, sure boolean);
CREATE TABLE "Order" (x integer);
CREATE TABLE secret (x integer);
CREATE SCHEMA other; CREATE TABLE other.things (x integer);
CREATE VIEW big_orders AS SELECT id FROM orders WHERE total > 10;
CREATE SEQUENCE numbers;
INSERT INTO cities VALUES (1, 'Oslo'), (2, 'Bern');
INSERT INTO customers VALUES (1, 'Ada', 1, 'a@b', 'x', '2024-01-02 03:04:05+00', '{a,b}', 12.5),
    (2, 'Grace', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO orders VALUES (1, 1, 'new', '2024-01-02', 10), (2, 1, 'paid', '2024-02-02', 20.5);
INSERT INTO amounts VALUES (1, 1.5, 2.5, true);
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
CREATE FUNCTION a_status_whose_name_has_as_many_letters_as_a_name_may_have_here() RETURNS integer
    LANGUAGE sql AS 'SELECT 1';
CREATE VIEW wiping AS SELECT wipe() AS x;
CREATE EXTENSION dblink; CREATE EXTENSION tablefunc;
SELECT lo_create(4711);
GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader;
REVOKE ALL ON secret, customers FROM reader;
GRANT SELECT (id, "Full Name", city_id, mail, photo, since, tags) ON customers TO reader;
