"""What is in a database, as a model reads it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from planning.agent.sql.keywords import KEYWORDS
from planning.agent.sql.worker.samples import MOST_COUNTED

__all__ = ["identifier", "printable", "schema_text"]

_NAMES: Final = {"sqlite": "SQLite", "duckdb": "DuckDB"}
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_LONGEST: Final = 40


def schema_text(facts: Mapping[str, Any], dialect: str) -> str:
    """Write down what ``worker`` found in a database."""
    tables = facts["tables"]
    kinds = [_number(sum(each["kind"] == kind for each in tables), kind) for kind in ("table", "view")]
    head = ", ".join([_NAMES[dialect], *filter(None, kinds)])
    return "\n\n".join([head, *map(_table, tables)]) + "\n"


def identifier(name: str) -> str:
    """A name as SQL takes it, in quotes where it needs them."""
    if _PLAIN.match(name) and name.upper() not in KEYWORDS:
        return name
    return '"' + printable(name).replace('"', '""') + '"'


def _number(count: int, kind: str) -> str:
    return f"{count} {kind}{'' if count == 1 else 's'}" if count else ""


def _table(table: Mapping[str, Any]) -> str:
    columns = table["columns"]
    single = {key["columns"][0]: key for key in reversed(table["foreign_keys"]) if len(key["columns"]) == 1}
    primary = [each["name"] for each in sorted(columns, key=lambda each: each["primary"]) if each["primary"]]
    unique = {names[0] for names in table["unique"] if len(names) == 1}
    lines = [_title(table)]
    for column in columns:
        name = column["name"]
        rules = _rules(column, is_key=primary == [name], is_unique=name in unique and primary != [name])
        lines.append("  " + rules + _arrow(single.get(name)) + _samples(column, is_key=primary == [name]))
    if len(primary) > 1:
        lines.append(f"  primary key {_list(primary)}")
    lines += [f"  unique {_list(names)}" for names in table["unique"] if len(names) > 1]
    lines += [
        f"  {_list(key['columns'])}{_arrow(key)}"
        for key in table["foreign_keys"]
        if single.get(key["columns"][0]) is not key
    ]
    if not columns:
        lines.append("  (its columns cannot be read)")
    return "\n".join(lines)


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


def _rules(column: Mapping[str, Any], *, is_key: bool, is_unique: bool) -> str:
    kind = printable(column["type"])
    words = [" ".join(filter(None, [identifier(column["name"]), kind]))]
    words += ["primary key"] * is_key
    words += ["not null"] * (column["not_null"] and not is_key)
    words += ["unique"] * is_unique
    words += ["generated"] * column["generated"]
    return ", ".join(words)


def _arrow(key: Mapping[str, Any] | None) -> str:
    if key is None:
        return ""
    targets, table = key["targets"], identifier(key["table"])
    if len(key["columns"]) == 1 and len(targets) == 1:
        return f" -> {table}.{identifier(targets[0])}"
    return f" -> {table}" + (f" {_list(targets)}" if targets else "")


def _samples(column: Mapping[str, Any], *, is_key: bool) -> str:
    values = column["samples"]
    if not values or (is_key and all(type(value) is int for value in values)):
        return ""  # numbers that count the rows say nothing
    return ": " + ", ".join(map(_value, values))


def _value(value: object) -> str:
    if not isinstance(value, str):
        return printable(str(value))[: _LONGEST * 2]
    text = value if len(value) <= _LONGEST else value[: _LONGEST - 3] + "..."
    return "'" + printable(text).replace("'", "''") + "'"


def _list(names: Iterable[str]) -> str:
    return f"({', '.join(map(identifier, names))})"


def printable(text: str) -> str:
    """A text on one line, with escapes for what a terminal would act on or not show."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
