CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT, "postal code" TEXT);
INSERT INTO cities VALUES (1, 'Bergen', '5003'), (3, 'O''Higgins', NULL);
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, city_id INTEGER, status TEXT, age INTEGER);
INSERT INTO people VALUES (1, 'Ada Lund', 1, 'active', 30), (2, 'Bram Peeters', 2, 'gone', 40);
CREATE VIEW endless AS
  WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT 'q' || x AS name FROM n;
CREATE TABLE words (eight TEXT, nine TEXT, many TEXT);
WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 1001)
  INSERT INTO words SELECT 'e' || (x % 8), 'n' || (x % 9), iif(x < 1000, x, iif(x = 1000, 'zebra', 'quokka')) FROM n;
