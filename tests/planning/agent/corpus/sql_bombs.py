"""Statements that would run for ever, take all memory, or fill the disk."""

# ruff: noqa: S608 - the statements are the subject of these tests

from __future__ import annotations

from sql_cases import cases

_NUMBERS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n{}) "
_HALF_MEGABYTE = "replace(hex(zeroblob(250000)), '0', 'a')"
_TEN_MEGABYTES = "replace(hex(zeroblob(5000000)), '0', 'a')"
_MOST = 99_000  # letters: a statement that is longer is refused for that alone
_DOUBLINGS = 24


def _doubling(step: str, count: int = _DOUBLINGS) -> str:
    """A chain of CTEs, each made of two of the one before."""
    chain = ["t0 (x) AS (SELECT 1)"]
    chain += [f"t{i} (x) AS ({step.format(i - 1)})" for i in range(1, count + 1)]
    return f"WITH {', '.join(chain)} SELECT count(*) FROM t{count}"


_ENDLESS: dict[str, object] = {
    "counting for ever": _NUMBERS.format("") + "SELECT count(*) FROM n",
    "the last of all numbers": _NUMBERS.format("") + "SELECT x FROM n WHERE x < 0",
    "numbers sorted": _NUMBERS.format("") + "SELECT x FROM n ORDER BY -x",
    "numbers that differ": _NUMBERS.format("") + "SELECT DISTINCT x % 3 FROM n LIMIT 4",
    "an offset beyond all": _NUMBERS.format("") + "SELECT x FROM n LIMIT 1 OFFSET 9223372036854775806",
    "a scalar that never comes": "SELECT (" + _NUMBERS.format("") + "SELECT max(x) FROM n)",
    "a where that never ends": "SELECT 1 WHERE EXISTS ("
    + _NUMBERS.format("")
    + "SELECT 1 FROM n WHERE x = 0)",
    "a window over everything": _NUMBERS.format("") + "SELECT sum(x) OVER (ORDER BY x) FROM n",
    "cross joins": "SELECT count(*) FROM " + ", ".join(f"notes_data AS a{i}" for i in range(40)),
    "cross joins of numbers": (
        _NUMBERS.format(" WHERE x < 2000")
        + "SELECT count(*) FROM n AS a, n AS b, n AS c WHERE a.x + b.x = -c.x"
    ),
    "correlated": (
        _NUMBERS.format(" WHERE x < 3000")
        + "SELECT sum((SELECT count(*) FROM n AS b WHERE b.x > a.x)) FROM n AS a, n AS c"
    ),
}
_MEMORY: dict[str, object] = {
    "rows that differ": _NUMBERS.format("") + "SELECT count(DISTINCT x || hex(zeroblob(500))) FROM n",
    "a union that grows": (
        "WITH RECURSIVE n (x) AS (SELECT hex(zeroblob(500)) UNION SELECT n.x || a.id FROM n, orders AS a) "
        "SELECT count(*) FROM n"
    ),
    "a text that doubles": (
        "WITH RECURSIVE n (x) AS (SELECT 'a' UNION ALL SELECT x || x FROM n) SELECT max(length(x)) FROM n"
    ),
    "sorted wide rows": _NUMBERS.format("") + "SELECT x, hex(zeroblob(5000)) AS h FROM n ORDER BY h, -x",
    "grouped wide rows": _NUMBERS.format("")
    + "SELECT x, max(hex(zeroblob(5000))) FROM n GROUP BY x % 1000003, x",
    "materialized": (
        _NUMBERS.format("").rstrip()
        + ", m AS MATERIALIZED (SELECT x, hex(zeroblob(5000)) AS h FROM n) SELECT count(*) FROM m AS a, m"
    ),
    "group_concat": _NUMBERS.format("") + "SELECT length(group_concat(hex(zeroblob(10000)))) FROM n",
    "json_group_array": _NUMBERS.format("") + "SELECT length(json_group_array(hex(zeroblob(10000)))) FROM n",
    "json_group_object": _NUMBERS.format("")
    + "SELECT length(json_group_object(x, hex(zeroblob(10000)))) FROM n",
    "cross joins sorted": (
        _NUMBERS.format(" WHERE x < 3000")
        + "SELECT a.x, b.x, hex(randomblob(100)) AS h FROM n AS a, n AS b, n AS c ORDER BY h"
    ),
}
_HUGE: dict[str, object] = {
    "zeroblob": "SELECT zeroblob(2000000000)",
    "zeroblob measured": "SELECT hex(zeroblob(1000000000))",
    "randomblob": "SELECT length(randomblob(1000000000))",
    "hex of a blob": "SELECT length(hex(hex(hex(zeroblob(100000000)))))",
    "quote of a blob": "SELECT length(quote(zeroblob(900000000)))",
    "replace that multiplies": (
        "SELECT length(replace(replace(replace(hex(zeroblob(50000)), '0', hex(zeroblob(5000))), "
        "'0', hex(zeroblob(5000))), '0', hex(zeroblob(5000))))"
    ),
    "ten blobs of a row": "SELECT " + ", ".join(["zeroblob(200000000)"] * 10),
    "a sum of texts": "SELECT " + " || ".join(["hex(zeroblob(100000000))"] * 8),
    "one row that is too much": "SELECT hex(zeroblob(9000000))",
    "a pattern that is too long": "SELECT 'a' LIKE '%' || hex(zeroblob(20000))",
}
_ONE_CALL: dict[str, object] = {
    "trim": f"SELECT length(trim({_HALF_MEGABYTE}, replace(hex(zeroblob(250000)), '0', 'b') || 'a'))",
    "instr": f"SELECT instr({_TEN_MEGABYTES}, {_HALF_MEGABYTE} || 'b')",
    "like": f"SELECT {_TEN_MEGABYTES} LIKE '%' || replace(hex(zeroblob(4900)), '0', 'a') || 'b'",
    "like of any": f"SELECT {_TEN_MEGABYTES} LIKE '%a' || replace(hex(zeroblob(4900)), '0', '_') || 'b%c'",
    "glob": f"SELECT {_TEN_MEGABYTES} GLOB '*' || replace(hex(zeroblob(4900)), '0', 'a') || 'b'",
    "glob of classes": f"SELECT {_TEN_MEGABYTES} GLOB '*' || replace(hex(zeroblob(900)), '0', '[^b]') || 'b'",
    "replace": f"SELECT length(replace({_TEN_MEGABYTES}, {_HALF_MEGABYTE} || 'b', 'c'))",
    "json_patch": (
        "SELECT length(json_patch(a.j, b.j)) FROM "
        "(SELECT '{' || replace(hex(zeroblob(60000)), '00', '\"a\":1,') || '\"b\":1}' AS j) AS a, "
        "(SELECT '{' || replace(hex(zeroblob(60000)), '00', '\"c\":1,') || '\"d\":1}' AS j) AS b"
    ),
}
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
    "compound selects": " UNION ALL ".join(["SELECT 1"] * 601),
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

BOMBS = cases({"endless": _ENDLESS, "one call": _ONE_CALL}, "timeout")
_PLACED = {"parentheses never opened": _nested("", "1", ")"), "dots": _long("SELECT x", ".x")}
"""Where in it the mistake is takes time to find out, and is told where that is enough."""

HEAVY = cases({"memory": _MEMORY, "prepared": _PREPARED, "placed": _PLACED}, "parameter", "timeout")
TOO_MUCH = cases({"huge": _HUGE, "deep": _DEEP})
