"""The schema of a database as a model reads it, and what differs in its SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from planning.errors import LONGEST_MESSAGE, cut, printable

TITLES: Final = {
    "sqlite": "SQLite",
    "duckdb": "DuckDB",
    "postgresql": "PostgreSQL",
    "postgres": "PostgreSQL",
    "mysql": "MySQL",
}
DIFFERENCES: Final = {
    "sqlite": (
        ("", "dates are text: compare them with text of the same form, such as '2024-01-31'"),
        (
            "INTERVAL|DATEDIFF|DATE_?ADD|DATE_?SUB|AGE|NOW|GETDATE|CURDATE|SYSDATE|TODAY",
            "date('now') is today, date(d, '-30 days') moves a date, julianday(a) - julianday(b) counts days",
        ),
        (
            "YEAR|MONTH|DAY|HOUR|MINUTE|WEEK|QUARTER|DAYOFWEEK|WEEKDAY|EXTRACT|DATE_PART|DATEPART|DATE_TRUNC"
            "|TO_CHAR|DATE_FORMAT|TO_DATE",
            "strftime('%Y', d) is part of a date, as text: there is no YEAR, EXTRACT, DATE_TRUNC or TO_CHAR",
        ),
        (
            "CONCAT|CONCAT_WS|STRING_AGG",
            "a || b joins text, group_concat(a, ', ') that of rows; + adds only numbers",
        ),
        ("", "a / b of whole numbers drops the rest; write a * 1.0 / b"),
        (
            "ILIKE|SIMILAR|REGEXP|LEFT|RIGHT|TOP|LEN|CHARINDEX|POSITION|FETCH|IF",
            "LIKE ignores case; substr(s, 1, 3), substr(s, -3), instr(s, 'a'), iif(a, b, c) and LIMIT are "
            "there, but no ILIKE, LEFT, RIGHT or TOP",
        ),
    ),
    "duckdb": (
        ("", "text is in single quotes, names are in double quotes"),
        (
            "DATEADD|GETDATE|CURDATE|SYSDATE|JULIANDAY",
            "a - b of two dates counts days, d - INTERVAL 30 DAY moves a date, today() is today",
        ),
        (
            "TO_CHAR|DATE_FORMAT|CONVERT|TO_DATE",
            "strftime(d, '%Y-%m'), year(d), date_trunc('month', d); there is no TO_CHAR or DATE_FORMAT",
        ),
        ("", "dayofweek(d) is 0 for Sunday, isodow(d) is 1 for Monday to 7"),
        ("", "a / b of whole numbers keeps the rest; a // b drops it"),
        (
            "TOP|CHARINDEX|ISNULL|NVL",
            "LIKE is case-sensitive, ILIKE is not; LIMIT, strpos, coalesce",
        ),
    ),
    "postgres": (
        (
            "DATEDIFF|DATE_?ADD|DATE_?SUB|GETDATE|CURDATE|SYSDATE|JULIANDAY",
            "a - b of two dates counts days, d - INTERVAL '30 days' moves a date, CURRENT_DATE is today",
        ),
        (
            "YEAR|MONTH|DAY|STRFTIME|DATE_FORMAT|DATEPART",
            "EXTRACT(YEAR FROM d), date_trunc('month', d), to_char(d, 'YYYY-MM')",
        ),
        ("", "a name with capitals is in double quotes, text in single quotes"),
        ("", "a / b of whole numbers drops the rest; write a::numeric / b, and round(x::numeric, 2)"),
        (
            "GLOB|REGEXP|TOP|INSTR|CHARINDEX|LEN",
            "LIKE is case-sensitive, ILIKE is not; LIMIT, strpos, length",
        ),
        (
            "GROUP_CONCAT|IFNULL|NVL|ISNULL|IF|IIF",
            "string_agg(a, ', ') joins the text of rows; COALESCE and CASE are IFNULL and IF",
        ),
    ),
}
"""The differences in the SQL of each database, at most six lines, each behind the words it explains."""
_WORDS: Final = """
    ADD ALL ALTER ANALYSE ANALYZE AND ANTI ANY ARRAY AS ASC ASOF ASYMMETRIC AT AUTHORIZATION
    AUTOINCREMENT BETWEEN BINARY BOTH BY CASE CAST CHECK COLLATE COLLATION COLUMN COLUMNS COMMIT
    CONCURRENTLY CONSTRAINT CREATE CROSS CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DEFAULT DEFERRABLE
    DELETE DESC DESCRIBE DISTINCT DO DROP ELSE END ESCAPE EXCEPT EXISTS FALSE FETCH FOR FOREIGN FREEZE
    FROM FULL GENERATED GLOB GROUP HAVING ILIKE IN INDEX INITIALLY INNER INSERT INTERSECT INTO IS ISNULL
    JOIN LAMBDA LATERAL LEADING LEFT LIKE LIMIT MAP NATURAL NOT NOTHING NOTNULL NULL OFFSET ON ONLY OR
    ORDER OUTER OVERLAPS PIVOT PIVOT_LONGER PIVOT_WIDER PLACING POSITIONAL PRIMARY QUALIFY RAISE
    REFERENCES RETURNING RIGHT SELECT SEMI SET SHOW SIMILAR SOME STRUCT SUMMARIZE SYMMETRIC TABLE
    TABLESAMPLE THEN TO TRAILING TRANSACTION TRUE TRY_CAST TUPLE UNION UNIQUE UNPACK UNPIVOT UPDATE
    USING VALUES VARIADIC VERBOSE WHEN WHERE WINDOW WITH
