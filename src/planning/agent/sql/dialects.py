"""The known SQL dialects, with the display names of their databases."""

from __future__ import annotations

from typing import Final

TITLES: Final = {
    "sqlite": "SQLite",
    "duckdb": "DuckDB",
    "postgresql": "PostgreSQL",
    "postgres": "PostgreSQL",
    "mysql": "MySQL",
}
"""The names by their dialects."""


def title_of(name: str) -> str:
    """A dialect as people write it, such as ``SQLite`` for ``sqlite``; the name itself if it is unknown."""
    return TITLES.get(name.lower(), name)
