"""Strings in a statement that are in no row, and the values that the column has instead.

They are why most statements return nothing: a name in another case, another word for a status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any, Final

from sqlglot import exp

from planning.agent.sql.schema import identifier, literal
from planning.agent.sql.tree import Tree

_MOST: Final = 1_000
_FEW: Final = 8
_MOST_STRINGS: Final = 5


def missing_values(tree: Tree, rows_of: Callable[[str], Sequence[Sequence[Any]]]) -> list[str]:
    """Find the strings that a statement compares with a column which does not hold them.

    Args:
        tree: The statement.
        rows_of: Runs another statement.

    Returns:
        A line for each, such as "orders.status has no 'Open'; it has 'open'".
    """
    lines = []
    for table, column, text in list(dict.fromkeys(_comparisons(tree)))[:_MOST_STRINGS]:
        field, where = exp.column(column, quoted=True), exp.table_(table, quoted=True)
        held = exp.select(field).distinct().from_(where)
        if rows_of(held.where(field.eq(text)).limit(1).sql()):
            continue
        values = [row[0] for row in rows_of(held.limit(_MOST).sql()) if isinstance(row[0], str)]
        by_fold = {value.strip().casefold(): value for value in values}
        near = [by_fold[fold] for fold in get_close_matches(text.strip().casefold(), by_fold)]
        few = near or (values if len(values) <= _FEW else [])
        has = f"; it has {'' if near else 'only '}{', '.join(map(literal, few))}" if few else ""
        if values:
            lines.append(f"{identifier(table)}.{identifier(column)} has no {literal(text)}{has}")
    return lines


def _comparisons(tree: Tree) -> Iterator[tuple[str, str, str]]:
    """Each string that a column of a table is compared with by ``=`` or IN."""
    for node, _ in tree.all_of(exp.EQ, exp.In):
        if isinstance(node.this, exp.Column):
            _, source = tree.owner(node.this)
            for value in node.expressions if isinstance(node, exp.In) else [node.expression]:
                if source is not None and source.is_table and value.is_string:
                    yield source.title, node.this.name, value.name
