"""Signatures as declarations: what functions of all kinds take, and how they are called."""

from __future__ import annotations

import asyncio
import functools
import inspect
import json
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ParamSpec, Required, TypedDict, Unpack
from unittest.mock import MagicMock

import pydantic
import pytest
from syrupy.assertion import SnapshotAssertion
from typing_extensions import TypeAliasType

from planning.errors import Problem
from planning.tools import Tool, ToolContext, ToolSpec, tool


def called(function: Any, **arguments: Any) -> Any:
    envelope = Tool("t", "d", function).execute(**arguments)
    return envelope["result"] if envelope["success"] else envelope["error"]


class Service:
    """What offers tools."""

    def method(self, size: int) -> Any:
        return type(self).__name__, size

    def __call__(self, size: int) -> Any:
        return "called", size


class AsyncService:
    async def __call__(self, size: int) -> Any:
        return "awaited", size


async def coroutine(size: int) -> Any:
    return size


@functools.wraps(coroutine)
async def wrapper(*args: Any, **kwargs: Any) -> Any:
    return await coroutine(*args, **kwargs)


@dataclass
class Size:
    size: int


OPEN = {"type": "object", "properties": {}, "additionalProperties": True}
SIZE = {
    "type": "object",
    "properties": {"size": {"type": "integer"}},
    "required": ["size"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("function", "result"),
    [
        (Service().method, ("Service", 3)),
        (Service(), ("called", 3)),
        (AsyncService(), ("awaited", 3)),
        (coroutine, 3),
        (wrapper, 3),
        (functools.partial(Service.method, Service()), ("Service", 3)),
        (functools.partial(AsyncService()), ("awaited", 3)),
        (Size, Size(3)),
    ],
)
def test_callables_of_all_kinds_tell_what_they_take(function: Any, result: object) -> None:
    made = Tool("t", "d", function)
    assert (made.parameters_schema(), called(function, size=3)) == (SIZE, result)
    assert called(function, size="x") == "size: expected an integer, got a string"
    assert called(function, size=3, self=1) == "self: unknown field; the fields are size"
    assert asyncio.run(made.aexecute(size=3))["result"] == result


def test_a_built_in_that_tells_nothing_takes_anything() -> None:
    assert Tool("t", "d", max).parameters_schema() == OPEN
    assert called(dict, size=1) == {"size": 1}
    assert called("a-b".split, sep="-") == ["a", "b"]
    assert [tool(each).name for each in (type("X", (Service,), {})(), lambda: 1)] == ["X", "lambda"]
    assert Tool("t", "d", max, parameters=Size).parameters_schema()["required"] == ["size"]


Alias = ToolContext
Declared = TypeAliasType("Declared", ToolContext | None)


class Holder:
    def method(self, size: int, ctx: Alias) -> Any:
        return size, type(ctx).__name__


def context_by_keyword(size: int, *, ctx: ToolContext) -> Any:
    return size, type(ctx).__name__


def hinted(hint: Any, *default: Any) -> Any:
    """A function whose second parameter has a hint, and perhaps a default."""

    def f(size: int, ctx: Any) -> Any:
        return size, type(ctx).__name__

    f.__annotations__["ctx"] = hint
    f.__defaults__ = default
    return f


def unimported() -> Any:
    """A function whose module imports the context for type checkers alone."""
    space: dict[str, Any] = {}
    exec("def f(size: int, ctx: 'ToolContext'): return size, type(ctx).__name__", space)  # noqa: S102 - it has to have globals of its own
    return space["f"]


@pytest.mark.parametrize(
    "function",
    [
        context_by_keyword,
        Holder().method,
        unimported(),
        hinted(ToolContext | None, None),
        hinted(Declared, None),
        hinted(type("OwnContext", (ToolContext,), {})),
    ],
)
def test_the_context_is_given_and_is_no_argument(function: Any) -> None:
    assert Tool("t", "d", function).parameters_schema() == SIZE
    assert called(function, size=3) == (3, "ToolContext")
    assert called(function, size=3, ctx=1) == "ctx: unknown field; the fields are size"


def test_what_annotated_says_of_a_parameter_comes_before_the_docstring() -> None:
    @tool
    def described(
        text: Annotated[int, "as annotated"],
        meta: Annotated[int, pydantic.Field(description="as annotated")],
        plain: int,
    ) -> None:
        """Do something.

        Args:
            text: as documented
            meta: as documented
            plain: as documented
            nobody: is no parameter
        """

    properties = described.parameters_schema()["properties"]
    assert {name: each["description"] for name, each in properties.items()} == {
        **dict.fromkeys(("text", "meta"), "as annotated"),
        "plain": "as documented",
    }


def other_default(params: Size, times: int = 2) -> Any:
    return params, times


def any_number(*args: Any) -> Any:
    return len(args)


async def awaited(params: Size, context: ToolContext) -> Any:
    return params, type(context).__name__


@pytest.mark.parametrize(
    ("function", "result"),
    [
        (lambda params: params, Size(1)),
        (lambda params, whatever: (params, type(whatever).__name__), (Size(1), "ToolContext")),
        (lambda params, context=None: (params, type(context).__name__), (Size(1), "ToolContext")),
        (other_default, (Size(1), 2)),
        (any_number, 2),
        (awaited, (Size(1), "ToolContext")),
        (functools.partial(other_default, times=5), (Size(1), 5)),
        (MagicMock(side_effect=any_number), 2),
    ],
)
def test_a_function_of_parameters_is_called_with_as_much_as_it_takes(function: Any, result: object) -> None:
    assert Tool("t", "d", function, parameters=Size).execute(size=1)["result"] == result


def test_what_cannot_be_called_with_parameters_is_refused() -> None:
    no_functions: list[Any] = [
        lambda: None,
        lambda *, params: None,
        lambda params, context, more: None,
        lambda params, *, context: None,
    ]
    wrong = [(Size, "its parameters", function) for function in no_functions]
    query = ToolSpec("t", {"q": Size}, "k")
    for parameters, taken, function in [*wrong, (query, "a query type and its parameters", lambda params: 1)]:
        with pytest.raises(TypeError) as caught:
            _ = Tool("t", "d", function, parameters=parameters).model
        assert str(caught.value) == (
            f"the function of t must take {taken} by position, and then at most a context"
        )


# **rest


class Extras(TypedDict, total=False):
    size: Required[int]
    word: str | None


P = ParamSpec("P")


def typed(a: int, **rest: str) -> Any:
    """Label.

    Args:
        a: A number.
        **rest: Words.
    """
    return a, rest


def optional(**rest: int | None) -> Any:
    return rest


def bare(a: int = 0, **rest) -> Any:  # type: ignore[no-untyped-def]  # what is tested
    return a, rest


def anything(**rest: Any) -> Any:
    return rest


def records(**rest: Size) -> Any:
    return rest


def unpacked(a: int, **rest: Unpack[Extras]) -> Any:
    return a, rest


def forwarding(function: Callable[P, Any]) -> Callable[P, Any]:
    def forward(*args: P.args, **kwargs: P.kwargs) -> Any:
        return function(*args, **kwargs)

    return forward


def with_context(context: ToolContext, **rest: str) -> Any:
    return rest


def test_further_keyword_arguments_are_published_with_their_type(snapshot: SnapshotAssertion) -> None:
    said = [
        f"{function.__name__}: {json.dumps(Tool('t', 'd', function).parameters_schema(), sort_keys=True)}"
        for function in (typed, optional, bare, anything, forwarding(dict), with_context, unpacked)
    ]
    assert "\n".join(said) == snapshot


@pytest.mark.parametrize(
    ("function", "arguments", "result"),
    [
        (typed, {"a": 1, "b": "x", "rest": "y"}, (1, {"b": "x", "rest": "y"})),
        (optional, {"a": None, "b": "2"}, {"a": None, "b": 2}),
        (bare, {"b": {"c": [1]}}, (0, {"b": {"c": [1]}})),
        (records, {"a": {"size": 1}, "b": '{"size": 2}'}, {"a": Size(1), "b": Size(2)}),
        (unpacked, {"a": 1, "size": 2}, (1, {"size": 2})),
        (with_context, {"a": "x"}, {"a": "x"}),
    ],
)
def test_further_keyword_arguments_are_taken(function: Any, arguments: dict[str, Any], result: Any) -> None:
    assert called(function, **arguments) == result


REFUSED: list[tuple[Any, dict[str, Any]]] = [
    (typed, {"a": "x", "b": 3, "c": {"x": [1]}}),
    (optional, {"a": "x"}),
    (records, {"a": {"size": "x"}, "b": {"size": 1, "sise": 2}}),
    (unpacked, {"a": 1, "sise": 2}),
    (with_context, {"context": "x"}),
]


def test_further_keyword_arguments_of_another_type_or_a_taken_name_are_refused_with_all_problems(
    snapshot: SnapshotAssertion,
) -> None:
    assert "\n".join(called(function, **arguments) for function, arguments in REFUSED) == snapshot
    diagnosing = Tool("t", "d", typed, diagnose=lambda given, _context: [Problem(f"not {given}", "a")])
    said = diagnosing.execute(a="x", b=3)["error"]
    assert said == "2 problems:\n- a: not {'a': 'x'}\n- b: expected a string, got a number"


# Docstrings: the descriptions of a function and of its parameters, in the common styles


NAMES = ["x", "y", "z", "args", "options"]


def read(document: object) -> tuple[str, dict[str, str]]:
    """The descriptions that a model reads of a function with this docstring, and of its parameters."""

    def function(**_given: int) -> None: ...

    function.__doc__ = document  # type: ignore[assignment]  # some are none
    kind = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(name, kind, annotation=int) for name in NAMES]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # as decorators do
    made = tool(function)
    fields = made.parameters_schema()["properties"]
    return made.description, {
        name: field["description"] for name, field in fields.items() if "description" in field
    }


