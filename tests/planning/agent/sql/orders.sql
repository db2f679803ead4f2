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
