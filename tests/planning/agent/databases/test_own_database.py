"""A graph over any database with ``dialect``, ``get_schema`` and ``execute``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plan_findings import stored_values, with_outcomes
from readonly_files import make
from syrupy.assertion import SnapshotAssertion

from planning import Toolbox
from planning.agent import Database, SqlDatabase, build_text_to_sql_graph
from planning.agent.databases.base import database_tools

COUNT = "SELECT count(*) AS n FROM stars"


class Stars:
    """A database that is neither of those of this package: of two methods and a dialect."""

    dialect = "postgresql"

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def get_schema(self) -> str:
        return "CREATE TABLE stars (name TEXT, magnitude REAL);"

    def execute(self, sql: str) -> Any:
        assert sql == COUNT
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer


def asked(answer: Any) -> dict[str, Any]:
    """The final state of a question to a database that answers this."""
    stars: Database = Stars(answer)
    graph = build_text_to_sql_graph(stars, lambda: COUNT)
    final: dict[str, Any] = graph.invoke({"resolved_query": "How many?"})
    return final


def test_a_hand_made_database_is_asked() -> None:
    answer = {"success": True, "data": [(2,)], "columns": ["n"]}
    final = asked(answer)
    assert (final["success"], final["answer"]) == (True, "n: 2")
    assert final["schema"] == Stars(None).get_schema()
    assert final["execution_result"] == {"row_count": 1, "truncated": False, "error": None, **answer}
    assert final["validation_result"] == {"is_valid": True, "has_results": True, "row_count": 1, "issues": []}


def test_success_is_not_claimed_where_it_did_not_succeed(snapshot: SnapshotAssertion) -> None:
    def outcome(answer: Any) -> str:
        final = asked(answer)
        assert (final["success"], final["execution_result"]) == (False, None)
        return str(final["error"])

    assert with_outcomes(stored_values(snapshot), outcome) == snapshot
    assert outcome(OSError("no route to host")) == "Tool execute_sql: no route to host"


def test_a_failed_statement_has_a_code_and_words_for_the_user(snapshot: SnapshotAssertion) -> None:
    def outcome(answer: dict[str, Any]) -> str:
        _, execute_sql, _ = database_tools(Stars({**answer, "elapsed": 1.5}))
        result = Toolbox([execute_sql]).call("execute_sql", {"sql": COUNT})
        assert (result.success, result.value) == (False, {**answer, "elapsed": 1.5})
        assert result.error == execute_sql.execute(sql=COUNT)["error"] == result.message
        return f"{result.code}: {result.message} ({result.user_message})"

    assert with_outcomes(stored_values(snapshot), outcome) == snapshot


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
        get_schema, _, validate = database.tools()
        assert get_schema.execute(query="How many?")["result"] == database.get_schema()
        assert validate.execute()["result"]["is_valid"] is False


def test_its_tools_name_the_dialect_and_only_bounds_that_it_has(snapshot: SnapshotAssertion) -> None:
    tools = [*database_tools(Stars(None)), SqlDatabase("a.duckdb", timeout=2.5).tools()[1]]
    assert "".join(f"{tool.name}: {tool.description}\n" for tool in tools) == snapshot