"""
KEYWORDS: Final = frozenset(_WORDS.split())
_POSTGRES: Final = """
    CURRENT_CATALOG CURRENT_ROLE CURRENT_SCHEMA CURRENT_USER GRANT LOCALTIME LOCALTIMESTAMP SESSION_USER USER
"""
POSTGRES_KEYWORDS: Final = KEYWORDS | frozenset(_POSTGRES.split())

MOST_COUNTED: Final = 1_000_000
"""The most rows of a table that are counted."""


_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_LOWER: Final = re.compile(r"[a-z_][a-z0-9_]*\Z")
_LONGEST: Final = 40
_LONGEST_COMMENT: Final = 200
_LONGEST_LINE: Final = 2_000
_ROOM: Final = LONGEST_MESSAGE - 1_200  # characters; the rest is for the first lines and the last
_ALL: Final = 1_000_000
_PARTS: Final = (
    (_ALL, _ALL, ""),
    (1, _ALL, "one value of each column"),
    (0, _ALL, "no values"),
    *((0, most, f"at most {most} columns of a table and no values") for most in (100, 30, 10, 3, 0)),
)
"""The number of values of a column and columns of a table that are shown, and a phrase for that."""


def sql_name(dialect: str) -> str:
    """The name that sqlglot has for a dialect."""
    return "postgres" if dialect.lower() == "postgresql" else dialect.lower()


def title_of(name: str) -> str:
    """A dialect as people write it, such as ``SQLite`` for ``sqlite``; the name itself if it is unknown."""
    return TITLES.get(name.lower(), name)


def schema_text(tables: Sequence[Mapping[str, Any]], dialect: str, version: str = "") -> str:
    """The schema as text, in part (without values first) if it is too long, and what differs in its SQL."""
    kinds = [_number(sum(each["kind"] == kind for each in tables), kind) for kind in ("table", "view")]
    head = ", ".join([title_of(dialect), *filter(None, kinds)])
    for values, columns, part in _PARTS:
        text = "\n\n".join("\n".join(_table(table, values, columns)) for table in tables)
        if len(text) <= _ROOM:
            head += f"; too long for one message, it is shown with {part}" if part else ""
            break
    else:
        text = text[: text.rindex("\n", 0, _ROOM)] + "\n(and more tables, too many for one message)"
    notes = "".join(f"- {line}\n" for _, line in DIFFERENCES.get(sql_name(dialect), ()))
    notes = f"\nThe SQL of {title_of(dialect)} {version}:\n{notes}" if notes and version else ""
    return f"{head}\n\n{text}\n{notes}"


class ExactName(str):
    """A name in a PostgreSQL database, which reads a name without quotes in lower case."""

    __slots__ = ()


def identifier(name: str) -> str:
    """A name as SQL takes it, in quotes where it needs them."""
    is_exact = isinstance(name, ExactName)
    plain, keywords = (_LOWER, POSTGRES_KEYWORDS) if is_exact else (_PLAIN, KEYWORDS)
    if plain.match(name) and name.upper() not in keywords:
        return name
    return '"' + printable(name).replace('"', '""') + '"'


def quoted(name: str) -> str:
    """A name as SQL takes any name."""
    return '"' + name.replace('"', '""') + '"'


def select(what: str, source: str, limit: int) -> str:
    """A query of the first rows of a table."""
    return f"SELECT {what} FROM {source} LIMIT {limit}"  # noqa: S608 - names are quoted, and run by what can only read


def _number(count: int, kind: str) -> str:
    return f"{count} {kind}{'' if count == 1 else 's'}" if count else ""


def _table(table: Mapping[str, Any], values: int, limit: int) -> list[str]:
    columns, keys = table["columns"], table["foreign_keys"]
    single = {key["columns"][0]: key for key in reversed(keys) if len(key["columns"]) == 1}
    primary = [each["name"] for each in sorted(columns, key=lambda each: each["primary"]) if each["primary"]]
    lines = [_title(table) + _comment(table)]
    for column in columns[:limit]:
        name, kind = column["name"], printable(column["type"])
        is_key = primary == [name]
        words = [f"{identifier(name)} {kind}".rstrip()]
        words += ["primary key"] if is_key else ["not null"] * column["not_null"]
        samples = _samples(column["samples"][:values], is_key=is_key)
        lines.append("  " + ", ".join(words) + _arrow(single.get(name)) + samples + _comment(column))
    if len(columns) > limit:
        lines.append(f"  (and {len(columns) - limit:,} more)")
    if len(primary) > 1:
        lines.append(f"  primary key {_list(primary)}")
    others = [key for key in keys if single.get(key["columns"][0]) is not key]
    lines += [f"  {_list(key['columns'])}{_arrow(key)}" for key in others]
    if not columns:
        lines.append("  (its columns cannot be read)")
    return [cut(line, _LONGEST_LINE) for line in lines]


def _title(table: Mapping[str, Any]) -> str:
    name = ".".join(map(identifier, [*filter(None, [table.get("schema")]), table["name"]]))
    if table["kind"] == "view":
        return f"view {name}"
    rows = table["rows"]
    if rows is None:
        return name
    if rows > MOST_COUNTED:
        return f"{name}, over {MOST_COUNTED:,} rows"
    return f"{name}, {rows:,} {'row' if rows == 1 else 'rows'}"


def _comment(described: Mapping[str, Any]) -> str:
    comment = described.get("comment")
    return f" -- {printable(cut(comment, _LONGEST_COMMENT))}" if comment else ""


def _arrow(key: Mapping[str, Any] | None) -> str:
    if key is None:
        return ""
    targets, table = key["targets"], identifier(key["table"])
    if len(key["columns"]) == 1 and len(targets) == 1:
        return f" -> {table}.{identifier(targets[0])}"
    return f" -> {table}" + (f" {_list(targets)}" if targets else "")


def _samples(values: Sequence[Any], *, is_key: bool) -> str:
    if not values or (is_key and all(type(value) is int for value in values)):
        return ""  # numbers that count the rows say nothing
    return ": " + ", ".join(map(_value, values))


def _value(value: object) -> str:
    if not isinstance(value, str):
        return printable(str(value))[: _LONGEST * 2]
    return literal(value)


def literal(text: str) -> str:
    """A string as SQL writes it, on one line and cut to forty characters."""
    return "'" + printable(cut(text, _LONGEST)).replace("'", "''") + "'"


def _list(names: Iterable[str]) -> str:
    return f"({', '.join(map(identifier, names))})"


_MOST_ROWS: Final = 50
_MOST_COLUMNS: Final = 100
_NOTES: Final = 200  # characters kept for the notes below the rows
_LONGEST_ERROR: Final = 4_000
_LONGEST_CELL: Final = 100
DROPS: Final = "divides whole numbers and drops the rest"
"""In the issue of a statement that does; see ``whole_divisions``."""


def validate_results(results: object) -> dict[str, Any]:
    """Check what ``SqlDatabase.execute`` returned; never raises. One without rows is valid, with an issue."""
    found: Mapping[str, Any] = results if isinstance(results, Mapping) else {}
    data = found.get("data")
    rows: Sequence[Any] = data if isinstance(data, (list, tuple)) else ()
    issues = [] if rows else ["No results returned"]
    problem = ""
    if not isinstance(results, Mapping):
        problem = f"No results to check: got {type(results).__name__}; run execute_sql first"
    elif not found.get("success", True):
        problem = f"Execution error: {found.get('error')}"[:_LONGEST_ERROR]
    elif data is not rows:
        problem = f"Malformed results: data must be a list of rows, got {type(data).__name__}"
    elif found.get("row_count", len(rows)) != len(rows):
        problem = f"Malformed results: row_count is not the number of rows, {len(rows)}"
    elif not all(isinstance(row, (list, tuple, Mapping)) for row in rows):
        problem = "Malformed results: each row must be a list"
    issues += [problem] if problem else []
    return {"is_valid": not problem, "has_results": bool(rows), "row_count": len(rows), "issues": issues}


def table_text(answer: Mapping[str, Any]) -> str:
    """The rows of a successful answer as a model reads them: one line per row, bounded."""
    rows, count, columns = answer["data"], answer["row_count"], answer["columns"]
    lines = [" | ".join(map(_cell_text, columns[:_MOST_COLUMNS]))]
    room = LONGEST_MESSAGE - _NOTES - len(lines[0])
    for row in rows[:_MOST_ROWS]:
        values = list(row.values() if isinstance(row, Mapping) else row)
        line = " | ".join(map(_cell, values[:_MOST_COLUMNS]))
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    shown = len(lines) - 1
    if not rows:
        lines.append("0 rows")
    elif answer["truncated"]:
        lines.append(f"({shown} of more than {count:,} rows; ask for less, or aggregate)")
    elif count > shown:
        lines.append(f"({shown} of {count:,} rows; ask for less, or aggregate)")
    if len(columns) > _MOST_COLUMNS:
        lines.append(f"({_MOST_COLUMNS} of {len(columns):,} columns; select the ones that you need)")
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"<blob, {len(value):,} {'byte' if len(value) == 1 else 'bytes'}>"
    return _cell_text(value)


def _cell_text(value: object) -> str:
    return printable(cut(value if isinstance(value, str) else str(value), _LONGEST_CELL)).replace("|", "\\|")
