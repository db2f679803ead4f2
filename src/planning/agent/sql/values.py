"""Values in a statement that no row has, and the ones that the column holds instead.

They are why most statements return nothing: a name in another case, another word for a status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from sqlglot import exp

from planning.agent.sql.schema import identifier, literal
from planning.agent.sql.tree import Tree, read

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
        tables: The tables of the database.
        execute: Runs a statement; see ``SqlDatabase.execute``.

    Returns:
        A line for each, such as "status has no 'Open'; it has 'open'".
    """
    tree = read(sql, dialect, tables)
    lines = dict[str, None]()
    for table, column, text in () if tree is None else _comparisons(tree):
        line = _missing(table, column, text, execute) if len(lines) < _MOST_LITERALS else None
        if line is not None:
            lines[line] = None
    return list(lines)


def _comparisons(tree: Tree) -> Iterator[tuple[Mapping[str, Any], str, str]]:
    """Each string that a column is compared with by ``=`` or IN, and the table of the column."""
    for node, select in tree.all_of(exp.EQ, exp.In):
        if isinstance(node.this, exp.Column):
            for value in node.expressions if isinstance(node, exp.In) else [node.expression]:
                for source in select.owners(node.this):
                    column = source.column(node.this.name)
                    if source.table is not None and column is not None and value.is_string:
                        yield source.table, column, value.name


def _missing(
    table: Mapping[str, Any], column: str, text: str, execute: Callable[[str], Mapping[str, Any]]
) -> str | None:
    """The line for a string that a column does not hold; None where it does, or that cannot be known."""
    name, schema = (
        table.get(part) and exp.to_identifier(table[part], quoted=True) for part in ("name", "schema")
    )
    field, where = exp.column(column, quoted=True), exp.Table(this=name, db=schema)
    found = execute(exp.select("1").from_(where).where(field.eq(text)).limit(1).sql())
    if not found["success"] or found["data"]:
        return None
    answer = execute(
        exp.select(field).distinct().from_(where).where(field.is_(exp.null()).not_()).limit(_MOST + 1).sql()
    )
    values = [row[0] for row in answer["data"] if isinstance(row[0], str)]
    if not values:
        return None
    line = f"{identifier(table['name'])}.{identifier(column)} has no {literal(text)}"
    near = _near(text, values)
    if near or len(values) <= _FEW:
        return f"{line}; it has {'' if near else 'only '}{', '.join(map(literal, near or values))}"
    return line


def _near(text: str, values: Sequence[str]) -> list[str]:
    folded = text.strip().casefold()
    same = [value for value in values if value.strip().casefold() == folded]
    by_fold = {value.casefold(): value for value in values}
    return same[:_FEW] or [by_fold[fold] for fold in get_close_matches(folded, by_fold, n=3, cutoff=0.7)]
