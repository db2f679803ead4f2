"""Values in a statement that no row has, and the ones that the column holds instead.

They are why most statements return nothing: a name in another case, another word for a status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from planning.agent.sql.guard import tokenize
from planning.agent.sql.schema import identifier, literal, quoted
from planning.agent.sql.uses import Use, tables_used

__all__ = ["missing_values"]

_MOST: Final = 1_000
_FEW: Final = 8
_MOST_LITERALS: Final = 5


def missing_values(
    sql: str,
    dialect: str,
    tables: Sequence[Mapping[str, Any]],
    execute: Callable[[str], Mapping[str, Any]],
) -> list[str]:
    """Find the strings that a statement compares with a column which does not hold them.

    Args:
        sql: The statement.
        dialect: ``sqlite`` or ``duckdb``.
        tables: The tables of the database, as a worker process reads them.
        execute: Runs a statement; see ``SqlDatabase.execute``.

    Returns:
        A line for each, such as "status has no 'Open'; it has 'open'".
    """
    uses = tables_used(sql, dialect, tables)
    lines = dict[str, None]()
    for owner, name, text in _comparisons(sql, dialect):
        if len(lines) == _MOST_LITERALS:
            break
        for use, column in _columns(uses, owner, name):
            line = _missing(use, column, text, execute)
            if line is not None:
                lines[line] = None
    return list(lines)


def _comparisons(sql: str, dialect: str) -> Iterator[tuple[str | None, str, str]]:
    """Each string that a column is compared with by ``=`` or IN: the table if it is named, column, string."""
    tokens = tokenize(sql, dialect) or []
    kinds = [token.token_type.name for token in tokens]
    other = 0  # the last token that is neither a string nor a comma: the bracket of IN ('a', 'b')
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


def _missing(use: Use, column: str, text: str, execute: Callable[[str], Mapping[str, Any]]) -> str | None:
    """The line for a string that a column does not hold; None where it does, or that cannot be known."""
    names = filter(None, [use.table.get("schema"), use.table["name"]])
    table, field = ".".join(map(quoted, names)), quoted(column)
    written = "'" + text.replace("'", "''") + "'"
    found = execute(f"SELECT 1 FROM {table} WHERE {field} = {written} LIMIT 1")  # noqa: S608 - quoted, and run by what can only read
    if not found["success"] or found["data"]:
        return None
    answer = execute(f"SELECT DISTINCT {field} FROM {table} WHERE {field} IS NOT NULL LIMIT {_MOST + 1}")  # noqa: S608 - as above
    values = [row[0] for row in answer["data"] if isinstance(row[0], str)]
    if not values:
        return None
    line = f"{identifier(use.table['name'])}.{identifier(column)} has no {literal(text)}"
    near = _near(text, values)
    if near:
        return f"{line}; it has {', '.join(map(literal, near))}"
    if len(values) <= _FEW:
        return f"{line}; it has only {', '.join(map(literal, values))}"
    return line


def _near(text: str, values: Sequence[str]) -> list[str]:
    folded = text.strip().casefold()
    same = [value for value in values if value.strip().casefold() == folded]
    if same:
        return same[:_FEW]
    by_fold = {value.casefold(): value for value in values}
    return [by_fold[fold] for fold in get_close_matches(folded, by_fold, n=3, cutoff=0.7)]
