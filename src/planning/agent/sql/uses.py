"""Which tables a statement reads, judged by its tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from planning.agent.sql.guard import tokenize

__all__ = ["Use", "tables_used"]


@attrs.frozen
class Use:
    """A table that a statement reads, and its alias there."""

    table: Mapping[str, Any]
    alias: str

    def columns(self) -> list[str]:
        """The names of its columns."""
        return [column["name"] for column in self.table["columns"]]


def tables_used(sql: str, dialect: str, tables: Sequence[Mapping[str, Any]]) -> list[Use]:
    """The tables that a statement reads.

    Args:
        sql: The statement.
        dialect: ``sqlite`` or ``duckdb``.
        tables: The tables of the database, as a worker process reads them.
    """
    by_name = {table["name"].lower(): table for table in tables}
    tokens = tokenize(sql, dialect) or []
    words = [token.text for token in tokens]
    kinds = [token.token_type.name for token in tokens]
    uses = []
    for place, word in enumerate(words):
        table = by_name.get(word.lower())
        before = kinds[place - 1] if place else ""
        if table is None or before not in {"FROM", "JOIN", "COMMA", "DOT", "L_PAREN"}:
            continue
        after = place + 1 + (kinds[place + 1 : place + 2] == ["ALIAS"])
        is_named = kinds[after : after + 1] in (["VAR"], ["IDENTIFIER"])
        uses.append(Use(table, words[after] if is_named else table["name"]))
    return uses
