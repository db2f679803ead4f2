"""The functions that users pass in: any kind of callable gets what it names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import Mock

import pytest

from planning.agent.nodes import named_tool
from planning.tools import ToolContext

OFFERED = ("question", "schema", "error", "attempts", "state")
GIVEN = {name: name.upper() for name in OFFERED}


def called(function: Callable[..., Any]) -> Any:
    """What a function returns when it is called with the offered values."""
    tool, _ = named_tool("writer", "Write.", function, OFFERED, None)
    outcome = tool.run(GIVEN, ToolContext())
    return asyncio.run(outcome) if tool.is_async else outcome


class Writer:
    """An object with a call."""

    def __call__(self, schema: str, question: str) -> tuple[str, ...]:
        return schema, question


class AsyncWriter:
    """An object with a call that is awaited."""

    async def __call__(self, question: str) -> str:
        return question


async def plain(question: str) -> str:
    return question


@pytest.mark.parametrize(
    ("function", "returned"),
    [
        (lambda: "nothing", "nothing"),
        (lambda anything: anything, "STATE"),
        (lambda a, b: (a, b), ("QUESTION", "SCHEMA")),
        (lambda it, question: (it, question), ("SCHEMA", "QUESTION")),
        (lambda state, it: (state, it), ("STATE", "QUESTION")),
        (lambda question, error=1: (question, error), ("QUESTION", "ERROR")),
        (lambda it, temperature=0.5: (it, temperature), ("STATE", 0.5)),
        (lambda *, question, error: (question, error), ("QUESTION", "ERROR")),
        (lambda *args: args, ()),
        (lambda **kwargs: kwargs, GIVEN),
        (lambda question, **kwargs: (question, len(kwargs)), ("QUESTION", 4)),
        (lambda it, **kwargs: (it, sorted(kwargs)), ("STATE", ["attempts", "error", "question", "schema"])),
        (partial(lambda style, question: (style, question), "brief"), ("brief", "QUESTION")),
        (Writer(), ("SCHEMA", "QUESTION")),
        (plain, "QUESTION"),
        (partial(plain), "QUESTION"),
        (AsyncWriter(), "QUESTION"),
        (dict, GIVEN),
        (Mock(side_effect=dict), GIVEN),
    ],
)
def test_a_callable_gets_what_it_names_and_the_rest_in_order(
    function: Callable[..., Any], returned: Any
) -> None:
    assert called(function) == returned


REMEDY = "; name its parameters out of question, schema, error, attempts, state"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("SELECT 1", "writer must be callable, got str"),
        (lambda a, b, c, d, e, f: a, f"writer cannot be called with a, b, c, d, e, f{REMEDY}"),
        (lambda question, /: question, f"writer cannot be called with question{REMEDY}"),
    ],
)
def test_a_callable_with_unknown_parameters_is_refused(function: Any, message: str) -> None:
    with pytest.raises(TypeError) as caught:
        called(function)
    assert str(caught.value) == message
