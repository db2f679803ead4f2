CREATE TABLE orders (
  id INTEGER PRIMARY KEY, customer_id INT, placed DATE, sent DATETIME, total REAL, qty INT, status TEXT,
  zip VARCHAR(10), year_text TEXT, ref INT, iso TEXT, unix INTEGER, slash TEXT, compact TEXT, notes,
  flag BOOLEAN, ratio NUMERIC, score TEXT, weight TEXT, hour TEXT, code TEXT, epoch_ms BIGINT, unset TEXT,
  ymd INTEGER);
CREATE TABLE customers (
  id INTEGER PRIMARY KEY, first TEXT, last TEXT, born DATE, city TEXT, zip TEXT, level INT, active TEXT,
  phone TEXT, vip INT, referrer INT);
CREATE TABLE years (year INTEGER, label TEXT, raw);
CREATE TABLE empty (id INTEGER, d DATE, n TEXT);
CREATE TABLE "Order Items" (
  "Item Id" INTEGER PRIMARY KEY, "orderId" INT, "Unit Price" REAL, "Qty" INTEGER, "Ship Date" TEXT);
CREATE TABLE events (id INTEGER PRIMARY KEY, kind TEXT, val TEXT, at TEXT, ended TEXT);
CREATE VIEW v_orders AS
  SELECT id, placed, strftime('%Y', placed) AS yr, total, customer_id, zip FROM orders;
CREATE VIEW v2 AS
  SELECT v.yr, v.placed AS day, c.first || ' ' || c.last AS name, v.total
  FROM v_orders v JOIN customers c ON c.id = v.customer_id;
CREATE VIEW v_sum AS
  SELECT customer_id, sum(total) AS spent, max(placed) AS latest, count(*) AS n
  FROM orders GROUP BY customer_id;
WITH RECURSIVE dates (n, day) AS (
  SELECT 1, date('2022-01-04') UNION ALL SELECT n + 1, date(day, '3 days') FROM dates WHERE n < 300)
INSERT INTO orders SELECT
  n, n % 40 + 1, day, iif(n % 7, date(day, (n % 9) || ' days') || printf(' 10:%02d:00', n % 60), NULL),
  n * 1.5, n % 13, CASE n % 3 WHEN 0 THEN 'open' WHEN 1 THEN 'closed' ELSE 'void' END,
  printf('%05d', n * 317 % 100000), strftime('%Y', day), iif(n % 5, n - 1, NULL), day || 'T08:00:00Z',
  1640995200 + n * 3 * 86400, strftime('%m/%d/%Y', day), strftime('%Y%m%d', day), iif(n % 2, '' || n, NULL),
  n % 2, n / 7.0, iif(n % 10, '' || n, 'N/A'), n || ' kg', printf('%02d:15:00', n % 24), 'A' || n,
  (1640995200 + n * 3 * 86400) * 1000, NULL, CAST(strftime('%Y%m%d', day) AS INTEGER) FROM dates;
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 40)
INSERT INTO customers SELECT
  n, 'F' || char(65 + n % 26) || 'a', 'L' || char(65 + n % 20) || 'b',
  printf('%d-0%d-1%d', 1960 + n, n % 9 + 1, n % 9), CASE n % 3 WHEN 0 THEN 'Oslo' WHEN 1 THEN 'Bergen' ELSE 'Rome' END, printf('%05d', n * 37), n % 4,
  iif(n % 2, 'no', 'yes'), printf('+47 22 %02d 33', n), n % 2, iif(n > 1, n - 1, NULL) FROM numbers;
WITH RECURSIVE numbers (n) AS (SELECT 2020 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2025)
INSERT INTO years SELECT n, 'Y' || n, '' || n FROM numbers;
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 100)
INSERT INTO "Order Items" SELECT n, n % 50 + 1, n / 2.0, n % 5 + 1, date('2023-01-01', n || ' days') FROM numbers;
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 50)
INSERT INTO events SELECT
  n, iif(n % 2, 'num', 'date'), iif(n % 2, '' || n, printf('2024-02-%02d', n / 2 + 1)),
  printf('%02d:%02d', 9 + n % 8, n % 60), printf('%d:%02d', 17 + n % 3, n % 60) FROM numbers;
