"""Private arguments: a refusal says what to send, and nothing of what was sent."""

from __future__ import annotations

import json
import re
import traceback
from typing import Annotated, Any

import pydantic
import pytest

from planning.tools import Tool, Toolbox, ToolValidationError
from planning.tools.errors import Problem

SECRET = "4711-secret"  # noqa: S105 - no password
FIELDS = "refused; send an object with name, age, known, inner"
NOT_JSON = re.compile(r"(arguments are not JSON at line 1, column \d+): [^\n]+; send one JSON object")


class Inner(pydantic.BaseModel):
    size: int


class Person(pydantic.BaseModel):
    name: str = ""
    age: Annotated[int, pydantic.Field(le=150)] = 0
    known: dict[str, int] = {}
    inner: dict[str, Inner] = {}


def refusal(kind: Any, arguments: Any, **options: Any) -> list[str]:
    """The problems of private arguments, which nothing of them is in."""
    options = {"parameters": kind, "returns_private_data": True, **options}
    toolbox = Toolbox([Tool("t", "T.", lambda given: given, **options)])
    result = toolbox.call("t", arguments)
    told = [repr(result), str(result.to_dict()), str(result.cause)]
    if isinstance(arguments, dict):
        with pytest.raises(ToolValidationError) as caught:
            toolbox.invoke("t", arguments)
        error = caught.value
        told += [*traceback.format_exception(error), repr(error), repr(vars(error)), repr(error.args)]
        assert (str(error), error.__cause__, error.__context__) == (result.error, None, None)
        assert not any(problem.quotes for problem in error.problems)
    assert [part for part in ("4711", "secret") if part in "".join(told)] == []
    assert result.message == f"Refused, nothing changed. {result.error}"
    head, *listed = str(result.error).split("\n- ")
    assert not listed or head == f"{len(listed)} problems:"
    return [NOT_JSON.sub(r"\1", problem) for problem in listed or [head]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"age": 4711}, "age: refused; send an integer of at most 150"),
        ({"age": SECRET}, "age: expected an integer of at most 150, got a string"),
        ({"known": {SECRET: "x"}}, "known: refused; send an object"),
        ({"known": {"known": "x"}}, "known: refused; send an object"),
        ({"inner": {SECRET: {}}}, "inner: refused; send an object"),
        ({"inner": {SECRET: {"size": SECRET}}}, "inner: refused; send an object"),
        ({"inner": {f"[0].{SECRET}": {SECRET: 1}}}, "inner: refused; send an object"),
        ({SECRET: {"name": 1}}, FIELDS),
        # A name that spells a path is taken for one.
        ({f"name.{SECRET}": 1}, "name: refused; send a string"),
        ({f"name[{SECRET}]": 1}, "name: refused; send a string"),
        ([SECRET], "arguments must be a JSON object, got an array"),
        (f'{{"{SECRET}": 1, "{SECRET}": 2}}', FIELDS),
        (json.dumps(SECRET), "arguments are not JSON at line 1, column 5"),
        (f'{{"name": "{SECRET}" 1}}', "arguments are not JSON at line 1, column 24"),
    ],
)
def test_nothing_that_was_sent_is_told(arguments: Any, expected: str) -> None:
    assert refusal(Person, arguments) == [expected]


def test_what_a_tool_adds_is_withheld_unless_it_tells_nothing() -> None:
    further = [Problem(f"{SECRET} is odd", "name"), Problem("too old", "age", quotes=False)]
    assert refusal(Person, {"age": SECRET}, diagnose=lambda _arguments, _context: further) == [
        "name: refused; send a string",
        "age: expected an integer of at most 150, got a string",
        "age: too old",
    ]
