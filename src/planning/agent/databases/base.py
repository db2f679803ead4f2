"""What the agent needs of a database, and what ``SqlDatabase`` needs of one kind of file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from typing_extensions import TypeIs

__all__ = ["Database", "Engine", "Probe", "Tables", "is_database"]

Tables = Callable[[], Sequence[Mapping[str, Any]] | None]
"""Reads the tables of the database; None where they cannot be read."""

Probe = Callable[[str], str]
"""What the database says of a statement that it parses but does not run."""


class Database(Protocol):
    """What a graph needs of a database. ``SqlDatabase`` is one; any object with these three is another.

    A model writes the statements: ``execute`` must run only those that read.
    """

    @property
    def dialect(self) -> str:
        """The SQL that it takes, such as ``sqlite``, ``duckdb`` or ``postgresql``."""

    def get_schema(self) -> str:
        """What it holds, as a model reads it."""

    def execute(self, sql: str) -> Mapping[str, Any]:
        """Run one statement.

        Returns:
            ``success``, ``data`` (a list of rows, each the list of its values) and ``columns`` (their names);
            ``truncated`` where there are more rows. On failure ``error``, which a model reads, and ``code``:
            ``parameter`` where the statement is wrong (also without a code), ``timeout`` or ``storage``.
        """


def is_database(value: object) -> TypeIs[Database]:
    """Whether an object is a ``Database``: by its methods, as its dialect may have to be looked up."""
    return all(callable(getattr(value, name, None)) for name in ("get_schema", "execute"))


class Engine(Protocol):
    """What is special about one kind of file: the module of this package that its dialect names."""

    def explain(self, text: str, sql: str, tables: Tables, probe: Probe) -> str:
        """An error of the database in words that help to correct the statement."""

    def wrong_answer(self, sql: str, tables: Tables, /) -> str | None:
        """Why the answer to a statement that ran is not what was asked, and what to write; None if it is."""