WHOLE = """Find  a registration.

        It looks by email
        first, then by\tID.

        Args:
            x (str): An email address
                or a registration ID.
            *args: Further ones.

        Returns:
            found: Not a parameter.
        """
DESCRIPTION = "Find a registration.\n\nIt looks by email first, then by ID."


def test_without_the_library_the_first_paragraph_is_the_description(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docstring_parser", None)
    assert read(WHOLE) == ("Find a registration.", {})
    assert read("Find a\nregistration.") == ("Find a registration.", {})


BOTH = {"x": "The first.", "y": "The second."}


@pytest.mark.parametrize(
    "section",
    [
        "Args:\nx: The first.\ny: The second.",
        "Args:\nx: The\n  first.\ny (int): The second.",
        "Args:\n    x -- The first.\n    y -- The second.",
        "Args:\n    x - The first.\n    y (int) - The second.",
        "Args:\n    - x: The first.\n    - `y`: The second.",
        "args:\n\tx: The first.\n\ty: The second.",
        "Keyword arguments:\nx -- The first.\ny -- The second.",
        "Params:\n    x: The first.\n    y: The second.\n\nReturns:\nNothing -- at all.",
        "Parameters\n----------\nx : int\n    The first.\ny\n    The second.",
        ":param x: The first.\n:param int y: The\n    second.",
    ],
)
@pytest.mark.parametrize("before", ["", "Find it.\n", "Find it.\n\n", "\n    "])
def test_entries_are_read_however_they_are_written(section: str, before: str) -> None:
    indented = textwrap.indent(section, "    ").lstrip() if before.endswith("    ") else section
    assert read(before + indented) == (before.strip(), BOTH)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        *((none, ("", {})) for none in (None, "", "  \n\t", 5)),
        (WHOLE, (DESCRIPTION, {"x": "An email address or a registration ID.", "args": "Further ones."})),
        *((f"Find it.\n\nArgs:\n    x (int): It.\n    {line}\n\nIt costs.",  # malformed
           (f"Find it.\n\nArgs: x (int): It. {line}\n\nIt costs.", {}))
          for line in ("url without a colon", "more text,")),
        ("Args:\n    x: It.\n\nFind it.", ("Find it.", {"x": "It."})),
        ("Find it.\n\nArgs:\n    x: It.\n\nIt costs.\n\nNote:\n    Much.", (
            "Find it.\n\nIt costs.\n\nNote: Much.", {"x": "It."})),
        ("Find it.\n\nArgs:\nx: It.\n\ny: This.", ("Find it.\n\ny: This.", {"x": "It."})),
        ("Find it.\n\nArgs:\n    x = it", ("Find it.\n\nArgs: x = it", {})),
        ("Find it.\n\nArgs:\n    x (int):\n    y: It.", ("Find it.", {"y": "It."})),
        ("Find it.\n\nParameters\n----------\nx -- it", ("Find it.", {"x": "it"})),
        ("Find it.\n\nArgs:\n    x: At a -- or b.", ("Find it.", {"x": "At a -- or b."})),
        ("Find it -- now.\n\nor - later.", ("Find it -- now.\n\nor - later.", {})),
    ],
)  # fmt: skip
def test_no_part_of_a_description_is_lost(document: object, expected: tuple[str, dict[str, str]]) -> None:
    assert read(document) == expected
