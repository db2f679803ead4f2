"""Results of a query: checked, and as text for a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from planning.errors import LONGEST_MESSAGE, cut, printable

__all__ = ["table_text", "validate_results"]

_MOST_ROWS: Final = 50
_MOST_COLUMNS: Final = 100
_NOTES: Final = 200  # characters kept for the notes below the rows
_LONGEST_ERROR: Final = 4_000
_LONGEST: Final = 100


def validate_results(results: object) -> dict[str, Any]:
    """Check what ``SqlDatabase.execute`` returned; never raises.

    Returns:
        ``{"is_valid", "has_results", "row_count", "issues"}``. A result without rows is valid, with an issue.
    """
    try:
        return _validated(results)
    except Exception:  # noqa: BLE001 - any object may be passed in, and its methods may raise anything
        issue = f"Malformed results: a {type(results).__name__} that cannot be read"
        return {"is_valid": False, "has_results": False, "row_count": 0, "issues": [issue]}


def _validated(results: object) -> dict[str, Any]:
    data = results.get("data") if isinstance(results, Mapping) else None
    rows: Sequence[Any] = data if isinstance(data, (list, tuple)) else ()
    issues, is_valid = [], True
    if not isinstance(results, Mapping):
        issues.append(f"No results to check: got {type(results).__name__}; run execute_sql first")
        is_valid = False
    elif not results.get("success", True):
        issues.append(f"Execution error: {results.get('error')}"[:_LONGEST_ERROR])
        is_valid = False
    else:
        wrong = list(_disagreements(results, data))
        is_valid = not wrong
        issues.extend(wrong)
    if not rows:
        issues.insert(0, "No results returned")
    return {"is_valid": is_valid, "has_results": bool(rows), "row_count": len(rows), "issues": issues}


def _disagreements(results: Mapping[Any, Any], data: object) -> list[str]:
    """Contradictions between the parts of a result."""
    if not isinstance(data, (list, tuple)):
        return [f"Malformed results: data must be a list of rows, got {type(data).__name__}"]
    issues = []
    count = results.get("row_count", len(data))
    if type(count) is not int or count != len(data):
        issues.append(f"Malformed results: row_count is {_short(count)}, but data has {len(data)} rows")
    columns = results.get("columns")
    if columns is None:
        return issues  # rows that are mappings need none
    if not isinstance(columns, (list, tuple)):
        issues.append(f"Malformed results: columns must be a list of names, got {type(columns).__name__}")
        return issues
    width = len(columns)
    for number, row in enumerate(data):
        if type(row) is not list and not isinstance(row, (list, tuple, Mapping)):
            issues.append(f"Malformed results: row {number} must be a list, got {type(row).__name__}")
            break
        if len(row) != width and not isinstance(row, Mapping):  # its names are unique
            issues.append(f"Malformed results: row {number} has {len(row)} values for {width} columns")
            break
    return issues


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


def _short(value: object) -> str:
    return str(value) if type(value) is int else f"a value of type {type(value).__name__}"
