"""What a model's arguments are taken for, and what they are never taken for: through the entry of a model."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum
from typing import Any, Literal

import pytest

from planning.tools import Tool, Toolbox, tool

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
        ("count", "5.0", 5),
        ("count", "123456789012345678901234567890", 123456789012345678901234567890),
        ("price", "2.5", 2.5),
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


@pytest.mark.parametrize("text", ["true", "TRUE", "False"])
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


@pytest.mark.parametrize("text", ["yes", "1", "", " true", "null"])
@pytest.mark.parametrize("name", ["flag", "maybe_flag"])
def test_a_text_that_is_no_boolean_of_json_is_refused(name: str, text: str) -> None:
    assert sent(**{name: text}) == (
        False, f"Refused, nothing changed. {name}: expected a boolean, got a string",
    )  # fmt: skip


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


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("calculate_tip_amount", "did you mean calculate_tip?"),
        ("tip", "the tools are calculate_discount, calculate_tip, send_mail"),
        ("CalculateTip", "did you mean calculate_tip?"),
        ("send-email", "did you mean send_mail?"),
        ("x" * 300, "the tools are calculate_discount, calculate_tip, send_mail"),
    ],
)
def test_an_unknown_tool_is_answered_with_the_closest_one_or_with_all(name: str, hint: str) -> None:
    names = ("calculate_discount", "calculate_tip", "send_mail")
    box = Toolbox([Tool(each, "T.", lambda: None) for each in names])
    shown = repr(name) if len(name) <= 40 else f"'{name[:37]}...'"
    assert box.call(name, {}).message == f"Refused, nothing changed. no tool is named {shown}; {hint}"
