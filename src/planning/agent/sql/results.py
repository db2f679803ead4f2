"""Results of a query: checked, and as text for a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from planning.errors import LONGEST_MESSAGE, cut, printable

_MOST_ROWS: Final = 50
_MOST_COLUMNS: Final = 100
_NOTES: Final = 200  # characters kept for the notes below the rows
_LONGEST_ERROR: Final = 4_000
_LONGEST: Final = 100
DROPS: Final = "divides whole numbers and drops the rest"
"""In the issue of a statement that does; see ``whole_divisions``."""


def validate_results(results: object) -> dict[str, Any]:
    """Check what ``SqlDatabase.execute`` returned; never raises.

    Returns:
        ``{"is_valid", "has_results", "row_count", "issues"}``. A result without rows is valid, with an issue.
    """
    found: Mapping[str, Any] = results if isinstance(results, Mapping) else {}
    data = found.get("data")
    rows: Sequence[Any] = data if isinstance(data, (list, tuple)) else ()
    issues = [] if rows else ["No results returned"]
    problem = ""
    if not isinstance(results, Mapping):
        problem = f"No results to check: got {type(results).__name__}; run execute_sql first"
    elif not found.get("success", True):
        problem = f"Execution error: {found.get('error')}"[:_LONGEST_ERROR]
    elif data is not rows:
        problem = f"Malformed results: data must be a list of rows, got {type(data).__name__}"
    elif found.get("row_count", len(rows)) != len(rows):
        problem = f"Malformed results: row_count is not the number of rows, {len(rows)}"
    elif not all(isinstance(row, (list, tuple, Mapping)) for row in rows):
        problem = "Malformed results: each row must be a list"
    issues += [problem] if problem else []
    return {"is_valid": not problem, "has_results": bool(rows), "row_count": len(rows), "issues": issues}


def table_text(answer: Mapping[str, Any]) -> str:
    """The rows of a successful answer as a model reads them: one line per row, bounded."""
    rows, count, columns = answer["data"], answer["row_count"], answer["columns"]
    lines = [" | ".join(map(_cell_text, columns[:_MOST_COLUMNS]))]
    room = LONGEST_MESSAGE - _NOTES - len(lines[0])
    for row in rows[:_MOST_ROWS]:
        values = list(row.values() if isinstance(row, Mapping) else row)
        line = " | ".join(map(_cell, values[:_MOST_COLUMNS]))
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    shown = len(lines) - 1
    if not rows:
        lines.append("0 rows")
    elif answer["truncated"]:
        lines.append(f"({shown} of more than {count:,} rows; ask for less, or aggregate)")
    elif count > shown:
        lines.append(f"({shown} of {count:,} rows; ask for less, or aggregate)")
    if len(columns) > _MOST_COLUMNS:
        lines.append(f"({_MOST_COLUMNS} of {len(columns):,} columns; select the ones that you need)")
    return "\n".join(lines)


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"<blob, {len(value):,} {'byte' if len(value) == 1 else 'bytes'}>"
    return _cell_text(value)


def _cell_text(value: object) -> str:
    return printable(cut(value if isinstance(value, str) else str(value), _LONGEST)).replace("|", "\\|")
