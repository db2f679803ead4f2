"""The interface of a database for the agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from typing_extensions import TypeIs

from planning.agent.sql.schema import table_text, title_of
from planning.agent.sql.schema import validate_results as validate
from planning.tools import ErrorKind, Tool, ToolResult
from planning.tools.contract import ToolExample


class Database(Protocol):
    """A database, as a graph needs it: a ``SqlDatabase``, or any object with these three.

    A model writes the statements: ``execute`` must run only those that read.
    """

    @property
    def dialect(self) -> str:
        """The SQL that it takes, such as ``sqlite``, ``duckdb`` or ``postgresql``."""

    def get_schema(self) -> str:
        """The schema, as a model reads it."""

    def execute(self, sql: str) -> Mapping[str, Any]:
        """Run one statement.

        Returns:
            ``success``, ``data`` (a list of rows, each the list of its values) and ``columns`` (their names);
            ``truncated`` if there are more rows. On failure ``error``, which a model reads, and ``code``:
            ``parameter`` where the statement is wrong (also without a code), ``timeout`` or ``storage``.
        """


def is_database(value: object) -> TypeIs[Database]:
    """True if an object is a ``Database``: by its methods, as its dialect may have to be looked up."""
    return all(callable(getattr(value, name, None)) for name in ("get_schema", "execute"))


_SCHEMA: Final = (
    "Read the schema of the {} database: its tables and views with their columns, types, keys and row "
    "counts, and a few values of each column. Call it before you write SQL."
)
_EXECUTE: Final = (
    "Run one SELECT on the {} database and read its rows. Only queries that read are run: one statement{}. "
    "An error says what to change."
)
_VALIDATE: Final = (
    "Check what execute_sql gave: whether it succeeded, has rows, and is whole. Having no rows is an issue, "
    "but may be the right answer."
)
_QUERY: Final = "SELECT count(*) AS cities FROM cities"
_SCHEMA_EXAMPLE: Final = ToolExample(
    {}, "SQLite, 1 table\n\ncities, 2 rows\n  id INTEGER, primary key\n  name TEXT: 'Oslo', 'Bern'\n"
)
_VALIDATE_EXAMPLE: Final = ToolExample(
    {
        "query": "How many cities are there?",
        "sql": _QUERY,
        "results": {"success": True, "data": [[2]], "columns": ["cities"], "row_count": 1},
    },
    '{"is_valid":true,"has_results":true,"row_count":1,"issues":[]}',
)
_CODES: Final = frozenset(ErrorKind)
_NO_REASON: Final = "the database gave no reason"
_FOR_USERS: Final = {
    ErrorKind.PARAMETER: "I could not write a working query for that.",
    ErrorKind.TIMEOUT: "That took too long. Could you ask for less?",
}


def database_tools(database: Database) -> tuple[Tool, Tool, Tool]:
    """The tools ``get_schema``, ``execute_sql`` and ``validate_results`` of a database."""
    name = title_of(database.dialect)
    check = getattr(database, "validate_results", lambda _query, _sql, results: validate(results))
    most, seconds = getattr(database, "max_rows", None), getattr(database, "timeout", None)
    bounds = f", at most {most:,} rows, at most {seconds:g} seconds" if most and seconds else ""

    def get_schema(query: str | None = None) -> str:  # noqa: ARG001 - models pass the question
        """Get the schema."""
        return database.get_schema()

    def execute_sql(sql: str) -> ToolResult:
        """Run a query."""
        answer = dict(database.execute(sql))
        elapsed = answer.get("elapsed") or 0.0
        if answer.get("success") is True:
            rows = answer.get("data")
            if not (isinstance(rows, (list, tuple)) and isinstance(answer.get("columns"), (list, tuple))):
                raise TypeError(f"{type(database).__name__}.execute must return lists as data and columns")
            for name, known in (("row_count", len(rows)), ("truncated", False), ("error", None)):
                answer.setdefault(name, known)
            return ToolResult(True, table_text(answer), answer, elapsed=elapsed)
        error, code = str(answer.get("error") or _NO_REASON), answer.get("code")
        kind = ErrorKind(code) if isinstance(code, str) and code in _CODES else ErrorKind.PARAMETER
        return ToolResult(False, error, answer, error, _FOR_USERS.get(kind, error), elapsed, kind)

    def validate_results(query: Any = None, sql: Any = None, results: Any = None) -> dict[str, Any]:
        """Check results."""
        verdict: dict[str, Any] = check(query, sql, results)
        return verdict

    return (
        Tool("get_schema", _SCHEMA.format(name), get_schema, examples=(_SCHEMA_EXAMPLE,)),
        Tool(
            "execute_sql",
            _EXECUTE.format(name, bounds),
            execute_sql,
            examples=(ToolExample({"sql": _QUERY}, "cities\n2"),),
        ),
        Tool("validate_results", _VALIDATE, validate_results, examples=(_VALIDATE_EXAMPLE,)),
    )
