"""The generator in its node: whatever it is and does, the update says what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock

import pytest
from agent_samples import COUNT, QUESTION, SCHEMA

from planning.agent.generate import ASKS
from planning.agent.nodes import Node, generating
from planning.tools import ToolError
from planning.tools.errors import UserInputNeeded

STATE: dict[str, Any] = {"resolved_query": QUESTION, "schema": SCHEMA, "attempts": [], "iteration": 2}
FAILED = [{"sql": COUNT, "error": "no such column: n"}]


def written(generator: Any, **more: Any) -> Any:
    """The update by a generator."""
    return node(generator).run({**STATE, **more})


def node(generator: Any, clarify: Any = None, timeout: float | None = 5.0) -> Node:
    """Its node."""
    return generating(generator, timeout, clarify, None)


def unwritten(error: str, message: str | None = None, *, is_over: bool = False) -> dict[str, Any]:
    """The update if there is no statement."""
    message = error if message is None else message
    return {
        "error": f"Tool generate_sql: {error}",
        "user_message": message,
        "attempts": [{"sql": None, "error": message}],
        "is_complete": is_over,
    }


def asked(request: str) -> dict[str, Any]:
    """The update that asks the user."""
    return {"needs_user_input": True, "input_request": request, "is_complete": True}


def raising(error: BaseException) -> Callable[[], str]:
    """A generator that fails."""

    def write() -> str:
        raise error

    return write


@pytest.mark.parametrize(
    ("failure", "error", "message"),
    [
        (ToolError("the model is away; try later"), "the model is away; try later", None),
        (ValueError("secret"), "secret", "the SQL could not be written"),
        (ValueError(), "ValueError", "the SQL could not be written"),
    ],
    ids=repr,
)
def test_a_generator_that_raises_has_written_nothing(
    failure: Exception, error: str, message: str | None
) -> None:
    assert written(raising(failure)) == unwritten(error, message)


def test_a_generator_that_takes_too_long_is_given_up() -> None:
    update = node(lambda: time.sleep(0.2), timeout=0.01).run(STATE)
    assert update == unwritten(
        "generate_sql took longer than 0.01 s and was given up; call it again, or go on without it"
    )


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (None, "no SQL was written; write one SELECT"),
        ({"success": False, "error": "the model is away"}, "the model is away"),
    ],
)
def test_an_answer_that_is_not_a_statement_is_an_error(answer: Any, error: str) -> None:
    assert written(lambda: answer) == unwritten(error)


def test_the_third_failure_with_the_same_error_ends_it() -> None:
    error = "no SQL was written; write one SELECT"
    attempts = [{"sql": None, "error": error}] * 2
    assert written(lambda: None, attempts=attempts) == unwritten(error, is_over=True)
    assert written(lambda: None, attempts=attempts[:1]) == unwritten(error)


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

    assert node(generator, clarify).run(STATE) == asked("Which year?")
    assert seen == [(QUESTION, SCHEMA)]
    generator.assert_not_called()
    assert node(generator, clarify).run({**STATE, "attempts": FAILED}) == {"sql_query": COUNT}
    assert len(seen) == 1


@pytest.mark.parametrize("clarify", [lambda *_: None, lambda *_: " ", lambda *_: True, lambda: "Which?"])
def test_a_clarify_without_a_question_is_ignored(clarify: Any) -> None:
    assert node(lambda: COUNT, clarify).run(STATE) == {"sql_query": COUNT}
