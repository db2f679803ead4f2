SELECT sent - placed FROM orders
SELECT avg(sent - placed) FROM orders
SELECT count(*) FROM orders WHERE sent > placed + 30
SELECT count(*) FROM orders WHERE placed > CURRENT_DATE - 30
SELECT count(*) FROM orders WHERE placed > date('now') - 30
SELECT date('now') - born FROM customers
SELECT first + ' ' + last FROM customers
SELECT first + last FROM customers ORDER BY 1
SELECT count(*) FROM orders WHERE placed >= 2023-01-01
SELECT count(*) FROM orders WHERE placed >= '20230101'
SELECT count(*) FROM orders WHERE placed BETWEEN '20230101' AND '20231231'
SELECT count(*) FROM orders WHERE placed = '01/04/2022'
SELECT count(*) FROM orders WHERE placed > '1/4/2022'
SELECT count(*) FROM orders WHERE placed >= '2022/01/04'
SELECT count(*) FROM orders WHERE placed >= '2022-1-4'
SELECT count(*) FROM orders WHERE placed > 'Jan 4, 2022'
SELECT count(*) FROM orders WHERE slash >= '2022-01-04'
SELECT count(*) FROM orders WHERE compact >= '2022-01-04'
SELECT count(*) FROM orders WHERE ymd >= '2022-01-04'
SELECT count(*) FROM orders WHERE unix >= '2022-01-04'
SELECT count(*) FROM orders WHERE unix >= date('2022-01-04')
SELECT count(*) FROM orders WHERE placed > 1640995200
SELECT count(*) FROM orders WHERE placed >= strftime('%s', '2022-01-04')
SELECT count(*) FROM orders WHERE placed = 2023
SELECT count(*) FROM orders WHERE date(placed) > 2023
SELECT count(*) FROM orders WHERE strftime('%Y', placed) = 2023
SELECT count(*) FROM orders WHERE strftime('%Y', placed) IN (2022, 2023)
SELECT count(*) FROM orders WHERE 2023 = strftime('%Y', placed)
SELECT count(*) FROM orders WHERE substr(placed, 1, 4) > 2022
SELECT count(*) FROM orders WHERE strftime('%Y', placed) BETWEEN 2022 AND 2023
SELECT sum(CASE WHEN strftime('%Y', placed) = 2023 THEN 1 ELSE 0 END) FROM orders
SELECT CASE strftime('%w', placed) WHEN 0 THEN 'Sun' ELSE 'other' END, count(*) FROM orders GROUP BY 1
SELECT strftime('%Y', placed) AS y, count(*) FROM orders GROUP BY y HAVING y >= 2023
WITH m AS (SELECT strftime('%Y', placed) AS y, total FROM orders) SELECT sum(total) FROM m WHERE y = 2023
WITH m AS (SELECT strftime('%Y', placed) AS y, total FROM orders), k AS (SELECT y AS year, total FROM m) SELECT sum(total) FROM k WHERE k.year = 2023
SELECT sum(total) FROM (SELECT * FROM (SELECT substr(placed, 1, 4) AS y, total FROM orders)) WHERE y = 2023
SELECT count(*) FROM v_orders WHERE yr = 2023
SELECT count(*) FROM v2 WHERE yr > 2022
SELECT count(*) FROM v2 WHERE day - 30 > '2022'
SELECT count(*) FROM years WHERE raw = 2023
SELECT count(*) FROM years y JOIN orders o ON y.year + 0 = strftime('%Y', o.placed)
SELECT count(*) FROM orders WHERE zip = 317
SELECT count(*) FROM orders WHERE zip < 5000
SELECT count(*) FROM orders WHERE score > 15
SELECT count(*) FROM orders WHERE status = 1
SELECT count(*) FROM orders WHERE flag = 'true'
SELECT count(*) FROM customers WHERE active = TRUE
SELECT count(*) FROM customers WHERE active = 1
SELECT status, count(*) FROM orders GROUP BY status HAVING count(*) > '10'
SELECT count(*) FROM orders WHERE customer_id = 'Oslo'
SELECT count(*) FROM orders WHERE sent = '2023-01-05'
SELECT count(*) FROM orders WHERE placed = '2023-01-05 00:00:00'
SELECT count(*) FROM orders WHERE placed = sent
SELECT count(*) FROM orders WHERE iso > '2023-01-01 00:00:00'
SELECT count(*) FROM orders WHERE placed > slash
SELECT count(*) FROM orders WHERE placed < 'now'
SELECT sum(placed) FROM orders
SELECT avg(placed) FROM orders
SELECT ended - at FROM events
SELECT -placed FROM orders
SELECT avg(status) FROM orders
SELECT status * 2 FROM orders
SELECT strftime('%A', placed), count(*) FROM orders GROUP BY 1
SELECT strftime('%B', placed), count(*) FROM orders GROUP BY 1
SELECT strftime(placed, '%Y'), count(*) FROM orders GROUP BY 1
SELECT strftime('YYYY-MM', placed), count(*) FROM orders GROUP BY 1
SELECT format(placed, 'yyyy-MM'), count(*) FROM orders GROUP BY 1
SELECT date(placed, 'yyyy-MM'), count(*) FROM orders GROUP BY 1
SELECT date(placed, '-1 quarter') FROM orders
SELECT date('month', placed), count(*) FROM orders GROUP BY 1
SELECT count(*) FROM orders WHERE placed > date('now', '-30 dayz')
SELECT date(slash) FROM orders
SELECT date(unix) FROM orders
SELECT strftime('%Y', 'placed') FROM orders
SELECT julianday(slash) - 1 FROM orders
SELECT CAST(placed AS DATE) FROM orders
SELECT CAST(sent AS TIMESTAMP) FROM orders
WITH m AS (SELECT strftime('%B', placed) AS m FROM orders) SELECT m, count(*) FROM m GROUP BY m
SELECT count(*) FROM customers WHERE active
SELECT sum(CASE WHEN NOT active THEN 1 END) FROM customers
SELECT count(*) FROM orders WHERE ref = NULL
SELECT count(*) FROM orders WHERE ref <> NULL
SELECT count(*) FROM orders WHERE ref > NULL
SELECT count(*) FROM orders WHERE NOT ref = NULL
SELECT count(*) FROM orders WHERE ref IN (NULL)
SELECT count(*) FROM orders WHERE ref IN (1, NULL)
SELECT count(*) FROM orders WHERE ref NOT IN (1, NULL)
SELECT count(*) FROM orders WHERE ref BETWEEN 1 AND NULL
SELECT count(*) FROM orders WHERE (ref, qty) = (NULL, 2)
SELECT count(*) FROM orders WHERE (ref, qty) IN ((NULL, 2))
SELECT count(*) FROM orders WHERE sent LIKE NULL
SELECT CASE ref WHEN NULL THEN 'none' ELSE ref END FROM orders
SELECT count(*) FROM orders a JOIN orders b ON a.ref = NULL
SELECT count(*) FROM orders WHERE ref = CAST(NULL AS INTEGER)
SELECT status FROM orders GROUP BY status HAVING max(ref) = NULL
SELECT sum(CASE WHEN ref = NULL THEN 1 ELSE 0 END) FROM orders
SELECT count(*) FROM orders WHERE id NOT IN (SELECT ref FROM orders)
SELECT count(*) FROM orders WHERE NOT (id IN (SELECT ref FROM orders))
SELECT count(*) FROM orders WHERE id NOT IN (SELECT ref FROM orders UNION SELECT 5)
SELECT count(*) FROM orders WHERE id NOT IN (VALUES (1), (NULL))
WITH r AS (SELECT ref FROM orders) SELECT count(*) FROM orders WHERE id NOT IN (SELECT ref FROM r)
WITH r AS (SELECT ref FROM orders) SELECT count(*) FROM orders WHERE id NOT IN r
SELECT count(*) FROM customers c WHERE c.id NOT IN (SELECT o.ref FROM orders o WHERE o.customer_id = c.id)
SELECT first FROM customers WHERE id NOT IN (SELECT max(ref) FROM orders GROUP BY id)
SELECT first, id NOT IN (SELECT ref FROM orders) FROM customers
SELECT count(*) FROM customers WHERE (id, level) NOT IN (SELECT ref, qty FROM orders)
SELECT count(*) FROM customers WHERE id NOT IN (SELECT referrer FROM customers ORDER BY referrer LIMIT 5)
SELECT count(*) FROM orders o LEFT JOIN customers c ON c.id = o.customer_id AND c.id NOT IN (SELECT referrer FROM customers)
SELECT status, placed, count(*) FROM orders GROUP BY status
SELECT customer_id, max(total), min(total), placed FROM orders GROUP BY customer_id
SELECT count(*), status FROM orders
SELECT placed - lag(placed) OVER (ORDER BY placed) FROM orders
SELECT max(placed) - min(placed) FROM orders
SELECT (SELECT max(placed) FROM orders) - 30
SELECT count(*) FROM orders WHERE placed > (SELECT max(placed) FROM orders) - 30
SELECT latest - 30 FROM v_sum
SELECT d - 1 FROM (SELECT placed AS d FROM orders UNION ALL SELECT born FROM customers)
SELECT "Ship Date" - 5 FROM "Order Items"
SELECT count(*) FROM "Order Items" WHERE "ship date" > 2023-01-01
SELECT count(*) FROM "Order Items" i JOIN orders o ON i.orderId = o.id WHERE i."Ship Date" - o.placed > 3
SELECT id FROM orders ORDER BY sent - placed DESC LIMIT 3
SELECT count(*) FROM orders WHERE placed IN ('20230101', '20230104')
SELECT COALESCE(sent, placed) - placed FROM orders
SELECT count(*) FROM orders WHERE sent - placed BETWEEN 1 AND 5
SELECT iif(placed > 2023, 'new', 'old') FROM orders
SELECT count(*) FROM orders WHERE max(placed, sent) = 2023
SELECT count(*) FROM orders WHERE strftime('%s', placed) > 1640995200
SELECT count(*) FROM orders WHERE abs(julianday(placed) - placed) < 3
SELECT count(*) FILTER (WHERE strftime('%Y', placed) = 2023) FROM orders
SELECT sum(total) OVER (PARTITION BY strftime('%Y', placed) = 2023) FROM orders
SELECT coalesce(sent - placed, 0) FROM orders
SELECT count(*) FROM orders WHERE (strftime('%Y', placed), qty) IN ((2023, 5))
SELECT count(*) FROM orders WHERE strftime('%Y', placed) IS 2023
SELECT count(*) FROM orders WHERE strftime('%Y', placed) IN (SELECT 2023)
SELECT CASE NULL WHEN ref THEN 1 ELSE 0 END FROM orders
SELECT total(placed) FROM orders
SELECT count(*) FROM orders WHERE qty IS 'many'
SELECT min(x) FROM (SELECT ref || '' AS x FROM orders)
SELECT max(weight_kg) FROM (SELECT ref || '.50' AS weight_kg FROM orders)
SELECT id FROM (SELECT id, id || '' AS key FROM orders) ORDER BY key DESC LIMIT 3
SELECT first FROM customers ORDER BY 'first'
SELECT count(*) FROM orders WHERE strftime('%m', placed) = '3'
SELECT count(*) FROM orders WHERE '3' < strftime('%m', placed)
SELECT count(*) FROM orders WHERE strftime('%d', placed) IN ('1', '2')
SELECT count(*) FROM orders WHERE strftime('%m', placed) <> '3'
SELECT count(*) FROM customers WHERE zip = '37'
SELECT count(*) FROM (SELECT id || '' AS key FROM orders) WHERE key BETWEEN '9' AND '20'
SELECT count(*) FROM orders WHERE strftime('%Y-%m', placed) = '2022-3'
SELECT count(*) FROM orders WHERE strftime('%m', placed) IN ('March', 'April')
SELECT count(*) FROM orders WHERE '9' > strftime('%H', sent)
SELECT count(*) FROM events WHERE time(at) > '9:00'
SELECT count(*) FROM events WHERE at = '9:30:00'
SELECT count(*) FROM customers WHERE upper(city) = 'Oslo'
SELECT count(*) FROM customers WHERE 'Rome' <> lower(city)
SELECT count(*) FROM customers WHERE upper(city) = 'oslo'
SELECT count(*) FROM customers WHERE lower(city) = 'OSLO'
SELECT count(*) FROM orders WHERE 1 < qty < 3
SELECT count(*) FROM orders WHERE qty = 1 OR 2
SELECT count(*) FROM orders WHERE status = 'open' OR 'void'
SELECT count(*) FROM orders WHERE customer_id = (SELECT id FROM customers WHERE city = 'Oslo')
SELECT first, (SELECT total FROM orders WHERE customer_id = c.id) FROM customers c
SELECT first FROM customers ORDER BY (SELECT qty FROM orders WHERE orders.customer_id = customers.id)
SELECT count(*) FROM orders WHERE total = (SELECT max(total) FROM orders GROUP BY status)
SELECT (SELECT 1 UNION SELECT 2)
