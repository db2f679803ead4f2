CREATE TABLE customers (
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, city_id INTEGER REFERENCES cities (id), since TEXT);
INSERT INTO customers VALUES
  (1, 'Ada', 1, '2020-01-31'), (2, 'Grace', 2, '2021-06-01'), (3, 'Edsger', NULL, '2024-02-29');
CREATE TABLE orders (
  id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers (id), total REAL, note TEXT);
INSERT INTO orders VALUES
  (1, 1, 10.5, 'please delete'), (2, 1, 20.0, '50% off'), (3, 2, 5.25, NULL), (4, 2, 5.25, 'a;b');
CREATE TABLE "delete" (id INTEGER PRIMARY KEY, "insert" TEXT, "replace" TEXT, "order by" INTEGER);
INSERT INTO "delete" VALUES (1, 'one', 'r1', 7), (2, 'two', 'r2', 8);
CREATE TABLE "drop table" ("pragma" INTEGER, "Größe" REAL, "a""b" TEXT);
INSERT INTO "drop table" VALUES (1, 1.5, 'quoted');
CREATE TABLE measures (id INTEGER PRIMARY KEY, value REAL, raw BLOB, big INTEGER);
INSERT INTO measures VALUES (1, 9e999, x'', 9223372036854775807), (2, -9e999, x'41', 0), (3, 0.1, NULL, NULL);
CREATE TABLE documents (id INTEGER PRIMARY KEY, body TEXT);
INSERT INTO documents VALUES
  (1, '{"tags": ["a", "b"], "size": 3}'), (2, '{"tags": [], "size": null}');
CREATE VIRTUAL TABLE notes USING fts5(title, body);
INSERT INTO notes VALUES ('first', 'the quick brown fox'), ('second', 'a lazy dog; a quick nap');
CREATE VIRTUAL TABLE archive USING fts4(body);
INSERT INTO archive VALUES ('old words');
CREATE VIEW spenders AS
  SELECT customers.name AS name, sum(orders.total) AS total FROM orders
  JOIN customers ON customers.id = orders.customer_id GROUP BY customers.id;
CREATE INDEX orders_by_customer ON orders (customer_id);
