"""The one table of databases: their names, and how their files are recognized and opened.

A new database is a row here and a class that implements ``agent.databases.base.Database``. A new kind of file
for ``SqlDatabase`` is a row and a ``DatabaseFile``, which ``agent.databases.files`` opens.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["DIALECTS", "FILES", "FILE_KINDS", "Dialect", "title_of"]


class Dialect(NamedTuple):
    """A database, and the SQL that it takes.

    Attributes:
        name: How code names it, such as ``sqlite``.
        title: How people write it.
        aliases: Other names of it.
        endings: The endings of its files, with the dot.
        log: The ending that is added to a file's path for the file that takes new changes first. Only the
            databases with one are read by ``SqlDatabase``.
        mark: The bytes 8 to 11 of its files; without any, it is the database of all other files.
        begins: The words that a query may begin with, beside SELECT, VALUES and a bracket.
        takes_brackets: Whether it takes a SELECT in brackets at the top of a statement.
    """

    name: str
    title: str
    aliases: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    log: str = ""
    mark: bytes = b""
    begins: tuple[str, ...] = ()
    takes_brackets: bool = True


_ROWS: Final = (
    Dialect("sqlite", "SQLite", log="-wal", takes_brackets=False),
    Dialect(
        "duckdb",
        "DuckDB",
        endings=(".duckdb", ".ddb"),
        log=".wal",
        mark=b"DUCK",
        begins=("FROM", "TABLE", "PIVOT", "UNPIVOT"),
    ),
    Dialect("postgresql", "PostgreSQL", aliases=("postgres",)),
    Dialect("mysql", "MySQL"),
)
DIALECTS: Final = {name: each for each in _ROWS for name in (each.name, *each.aliases)}
"""The databases by each of their names."""

FILES: Final = tuple(each for each in _ROWS if each.log)
"""The databases that ``SqlDatabase`` reads, each a file."""


FILE_KINDS: Final = " or ".join(each.title for each in FILES)
"""Their names in a sentence."""


def title_of(name: str) -> str:
    """A dialect as people write it, such as ``SQLite`` for ``sqlite``; the name itself if it is unknown."""
    known = DIALECTS.get(name.lower())
    return name if known is None else known.title
