"""What the tests of the graphs share: the three tools of a small shop, and its questions and answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from planning import Plan
from planning.agent import build_text_to_sql_graph
from planning.plan.render import plan_text
from session import Session, select_latest

QUESTION = "How many customers are there?"
COUNT = "SELECT count(*) AS n FROM customers"
SCHEMA = (
    "SQLite, 2 tables\n\ncustomers, 3 rows\n  name TEXT: 'Ada', 'Grace'\n\norders, 4 rows\n  total REAL\n"
)


def rows(*data: list[Any], columns: list[str] | None = None) -> dict[str, Any]:
    """The result of ``execute_sql`` for a statement that ran."""
    given = {"data": list(data), "columns": ["n"] if columns is None else columns, "row_count": len(data)}
    return {"success": True, **given, "truncated": False, "error": None}


def failing(error: str, code: str = "parameter") -> dict[str, Any]:
    return {**rows(columns=[]), "success": False, "error": error, "code": code}


class _Turns(list[Any]):
    """Answers in turn, other than an answer that is a list."""


def in_turn(*answers: Any) -> list[Any]:
    return _Turns(answers)


class ShopTools:
    """The tools, which note their arguments, and give these answers in turn.

    The last answer is given from then on. An exception among them is raised.
    """

    def __init__(self, *, schema: Any = SCHEMA, executed: Any = None, verdict: Any = None) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        executed = rows([3]) if executed is None else executed
        verdict = FINE if verdict is None else verdict
        answers = {"get_schema": schema, "execute_sql": executed, "validate_results": verdict}
        self._turns = {key: each if type(each) is _Turns else in_turn(each) for key, each in answers.items()}

    def tools(self) -> dict[str, Callable[..., Any]]:
        def get_schema(query: str | None = None) -> Any:
            """Read the schema."""
            return self._next("get_schema", query=query)

        def execute_sql(sql: str) -> Any:
            """Run a statement."""
            return self._next("execute_sql", sql=sql)

        def validate_results(query: str, sql: str, results: Any) -> Any:
            """Check the results."""
            return self._next("validate_results", query=query, sql=sql, results=results)

        return {each.__name__: each for each in (get_schema, execute_sql, validate_results)}

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    @property
    def statements(self) -> list[str]:
        return [given["sql"] for name, given in self.calls if name == "execute_sql"]

    def _next(self, name: str, **given: Any) -> Any:
        self.calls.append((name, given))
        turns = self._turns[name]
        answer = turns[0] if len(turns) == 1 else turns.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def called(state: Mapping[str, Any]) -> list[tuple[str, bool]]:
    return [(call["tool"], call["success"]) for call in state["tool_calls"]]


def plan_of(session: Session) -> str:
    plan = select_latest(session, Plan)
    return "" if plan is None else plan_text(plan)


def shown(state: Mapping[str, Any]) -> dict[str, Any]:
    """A final state without what is long or differs from run to run."""
    return {key: value for key, value in state.items() if key not in {"schema", "tool_calls"}}


FINE = {"is_valid": True, "has_results": True, "row_count": 1, "issues": []}
FINAL: dict[str, Any] = {
    "resolved_query": QUESTION,
    "asked_query": QUESTION,
    "sql_query": COUNT,
    "execution_result": rows([3]),
    "validation_result": FINE,
    "reflection": None,
    "next_action": "complete",
    "iteration": 5,
    "max_iterations": 12,
    "is_complete": True,
    "attempts": [],
    "needs_user_input": False,
    "input_request": None,
    "error": None,
    "user_message": None,
    "success": True,
    "answer": "n: 3",
}


def graph_of(shop: ShopTools | None = None, generator: Any = None, **options: Any) -> Any:
    return build_text_to_sql_graph((shop or ShopTools()).tools(), generator or (lambda: COUNT), **options)


async def awrite(question: str) -> str:
    await asyncio.sleep(0)
    return COUNT
