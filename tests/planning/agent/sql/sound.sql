SELECT count(*) FROM orders WHERE placed >= '2023-01-01'
SELECT count(*) FROM orders WHERE placed BETWEEN '2023-01-01' AND '2023-12-31'
SELECT count(*) FROM orders WHERE strftime('%Y', placed) = '2023'
SELECT count(*) FROM orders WHERE CAST(strftime('%Y', placed) AS INTEGER) = 2023
SELECT count(*) FROM orders WHERE CAST(strftime('%Y', placed) AS INT) BETWEEN 2022 AND 2023
SELECT strftime('%Y-%m', placed) AS m, sum(total) FROM orders GROUP BY m ORDER BY m
SELECT strftime('%Y', placed) AS y, count(*) FROM orders GROUP BY y HAVING y > '2022'
SELECT julianday(sent) - julianday(placed) FROM orders WHERE sent IS NOT NULL LIMIT 3
SELECT avg(julianday(sent) - julianday(placed)) FROM orders
SELECT strftime('%Y','now') - strftime('%Y', born) FROM customers LIMIT 3
SELECT CAST(strftime('%Y','now') AS INTEGER) - CAST(strftime('%Y', born) AS INTEGER) FROM customers LIMIT 3
SELECT (strftime('%s', sent) - strftime('%s', placed)) / 86400.0 FROM orders LIMIT 3
SELECT count(*) FROM orders WHERE zip = 12345
SELECT count(*) FROM orders WHERE zip = '00317'
SELECT count(*) FROM orders WHERE year_text = 2023
SELECT count(*) FROM orders WHERE year_text > 2022
SELECT count(*) FROM orders WHERE year_text IN (2022, 2023)
SELECT count(*) FROM orders WHERE year_text = '2023'
SELECT count(*) FROM orders o JOIN years y ON o.year_text = y.year
SELECT count(*) FROM orders o JOIN years y ON strftime('%Y', o.placed) = y.year
SELECT count(*) FROM orders WHERE strftime('%Y', placed) IN (SELECT year FROM years)
SELECT count(*) FROM orders WHERE unix > 1672531200
SELECT count(*) FROM orders WHERE unix >= strftime('%s', '2023-01-01')
SELECT date(unix, 'unixepoch') AS d, count(*) FROM orders GROUP BY d ORDER BY d LIMIT 2
SELECT datetime(epoch_ms / 1000, 'unixepoch') FROM orders LIMIT 2
SELECT (unix - 1640995200) / 86400 FROM orders LIMIT 2
SELECT max(unix) - min(unix) FROM orders
SELECT count(*) FROM orders WHERE ymd >= 20230101
SELECT count(*) FROM orders WHERE compact >= '20230101'
SELECT count(*) FROM orders WHERE compact >= 20230101
SELECT count(*) FROM orders WHERE slash = '01/04/2022'
SELECT count(*) FROM orders WHERE substr(slash, 7, 4) = '2023'
SELECT count(*) FROM orders WHERE CAST(substr(slash, 7, 4) AS INTEGER) = 2023
SELECT substr(slash, 7, 4) || '-' || substr(slash, 1, 2) AS m, count(*) FROM orders GROUP BY m
SELECT count(*) FROM orders WHERE date(substr(slash,7,4)||'-'||substr(slash,1,2)||'-'||substr(slash,4,2)) > '2023-01-01'
SELECT count(*) FROM orders WHERE iso > '2023-01-01'
SELECT count(*) FROM orders WHERE iso >= '2023-01-01T00:00:00Z'
SELECT count(*) FROM orders WHERE date(iso) = '2022-01-04'
SELECT count(*) FROM orders WHERE sent > '2023-01-01'
SELECT count(*) FROM orders WHERE sent >= '2023-01-01 00:00:00'
SELECT count(*) FROM orders WHERE date(sent) = '2023-01-05'
SELECT count(*) FROM orders WHERE sent >= date('now', '-90 years')
SELECT count(*) FROM orders WHERE placed >= date('now', '-90 years')
SELECT count(*) FROM orders WHERE placed > datetime('now', '-90 years')
SELECT count(*) FROM orders WHERE placed < date(sent)
SELECT count(*) FROM orders WHERE placed < sent
SELECT count(*) FROM orders WHERE julianday(sent) - julianday(placed) > 5
SELECT count(*) FROM orders WHERE placed LIKE '2023%'
SELECT count(*) FROM orders WHERE placed >= '2023'
SELECT count(*) FROM orders WHERE placed >= '2023-06' AND placed < '2023-07'
SELECT count(*) FROM orders WHERE substr(placed, 1, 7) = '2023-05'
SELECT count(*) FROM orders WHERE strftime('%m', placed) = '05'
SELECT count(*) FROM orders WHERE strftime('%w', placed) IN ('0', '6')
SELECT CASE strftime('%w', placed) WHEN '0' THEN 'Sun' WHEN '1' THEN 'Mon' ELSE 'other' END AS d, count(*) FROM orders GROUP BY d
SELECT CASE CAST(strftime('%w', placed) AS INTEGER) WHEN 0 THEN 'Sun' ELSE 'x' END AS d, count(*) FROM orders GROUP BY d
SELECT (CAST(strftime('%m', placed) AS INTEGER) + 2) / 3 AS q, sum(total) FROM orders GROUP BY q
SELECT (strftime('%m', placed) + 2) / 3 AS q, sum(total) FROM orders GROUP BY q
SELECT strftime('%Y', placed) + 0 AS y FROM orders WHERE y = 2023 LIMIT 1
SELECT count(*) FROM orders WHERE strftime('%Y', placed) + 0 = 2023
SELECT count(*) FROM orders WHERE 0 + strftime('%Y', placed) BETWEEN 2022 AND 2023
SELECT date(placed, '+30 days') FROM orders LIMIT 1
SELECT date(placed, '-' || qty || ' days') FROM orders LIMIT 1
SELECT date(placed, 'start of month', '+1 month', '-1 day') FROM orders LIMIT 1
SELECT date('now')
SELECT datetime('now', 'localtime') IS NOT NULL
SELECT CURRENT_DATE > '2020-01-01'
SELECT strftime('%H', hour) AS h, count(*) FROM orders GROUP BY h LIMIT 2
SELECT CAST(substr(hour, 1, 2) AS INTEGER) AS h, count(*) FROM orders GROUP BY h LIMIT 2
SELECT count(*) FROM orders WHERE hour >= '12:00:00'
SELECT count(*) FROM orders WHERE time(sent) > '09:00:00'
SELECT count(*) FROM orders WHERE status = 'open'
SELECT count(*) FROM orders WHERE status IN ('open', 'void')
SELECT count(*) FROM orders WHERE status NOT IN ('open', 'void')
SELECT count(*) FROM orders WHERE status <> 'open'
SELECT count(*) FROM orders WHERE flag = 1
SELECT count(*) FROM orders WHERE flag = TRUE
SELECT count(*) FROM orders WHERE flag
SELECT count(*) FROM orders WHERE NOT flag
SELECT count(*) FROM orders WHERE ref IS NULL
SELECT count(*) FROM orders WHERE ref IS NOT NULL
SELECT count(*) FROM orders WHERE ref IS DISTINCT FROM 5
SELECT count(*) FROM orders WHERE ref IS NOT DISTINCT FROM NULL
SELECT count(*) FROM orders WHERE id NOT IN (SELECT ref FROM orders WHERE ref IS NOT NULL)
SELECT count(*) FROM customers WHERE id NOT IN (SELECT customer_id FROM orders)
SELECT count(*) FROM customers c WHERE c.id NOT IN (SELECT o.customer_id FROM orders o WHERE o.customer_id = c.id)
SELECT count(*) FROM customers c WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.customer_id = c.id)
SELECT count(*) FROM customers c WHERE c.id NOT IN (SELECT referrer FROM customers WHERE referrer > 0)
SELECT count(*) FROM orders WHERE id IN (SELECT ref FROM orders)
SELECT count(*) FROM customers WHERE (id, level) NOT IN (SELECT customer_id, qty FROM orders)
SELECT count(*) FROM customers WHERE id NOT IN (SELECT max(customer_id) FROM orders GROUP BY status)
SELECT count(*) FROM customers WHERE id NOT IN (1, 2, 3)
SELECT COALESCE(ref, 0) + 1 FROM orders LIMIT 2
SELECT COALESCE(notes, 'none') FROM orders LIMIT 2
SELECT IFNULL(sent, 'not yet') FROM orders LIMIT 7
SELECT CASE WHEN ref IS NULL THEN 'none' ELSE ref END FROM orders LIMIT 7
SELECT NULLIF(qty, 0) FROM orders LIMIT 2
SELECT total / NULLIF(qty, 0) FROM orders LIMIT 2
SELECT sum(total) / count(*) FROM orders
SELECT sum(total) * 1.0 / sum(qty) FROM orders
SELECT 100.0 * count(CASE WHEN status = 'open' THEN 1 END) / count(*) FROM orders
SELECT first || ' ' || last FROM customers LIMIT 1
SELECT upper(first) FROM customers WHERE length(last) > 2 LIMIT 1
SELECT sum(weight) FROM orders
SELECT CAST(weight AS INTEGER) * 2 FROM orders LIMIT 1
SELECT weight + 0 FROM orders LIMIT 1
SELECT CAST(replace(weight, ' kg', '') AS REAL) FROM orders WHERE CAST(weight AS INTEGER) > 5 LIMIT 1
SELECT sum(score) FROM orders
SELECT avg(CAST(score AS REAL)) FROM orders WHERE score <> 'N/A'
SELECT avg(score) FROM orders WHERE score <> 'N/A'
SELECT count(*) FROM orders WHERE score = 'N/A'
SELECT count(*) FROM orders WHERE score = 15
SELECT count(*) FROM orders WHERE CAST(score AS INTEGER) > 15
SELECT count(*) FROM orders WHERE ratio > 3
SELECT count(*) FROM orders WHERE ratio > '3'
SELECT count(*) FROM orders WHERE qty = '5'
SELECT count(*) FROM orders WHERE total >= 100 AND qty < 5 OR id = 3
SELECT count(*) FROM orders WHERE notes = '15'
SELECT count(*) FROM orders WHERE unset = 5
SELECT count(*) FROM orders WHERE unset > '2020-01-01'
SELECT unset + 1 FROM orders LIMIT 1
SELECT count(*) FROM empty WHERE d > 5
SELECT d - 30 FROM empty
SELECT count(*) FROM empty WHERE id NOT IN (SELECT n FROM empty)
SELECT count(*) FROM v_orders WHERE yr = '2023'
SELECT count(*) FROM v_orders WHERE CAST(yr AS INTEGER) = 2023
SELECT yr, sum(total) FROM v_orders GROUP BY yr
SELECT count(*) FROM v_orders WHERE zip = 12345
SELECT name, sum(total) FROM v2 WHERE day >= '2023-01-01' GROUP BY name LIMIT 2
SELECT yr - 1 FROM v2 LIMIT 1
SELECT count(*) FROM v_sum WHERE latest > '2023-01-01'
SELECT count(*) FROM v_sum WHERE spent > 100 AND n > 2
SELECT c.first, s.spent / s.n FROM v_sum s JOIN customers c ON c.id = s.customer_id LIMIT 2
WITH m AS (SELECT strftime('%Y-%m', placed) AS month, sum(total) AS t FROM orders GROUP BY 1) SELECT month, t, t - lag(t) OVER (ORDER BY month) AS d FROM m
WITH m AS (SELECT CAST(strftime('%Y', placed) AS INTEGER) AS y, total FROM orders) SELECT y, sum(total) FROM m WHERE y >= 2023 GROUP BY y
WITH m AS (SELECT strftime('%Y', placed) AS y, total FROM orders) SELECT y, sum(total) FROM m WHERE y >= '2023' GROUP BY y
WITH last AS (SELECT max(placed) AS d FROM orders) SELECT count(*) FROM orders, last WHERE orders.placed > date(last.d, '-30 days')
WITH last AS (SELECT max(placed) AS d FROM orders) SELECT count(*) FROM orders WHERE placed = (SELECT d FROM last)
WITH RECURSIVE days(d) AS (SELECT '2023-01-01' UNION ALL SELECT date(d, '+1 day') FROM days WHERE d < '2023-01-10') SELECT d, count(o.id) FROM days LEFT JOIN orders o ON o.placed = d GROUP BY d
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5) SELECT sum(x) FROM n
SELECT count(*) FROM orders WHERE placed = (SELECT max(placed) FROM orders)
SELECT * FROM orders WHERE placed = (SELECT min(placed) FROM orders WHERE status = 'open') LIMIT 1
SELECT id, placed, lag(placed) OVER (ORDER BY placed) AS prev FROM orders LIMIT 2
SELECT julianday(placed) - julianday(lag(placed) OVER (ORDER BY placed)) FROM orders LIMIT 2
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY customer_id ORDER BY placed DESC) AS rn FROM orders) WHERE rn = 1 LIMIT 2
SELECT status, count(*) AS n FROM orders GROUP BY status HAVING n > 10 ORDER BY n DESC
SELECT status, count(*) FROM orders GROUP BY status HAVING count(*) > 10 AND max(placed) > '2022-06-01'
SELECT status, sum(total) AS t FROM orders GROUP BY 1 ORDER BY t DESC LIMIT 1
SELECT "Ship Date", "Unit Price" * "Qty" FROM "Order Items" WHERE "Ship Date" >= '2023-02-01' LIMIT 2
SELECT count(*) FROM "order items" WHERE "SHIP date" < '2023-02-01' AND qty = 2
SELECT sum("Unit Price" * i.Qty) FROM "Order Items" i JOIN orders o ON o.id = i."orderId" WHERE strftime('%Y', o.placed) = '2022'
SELECT count(*) FROM events WHERE kind = 'date' AND date(val) > '2024-02-01'
SELECT count(*) FROM events WHERE kind = 'num' AND CAST(val AS INTEGER) > 5
SELECT count(*) FROM events WHERE kind = 'num' AND val + 0 > 5
SELECT (julianday(ended) - julianday(at)) * 24 FROM events LIMIT 2
SELECT count(*) FROM events WHERE at < '12:00' AND ended > '17:30'
SELECT max(at), min(ended) FROM events
SELECT count(*) FROM customers WHERE level IN (1, 2)
SELECT count(*) FROM customers WHERE born < '1980-01-01' AND active = 'yes'
SELECT 2024 - CAST(substr(born, 1, 4) AS INTEGER) AS age, count(*) FROM customers GROUP BY age LIMIT 2
SELECT CAST((julianday('now') - julianday(born)) / 365.25 AS INTEGER) AS age FROM customers LIMIT 2
SELECT avg((julianday('2024-01-01') - julianday(born)) / 365.25) FROM customers
SELECT count(*) FROM customers WHERE city = 'Oslo' UNION ALL SELECT count(*) FROM customers WHERE city = 'Rome'
SELECT placed AS d FROM orders UNION SELECT born FROM customers ORDER BY d LIMIT 2
SELECT d FROM (SELECT placed AS d FROM orders UNION ALL SELECT born FROM customers) WHERE d > '2023-01-01' LIMIT 2
SELECT julianday(d) - 1 FROM (SELECT placed AS d FROM orders UNION ALL SELECT born FROM customers) LIMIT 2
SELECT year, count(o.id) FROM years LEFT JOIN orders o ON CAST(strftime('%Y', o.placed) AS INTEGER) = years.year GROUP BY year
SELECT count(*) FROM years WHERE raw = '2023'
SELECT count(*) FROM years WHERE CAST(raw AS INTEGER) >= 2023
SELECT count(*) FROM years y JOIN orders o ON y.raw = o.year_text
SELECT count(*) FROM years y1 JOIN years y2 ON y1.raw = y2.year
SELECT (SELECT first FROM customers c WHERE c.id = o.customer_id) FROM orders o LIMIT 2
SELECT o.id, (SELECT count(*) FROM "Order Items" i WHERE i.orderId = o.id AND i."Ship Date" > o.placed) FROM orders o LIMIT 2
SELECT printf('%.2f', avg(total)) FROM orders
SELECT printf('%s-%02d', year_text, qty) FROM orders LIMIT 1
SELECT format('%d%%', 50)
SELECT count(DISTINCT customer_id) FROM orders WHERE placed >= date('2023-03-15', 'start of year')
SELECT count(*) FROM orders WHERE placed BETWEEN date('2023-03-15', '-30 days') AND '2023-03-15'
SELECT sum(CASE WHEN placed >= '2023-01-01' THEN total ELSE 0 END) - sum(CASE WHEN placed < '2023-01-01' THEN total ELSE 0 END) FROM orders
SELECT sum(CASE WHEN strftime('%Y', placed) = '2023' THEN 1 ELSE 0 END) FROM orders
SELECT iif(strftime('%Y', placed) = '2023', 'now', 'then') AS k, count(*) FROM orders GROUP BY k
SELECT CASE WHEN slash LIKE '__-%' THEN date(substr(slash, 4)) ELSE slash END FROM orders LIMIT 1
SELECT COALESCE(date(slash), slash) FROM orders LIMIT 1
SELECT group_concat(first, ', ') FROM customers WHERE level = 1
SELECT count(*) FROM orders WHERE id % 2 = 0
SELECT count(*) FROM orders WHERE total * 2 > 100 AND abs(qty - 5) < 2
SELECT round(avg(total), 2) FROM orders WHERE placed IS NOT NULL
SELECT count(*) FROM customers WHERE phone LIKE '+47%'
SELECT count(*) FROM customers WHERE phone = '+47 22 01 33'
SELECT count(*) FROM customers WHERE referrer <> 5
SELECT count(*) FROM customers WHERE first >= 'F' AND first < 'G'
SELECT count(*) FROM customers WHERE first > last
SELECT count(*) FROM customers WHERE level <> ''
SELECT count(*) FROM orders WHERE placed <> ''
SELECT count(*) FROM orders WHERE sent = '' OR sent IS NULL
SELECT count(*) FROM orders a JOIN orders b ON a.id = b.ref AND a.placed < b.placed
SELECT count(*) FROM orders a JOIN orders b ON date(a.placed, '+3 days') = b.placed
SELECT count(*) FROM orders a LEFT JOIN orders b USING (id) WHERE b.id IS NULL
SELECT count(*) FROM customers NATURAL JOIN years
SELECT ntile(4) OVER (ORDER BY total) AS q, total FROM orders LIMIT 2
SELECT status, total, avg(total) OVER (PARTITION BY status) - total FROM orders LIMIT 2
SELECT strftime('%Y', placed) AS y, sum(sum(total)) OVER (ORDER BY strftime('%Y', placed)) FROM orders GROUP BY y
SELECT count(*) FROM orders WHERE strftime('%Y', placed) = strftime('%Y', '2023-05-05')
SELECT count(*) FROM orders WHERE strftime('%Y-%m', placed) = '2023-05'
SELECT count(*) FROM orders WHERE strftime('%Y%m', placed) BETWEEN '202301' AND '202306'
SELECT count(*) FROM orders WHERE CAST(strftime('%Y%m', placed) AS INTEGER) BETWEEN 202301 AND 202306
SELECT unixepoch(sent) - unixepoch(placed) FROM orders LIMIT 2
SELECT strftime('%s', sent) - strftime('%s', placed) FROM orders LIMIT 2
SELECT count(*) FROM orders WHERE code = 'A12' OR code LIKE 'A1_'
SELECT CAST(substr(code, 2) AS INTEGER) + 1 FROM orders LIMIT 1
SELECT substr(code, 2) * 2 FROM orders LIMIT 1
SELECT count(*) FROM orders WHERE substr(code, 2) = '12'
SELECT x.y FROM (SELECT year_text AS y FROM orders) x WHERE x.y = 2023 LIMIT 1
SELECT count(*) FROM orders WHERE EXISTS (SELECT 1 FROM customers c WHERE c.id = orders.customer_id AND c.born < orders.placed)
SELECT json_extract('{"a": 5}', '$.a') = 5
SELECT CAST('2024' AS INTEGER) = 2024
SELECT '2024-01-05' < '2024-02-01'
SELECT 1 WHERE NULL IS NULL
VALUES (1, NULL), (2, 'x')
SELECT count(CASE status WHEN code THEN 1 END) FROM orders
SELECT count(CASE WHEN status = 'open' AND flag THEN 1 END) FROM orders
SELECT total(total) FROM orders
SELECT max(zip), min(year_text) FROM orders
SELECT zip FROM orders ORDER BY zip LIMIT 3
SELECT id || '' AS key FROM orders ORDER BY key
SELECT count(*) FROM orders WHERE zip BETWEEN '1' AND '3'
SELECT count(*) FROM customers WHERE zip = '00037'
SELECT count(*) FROM orders WHERE strftime('%m', placed) IN ('03', '04')
SELECT count(*) FROM orders WHERE year_text > '2022'
SELECT count(*) FROM orders WHERE zip = '5' AND year_text = '2023'
SELECT count(*) FROM orders WHERE strftime('%Y-%m', placed) = '2022-03' OR strftime('%Y-%m', placed) > '2023'
SELECT count(*) FROM events WHERE time(at) BETWEEN '09:00' AND '12:30'
SELECT count(*) FROM customers WHERE upper(city) = 'OSLO' OR lower(city) IN ('rome', 'bé')
SELECT count(*) FROM orders WHERE (1 < qty) = 1 AND 1
SELECT count(*) FROM orders WHERE total > (SELECT avg(total) FROM orders)
SELECT (SELECT first FROM customers c WHERE c.id = o.customer_id) FROM orders o
SELECT count(*) FROM orders WHERE qty > (SELECT level FROM customers WHERE city = 'Oslo' AND level = 1)
SELECT first, (SELECT total FROM orders WHERE customer_id = c.id ORDER BY id LIMIT 1) FROM customers c
SELECT count(*) FROM (SELECT id FROM customers) AS c WHERE c.id IN (SELECT customer_id FROM orders)
SELECT EXISTS (SELECT id FROM customers), (SELECT count(*) FROM orders), (SELECT 1 UNION SELECT 1)
SELECT count(*) FROM orders WHERE qty <> 'none'
