SELECT qty / 2 FROM orders
SELECT sum(qty) FILTER (WHERE id > 2) / 5 FROM orders
SELECT sum(qty) / count(DISTINCT status) FROM orders
SELECT n / 7 FROM v_sum
SELECT q.n / 2 FROM (SELECT qty AS n FROM orders) AS q
SELECT qty / 2.0, qty * 1.0 / 7, total / qty, CAST(qty AS REAL) / 2 FROM orders
SELECT qty / 10 * 10, CAST(qty / 3 AS INTEGER), id / 1 FROM orders
SELECT sum(total) / count(*) FROM orders
SELECT 'a / b' FROM orders
SELECT qty / 2, qty / 3, qty / 4, qty / 5, qty / 6, qty / 7 FROM orders
