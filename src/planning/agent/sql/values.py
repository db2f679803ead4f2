"""Which values a statement asks for that no column holds, and which ones the column holds instead.

It is what makes most statements come back empty: a name in another case, a status by another word.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from planning.agent.sql.guard import tokenize
from planning.agent.sql.schema import identifier
from planning.agent.sql.uses import Use, tables_used
from planning.agent.sql.worker.sqlite_file import quoted

__all__ = ["missing_values"]

_MOST: Final = 1_000
_FEW: Final = 8
_LONGEST: Final = 40
_MOST_LITERALS: Final = 5


def missing_values(
    sql: str,
    dialect: str,
    tables: Sequence[Mapping[str, Any]],
    execute: Callable[[str], Mapping[str, Any]],
) -> list[str]:
    """Say of texts that a statement compares a column with, and that the column does not hold, what it holds.

    Args:
        sql: The statement.
        dialect: ``sqlite`` or ``duckdb``.
        tables: Those that there are, as ``worker`` finds them.
        execute: Runs a statement; see ``SqlDatabase.execute``.

    Returns:
        A line for each, such as "status has no 'Open'; it has 'open'".
    """
    uses = tables_used(sql, dialect, tables)
    told = dict[str, None]()
    for owner, name, text in _comparisons(sql, dialect):
        if len(told) == _MOST_LITERALS:
            break
        for use, column in _columns(uses, owner, name):
            line = _told(use, column, text, execute)
            if line is not None:
                told[line] = None
    return list(told)


def _comparisons(sql: str, dialect: str) -> Iterator[tuple[str | None, str, str]]:
    """Each text that a column is compared with by ``=`` or IN: the table where it is named, column, text."""
    tokens = tokenize(sql, dialect) or []
    kinds = [token.token_type.name for token in tokens]
    other = 0  # the last token that is neither a text nor a comma: the bracket, within IN ('a', 'b')
    for place, kind in enumerate(kinds):
        if kind not in {"STRING", "COMMA"}:
            other = place
        if kind != "STRING":
            continue
        before = other
        if kinds[before] == "L_PAREN" and kinds[before - 1] == "IN":
            before -= 2
        elif before == place - 1 and kinds[before] == "EQ":
            before -= 1
        else:
            continue
        if before < 0 or kinds[before] == "STRING":
            continue
        owner = tokens[before - 2].text if before > 1 and kinds[before - 1] == "DOT" else None
        yield owner, tokens[before].text, tokens[place].text


def _columns(uses: Sequence[Use], owner: str | None, name: str) -> Iterator[tuple[Use, str]]:
    """The columns that a name may mean."""
    seen = set()
    for use in uses:
        if owner is not None and owner.lower() not in {use.alias.lower(), use.table["name"].lower()}:
            continue
        for column in use.columns():
            if column.lower() == name.lower() and (use.table["name"], column) not in seen:
                seen.add((use.table["name"], column))
                yield use, column


def _told(use: Use, column: str, text: str, execute: Callable[[str], Mapping[str, Any]]) -> str | None:
    names = filter(None, [use.table.get("schema"), use.table["name"]])
    table, field = ".".join(map(quoted, names)), quoted(column)
    literal = "'" + text.replace("'", "''") + "'"
    found = execute(f"SELECT 1 FROM {table} WHERE {field} = {literal} LIMIT 1")  # noqa: S608 - quoted, and run by what can only read
    if not found["success"] or found["data"]:
        return None
    answer = execute(f"SELECT DISTINCT {field} FROM {table} WHERE {field} IS NOT NULL LIMIT {_MOST + 1}")  # noqa: S608 - as above
    values = [row[0] for row in answer["data"] if isinstance(row[0], str)]
    if not values:
        return None
    told = f"{identifier(use.table['name'])}.{identifier(column)} has no {_shown(text)}"
    near = _near(text, values)
    if near:
        return f"{told}; it has {', '.join(map(_shown, near))}"
    if len(values) <= _FEW:
        return f"{told}; it has only {', '.join(map(_shown, values))}"
    return told


def _near(text: str, values: Sequence[str]) -> list[str]:
    folded = text.strip().casefold()
    same = [value for value in values if value.strip().casefold() == folded]
    if same:
        return same[:_FEW]
    by_fold = {value.casefold(): value for value in values}
    return [by_fold[fold] for fold in get_close_matches(folded, by_fold, n=3, cutoff=0.7)]


def _shown(value: str) -> str:
    text = value if len(value) <= _LONGEST else value[: _LONGEST - 3] + "..."
    escaped = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)
    return "'" + escaped.replace("'", "''") + "'"
