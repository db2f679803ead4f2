"""Parameter models of pydantic: its features work, and its errors are told in the words of all others."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pydantic
import pytest
from five_ways import decode, problems
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from planning import ToolValidationError
from planning.errors import Problem
from planning.tools.parameters.declared import model_of

T = TypeVar("T")


@dataclass
class Plain:
    size: int


class Aliased(BaseModel):
    first: int = Field(alias="firstName")
    second: int = Field(default=1, validation_alias=AliasChoices("two", "zwei"))
    third: int = Field(default=1, validation_alias=AliasPath("deep", "three"))


class Populated(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    first: int = Field(alias="firstName")


@pytest.mark.parametrize(
    ("kind", "arguments", "expected"),
    [
        (Aliased, {"firstName": 1, "zwei": 2, "deep": {"three": 3}}, []),
        (
            Aliased,
            {"first": 1},
            ["firstName: missing; send an integer", "first: unknown field; did you mean firstName?"],
        ),
        (Aliased, {"firstName": "x"}, ["firstName: expected an integer, got a string"]),
        (Populated, {"first": 1}, []),
        (Populated, {"firstName": 1}, []),
        (Populated, {"firstName": "x"}, ["firstName: expected an integer, got a string"]),
    ],
)
def test_aliases_are_the_names_that_are_sent(kind: type, arguments: object, expected: list[str]) -> None:
    assert problems(kind, arguments) == expected


@pytest.mark.parametrize(
    ("kind", "arguments", "place"),
    [
        (Aliased, {"firstName": 1, "zwei": "x"}, "zwei"),
        (Aliased, {"firstName": 1, "deep": {"three": "x"}}, "deep.three"),
        (Populated, {"first": "x"}, "first"),
    ],
)
def test_a_name_that_is_not_published_has_its_own_place(
    kind: type, arguments: dict[str, Any], place: str
) -> None:
    with pytest.raises(ToolValidationError) as caught:
        decode(kind, arguments)
    assert [problem.path for problem in caught.value.problems] == [place]


class Allowing(BaseModel):
    model_config = ConfigDict(extra="allow")
    size: int


class Ignoring(BaseModel):
    model_config = ConfigDict(extra="ignore")
    size: int


class Forbidding(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    size: int


class Silent(BaseModel):
    size: int
    inner: Silent | Allowing | None = None


def test_unknown_fields_are_refused_unless_the_model_says_otherwise() -> None:
    sent = {"size": 1, "more": 2}
    assert decode(Allowing, sent).model_extra == {"more": 2}
    assert decode(Ignoring, sent) == Ignoring(size=1)
    for kind in (Forbidding, pydantic.create_model("Made", size=int)):
        assert problems(kind, sent) == ["more: unknown field; the fields are size"]
    assert model_of(Allowing).schema()["additionalProperties"] is True
    assert model_of(Forbidding).schema()["additionalProperties"] is False


def test_a_strict_model_converts_nothing_but_a_whole_number() -> None:
    assert problems(Forbidding, {"size": "one"}) == ["size: expected an integer, got a string"]
    assert decode(Forbidding, {"size": 1.0}) == Forbidding(size=1)


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    size: int
    day: datetime.date | None = None
    pair: tuple[int, str] = (1, "a")
    plain: Plain | None = None


def test_a_strict_model_takes_what_json_has_no_other_way_to_say() -> None:
    assert decode(Strict, '{"size": 1, "day": "2026-01-31"}').day == datetime.date(2026, 1, 31)
    assert decode(Strict, '{"size": 1, "pair": [2, "b"]}').pair == (2, "b")
    assert decode(Strict, {"size": 1, "plain": {"size": 2}}).plain == Plain(2)
    assert problems(Strict, {"size": "one"}) == ["size: expected an integer, got a string"]


class Checked(BaseModel):
    low: int
    high: int = 9

    @pydantic.model_validator(mode="before")
    @classmethod
    def _before(cls, data: dict[str, Any]) -> dict[str, Any]:
        if data.get("low") == 13:
            raise ValueError("13 brings bad luck")
        return data

    @pydantic.field_validator("high")
    @classmethod
    def _high(cls, value: int) -> int:
        if value == 7:
            raise AssertionError("no seven")
        return value

    @pydantic.model_validator(mode="after")
    def _after(self) -> Checked:
        if self.low > self.high:
            raise ValueError("Low is above high")
        return self

    @pydantic.computed_field
    def width(self) -> int:
        return self.high - self.low


class Holder(BaseModel):
    one: Checked
    several: list[Checked] = []
    maybe: Checked | None = None
    named: dict[str, Checked] = {}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"low": 13}, ["13 brings bad luck"]),
        ({"low": 10}, ["Low is above high"]),
        ({"low": 1, "high": 7}, ["high: no seven"]),
        ({"low": 1, "width": 8}, ["width: unknown field; the fields are low, high"]),
    ],
)
def test_validators_refuse_in_their_own_words(arguments: object, expected: list[str]) -> None:
    assert problems(Checked, arguments) == expected


def test_nested_validators_refuse_at_their_places() -> None:
    wrong = {"low": 10}
    assert problems(
        Holder, {"one": {"low": 13}, "several": [wrong], "maybe": wrong, "named": {"a": wrong}}
    ) == [
        "one: 13 brings bad luck",
        "several[0]: Low is above high",
        "maybe: Low is above high",
        "named.a: Low is above high",
    ]


def refusing(error: Exception) -> type[BaseModel]:
    class Refusing(BaseModel):
        size: int

        @pydantic.field_validator("size")
        @classmethod
        def _refuse(cls, value: int) -> int:
            raise error

    return Refusing


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ValueError("never"), "size: never"),
        (AssertionError("never"), "size: never"),
        (TypeError("never"), "never"),
    ],
)
def test_what_a_validator_refuses_with_is_a_refusal(error: Exception, told: str) -> None:
    assert problems(refusing(error), {"size": 1}) == [told]


@pytest.mark.parametrize("failure", [KeyError, RuntimeError, OSError])
def test_any_other_exception_of_a_validator_is_a_failure_and_no_refusal(failure: type[Exception]) -> None:
    error = failure("dsn=postgres://u:hunter2@h")
    with pytest.raises(failure) as caught:
        decode(refusing(error), {"size": 1})
    assert caught.value is error


class Custom(BaseModel):
    size: int

    @pydantic.field_validator("size", mode="before")
    @classmethod
    def _refuse(cls, value: int) -> int:
        raise PydanticCustomError("odd_type", "{value} is odd", {"value": value})


def test_a_custom_error_keeps_its_words() -> None:
    assert problems(Custom, {"size": 3}) == ["size: 3 is odd"]


class Rooted(pydantic.RootModel[dict[str, int]]):
    pass


@pydantic.dataclasses.dataclass
class Data:
    size: int
    word: str = Field(default="x", max_length=2)


class Mixed(BaseModel):
    plain: Plain
    data: Data | None = None


class Box(BaseModel, Generic[T]):
    content: T


@pytest.mark.parametrize(
    ("kind", "arguments", "expected"),
    [
        (Rooted, {"a": 1}, []),
        (Rooted, {"a": "x"}, ["a: expected an integer, got a string"]),
        (Data, {"size": 1}, []),
        (
            Data,
            {"size": "x", "word": "xxx", "zzz": 1},
            [
                "size: expected an integer, got a string",
                "word: expected at most 2 characters, got 3 characters",
                "zzz: unknown field; the fields are size, word",
            ],
        ),
        (Data, {}, ["size: missing; send an integer"]),
        (Mixed, {"plain": {"size": 1, "zzz": 2}}, ["plain.zzz: unknown field; the fields are size"]),
        (Mixed, {"plain": {"size": 1}, "data": {}}, ["data.size: missing; send an integer"]),
        (Box[int], {"content": 1}, []),
        (Box[int], {"content": "x"}, ["content: expected an integer, got a string"]),
    ],
)
def test_models_of_all_kinds(kind: type, arguments: object, expected: list[str]) -> None:
    assert problems(kind, arguments) == expected


class Secret(BaseModel):
    word: pydantic.SecretStr


def test_a_secret_stays_one() -> None:
    assert decode(Secret, {"word": "s"}).word.get_secret_value() == "s"
    assert problems(Secret, {"word": 1}) == ["word: expected a string, got a number"]


class Uncalled(BaseModel):
    later: Nowhere | None = None  # type: ignore[name-defined]  # noqa: F821 - what the test is about


class Strange(BaseModel):
    action: Callable[[], int] | None = None


@pytest.mark.parametrize("arguments", [{}, {"again": 3}, {"zzz": 1}])
@pytest.mark.parametrize("kind", [Uncalled, Strange])
def test_a_model_that_no_schema_can_be_made_of_is_the_developers_mistake_whatever_is_sent(
    kind: type, arguments: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match=kind.__name__):
        decode(kind, arguments)


class Numbers(BaseModel):
    numbers: list[int] = []


@pytest.mark.parametrize("count", [49, 50, 5_000])
def test_at_most_fifty_problems_are_told_and_then_that_there_are_more(count: int) -> None:
    told = problems(Numbers, {"numbers": ["x"] * count})
    expected = [f"numbers[{place}]: expected an integer, got a string" for place in range(min(count, 50))]
    assert told == expected + ["more may be wrong; mend these first"] * (count >= 50)


def test_a_tool_is_asked_what_else_is_wrong() -> None:
    with pytest.raises(ToolValidationError) as caught:
        decode(Numbers, {"numbers": 1}, lambda arguments: [Problem(f"saw {sorted(arguments)}", "more")])
    assert list(map(str, caught.value.problems)) == [
        "numbers: expected an array, got a number",
        "more: saw ['numbers']",
    ]


def test_a_mapping_that_is_no_json_is_refused() -> None:
    told = ["arguments must hold JSON values only: text, numbers, booleans, null, arrays, objects"]
    assert problems(Numbers, {1: 2}) == told
    endless: dict[str, Any] = {}
    endless["numbers"] = endless
    assert problems(Numbers, endless) == ["numbers: expected an array, got an object"]


def test_a_schema_is_a_copy_of_ones_own() -> None:
    model = model_of(Numbers)
    model.schema().clear()
    assert model.schema() == {
        "type": "object",
        "properties": {"numbers": {"type": "array", "items": {"type": "integer"}}},
        "additionalProperties": False,
    }
    model.convert({"numbers": [1]})
    with pytest.raises(ToolValidationError):
        model.convert({"numbers": 1})
