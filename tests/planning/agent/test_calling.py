"""Calling what somebody hands over: any kind of callable gets what it names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest

from planning.agent.calling import named

OFFERED = ("question", "schema", "error", "attempts", "state")
ALIASES = {"query": "question", "db_schema": "schema"}
GIVEN = {name: name.upper() for name in OFFERED}


def called(function: Callable[..., Any]) -> Any:
    """What a function returns when it is called with what there is."""
    return named("writer", function, OFFERED, aliases=ALIASES)(GIVEN)


def positional_only(question: str, schema: str, /) -> tuple[str, ...]:
    return question, schema


def odd_first(odd: str = "its own", question: str = "", /, schema: str = "") -> tuple[str, ...]:
    return odd, question, schema


class Writer:
    """An object with a call."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix

    def __call__(self, schema: str, question: str) -> tuple[str, ...]:
        return self.prefix, schema, question

    def method(self, question: str) -> tuple[str, ...]:
        return self.prefix, question


class AsyncWriter:
    """An object with a call that is awaited."""

    async def __call__(self, question: str) -> str:
        return question


@pytest.mark.parametrize(
    ("function", "returned"),
    [
        (lambda: "nothing", "nothing"),
        (lambda state: state, "STATE"),
        (lambda anything: anything, "STATE"),
        (lambda question: question, "QUESTION"),
        (lambda query: query, "QUESTION"),
        (lambda schema: schema, "SCHEMA"),
        (lambda a, b: (a, b), ("QUESTION", "SCHEMA")),
        (lambda a, b, c: (a, b, c), ("QUESTION", "SCHEMA", "ERROR")),
        (lambda a, b, c, d, e: (a, b, c, d, e), ("QUESTION", "SCHEMA", "ERROR", "ATTEMPTS", "STATE")),
        (lambda question, error: (question, error), ("QUESTION", "ERROR")),
        (lambda schema, question: (schema, question), ("SCHEMA", "QUESTION")),
        (lambda question, it: (question, it), ("QUESTION", "SCHEMA")),
        (lambda it, question: (it, question), ("SCHEMA", "QUESTION")),
        (lambda state, it: (state, it), ("STATE", "QUESTION")),
        (lambda query, question: (query, question), ("QUESTION", "QUESTION")),
        (lambda query, db_schema, error=1: (query, db_schema, error), ("QUESTION", "SCHEMA", "ERROR")),
        (lambda question, temperature=0.5: (question, temperature), ("QUESTION", 0.5)),
        (lambda temperature=0.5: temperature, 0.5),
        (lambda it, temperature=0.5: (it, temperature), ("STATE", 0.5)),
        (lambda *, question, error: (question, error), ("QUESTION", "ERROR")),
        (lambda *, size=7: size, 7),
        (lambda *args: args, tuple(GIVEN.values())),
        (lambda question, *args: (question, args), ("QUESTION", ())),
        (lambda temperature=0.5, *args: (temperature, args), (0.5, ())),
        (lambda **kwargs: kwargs, GIVEN),
        (lambda *args, **kwargs: (args, kwargs), ((), GIVEN)),
        (
            lambda question, **kwargs: (question, sorted(kwargs)),
            ("QUESTION", ["attempts", "error", "schema", "state"]),
        ),
        (
            lambda query, **kwargs: (query, sorted(kwargs)),
            ("QUESTION", ["attempts", "error", "schema", "state"]),
        ),
        (lambda it, **kwargs: (it, sorted(kwargs)), ("STATE", ["attempts", "error", "question", "schema"])),
        (positional_only, ("QUESTION", "SCHEMA")),
        (odd_first, ("its own", "", "SCHEMA")),
        (partial(lambda style, question: (style, question), "brief"), ("brief", "QUESTION")),
        (partial(lambda question, style: (question, style), style="brief"), ("QUESTION", "brief")),
        (partial(Writer("by "), "S"), ("by ", "S", "QUESTION")),
        (Writer("by "), ("by ", "SCHEMA", "QUESTION")),
        (Writer("by ").method, ("by ", "QUESTION")),
    ],
)
def test_a_callable_gets_what_it_names_and_the_rest_in_order(
    function: Callable[..., Any], returned: Any
) -> None:
    assert called(function) == returned


def test_a_mock_is_called_with_everything_by_name() -> None:
    mock = Mock(return_value="SELECT 1")
    assert called(mock) == "SELECT 1"
    mock.assert_called_once_with(**GIVEN)


def test_a_built_in_that_tells_nothing_of_itself_gets_everything_by_name() -> None:
    assert called(dict) == GIVEN


async def _plain(question: str) -> str:
    return question


@pytest.mark.parametrize(
    "function", [_plain, partial(_plain), AsyncWriter(), AsyncWriter().__call__, partial(AsyncWriter())]
)
def test_what_is_awaited_is_known_for_that(function: Callable[..., Any]) -> None:
    found = named("writer", function, OFFERED)
    assert found.is_async is True
    assert asyncio.run(found(GIVEN)) == "QUESTION"


def test_a_plain_function_that_returns_something_to_await_is_a_plain_function() -> None:
    found = named("writer", lambda question: _plain(question), OFFERED)  # noqa: PLW0108 - plain, and returns what is to be awaited
    assert (found.is_async, asyncio.run(found(GIVEN))) == (False, "QUESTION")


UNKNOWN = "writer has unknown parameters: "
REMEDY = "; name them after what it can take: question, schema, error, attempts, state"


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (None, "writer must be callable, got NoneType"),
        ("SELECT 1", "writer must be callable, got str"),
        (lambda a, b, c, d, e, f: a, UNKNOWN + "a, b, c, d, e, f" + REMEDY),
        (lambda *, model: model, UNKNOWN + "model" + REMEDY),
        (lambda question, *, model: model, UNKNOWN + "model" + REMEDY),
        (
            lambda question, schema, error, attempts, state, more: more,
            UNKNOWN + "more" + REMEDY,
        ),
    ],
)
def test_what_cannot_be_called_is_refused_with_what_there_is(function: Any, told: str) -> None:
    with pytest.raises(TypeError) as caught:
        named("writer", function, OFFERED)
    assert str(caught.value) == told
