"""A graph over any database with ``dialect``, ``get_schema`` and ``execute``."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from readonly_files import make

from planning import Toolbox
from planning.agent import Database, SqlDatabase, build_text_to_sql_graph
from planning.agent.databases.base import database_tools

SCHEMA = "CREATE TABLE stars (name TEXT, magnitude REAL);"
COUNT = "SELECT count(*) AS n FROM stars"
QUESTION = "How many stars are there?"


class Stars:
    """A database that is neither of those of this package: of three methods, in memory."""

    dialect = "postgresql"

    def __init__(self) -> None:
        self.statements: list[str] = []

    def get_schema(self) -> str:
        return SCHEMA

    def execute(self, sql: str) -> Mapping[str, Any]:
        self.statements.append(sql)
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.executescript(SCHEMA)
            connection.executescript("INSERT INTO stars VALUES ('Vega', 0.03), ('Deneb', 1.25)")
            try:
                cursor = connection.execute(sql)
            except sqlite3.Error as error:
                return {"success": False, "error": str(error)}
            columns = [column[0] for column in cursor.description]
            return {"success": True, "data": cursor.fetchall(), "columns": columns}


class Broken(Stars):
    def __init__(self, answer: Any) -> None:
        super().__init__()
        self._answer = answer

    def execute(self, sql: str) -> Any:
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer


def test_a_hand_made_database_is_asked() -> None:
    stars: Database = Stars()
    final = build_text_to_sql_graph(stars, lambda: COUNT).invoke({"resolved_query": QUESTION})
    assert (final["success"], final["answer"]) == (True, "n: 2")
    assert final["schema"] == SCHEMA
    assert final["execution_result"] == {
        "row_count": 1,
        "truncated": False,
        "error": None,
        "success": True,
        "data": [(2,)],
        "columns": ["n"],
    }
    assert final["validation_result"] == {"is_valid": True, "has_results": True, "row_count": 1, "issues": []}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"success": False}, "Tool execute_sql: the database gave no reason"),
        ({"success": False, "error": "gone", "code": "storage"}, "Tool execute_sql: gone"),
        ({"success": False, "error": "odd", "code": "E42"}, "Tool execute_sql: odd"),
        ({"data": [[1]], "columns": ["n"]}, "Tool execute_sql: the database gave no reason"),
        ({"success": "yes"}, "Tool execute_sql: the database gave no reason"),
        (
            {"success": True, "rows": [[1]]},
            "Tool execute_sql: Broken.execute must return lists as data and columns",
        ),
        (
            {"success": True, "data": [[1]]},
            "Tool execute_sql: Broken.execute must return lists as data and columns",
        ),
        (None, "Tool execute_sql: 'NoneType' object is not iterable"),
        (OSError("no route to host"), "Tool execute_sql: no route to host"),
    ],
)
def test_success_is_not_claimed_where_it_did_not_succeed(answer: Any, error: str) -> None:
    final = build_text_to_sql_graph(Broken(answer), lambda: COUNT).invoke({"resolved_query": QUESTION})
    assert (final["success"], final["execution_result"], final["error"]) == (False, None, error)


@pytest.mark.parametrize(
    ("answer", "code", "message", "for_the_user"),
    [
        ({"error": "odd", "code": "E42"}, "parameter", "odd", "I could not write a working query for that."),
        ({"error": "odd", "code": 7}, "parameter", "odd", "I could not write a working query for that."),
        ({"error": 7, "code": "timeout"}, "timeout", "7", "That took too long. Could you ask for less?"),
        ({"error": "gone", "code": "storage", "success": 1}, "storage", "gone", "gone"),
    ],
)
def test_a_failed_statement_has_a_code_and_words_for_the_user(
    answer: dict[str, Any], code: str, message: str, for_the_user: str
) -> None:
    _, execute_sql, _ = database_tools(Broken({**answer, "elapsed": 1.5}))
    result = Toolbox([execute_sql]).call("execute_sql", {"sql": COUNT})
    assert (result.success, result.code, result.message, result.user_message, result.error, result.value) == (
        False, code, message, for_the_user, message, {**answer, "elapsed": 1.5},
    )  # fmt: skip
    assert execute_sql.execute(sql=COUNT)["error"] == message


def test_the_tool_that_runs_statements_names_the_bounds_of_a_database_that_has_them() -> None:
    _, execute_sql, _ = SqlDatabase("a.duckdb", max_rows=2_000, timeout=2.5).tools()
    assert execute_sql.description == (
        "Run one SELECT on the DuckDB database and read its rows. Only queries that read are run: one"
        " statement, at most 2,000 rows, at most 2.5 seconds. An error says what to change."
    )


def test_the_tools_answer_as_their_examples_say(tmp_path: Path) -> None:
    script = """
        CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT);
        INSERT INTO cities VALUES (1, 'Oslo'), (2, 'Bern');
    """
    with SqlDatabase(make(tmp_path / "cities.db", script)) as database:
        for tool in database.tools():
            (example,) = tool.examples
            message = Toolbox([tool]).call(tool.name, dict(example.arguments)).message
            assert message.partition("\nThe SQL of")[0] == example.message


def test_its_tools_name_the_dialect_and_no_bounds_that_it_does_not_have() -> None:
    get_schema, execute_sql, validate_results = database_tools(Stars())
    assert validate_results.description == (
        "Check what execute_sql gave: whether it succeeded, has rows, and is whole. Having no rows is an"
        " issue, but may be the right answer."
    )
    assert get_schema.description == (
        "Read the schema of the PostgreSQL database: its tables and views with their columns, types, keys and"
        " row counts, and a few values of each column. Call it before you write SQL."
    )
    assert execute_sql.description == (
        "Run one SELECT on the PostgreSQL database and read its rows. Only queries that read are run: one"
        " statement. An error says what to change."
    )
