"""The schema of a database as a model reads it."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, takewhile
from typing import Any, Final

from planning.agent.sql.dialects import title_of
from planning.agent.sql.keywords import KEYWORDS
from planning.errors import LONGEST_MESSAGE, cut, printable

__all__ = ["MOST_COUNTED", "identifier", "literal", "quoted", "schema_text", "select"]

MOST_COUNTED: Final = 1_000_000
"""The most rows of a table that are counted."""


_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_LONGEST: Final = 40
_LONGEST_LINE: Final = 2_000
_ROOM: Final = LONGEST_MESSAGE - 300  # characters; the rest is for the first line and the last
_MORE: Final = 30  # characters that say how many columns are not shown


def schema_text(tables: Sequence[Mapping[str, Any]], dialect: str) -> str:
    """The schema as text, in part if the whole is too long for a model.

    Values are omitted first, then columns from the end of each table, then tables; the first line says so.

    Args:
        tables: The tables; see ``DatabaseFile.tables``.
        dialect: The database, such as ``sqlite``.
    """
    kinds = [_number(sum(each["kind"] == kind for each in tables), kind) for kind in ("table", "view")]
    head = ", ".join([title_of(dialect), *filter(None, kinds)])
    blocks, part = [_table(table) for table in tables], ""
    if _size(blocks) > _ROOM:
        blocks, part = [_table(table, values=1) for table in tables], "one value of each column"
    if _size(blocks) > _ROOM:
        blocks, part = [_table(table, values=0) for table in tables], "no values"
    if _size(blocks) > _ROOM:
        blocks, part = _cut(blocks)
    head += f"; too long for one message, it is shown with {part}" if part else ""
    return "\n\n".join([head, *map("\n".join, blocks)]) + "\n"


def _size(blocks: Sequence[Sequence[str]]) -> int:
    """The characters of all lines, with their ends."""
    return sum(len(line) + 1 for block in blocks for line in block) + len(blocks)


def _cut(blocks: Sequence[Sequence[str]]) -> tuple[list[list[str]], str]:
    """As many columns of each table as there is room for, the same number for all; and a phrase for it."""
    sizes = [list(accumulate(len(line) + 1 for line in block)) for block in blocks]
    longest = max(map(len, blocks))
    fits = bisect_right(
        range(longest),
        _ROOM,
        key=lambda most: sum(size[min(most, len(size) - 1)] + _MORE for size in sizes),
    )
    if fits:
        most = fits - 1
        cut = [list(block[: most + 1]) for block in blocks]
        for kept, block in zip(cut, blocks, strict=True):
            if len(block) > len(kept):
                kept.append(f"  (and {len(block) - len(kept):,} more)")
        return cut, f"at most {most:,} columns of a table and no values"
    room = takewhile(lambda size: size <= _ROOM, accumulate(size[0] + 1 for size in sizes))
    titles = [list(block[:1]) for block, _ in zip(blocks, room, strict=False)]
    titles.append([f"(and {len(blocks) - len(titles):,} more)"])
    return titles, "no columns"


def identifier(name: str) -> str:
    """A name as SQL takes it, in quotes where it needs them."""
    if _PLAIN.match(name) and name.upper() not in KEYWORDS:
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


def _table(table: Mapping[str, Any], *, values: int | None = None) -> list[str]:
    columns = table["columns"]
    single = {key["columns"][0]: key for key in reversed(table["foreign_keys"]) if len(key["columns"]) == 1}
    primary = [each["name"] for each in sorted(columns, key=lambda each: each["primary"]) if each["primary"]]
    unique = {names[0] for names in table["unique"] if len(names) == 1}
    lines = [_title(table)]
    for column in columns:
        name = column["name"]
        rules = _rules(column, is_key=primary == [name], is_unique=name in unique and primary != [name])
        samples = _samples(column["samples"][:values], is_key=primary == [name])
        lines.append("  " + rules + _arrow(single.get(name)) + samples)
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
