"""What came of a question, as its views tell it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs

from planning.cli.ask.table import MOST_ROWS, Table

__all__ = ["Outcome", "outcome_of", "row_notes"]


@attrs.frozen
class Outcome:
    """What came of a question.

    Attributes:
        kind: Whether it was answered, or is asked back.
        told: The question back, or why there is no answer.
        sql: The statement that was run last.
        columns: The names of the result's columns.
        rows: Its rows; None where there is no result.
        is_truncated: Whether there are more rows in the database.
    """

    kind: Literal["answered", "asks", "failed"]
    told: str
    sql: str | None
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]] | None
    is_truncated: bool


def outcome_of(state: Mapping[str, Any]) -> Outcome:
    """What the final state of the graph says."""
    is_answered = state.get("success") is True
    asks = not is_answered and bool(state.get("needs_user_input"))
    result = state.get("execution_result") or {}
    return Outcome(
        "answered" if is_answered else "asks" if asks else "failed",
        "" if is_answered else str(state.get("answer") or "There is no answer."),
        state.get("sql_query"),
        tuple(map(str, result.get("columns") or ())),
        result.get("data") or () if is_answered else None,
        bool(result.get("truncated")),
    )


def row_notes(outcome: Outcome, table: Table) -> list[str]:
    """What to say below the rows: how many there are, and what is not shown of them."""
    rows = outcome.rows or ()
    more = len(rows) - MOST_ROWS
    notes = [f"... {more:,} more {_noun('row', more)}"] if more > 0 else []
    if outcome.is_truncated:
        counted = f"the first {len(rows):,} {_noun('row', len(rows))}; there are more, see --max-rows"
    else:
        counted = f"{len(rows):,} {_noun('row', len(rows))}" if rows else "no rows"
    notes.append(counted)
    if table.shown < table.columns:
        notes.append(f"{table.shown} of {table.columns} columns had room; --json shows all of them")
    return notes


def _noun(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
