"""The interface of a database for the agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from typing_extensions import TypeIs


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
