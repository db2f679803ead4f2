"""Private arguments: a refusal says what to send, and nothing of what was sent."""

from __future__ import annotations

import json
import logging
import traceback
from dataclasses import dataclass, field
from typing import Annotated, Any

import attrs
import msgspec
import pydantic
import pytest

from planning import ToolValidationError
from planning.errors import Problem
from planning.tools import Tool, tool
from planning.tools.decode import MOST_CHARACTERS, decode, read_arguments

SECRET = "4711-secret"  # noqa: S105 - no password
NOT_JSON = "arguments are not JSON at line 1, column"


@dataclass
class Inner:
    size: int


@dataclass
class Person:
    name: str = ""
    age: Annotated[int, msgspec.Meta(le=150)] = 0
    known: dict[str, int] = field(default_factory=dict)
    inner: dict[str, Inner] = field(default_factory=dict)


def refusal(kind: Any, arguments: object, diagnose: Any = None) -> ToolValidationError:
    """The refusal of private arguments, which nothing of them is in."""
    with pytest.raises(ToolValidationError) as caught:
        decode(kind, arguments, diagnose, is_private=True)
    error = caught.value
    told = [*traceback.format_exception(error), str(error), repr(error), repr(vars(error)), repr(error.args)]
    assert [part for part in ("4711", "secret") if part in "".join(told)] == []
    assert (error.__cause__, error.__context__) == (None, None)
    assert not any(problem.tells for problem in error.problems)
    return error


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"age": 4711}, ["age: refused; send an integer of at most 150"]),
        ({"age": SECRET}, ["age: expected an integer of at most 150, got a string"]),
        ({"known": {SECRET: "x"}}, ["known: refused; send an object"]),
        ({"known": {"known": "x"}}, ["known: refused; send an object"]),
        ({"inner": {SECRET: {}}}, ["inner: refused; send an object"]),
        ({"inner": {SECRET: {"size": SECRET}}}, ["inner: refused; send an object"]),
        ({"inner": {f"[0].{SECRET}": {SECRET: 1}}}, ["inner: refused; send an object"]),
        ({SECRET: {"name": 1}}, ["refused; send an object with name, age, known, inner"]),
        # A name that spells a path is taken for one.
        ({f"name.{SECRET}": 1}, ["name: refused; send a string"]),
        ({f"name[{SECRET}]": 1}, ["name: refused; send a string"]),
        ([SECRET], ["arguments must be a JSON object, got an array"]),
        (json.dumps(SECRET), [f"{NOT_JSON} 5: Extra data; send one JSON object"]),
        (f'{{"{SECRET}": 1, "{SECRET}": 2}}', ["refused; send an object with name, age, known, inner"]),
        (
            f'{{"name": "{SECRET}" 1}}',
            [f"{NOT_JSON} 24: Expecting ',' delimiter; send one JSON object"],
        ),
        (
            {SECRET: SECRET, "age": object()},
            ["arguments must hold JSON values only: text, numbers, booleans, null, arrays, objects"],
        ),
    ],
)
def test_nothing_that_was_sent_is_told(arguments: object, expected: list[str]) -> None:
    assert sorted(set(map(str, refusal(Person, arguments).problems))) == expected


def refuse(value: str) -> None:
    raise ValueError(f"{value} is odd")


def refuse_type(value: str) -> None:
    raise TypeError(f"{value} is odd")


def record(fail: Any) -> type:
    def check(self: Any) -> None:
        fail(self.name)

    return dataclass(type("Record", (), {"__annotations__": {"name": str}, "__post_init__": check}))


def validated(fail: Any) -> type:
    return attrs.make_class(
        "Record", {"name": attrs.field(validator=lambda _self, _field, value: fail(value), type=str)}
    )


def converted(fail: Any) -> type:
    return attrs.make_class("Record", {"name": attrs.field(converter=fail, type=str)})


def model(fail: Any) -> type:
    def check(value: str) -> None:
        fail(value)

    return pydantic.create_model("Record", name=Annotated[str, pydantic.AfterValidator(check)])


@pytest.mark.parametrize("fail", [refuse, refuse_type])
@pytest.mark.parametrize("declare", [record, validated, converted, model])
def test_no_check_of_ones_own_tells_what_it_saw(declare: Any, fail: Any) -> None:
    error = refusal(declare(fail), {"name": SECRET})
    (problem,) = error.problems
    assert str(problem) in {"name: refused; send a string", "refused; send an object with name"}


def test_what_a_tool_adds_is_withheld_unless_it_tells_nothing() -> None:
    error = refusal(
        Person,
        {"age": SECRET},
        lambda _arguments: [Problem(f"{SECRET} is odd", "name"), Problem("too old", "age", tells=False)],
    )
    assert list(map(str, error.problems)) == [
        "name: refused; send a string",
        "age: expected an integer of at most 150, got a string",
        "age: too old",
    ]


@pytest.mark.parametrize("arguments", [{"size": SECRET}, {SECRET: 1}, f'{{"{SECRET}', {"size": 1}])
def test_a_tool_with_private_data_tells_nobody(arguments: Any, caplog: pytest.LogCaptureFixture) -> None:
    @tool(returns_private_data=True)
    def private(size: int) -> str:
        raise RuntimeError(SECRET)

    with caplog.at_level(logging.DEBUG):
        envelope = private.execute(**arguments) if isinstance(arguments, dict) else private.execute()
    assert envelope["success"] is False
    assert "secret" not in f"{envelope}{caplog.text}"


def test_what_is_public_is_told() -> None:
    with pytest.raises(ToolValidationError) as caught:
        decode(Person, {SECRET: 1, "age": 4711})
    assert sorted(map(str, caught.value.problems)) == [
        "4711-secret: unknown field; the fields are name, age, known, inner",
        "age: expected at most 150, got 4711",
    ]


def test_private_arguments_that_are_right_are_decoded() -> None:
    assert decode(Person, {"name": SECRET}, is_private=True) == Person(SECRET)
    assert (
        Tool("t", "d", lambda name: name, returns_private_data=True).execute(name=SECRET)["result"] == SECRET
    )


def test_reading_arguments_makes_a_dict_of_them() -> None:
    sent = {"a": 1}
    assert read_arguments(sent) is sent
    assert read_arguments(json.dumps(json.dumps(sent))) == sent
    with pytest.raises(ToolValidationError, match=r"^arguments must be a JSON object, got a string$"):
        read_arguments(json.dumps(json.dumps(json.dumps(sent))))
    with pytest.raises(ToolValidationError) as caught:
        read_arguments(b" " * (MOST_CHARACTERS + 1))
    assert str(caught.value) == (
        f"arguments of {MOST_CHARACTERS + 1} characters, at most {MOST_CHARACTERS}; send less at once"
    )
