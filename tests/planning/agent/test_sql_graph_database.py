"""The graph over a real file: what it reads, runs, repairs and refuses."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent_samples import FINE, plan_of
from readonly_files import make

from planning.agent import SqlDatabase, build_text_to_sql_graph
from planning.tools.ledger import tool_calls
from session import Session

QUESTION = "How many customers live in each city?"
PER_CITY = "SELECT city, count(*) AS customers FROM customers GROUP BY city ORDER BY city"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqlDatabase]:
    """A few customers."""
    script = """
        CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT);
        INSERT INTO customers (name, city)
        VALUES ('Ada', 'London'), ('Grace', 'New York'), ('Alan', 'London');
    """
    with SqlDatabase(make(tmp_path / "shop.db", script)) as opened:
        yield opened


def test_a_question_is_answered_from_a_file(database: SqlDatabase, session: Session) -> None:
    graph = build_text_to_sql_graph(database, lambda question, schema: PER_CITY, session=session)
    final = graph.invoke({"resolved_query": QUESTION})
    result = final["execution_result"]
    assert (result["columns"], result["data"]) == (["city", "customers"], [["London", 2], ["New York", 1]])
    assert (final["success"], final["answer"], final["error"]) == (True, "2 rows.", None)
    assert final["validation_result"] == FINE | {"row_count": 2}
    assert final["schema"].startswith("SQLite, 1 table\n\ncustomers, 3 rows\n  id INTEGER, primary key\n")
    assert plan_of(session) == "\n".join(
        [
            f"{QUESTION} (completed, 4 of 4 done)",
            "S001 done: Read the schema",
            "  - SQLite, 1 table",
            "S002 done: Write the SQL",
            f"  - {PER_CITY}",
            "S003 done: Run the SQL",
            "  - 2 rows",
            "S004 done: Check the results",
        ]
    )
    assert {call.outcome for call in tool_calls(session)} == {"success"}


@pytest.mark.parametrize("statement", ["DELETE FROM customers", "SELECT 1; DROP TABLE customers", "VACUUM"])
@pytest.mark.usefixtures("database")
def test_a_statement_that_would_write_is_never_run_and_never_a_success(
    tmp_path: Path, statement: str
) -> None:
    before = (tmp_path / "shop.db").read_bytes()
    graph = build_text_to_sql_graph(str(tmp_path / "shop.db"), lambda: statement)
    final = graph.invoke({"resolved_query": QUESTION})
    assert (final["success"], final["execution_result"]) == (False, None)
    assert [attempt["sql"] for attempt in final["attempts"]] == [statement] * 3
    assert (tmp_path / "shop.db").read_bytes() == before


@pytest.mark.parametrize(
    ("sql", "problem", "data"),
    [
        ("SELECT name FROM customers WHERE city = 'london'", "no rows", [["Ada"], ["Alan"]]),
        ("SELECT count(*) FROM customers WHERE city = 'london'", "nothing but 0", [[2]]),
        ("SELECT max(id) FROM customers WHERE city = 'london'", "nothing but NULL", [[3]]),
    ],
)
def test_values_that_no_row_has_go_back_to_the_generator(
    database: SqlDatabase, sql: str, problem: str, data: list[Any]
) -> None:
    statements = iter([sql, sql.replace("london", "London")])
    final = build_text_to_sql_graph(database, lambda: next(statements)).invoke({"resolved_query": "Who?"})
    assert final["execution_result"]["data"] == data
    error = f"it ran and returned {problem}: customers.city has no 'london'; it has 'London'"
    assert [attempt["error"] for attempt in final["attempts"]] == [error]
