"""Binding: how a tool's function is called, whatever it takes; and the decorator that makes tools."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Optional
from unittest.mock import AsyncMock, MagicMock

import pytest

from planning.tools import Tool, ToolContext, ToolSpec, tool


@dataclass
class Size:
    size: int


def one(params: Size) -> Any:
    return params


def two(params: Size, context: ToolContext) -> Any:
    return params, type(context).__name__


def unnamed_context(params: Size, whatever: Any) -> Any:
    return params, type(whatever).__name__


def optional_context(params: Size, context: Any = None) -> Any:
    return params, type(context).__name__


def hinted_context(params: Size, where: ToolContext = ToolContext()) -> Any:  # noqa: B008 - as users write it
    return params, type(where).__name__


def maybe_context(params: Size, where: Optional[ToolContext] = None) -> Any:  # noqa: UP045 - as users write it
    return params, type(where).__name__


def context_or_none(params: Size, where: ToolContext | None = None) -> Any:
    return params, type(where).__name__


def other_default(params: Size, times: int = 2) -> Any:
    return params, times


def any_number(*args: Any) -> Any:
    return len(args)


async def awaited(params: Size, context: ToolContext) -> Any:
    return params, type(context).__name__


class Called:
    def __call__(self, params: Size) -> Any:
        return params


@pytest.mark.parametrize(
    ("function", "result"),
    [
        (one, Size(1)),
        (two, (Size(1), "ToolContext")),
        (unnamed_context, (Size(1), "ToolContext")),
        (optional_context, (Size(1), "ToolContext")),
        (hinted_context, (Size(1), "ToolContext")),
        (maybe_context, (Size(1), "ToolContext")),
        (context_or_none, (Size(1), "ToolContext")),
        (other_default, (Size(1), 2)),
        (any_number, 2),
        (awaited, (Size(1), "ToolContext")),
        (Called(), Size(1)),
        (functools.partial(other_default, times=5), (Size(1), 5)),
        (MagicMock(side_effect=lambda *args: len(args)), 2),
        (AsyncMock(side_effect=lambda *args: len(args)), 2),
    ],
)
def test_a_function_of_parameters_is_called_with_as_much_as_it_takes(function: Any, result: object) -> None:
    envelope = Tool("t", "d", function, parameters=Size).execute(size=1)
    assert (envelope["error"], envelope["result"]) == (None, result)


def none() -> None: ...


def by_keyword(*, params: Size) -> None: ...


def three(params: Size, context: ToolContext, more: int) -> None: ...


def context_by_keyword(params: Size, *, context: ToolContext) -> Any: ...


@pytest.mark.parametrize("function", [none, by_keyword])
def test_a_function_that_takes_no_parameters_is_refused(function: Any) -> None:
    with pytest.raises(TypeError) as caught:
        _ = Tool("t", "d", function, parameters=Size).model
    assert str(caught.value) == "the function of t must take its parameters as its first argument"


@pytest.mark.parametrize("function", [three, context_by_keyword])
def test_a_function_that_needs_more_is_refused_before_it_is_called(function: Any) -> None:
    with pytest.raises(TypeError):
        _ = Tool("t", "d", function, parameters=Size).model


def query(query_type: str, params: Any) -> Any:
    return query_type, params


def query_in_context(query_type: str, params: Any, context: ToolContext) -> Any:
    return query_type, params, type(context).__name__


def query_with_default(query_type: str, params: Any, limit: int = 3) -> Any:
    return query_type, params, limit


@pytest.mark.parametrize(
    ("function", "result"),
    [
        (query, ("q", Size(1))),
        (query_in_context, ("q", Size(1), "ToolContext")),
        (query_with_default, ("q", Size(1), 3)),
        (any_number, 3),
    ],
)
def test_a_function_of_queries_is_called_with_as_much_as_it_takes(function: Any, result: object) -> None:
    spec = ToolSpec("t", {"q": Size}, "k", function=function)
    envelope = spec.as_tool.execute(query_type="q", parameters={"size": 1})
    assert (envelope["error"], envelope["result"]) == (None, result)


def test_a_function_of_queries_must_take_them() -> None:
    with pytest.raises(TypeError) as caught:
        _ = ToolSpec("t", {"q": Size}, "k", function=one).as_tool.model
    assert str(caught.value) == "the function of t must take a query type and its parameters"


def test_what_is_no_parameter_model_is_refused() -> None:
    with pytest.raises(TypeError) as caught:
        _ = Tool("t", "d", one, parameters=int).model
    assert str(caught.value) == (
        "int is not a parameter model: use a dataclass, an attrs class, a TypedDict, a pydantic "
        "model or a JSON Schema"
    )


def greet(name: str, times: int = 1) -> str:
    """Greet somebody.

    With joy.

    Args:
        name: Who is greeted.
    """
    return " ".join(["hello", name] * times)


def test_the_decorator_reads_name_description_and_parameters() -> None:
    made = tool(greet)
    assert (made.name, made.description) == ("greet", "Greet somebody.\n\nWith joy.")
    assert made.parameters_schema() == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Who is greeted."},
            "times": {"type": "integer"},
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    assert made("you") == "hello you"
    assert made.execute(name="you", times=2)["result"] == "hello you hello you"


def test_the_decorator_takes_options() -> None:
    @tool(name="hi", description="Say hi.", timeout=5)
    def other() -> str:
        return "hi"

    assert (other.name, other.description, other.timeout) == ("hi", "Say hi.", 5)
    assert other.execute()["result"] == "hi"


@pytest.mark.parametrize(
    ("given", "name", "description"),
    [
        (lambda: 1, "lambda", ""),
        (Called(), "Called", ""),
        (MagicMock(), "MagicMock", None),
        (functools.partial(greet, "you"), "greet", None),
    ],
)
def test_a_function_without_a_name_has_that_of_what_is_behind_it(
    given: Any, name: str, description: str | None
) -> None:
    made = tool(given)
    assert made.name == name
    assert description in {made.description, None}


@pytest.mark.parametrize("given", [Size, tool(greet)])
def test_the_decorator_refuses_what_is_no_function(given: Any) -> None:
    with pytest.raises(TypeError) as caught:
        tool(given)
    assert str(caught.value) == f"@tool decorates a function, got {given!r}"[:200]
