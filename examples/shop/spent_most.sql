SELECT customers.nmae, sum(order_totals.total) AS spent
FROM customers
JOIN order_totals ON order_totals.customer_id = customers.id
GROUP BY customers.id
ORDER BY spent DESC
LIMIT 3
---
SELECT customers.name, sum(order_totals.total) AS spent
FROM customers
JOIN order_totals ON order_totals.customer_id = customers.id
GROUP BY customers.id
ORDER BY spent DESC
LIMIT 3
