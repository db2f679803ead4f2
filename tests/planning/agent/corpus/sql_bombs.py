"""Statements that a program makes: too long, too deep or too many for a file of statements."""

# ruff: noqa: S608 - the statements are the subject of these tests

from __future__ import annotations

_MOST = 30_000  # letters: many times what the databases take, and a third of what is sent at all
_DOUBLINGS = 24


def _doubling(step: str, count: int = _DOUBLINGS) -> str:
    """A chain of CTEs, each made of two of the one before."""
    chain = ["t0 (x) AS (SELECT 1)"]
    chain += [f"t{i} (x) AS ({step.format(i - 1)})" for i in range(1, count + 1)]
    return f"WITH {', '.join(chain)} SELECT count(*) FROM t{count}"


_PREPARED: dict[str, object] = {
    "views of views": _doubling("SELECT x FROM t{0} UNION ALL SELECT x FROM t{0}"),
    "joins of joins": _doubling("SELECT a.x FROM t{0} AS a JOIN t{0} AS b"),
    "subqueries of subqueries": _doubling("SELECT (SELECT max(x) FROM t{0}) + (SELECT min(x) FROM t{0})"),
}


def _sixty_tables(near: int) -> str:
    """A join whose best order takes long to find: SQLite does not look at the clock meanwhile."""
    tables = ", ".join(f"orders AS a{i}" for i in range(60))
    pairs = [(i, j) for i in range(60) for j in range(max(0, i - near), i)]
    return f"SELECT count(*) FROM {tables} WHERE " + " AND ".join(
        f"a{i}.id = a{j}.customer_id" for i, j in pairs
    )


LATE_MISTAKES = tuple(_sixty_tables(near) + " AND 1" * 25 + " 1" for near in (3, 4))
"""Mistakes at the end of statements of which each beginning takes long to prepare."""


def _nested(before: str, middle: str, after: str) -> str:
    """As deep as the length that a statement may have."""
    count = _MOST // (len(before) + len(after))
    return "SELECT " + before * count + middle + after * count


def _long(before: str, part: str, after: str = "") -> str:
    return before + part * ((_MOST - len(before) - len(after)) // len(part)) + after


_DEEP: dict[str, object] = {
    "parentheses": _nested("(", "1", ")"),
    "parentheses never closed": _nested("(", "1", ""),
    "selects in parentheses": _nested("(SELECT (", "1", "))"),
    "subqueries": _nested("(SELECT ", "1", ")"),
    "tables of tables": _nested("* FROM (SELECT ", "1", ")"),
    "case": _nested("CASE WHEN 1 THEN ", "1", " END"),
    "not": _nested("NOT ", "1", ""),
    "minus": _nested("- ", "1", ""),
    "tilde": _nested("~", "1", ""),
    "functions": _nested("abs(", "1", ")"),
    "casts": _nested("CAST(", "1", " AS TEXT)"),
    "exists": _nested("EXISTS (SELECT ", "1", ")"),
    "in": _nested("1 IN (SELECT ", "1", ")"),
    "windows": _nested("sum(", "1", ") OVER ()"),
    "CTEs": "WITH a AS (" * 3_000 + "SELECT 1" + ") SELECT * FROM a" * 3_000,
    "sums": _long("SELECT 1", " + 1"),
    "conditions": _long("SELECT 1 WHERE 1", " AND 1"),
    "alternatives": _long("SELECT 1 WHERE 0", " OR 0"),
    "texts": _long("SELECT 'a'", " || 'a'"),
    "comparisons": _long("SELECT 1", " = 1"),
    "compound selects": " UNION ALL ".join(["SELECT 1"] * 501),
    "intersections": _long("SELECT 1", " INTERSECT SELECT 1"),
    "joins": _long("SELECT 1 FROM cities", " JOIN cities"),
    "columns": _long("SELECT 1", ",1"),
    "arguments": _long("SELECT max(1", ",1", ")"),
    "sort columns": _long("SELECT 1 FROM cities ORDER BY id", ",id"),
    "group columns": _long("SELECT 1 FROM cities GROUP BY id", ",id"),
    "semicolons": _long("", ";"),
    "statements": _long("SELECT 1", ";SELECT 1"),
    "quotes": _long("SELECT '", "''"),
    "comments": _long("SELECT 1 ", "/**/", "; DELETE FROM cities"),
    "lines": _long("", "--\n", "DELETE FROM cities"),
    "spaces": _long("", " ", "DELETE FROM cities"),
    "names": _long("SELECT ", "x"),
    "a megabyte of text": "SELECT '" + "x" * 1_000_000 + "'",
    "a megabyte of sums": "SELECT 1" + "+1" * 500_000,
    "a megabyte of parentheses": "SELECT " + "(" * 1_000_000,
    "a megabyte of semicolons": ";" * 1_000_000,
    "a megabyte of spaces": " " * 1_000_000 + "DELETE FROM customers",
    "a megabyte of a list": "SELECT 1 WHERE 1 IN (" + ",".join(["2"] * 500_000) + ")",
}
_PLACED: dict[str, object] = {
    "parentheses never opened": _nested("", "1", ")"),
    "dots": _long("SELECT x", ".x"),
}
"""Where in it the mistake is takes time to find out, and is told where that is enough."""

_TABLES = ", ".join(f"notes_data AS a{i}" for i in range(40))
_LISTED = ", ".join(map(str, range(5_000)))
_VIEWS = ", ".join(
    f"t{i} (x) AS (SELECT x FROM t{i - 1} UNION ALL SELECT x FROM t{i - 1})" for i in range(1, 40)
)

ENDLESS: dict[str, dict[str, object]] = {"endless joins": {"cross joins": f"SELECT count(*) FROM {_TABLES}"}}
HEAVY = {"prepared": _PREPARED, "placed": _PLACED}
TOO_MUCH = {"deep": _DEEP}
HEAVY_DUCKDB: dict[str, dict[str, object]] = {
    "duckdb deep": {
        "parentheses": "SELECT " + "(" * 10_000 + "1" + ")" * 10_000,
        "sums": "SELECT 1" + " + 1" * 5_000,
        "not": "SELECT " + "NOT " * 5_000 + "true",
        "lists of lists": "SELECT " + "[" * 10_000 + "]" * 10_000,
        "casts": "SELECT 1" + "::INT" * 4_000,
        "views of views": f"WITH t0 (x) AS (SELECT 1), {_VIEWS} SELECT count(*) FROM t39",
        "joins": "SELECT count(*) FROM " + ", ".join(f"range(100) AS a{i}" for i in range(200)),
    }
}
GOOD = {
    "a long text": [f"SELECT length('{'x' * 90_000}') AS a", ["a"], [[90_000]]],
    "a long list": [f"SELECT 1 IN ({_LISTED}) AS a", ["a"], [[1]]],
    "a long comment": [f"/*{'x' * 90_000}*/ SELECT 1 AS a", ["a"], [[1]]],
}
