"""The three tools of a database, as a model calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from planning.agent.sql.results import table_text
from planning.tools import ErrorKind, Tool, ToolExample, ToolResult

if TYPE_CHECKING:
    from planning.agent.sql.database import SqlDatabase

__all__ = ["database_tools", "look_tool"]

_DIALECTS: Final = {"sqlite": "SQLite", "duckdb": "DuckDB"}
_SCHEMA: Final = (
    "Read the schema of the {} database: its tables and views with their columns, types, keys and row "
    "counts, and a few values of each column. Call it before you write SQL."
)
_EXECUTE: Final = (
    "Run one SELECT on the {} database and read its rows. Only queries that read are run: one statement, at "
    "most {:,} rows, at most {:g} seconds. An error says what to change."
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
_TOLD: Final = {
    "parameter": "I could not put that into a query that works.",
    "timeout": "That took too long. Could you ask for less?",
}


def database_tools(database: SqlDatabase) -> tuple[Tool, Tool, Tool]:
    """The tools ``get_schema``, ``execute_sql`` and ``validate_results`` of a database."""
    name = _DIALECTS[database.dialect]

    def get_schema(query: str | None = None) -> str:
        """Get the schema.

        Args:
            query: What is to be found out; the whole schema is given whatever it is.
        """
        return database.get_schema(query)

    def execute_sql(sql: str) -> ToolResult:
        """Run a query.

        Args:
            sql: One SELECT, which may begin WITH.
        """
        answer = database.execute(sql)
        if answer["success"]:
            return ToolResult(True, table_text(answer), answer, elapsed=answer["elapsed"])
        error, code = answer["error"], answer["code"]
        return ToolResult(
            False, error, answer, error, _TOLD.get(code, error), answer["elapsed"], ErrorKind(code)
        )

    def validate_results(query: Any = None, sql: Any = None, results: Any = None) -> dict[str, Any]:
        """Check results.

        Args:
            query: The question.
            sql: The query that was run.
            results: What execute_sql gave.
        """
        return database.validate_results(query, sql, results)

    return (
        Tool("get_schema", _SCHEMA.format(name), get_schema, examples=(_SCHEMA_EXAMPLE,)),
        Tool(
            "execute_sql",
            _EXECUTE.format(name, database.max_rows, database.timeout),
            execute_sql,
            examples=(ToolExample({"sql": _QUERY}, "cities\n2"),),
        ),
        Tool("validate_results", _VALIDATE, validate_results, examples=(_VALIDATE_EXAMPLE,)),
    )


def look_tool(database: SqlDatabase) -> Tool:
    """What finds out why a statement found nothing; for the graph, not for a model."""
    return Tool(
        "missing_values",
        "Say which texts that a query compares columns with are nowhere in them, and what is instead.",
        database.missing_values,
    )
