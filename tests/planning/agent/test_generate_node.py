"""The node of the generator: whatever the generator does, the update says what happened."""

from __future__ import annotations

import time
from typing import Any
from unittest.mock import Mock

import pytest
from agent_samples import COUNT, QUESTION, SCHEMA

from planning.agent.generate import ASKS, asked
from planning.agent.nodes import Node, generating
from planning.tools import StorageUnavailable, ToolError
from planning.tools.errors import ContextInvalid, RateLimitExceeded, UserInputNeeded

STATE: dict[str, Any] = {"resolved_query": QUESTION, "schema": SCHEMA, "attempts": [], "iteration": 2}
NO_SQL = "no SQL was written; write one SELECT"
TEXT = "the model wrote text, not SQL: {}; write one SELECT, and nothing else"


def node(generator: Any, clarify: Any = None) -> Node:
    """The node of a generator, which returns or raises this."""
    function = generator if callable(generator) else Mock(side_effect=[generator])
    return generating(function, 0.1, clarify, None)


def unwritten(error: str, message: str | None = None, *, is_over: bool = False) -> dict[str, Any]:
    """The update if there is no statement."""
    message = error if message is None else message
    return {
        "error": f"Tool generate_sql: {error}",
        "user_message": message,
        "attempts": [{"sql": None, "error": message}],
        "is_complete": is_over,
    }


def slow(seconds: float, *, is_over: bool = False) -> dict[str, Any]:
    """The update if there was no answer in time."""
    message = (
        f"generate_sql took longer than {seconds} s and was given up; call it again, or go on without it"
    )
    return {"error": f"Tool generate_sql: {message}", "user_message": message, "is_complete": is_over}


@pytest.mark.parametrize(
    ("generator", "update"),
    [
        (COUNT, {"sql_query": COUNT}),
        ({"sql": COUNT}, {"sql_query": COUNT}),
        (None, unwritten(NO_SQL)),
        ({"success": False, "error": "the model is away"}, unwritten("the model is away")),
        (ToolError("the model is away; try later"), unwritten("the model is away; try later")),
        (ValueError("secret"), unwritten("secret", "the SQL could not be written")),
        (ValueError(), unwritten("ValueError", "the SQL could not be written")),
        (
            lambda: time.sleep(0.3),
            slow(0.1),
        ),
        ({"needs_user_input": True, "input_request": "Which year?"}, asked("Which year?")),
        ('{"needs_user_input": true}', asked(ASKS)),
        ("I am sorry, no.", unwritten(TEXT.format("I am sorry, no."))),
        (UserInputNeeded("it lacks a year", "Which year?"), asked("Which year?")),
    ],
)
def test_a_generator_writes_a_statement_or_asks_or_fails(generator: Any, update: dict[str, Any]) -> None:
    assert node(generator).run(STATE) == update


def test_the_third_failure_with_the_same_error_ends_it() -> None:
    attempts = [{"sql": None, "error": NO_SQL}] * 2
    assert node(None).run({**STATE, "attempts": attempts}) == unwritten(NO_SQL, is_over=True)
    assert node(None).run({**STATE, "attempts": attempts[:1]}) == unwritten(NO_SQL)
    attempts = [{"sql": None, "error": TEXT.format(words)} for words in ("I cannot.", "Sorry, no.")]
    text = node("Not in this schema.").run({**STATE, "attempts": attempts})
    assert text == unwritten(TEXT.format("Not in this schema."), is_over=True)


def test_an_error_with_other_numbers_is_the_same_error() -> None:
    attempts = [{"sql": None, "error": f"{number:,} different ones, 1.{number} s"} for number in (7, 1_234)]
    message = "99 different ones, 0.5 s"
    assert node(ToolError(message)).run({**STATE, "attempts": attempts}) == unwritten(message, is_over=True)


def test_a_slow_generator_is_called_twice() -> None:
    first = node(lambda: time.sleep(0.3)).run(STATE)
    assert node(lambda: time.sleep(0.3)).run({**STATE, "error": slow(0.2)["error"]}) == slow(
        0.1, is_over=True
    )
    assert first == slow(0.1)


@pytest.mark.parametrize("kind", [StorageUnavailable, RateLimitExceeded, ContextInvalid])
def test_a_failure_that_has_nothing_to_do_with_the_sql_ends_the_question(kind: type[ToolError]) -> None:
    failed = {"error": "Tool generate_sql: it is away", "user_message": "it is away", "is_complete": True}
    assert node(kind("it is away")).run(STATE) == failed


def test_the_user_is_asked_before_the_first_statement_is_written() -> None:
    generator, clarify = Mock(return_value=COUNT), Mock(return_value="Which year?")
    assert node(generator, clarify).run(STATE) == asked("Which year?")
    clarify.assert_called_once_with(QUESTION, SCHEMA)
    generator.assert_not_called()
    failed = {**STATE, "attempts": [{"sql": COUNT, "error": "no such column: n"}]}
    assert node(generator, clarify).run(failed) == {"sql_query": COUNT}
    clarify.assert_called_once()


@pytest.mark.parametrize("clarify", [lambda *_: None, lambda *_: " ", lambda *_: True, lambda: "Which?"])
def test_a_clarify_without_a_question_is_ignored(clarify: Any) -> None:
    assert node(COUNT, clarify).run(STATE) == {"sql_query": COUNT}
