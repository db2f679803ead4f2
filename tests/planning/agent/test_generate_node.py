"""The generator in its node: whatever it is and does, the update says what came of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from agent_samples import COUNT, QUESTION, SCHEMA, rows

from planning.agent.generate import ASKS, generator_tool
from planning.agent.nodes import GenerateSql, run
from planning.tools import StorageUnavailable, ToolError, ToolValidationError
from planning.tools.errors import UserInputNeeded
from session import Session, ToolFailed, ToolInvoked

STATE: dict[str, Any] = {"resolved_query": QUESTION, "schema": SCHEMA, "attempts": [], "iteration": 2}
FAILED = [{"sql": COUNT, "error": "no such column: n"}]


def written(generator: Any, **more: Any) -> Any:
    """The update by a generator."""
    return run(node(generator), {**STATE, **more})


def node(generator: Any, clarify: Any = None, timeout: float | None = 5.0) -> GenerateSql:
    """Its node."""
    return GenerateSql(generator_tool(generator, timeout), clarify)


def unwritten(error: str, told: str | None = None) -> dict[str, Any]:
    """The update where there is no statement."""
    told = error if told is None else told
    return {
        "error": f"Tool generate_sql: {error}",
        "user_message": told,
        "attempts": [{"sql": None, "error": told}],
    }


def asked(request: str) -> dict[str, Any]:
    """The update that asks the user."""
    return {"needs_user_input": True, "input_request": request, "is_complete": True}


def raising(error: BaseException) -> Callable[[], str]:
    """A generator that fails."""

    def write() -> str:
        raise error

    return write


async def awaited(question: str) -> str:
    await asyncio.sleep(0)
    return COUNT


@pytest.mark.parametrize("timeout", [5.0, None])
def test_a_plain_generator_in_an_event_loop_writes_whatever_it_returns(timeout: float | None) -> None:
    async def main() -> list[Any]:
        plain = run(node(lambda: COUNT, timeout=timeout), STATE)
        handed = run(node(lambda question: awaited(question), timeout=timeout), STATE)  # noqa: PLW0108 - as above
        return [plain, handed]

    assert asyncio.run(main()) == [{"sql_query": COUNT}] * 2


def test_an_async_generator_that_is_not_awaited_in_an_event_loop_says_what_to_do() -> None:
    async def main() -> Any:
        return written(awaited)

    told = (
        "generate_sql is async; from code that runs in an event loop, await graph.ainvoke(...) instead of"
        " graph.invoke(...)"
    )
    assert asyncio.run(main()) == unwritten(told)


@pytest.mark.parametrize(
    ("failure", "error", "told"),
    [
        (ToolError("the model is away; try later"), "the model is away; try later", None),
        (StorageUnavailable("no server"), "no server", None),
        (ToolValidationError("too long"), "too long", None),
        (ValueError("secret"), "secret", "the SQL could not be written"),
        (ValueError(), "ValueError", "the SQL could not be written"),
        (ConnectionError("refused"), "refused", "the SQL could not be written"),
        (TimeoutError("late"), "late", "the SQL could not be written"),
        (StopIteration(), "StopIteration", "the SQL could not be written"),
        (RecursionError("deep"), "deep", "the SQL could not be written"),
    ],
    ids=repr,
)
def test_a_generator_that_raises_has_written_nothing(
    failure: Exception, error: str, told: str | None
) -> None:
    assert written(raising(failure)) == unwritten(error, told)


def test_a_generator_that_takes_too_long_is_given_up() -> None:
    update = run(node(lambda: time.sleep(0.2), timeout=0.01), STATE)
    assert update == unwritten(
        "generate_sql took longer than 0.01 s and was given up; call it again, or go on without it"
    )


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (None, "no SQL was written; write one SELECT"),
        ("", "no SQL was written; write one SELECT"),
        (5, "SQL is text, got int; write one SELECT"),
        ({"text": 1}, 'no SQL was written; write {"sql": "SELECT ..."}, got the key \'text\''),
        ({"success": False, "error": "the model is away"}, "the model is away"),
        ({"success": False}, "generate_sql reported a failure"),
    ],
)
def test_an_answer_that_is_no_statement_is_told_back(answer: Any, error: str) -> None:
    assert written(lambda: answer) == unwritten(error)


def test_the_same_failure_twice_ends_it() -> None:
    first = unwritten("no SQL was written; write one SELECT")
    attempts = first["attempts"]
    assert written(lambda: None, attempts=attempts) == {**first, "is_complete": True}
    other = [{"sql": COUNT, "error": "no SQL was written; write one SELECT"}]
    assert written(lambda: None, attempts=other) == first
    assert written(raising(ValueError("a")), attempts=attempts) == unwritten(
        "a", "the SQL could not be written"
    )


# A statement that was tried


@pytest.mark.parametrize(
    "sql", [COUNT, f"  {COUNT}\n", COUNT.replace(" ", "\n  "), f"```sql\n{COUNT}\n```", {"sql": COUNT}]
)
def test_the_same_statement_again_is_not_run_again(sql: Any) -> None:
    again = "the same SQL as before, which failed: no such column: n"
    text = sql["sql"] if isinstance(sql, dict) else sql.replace("```sql", "").replace("```", "").strip()
    assert written(lambda: sql, attempts=FAILED) == {
        "error": "Tool execute_sql: no such column: n",
        "user_message": "no such column: n",
        "attempts": [{"sql": text, "error": again}],
    }


def test_the_same_statement_for_the_third_time_ends_it() -> None:
    again = "the same SQL as before, which failed: no such column: n"
    attempts = [*FAILED, {"sql": COUNT, "error": again}]
    assert written(lambda: COUNT, attempts=attempts) == {
        "error": "Tool execute_sql: no such column: n",
        "user_message": "no such column: n",
        "attempts": [{"sql": COUNT, "error": again}],
        "is_complete": True,
    }


def test_a_statement_that_is_stood_by_brings_its_result_back() -> None:
    verdict = {"is_valid": True}
    kept = {"sql_query": COUNT, "execution_result": rows(), "validation_result": verdict}
    reflection = {"verdict": "again", "reasons": ["none"], "kept": kept}
    attempts = [{"sql": COUNT, "error": "none"}]
    assert written(lambda: COUNT, attempts=attempts, reflection=reflection) == {
        **kept,
        "reflection": {"verdict": "kept", "reasons": ["none"], "kept": None},
    }
    other = {**reflection, "kept": {**kept, "sql_query": "SELECT 2"}}
    assert "sql_query" not in written(lambda: COUNT, attempts=attempts, reflection=other)


# The user is asked


@pytest.mark.parametrize(
    ("generator", "request_"),
    [
        (lambda: {"needs_user_input": True, "input_request": "Which year?"}, "Which year?"),
        (lambda: '{"needs_user_input": true}', ASKS),
        (raising(UserInputNeeded("it lacks a year", "Which year?")), "Which year?"),
    ],
)
def test_a_generator_may_ask_the_user(generator: Any, request_: str) -> None:
    assert written(generator) == asked(request_)


def test_the_user_is_asked_before_a_generator_is() -> None:
    generator = Mock(return_value=COUNT)
    seen: list[Any] = []

    def clarify(question: str, schema: str) -> str:
        seen.append((question, schema))
        return "Which year?"

    assert run(node(generator, clarify), STATE) == asked("Which year?")
    assert seen == [(QUESTION, SCHEMA)]
    generator.assert_not_called()
    assert run(node(generator, clarify), {**STATE, "attempts": FAILED, "sql_query": None})["error"]
    assert len(seen) == 1


@pytest.mark.parametrize("request_", [None, "", " ", 5, True, ["Which year?"]])
def test_what_is_no_question_is_not_asked(request_: Any) -> None:
    assert run(node(lambda: COUNT, lambda question, schema: request_), STATE) == {"sql_query": COUNT}


@pytest.mark.parametrize("schema", [None, {"tables": []}, ["customers"], 5])
def test_a_schema_that_is_no_text_is_the_generators_alone(schema: Any) -> None:
    generator = Mock(return_value=COUNT)
    state = {**STATE, "schema": schema, "resolved_query": "What is the weather like?"}
    assert run(node(generator, Mock(return_value="Which?")), state) == (
        asked("Which?") if schema is None else {"sql_query": COUNT}
    )
    assert run(node(generator), state) == {"sql_query": COUNT}
    assert generator.call_args.kwargs["schema"] == ("" if schema is None else schema)


def test_a_generators_calls_are_events_of_the_session(session: Session) -> None:
    run(node(lambda: COUNT), STATE, session)
    run(node(raising(ValueError("secret"))), STATE, session)
    assert [event.name for event in session.select_all(ToolInvoked)] == ["generate_sql"]
    assert [event.name for event in session.select_all(ToolFailed)] == ["generate_sql"]
