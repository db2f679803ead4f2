"""Statements that a database runs, and whose answer is not what was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from planning.agent.sql.aggregates import arbitrary_column
from planning.agent.sql.structure import structure

__all__ = ["trap"]


def trap(sql: str, dialect: str, tables: Callable[[], Sequence[Mapping[str, Any]] | None]) -> str | None:
    """Say why the answer to a statement is not what was asked, and what to write; None where it may be.

    Args:
        sql: The statement, which has run.
        dialect: ``sqlite`` or ``duckdb``.
        tables: Gives the tables that there are, as ``worker`` finds them; None where they cannot be read.
    """
    top = structure(sql, dialect)
    if top is None:
        return None
    return arbitrary_column(top, sql, tables) if dialect == "sqlite" else None
