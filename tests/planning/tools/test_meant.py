"""What a model's arguments are taken for, and what they are never taken for: through the entry of a model."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal

import attrs
import pydantic
import pytest

from planning.tools import Tool, Toolbox, ToolSpec, tool
from planning.tools.parameters.model import FreeModel

Size = Literal["1", "2"]


class Switch(Enum):
    ON = True
    OFF = False


@dataclass
class Booking:
    count: int = 1
    price: float = 1.0
    either: int | float = 1
    maybe: int | None = None
    level: Literal[1, 2] = 1
    numbers: list[int] = field(default_factory=list)
    by_name: dict[str, float] = field(default_factory=dict)
    pair: tuple[int, str] = (1, "a")
    text: str = "t"
    text_or_number: str | int = "t"
    flag: bool = False
    flag_or_number: bool | int = False
    flag_or_text: bool | str = False
    flag_or_auto: Literal[True, "auto"] = "auto"
    only_true: Literal[True] = True
    maybe_flag: bool | None = None
    switch: Switch = Switch.OFF
    flags: list[bool] = field(default_factory=list)
    word: Literal["true", "false"] = "true"
    anything: Any = None
    exact: Decimal = Decimal(1)
    size: Size = "1"


def sent(**arguments: Any) -> tuple[bool, Any]:
    """Whether a call is carried out, and what the tool is given, or else the message."""
    box = Toolbox([Tool("book", "Book.", lambda booking: booking, parameters=Booking)])
    result = box.call("book", json.dumps(arguments))
    if not result.success:
        return False, result.message
    given = {name: getattr(result.value, name) for name in arguments}
    return True, next(iter(given.values())) if len(given) == 1 else given


@pytest.mark.parametrize(
    ("name", "text", "number"),
    [
        ("count", "5000", 5000),
        ("count", "-7", -7),
        ("count", "0", 0),
        ("count", "5.0", 5),
        ("count", "5e3", 5000),
        ("count", "9007199254740993", 9007199254740993),
        ("count", "123456789012345678901234567890", 123456789012345678901234567890),
        ("price", "2.5", 2.5),
        ("price", "3", 3.0),
        ("price", "-1.5E-2", -0.015),
        ("either", "2", 2),
        ("either", "2.5", 2.5),
        ("maybe", "7", 7),
        ("level", "2", 2),
        ("flag_or_number", "1", 1),
    ],
)
def test_a_text_that_is_a_number_is_one_where_only_a_number_fits(name: str, text: str, number: float) -> None:
    is_taken, given = sent(**{name: text})
    assert is_taken, given
    assert (given, type(given)) == (number, type(number))


def test_texts_that_are_numbers_are_taken_at_any_depth() -> None:
    arguments = {"numbers": ["1", 2, "3"], "by_name": {"a": "1.5", "b": "2"}, "pair": ["4", "5"]}
    assert sent(**arguments) == (
        True, {"numbers": [1, 2, 3], "by_name": {"a": 1.5, "b": 2.0}, "pair": (4, "5")},
    )  # fmt: skip


@pytest.mark.parametrize("text", ["true", "True", "TRUE", "false", "False", "fALSE"])
def test_a_text_that_is_a_boolean_is_one_where_a_boolean_fits_and_no_text_does(text: str) -> None:
    is_true = text.lower() == "true"
    assert sent(flag=text, maybe_flag=text, flag_or_number=text, flags=[text, True]) == (
        True,
        {"flag": is_true, "maybe_flag": is_true, "flag_or_number": is_true, "flags": [is_true, True]},
    )
    assert sent(switch=text) == (True, Switch(is_true))
    assert sent(text=text, flag_or_text=text, text_or_number=text, anything=text) == (
        True,
        {"text": text, "flag_or_text": text, "text_or_number": text, "anything": text},
    )
    assert sent(word=text.lower()) == (True, text.lower())


@pytest.mark.parametrize("text", ["yes", "no", "on", "1", "0", "t", "", " true", "true ", "tru", "null"])
@pytest.mark.parametrize("name", ["flag", "maybe_flag"])
def test_a_text_that_is_no_boolean_of_json_is_refused(name: str, text: str) -> None:
    assert sent(**{name: text}) == (
        False, f"Refused, nothing changed. {name}: expected a boolean, got a string",
    )  # fmt: skip


def test_a_boolean_as_text_is_held_to_the_values_that_are_listed() -> None:
    assert sent(only_true="true") == (True, True)
    assert sent(flag_or_auto="true") == (
        False,
        "Refused, nothing changed. flag_or_auto: 'true' is unknown; send one of true, auto",
    )
    schema = {
        "type": "object",
        "properties": {"a": {"type": ["boolean", "null"]}, "b": {"type": ["boolean", "string"]}},
    }
    made = Tool("t", "T.", lambda given: given, parameters=schema)
    assert Toolbox([made]).call("t", {"a": "True", "b": "True"}).value == {"a": True, "b": "True"}


@pytest.mark.parametrize("text", ["5", "1.5"])
def test_a_text_stays_text_where_text_fits(text: str) -> None:
    arguments = {"text": text, "text_or_number": text, "anything": text, "exact": text}
    assert sent(**arguments) == (True, {**arguments, "exact": Decimal(text)})


@pytest.mark.parametrize(
    "text",
    [
        "", " ", " 5 ", "5\n", "1_000", "1,000", "0x10", "1e400", "NaN", "Infinity", "-Infinity", "nan", "+5",
        "05", "5.", ".5", "1e", "five", "true", "null", "\u0665", "\uff15", "5 apples", "9" * 401,
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("name", "wanted"), [("count", "an integer"), ("price", "a number"), ("maybe", "an integer or null")]
)
def test_a_text_that_is_no_number_of_json_is_refused(name: str, wanted: str, text: str) -> None:
    wanted = wanted.removesuffix(" or null")
    assert sent(**{name: text}) == (
        False, f"Refused, nothing changed. {name}: expected {wanted}, got a string",
    )  # fmt: skip


@pytest.mark.parametrize("text", ["5.5", "1e-3", "9007199254740993.0", "1e300"])
def test_a_text_that_is_no_whole_number_is_no_integer(text: str) -> None:
    assert sent(count=text) == (False, "Refused, nothing changed. count: expected an integer, got a string")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"flag": "1"}, "flag: expected a boolean, got a string"),
        ({"flag": 1}, "flag: expected a boolean, got a number"),
        ({"text": 5}, "text: expected a string, got a number"),
        ({"size": 2}, 'size: expected a string, got a number; send one of "1", "2"'),
        ({"size": True}, 'size: expected a string, got a boolean; send one of "1", "2"'),
        ({"size": "3"}, 'size: \'3\' is unknown; send one of "1", "2"'),
        ({"level": "two"}, "level: expected a number, got a string; send one of 1, 2"),
        ({"level": "3"}, "level: a value of type int is unknown; send one of 1, 2"),
    ],
)
def test_what_is_wrong_is_refused_with_what_to_send(arguments: dict[str, Any], told: str) -> None:
    assert sent(**arguments) == (False, f"Refused, nothing changed. {told}")


class Bounded(pydantic.BaseModel):
    size: Annotated[int, pydantic.Field(le=9)]


def test_a_text_that_is_a_number_is_held_to_the_bounds_of_the_number() -> None:
    box = Toolbox([Tool("t", "T.", lambda bounded: bounded.size, parameters=Bounded)])
    assert [box.call("t", {"size": size}).value for size in ("9", "10")] == [9, None]


@tool
def search(query: str, limit: int = 10, order: Literal["up", "down"] = "up", day: str | None = None) -> Any:
    """Search."""
    return [query, limit, order, day]


def test_null_for_what_may_be_left_out_leaves_it_out() -> None:
    nulls = {"limit": None, "order": None, "day": None}
    assert Toolbox([search]).call("search", {"query": "a", **nulls}).value == ["a", 10, "up", None]
    assert Toolbox([search]).call("search", {"query": None, **nulls}).message == (
        "Refused, nothing changed. query: expected a string, got null"
    )


def test_the_parameters_of_a_query_are_taken_for_the_same() -> None:
    spec = ToolSpec("booking", {"book": Booking}, "out", function=lambda _type, given: given.count)
    arguments = {"query_type": "book", "parameters": {"count": "5000"}}
    assert Toolbox([spec]).call("booking", json.dumps(arguments)).value == 5000
    spec.validate("book", {"count": "5000"})


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("calculate_tip_amount", "did you mean calculate_tip?"),
        ("tip", "the tools are calculate_discount, calculate_tip, send_mail"),
        ("CalculateTip", "did you mean calculate_tip?"),
        ("send-email", "did you mean send_mail?"),
        ("delete_everything", "the tools are calculate_discount, calculate_tip, send_mail"),
        ("x" * 300, "the tools are calculate_discount, calculate_tip, send_mail"),
    ],
)
def test_an_unknown_tool_is_answered_with_the_closest_one_or_with_all(name: str, hint: str) -> None:
    names = ("calculate_discount", "calculate_tip", "send_mail")
    box = Toolbox([Tool(each, "T.", lambda: None) for each in names])
    shown = repr(name) if len(name) <= 40 else f"'{name[:37]}...'"
    assert box.call(name, {}).message == f"Refused, nothing changed. no tool is named {shown}; {hint}"


@pytest.mark.parametrize("size", [100, 1_000, 6_000])
def test_of_many_tools_the_first_are_listed_and_the_rest_counted(size: int) -> None:
    def act(_given: object) -> None:
        """Do nothing: the signature of a built-in function takes much longer to read."""

    model = FreeModel()
    box = Toolbox([Tool(f"tool_{number}", "T.", act, parameters=model) for number in range(size)])
    listed = ", ".join(f"tool_{number}" for number in range(60))
    for name in ("fly", "nothing_like_it_at_all"):
        assert box.call(name, {}).message == (
            f"Refused, nothing changed. no tool is named '{name}'; "
            f"the tools are {listed} and {size - 60} more"
        )


@attrs.frozen
class Named:
    name: str = attrs.field()

    @name.validator
    def _check(self, _field: Any, value: str) -> None:
        raise ValueError(f"nobody is called {value}")


def test_a_lone_surrogate_is_in_no_message() -> None:
    box = Toolbox([Tool("call", "Call.", print, parameters=Named)])
    result = box.call("call", {"name": "Ann \ud800"})
    assert result.message == "Refused, nothing changed. name: nobody is called Ann \\ud800"
