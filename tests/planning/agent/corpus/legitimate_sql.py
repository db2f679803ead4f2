"""Statements that read, and what they give: none of them may be refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Good:
    """A statement with its columns and its rows."""

    name: str
    sql: str
    columns: list[str]
    rows: list[list[Any]]


def _one(name: str, sql: str, column: str, value: Any) -> Good:
    return Good(name, sql, [column], [[value]])


_WORDS = (
    _one("all the words as a text", "SELECT 'DELETE; DROP TABLE x' AS a", "a", "DELETE; DROP TABLE x"),
    _one("a comment in a text", "SELECT '-- no /* comment' AS a", "a", "-- no /* comment"),
    _one("quotes in a text", "SELECT 'it''s; \"so\"' AS a", "a", 'it\'s; "so"'),
    _one("a backslash in a text", "SELECT '\\' AS a", "a", "\\"),
    _one("a pragma in a text", "SELECT 'PRAGMA user_version = 1' AS a", "a", "PRAGMA user_version = 1"),
    _one("a word in a condition", "SELECT id FROM orders WHERE note LIKE '%delete%'", "id", 1),
    _one("a semicolon in a condition", "SELECT id FROM orders WHERE note = 'a;b'", "id", 4),
    Good('a table called "delete"', 'SELECT id FROM "delete"', ["id"], [[1], [2]]),
    Good("in brackets", "SELECT [pragma] FROM [drop table]", ["pragma"], [[1]]),
    Good("in backticks", "SELECT `insert` FROM `delete` WHERE id = 1", ["insert"], [["one"]]),
    Good("a column called replace", 'SELECT "replace" FROM "delete"', ["replace"], [["r1"], ["r2"]]),
    Good("a column with a space", 'SELECT "order by" FROM "delete"', ["order by"], [[7], [8]]),
    Good("a column with a quote", 'SELECT "a""b" FROM "drop table"', ['a"b'], [["quoted"]]),
    Good(
        "an alias called insert", 'SELECT name AS "insert" FROM cities WHERE id = 2', ["insert"], [["Oslo"]]
    ),
    Good(
        "a table alias called update", 'SELECT "update".id FROM "delete" AS "update" LIMIT 1', ["id"], [[1]]
    ),
    Good("a CTE called drop", 'WITH "drop" AS (SELECT 1 AS a) SELECT a FROM "drop"', ["a"], [[1]]),
    _one("the function replace", "SELECT replace('abc', 'b', 'x') AS a", "a", "axc"),
    _one("the function replace in capitals", "SELECT REPLACE('abc', 'b', '') AS a", "a", "ac"),
    _one(
        "replace over a column", "SELECT replace(name, 'o', '0') AS a FROM cities WHERE id = 2", "a", "Osl0"
    ),
    _one("a word that begins so", "SELECT 1 AS deleted_at", "deleted_at", 1),
    _one("replaced as an alias", "SELECT 1 AS replaced", "replaced", 1),
    _one("begin and end as aliases", "SELECT 1 AS begin", "begin", 1),
    Good("key words that may be names", "SELECT 1 AS vacuum, 2 AS plan", ["vacuum", "plan"], [[1, 2]]),
)
_FRAMES = (
    _one("a semicolon at the end", "SELECT 1 AS a;", "a", 1),
    _one("semicolons at the end", "SELECT 1 AS a ; ; ;\n", "a", 1),
    _one("a comment behind the semicolon", "SELECT 1 AS a; -- that is all", "a", 1),
    _one("a block behind the semicolon", "SELECT 1 AS a; /* that; is all */ ", "a", 1),
    _one("a comment before", "-- DELETE FROM customers\nSELECT 1 AS a", "a", 1),
    _one("a block before", "/* DROP TABLE x; */ SELECT 1 AS a", "a", 1),
    _one("comments within", "SELECT/**/1/*;*/AS--;\na", "a", 1),
    _one("a block that never ends", "SELECT 1 AS a /* and so on", "a", 1),
    _one("a nested block", "SELECT /* /* */ 1 AS a", "a", 1),
    _one("a hint", "SELECT /*+ FULL(x) */ 1 AS a", "a", 1),
    _one("many lines", "\n\n  select\r\n\t1\n  as\n  a\n", "a", 1),
    _one("a form feed", "\fSELECT\f1\fAS\fa", "a", 1),
    _one("a byte order mark", "\ufeffSELECT 1 AS a", "a", 1),
    _one("mixed case", "sElEcT 1 aS a", "a", 1),
    _one("deep parentheses", "SELECT " + "(" * 60 + "1" + ")" * 60 + " AS a", "a", 1),
    _one("a long text", "SELECT length('" + "x" * 90_000 + "') AS a", "a", 90_000),
    _one("a long list", "SELECT 1 IN (" + ", ".join(map(str, range(5_000))) + ") AS a", "a", 1),
    _one("a long comment", "/*" + "x" * 90_000 + "*/ SELECT 1 AS a", "a", 1),
)
_SHAPES = (
    Good("values", "VALUES (1, 'a'), (2, NULL)", ["column1", "column2"], [[1, "a"], [2, None]]),
    Good("with", "WITH a (x) AS (VALUES (1), (2)) SELECT x FROM a", ["x"], [[1], [2]]),
    Good(
        "with recursive",
        "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 4) SELECT x FROM n",
        ["x"],
        [[1], [2], [3], [4]],
    ),
    Good(
        "materialized",
        "WITH a AS MATERIALIZED (SELECT 1 AS x), b AS NOT MATERIALIZED (SELECT x FROM a) SELECT x FROM b",
        ["x"],
        [[1]],
    ),
    Good("union", "SELECT 1 AS a UNION SELECT 2 UNION SELECT 1 ORDER BY a DESC", ["a"], [[2], [1]]),
    Good("except", "SELECT id FROM customers EXCEPT SELECT customer_id FROM orders", ["id"], [[3]]),
    Good("intersect", "SELECT id FROM cities INTERSECT SELECT city_id FROM customers", ["id"], [[1], [2]]),
    Good("union all of values", "VALUES (1) UNION ALL VALUES (1)", ["column1"], [[1], [1]]),
    Good("exists", "SELECT EXISTS (SELECT 1 FROM orders WHERE total > 100) AS a", ["a"], [[0]]),
    Good("limit and offset", "SELECT id FROM orders ORDER BY id LIMIT 2 OFFSET 1", ["id"], [[2], [3]]),
    Good("limit with a comma", "SELECT id FROM orders ORDER BY id LIMIT 1, 2", ["id"], [[2], [3]]),
    Good("no rows", "SELECT id, name FROM customers WHERE 0", ["id", "name"], []),
    Good("columns of one name", "SELECT 1 AS a, 2 AS a, 3 AS a", ["a", "a", "a"], [[1, 2, 3]]),
    Good(
        "ids of both sides",
        "SELECT * FROM cities AS a JOIN cities AS b ON a.id = b.id WHERE a.id = 3",
        ["id", "name", "id", "name"],
        [[3, "Lima", 3, "Lima"]],
    ),
    Good(
        "natural join",
        "SELECT name FROM cities NATURAL JOIN (SELECT 2 AS id)",
        ["name"],
        [["Oslo"]],
    ),
    Good(
        "full join",
        "SELECT a.x AS x, b.y AS y FROM (SELECT 1 AS x) AS a "
        "FULL JOIN (SELECT 2 AS y) AS b ON a.x = b.y ORDER BY x",
        ["x", "y"],
        [[None, 2], [1, None]],
    ),
    Good(
        "right join using",
        "SELECT id, total FROM (SELECT 1 AS id) RIGHT JOIN orders USING (id) WHERE id > 2 ORDER BY id",
        ["id", "total"],
        [[3, 5.25], [4, 5.25]],
    ),
    Good("row values", "SELECT id FROM cities WHERE (id, name) = (2, 'Oslo')", ["id"], [[2]]),
    Good(
        "row values in",
        "SELECT id FROM cities WHERE (id, name) IN (VALUES (1, 'x'), (3, 'Lima'))",
        ["id"],
        [[3]],
    ),
    Good(
        "in a table",
        "WITH a (x) AS (VALUES (1), (3)) SELECT id FROM cities WHERE id IN a",
        ["id"],
        [[1], [3]],
    ),
    Good(
        "window",
        "SELECT id, rank() OVER w AS r, sum(total) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) AS s "
        "FROM orders WINDOW w AS (ORDER BY total DESC) ORDER BY id",
        ["id", "r", "s"],
        [[1, 2, 10.5], [2, 1, 30.5], [3, 3, 35.75], [4, 3, 41.0]],
    ),
    Good(
        "lag",
        "SELECT id, lag(id, 1, 0) OVER (PARTITION BY customer_id ORDER BY id) AS p FROM orders ORDER BY id",
        ["id", "p"],
        [[1, 0], [2, 1], [3, 0], [4, 3]],
    ),
    Good(
        "filter",
        "SELECT count(*) FILTER (WHERE total > 10) AS n, group_concat(id, '+') AS g FROM orders",
        ["n", "g"],
        [[2, "1+2+3+4"]],
    ),
    Good(
        "group and having",
        "SELECT customer_id, count(*) AS n FROM orders GROUP BY 1 HAVING n > 1 ORDER BY 1 DESC",
        ["customer_id", "n"],
        [[2, 2], [1, 2]],
    ),
    Good(
        "a view",
        "SELECT name, total FROM spenders ORDER BY name",
        ["name", "total"],
        [["Ada", 30.5], ["Grace", 10.5]],
    ),
    Good("a schema in front", "SELECT main.cities.name FROM main.cities WHERE id = 3", ["name"], [["Lima"]]),
    Good(
        "correlated",
        "SELECT name, (SELECT count(*) FROM orders AS o WHERE o.customer_id = c.id) AS n FROM customers AS c",
        ["name", "n"],
        [["Ada", 2], ["Grace", 2], ["Edsger", 0]],
    ),
    Good(
        "the schema table",
        "SELECT name FROM sqlite_master WHERE type = 'view'",
        ["name"],
        [["spenders"]],
    ),
    Good(
        "rowid",
        "SELECT rowid, title FROM notes ORDER BY rowid",
        ["rowid", "title"],
        [[1, "first"], [2, "second"]],
    ),
    Good(
        "indexed by",
        "SELECT id FROM orders INDEXED BY orders_by_customer WHERE customer_id = 2",
        ["id"],
        [[3], [4]],
    ),
    Good(
        "a query of generated days",
        "WITH RECURSIVE d (day) AS (SELECT date('2024-02-28') "
        "UNION ALL SELECT date(day, '+1 day') FROM d LIMIT 3) "
        "SELECT day FROM d",
        ["day"],
        [["2024-02-28"], ["2024-02-29"], ["2024-03-01"]],
    ),
)
_VALUES = (
    Good(
        "every kind of value",
        "SELECT value, raw, big FROM measures ORDER BY id",
        ["value", "raw", "big"],
        [
            [float("inf"), b"", 9223372036854775807],
            [float("-inf"), b"A", 0],
            [0.1, None, None],
            [None, b"\x00\xff", -9223372036854775808],
        ],
    ),
    _one("a division by zero", "SELECT 1 / 0 AS a", "a", None),
    _one("a blob", "SELECT x'00ff' AS a", "a", b"\x00\xff"),
    _one("no blob", "SELECT x'' AS a", "a", b""),
    _one("a hexadecimal number", "SELECT 0x10 AS a", "a", 16),
    _one("a number with an exponent", "SELECT 1.5e3 AS a", "a", 1500.0),
    _one("no number", "SELECT 9e999 - 9e999 AS a", "a", None),
    _one("a NUL in a text", "SELECT char(97, 0, 98) AS a", "a", "a\x00b"),
    _one("a column without a name", "SELECT 1 + 1", "1 + 1", 2),
    _one("names in other letters", 'SELECT "Größe" FROM "drop table"', "Größe", 1.5),
    _one("an alias in other letters", "SELECT 1 AS größe_表", "größe_表", 1),
    _one("a text in other letters", "SELECT '表🙂' AS a", "a", "表🙂"),
    _one("like with escape", "SELECT id FROM orders WHERE note LIKE '50\\%%' ESCAPE '\\'", "id", 2),
    _one("glob", "SELECT id FROM orders WHERE note GLOB '*[0-9]*'", "id", 2),
    _one("double equals", "SELECT id FROM cities WHERE name == 'Oslo'", "id", 2),
    Good("not equal", "SELECT id FROM cities WHERE name <> 'Oslo' AND id != 3", ["id"], [[1]]),
    Good("is distinct from", "SELECT id FROM customers WHERE city_id IS DISTINCT FROM 1", ["id"], [[2], [3]]),
    Good("isnull", "SELECT id FROM customers WHERE city_id ISNULL", ["id"], [[3]]),
    Good("is not", "SELECT id FROM customers WHERE city_id IS NOT 1", ["id"], [[2], [3]]),
    _one("collate", "SELECT 'A' = 'a' COLLATE NOCASE AS a", "a", 1),
    _one("cast", "SELECT CAST('12abc' AS INTEGER) AS a", "a", 12),
    _one("cast to anything", "SELECT typeof(CAST(5 AS VARCHAR(10))) AS a", "a", "text"),
    _one("case", "SELECT CASE WHEN 1 > 2 THEN 'x' ELSE 'y' END AS a", "a", "y"),
    _one("iif", "SELECT iif(1, 'x', 'y') AS a", "a", "x"),
    _one("date", "SELECT date('2024-01-31', '+1 month', 'start of month', '-1 day') AS a", "a", "2024-02-29"),
    _one("strftime", "SELECT strftime('%Y-%m', since) AS a FROM customers WHERE id = 3", "a", "2024-02"),
    _one(
        "julianday", "SELECT CAST(julianday('2024-03-01') - julianday('2024-02-01') AS INTEGER) AS a", "a", 29
    ),
    _one("printf", "SELECT printf('%05.2f|%s', 3.14159, 'x') AS a", "a", "03.14|x"),
    _one("json_extract", "SELECT json_extract(body, '$.size') AS a FROM documents WHERE id = 1", "a", 3),
    _one("json arrow", "SELECT body ->> '$.tags[1]' AS a FROM documents WHERE id = 1", "a", "b"),
    _one("json arrow keeps json", "SELECT body -> 'tags' AS a FROM documents WHERE id = 1", "a", '["a","b"]'),
    Good(
        "json_each",
        "SELECT d.id, j.value FROM documents AS d, json_each(d.body, '$.tags') AS j",
        ["id", "value"],
        [[1, "a"], [1, "b"]],
    ),
    _one("json_tree", 'SELECT count(*) AS a FROM json_tree(\'{"a": [1, {"b": 2}]}\')', "a", 5),
    _one(
        "json_group_array",
        "SELECT json_group_array(name) AS a FROM cities WHERE id > 1",
        "a",
        '["Oslo","Lima"]',
    ),
    Good(
        "match",
        "SELECT title FROM notes WHERE notes MATCH 'quick' ORDER BY rank",
        ["title"],
        [["first"], ["second"]],
    ),
    Good("match of a phrase", "SELECT title FROM notes('\"quick brown\"')", ["title"], [["first"]]),
    _one(
        "highlight",
        "SELECT highlight(notes, 1, '[', ']') AS a FROM notes WHERE notes MATCH 'lazy'",
        "a",
        "a [lazy] dog; a quick nap",
    ),
    _one(
        "snippet",
        "SELECT snippet(notes, 1, '<', '>', '...', 2) AS a FROM notes('fox')",
        "a",
        "...brown <fox>",
    ),
    _one("mathematics", "SELECT round(sqrt(2), 3) AS a", "a", 1.414),
    _one("likelihood", "SELECT count(*) AS a FROM cities WHERE likelihood(id > 1, 0.5)", "a", 2),
    _one("a hex of a text", "SELECT hex('ab') AS a", "a", "6162"),
    _one("letters beyond the plane", "SELECT '🙂' AS a; -- 🙂;", "a", "🙂"),
    _one("the version", "SELECT sqlite_version() IS NOT NULL AS a", "a", 1),
    _one("bits", "SELECT (6 & 3) | (1 << 4) AS a", "a", 18),
    _one("between", "SELECT count(*) AS a FROM orders WHERE total BETWEEN 5 AND 11", "a", 3),
)

GOOD = (
    *_WORDS,
    *_FRAMES,
    *_SHAPES,
    *_VALUES,
)
