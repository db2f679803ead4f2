"""The schema of a database as a model reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from planning.agent.sql.dialects import title_of
from planning.agent.sql.keywords import KEYWORDS, POSTGRES_KEYWORDS
from planning.errors import LONGEST_MESSAGE, cut, printable

MOST_COUNTED: Final = 1_000_000
"""The most rows of a table that are counted."""


_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_LOWER: Final = re.compile(r"[a-z_][a-z0-9_]*\Z")
_LONGEST: Final = 40
_LONGEST_COMMENT: Final = 200
_LONGEST_LINE: Final = 2_000
_ROOM: Final = LONGEST_MESSAGE - 300  # characters; the rest is for the first line and the last
_ALL: Final = 1_000_000
_PARTS: Final = (
    (_ALL, _ALL, ""),
    (1, _ALL, "one value of each column"),
    (0, _ALL, "no values"),
    *((0, most, f"at most {most} columns of a table and no values") for most in (100, 30, 10, 3, 0)),
)
"""How many values of a column and columns of a table are shown, and a phrase for that."""


def schema_text(tables: Sequence[Mapping[str, Any]], dialect: str) -> str:
    """The schema as text, in part if the whole is too long for a model.

    Values are omitted first, then columns from the end of each table; the first line says so.

    Args:
        tables: The tables; see ``SqliteFile.tables``.
        dialect: The database, such as ``sqlite``.
    """
    kinds = [_number(sum(each["kind"] == kind for each in tables), kind) for kind in ("table", "view")]
    head = ", ".join([title_of(dialect), *filter(None, kinds)])
    for values, columns, part in _PARTS:
        text = "\n\n".join("\n".join(_table(table, values, columns)) for table in tables)
        if len(text) <= _ROOM:
            head += f"; too long for one message, it is shown with {part}" if part else ""
            break
    else:
        text = text[: text.rindex("\n", 0, _ROOM)] + "\n(and more tables, too many for one message)"
    return f"{head}\n\n{text}\n"


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
    """A query of the first rows of a table.

    Args:
        what: The columns.
        source: The table, with its name in quotes, or a query in brackets.
        limit: How many rows.
    """
    return f"SELECT {what} FROM {source} LIMIT {limit}"  # noqa: S608 - names are quoted, and run by what can only read


def _number(count: int, kind: str) -> str:
    return f"{count} {kind}{'' if count == 1 else 's'}" if count else ""


def _table(table: Mapping[str, Any], values: int, most: int) -> list[str]:
    columns, keys = table["columns"], table["foreign_keys"]
    single = {key["columns"][0]: key for key in reversed(keys) if len(key["columns"]) == 1}
    primary = [each["name"] for each in sorted(columns, key=lambda each: each["primary"]) if each["primary"]]
    lines = [_title(table) + _comment(table)]
    for column in columns[:most]:
        name, kind = column["name"], printable(column["type"])
        is_key = primary == [name]
        words = [f"{identifier(name)} {kind}".rstrip()]
        words += ["primary key"] if is_key else ["not null"] * column["not_null"]
        samples = _samples(column["samples"][:values], is_key=is_key)
        lines.append("  " + ", ".join(words) + _arrow(single.get(name)) + samples + _comment(column))
    if len(columns) > most:
        lines.append(f"  (and {len(columns) - most:,} more)")
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
