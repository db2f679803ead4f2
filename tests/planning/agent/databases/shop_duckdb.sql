CREATE TABLE cities (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL UNIQUE);
CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR, city_id INTEGER REFERENCES cities(id),
    credit DECIMAL(10, 2), since TIMESTAMP, seen TIMESTAMPTZ, tags VARCHAR[], photo BLOB);
CREATE TABLE visits (customer_id INTEGER, day DATE, number INTEGER,
    PRIMARY KEY (day, customer_id), UNIQUE (number, day));
CREATE SCHEMA other; CREATE TABLE other.things (x INTEGER CHECK (x > 0));
CREATE TABLE amounts (tiny TINYINT, small SMALLINT, big BIGINT, huge HUGEINT, u_tiny UTINYINT,
    u_small USMALLINT, u_whole UINTEGER, u_big UBIGINT, u_huge UHUGEINT, real FLOAT, double DOUBLE,
    sure BOOLEAN, lasts INTERVAL);
CREATE VIEW big_spenders AS SELECT name FROM customers;
CREATE SEQUENCE numbers;
INSERT INTO amounts VALUES (1, 2, 3, 4, 5, 6, 7, 8, 9, 1.5, 2.5, true, INTERVAL 3 DAY);
INSERT INTO cities VALUES (1, 'Oslo'), (2, 'Bern');
INSERT INTO customers VALUES
    (1, 'Ada', 1, 12.5, '2024-01-02 03:04:05', '2024-01-02 03:04:05+00', ['a', 'b'], 'x'::BLOB),
    (2, 'Grace', 2, NULL, NULL, NULL, NULL, NULL);
