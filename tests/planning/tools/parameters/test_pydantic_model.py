"""Models of pydantic: aliases, extra fields, strictness, bounds."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

import pytest
from decoding import decode, problems
from pydantic import AliasChoices, AliasPath, BaseModel, ConfigDict, Field, StringConstraints

from planning import Toolbox
from planning.tools.spec import model_of

AN_INTEGER = "expected an integer, got a string"


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
        (Aliased, {"firstName": "x"}, [f"firstName: {AN_INTEGER}"]),
        (Populated, {"first": 1}, []),
        (Populated, {"firstName": 1}, []),
    ],
)
def test_aliases_are_the_names_that_are_sent(kind: type, arguments: object, expected: list[str]) -> None:
    assert problems(kind, arguments) == expected


class Allowing(BaseModel):
    model_config = ConfigDict(extra="allow")
    size: int


class Ignoring(BaseModel):
    model_config = ConfigDict(extra="ignore")
    size: int


@dataclass
class Plain:
    size: int


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    size: int
    day: datetime.date | None = None
    pair: tuple[int, str] = (1, "a")
    plain: Plain | None = None


def test_unknown_fields_are_refused_unless_the_model_says_otherwise() -> None:
    sent = {"size": 1, "more": 2}
    assert decode(Allowing, sent).model_extra == {"more": 2}
    assert decode(Ignoring, sent) == Ignoring(size=1)
    assert problems(Strict, sent) == ["more: unknown field; the fields are size, day, pair, plain"]
    published = [model_of(kind).schema()["additionalProperties"] for kind in (Allowing, Strict)]
    assert published == [True, False]


def test_a_strict_model_takes_what_json_has_no_other_way_to_say_and_nothing_more() -> None:
    text = '{"size": 1.0, "day": "2026-01-31", "pair": [2, "b"], "plain": {"size": 2}}'
    expected = Strict(size=1, day=datetime.date(2026, 1, 31), pair=(2, "b"), plain=Plain(2))
    assert decode(Strict, text) == expected
    assert problems(Strict, {"size": "one"}) == [f"size: {AN_INTEGER}"]


class Uncalled(BaseModel):
    later: Nowhere | None = None  # type: ignore[name-defined]  # noqa: F821 - what the test is about


class Strange(BaseModel):
    action: Callable[[], int] | None = None


@pytest.mark.parametrize("arguments", [{}, {"again": 3}])
@pytest.mark.parametrize("kind", [Uncalled, Strange])
def test_a_model_that_no_schema_can_be_made_of_is_the_developers_mistake_whatever_is_sent(
    kind: type, arguments: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match=kind.__name__):
        decode(kind, arguments)


class Tree(BaseModel):
    size: int = 0
    branches: list[Tree] = []


def test_two_parameters_may_have_the_same_model_that_contains_itself() -> None:
    def graft(stem: Tree, scion: Tree) -> str:
        return f"{stem.branches[0].size} {scion.size}"

    toolbox = Toolbox([graft])
    assert (
        toolbox.call("graft", '{"stem": {"branches": [{"size": 1}]}, "scion": {"size": 2}}').message == "1 2"
    )
    refused = toolbox.call("graft", '{"stem": {"branches": [{"size": "x"}]}, "scion": {"site": 2}}').message
    assert refused == (
        f"Refused, nothing changed. 2 problems:\n- stem.branches[0].size: {AN_INTEGER}\n"
        "- scion.site: unknown field; did you mean size?"
    )


class Bounded(BaseModel):
    """Bounds whose values are sent as text, and of text that is trimmed."""

    day: Annotated[datetime.date, Field(gt=datetime.date(2020, 1, 1))] = datetime.date(2026, 1, 1)
    price: Annotated[Decimal, Field(le=5)] = Decimal(1)
    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=2)] = "ab"


def test_a_value_that_breaks_a_bound_is_measured_as_the_bound_measures_it() -> None:
    assert problems(Bounded, {"day": "2019-01-01", "price": "5.5", "name": " a "}) == [
        "day: expected more than 2020-01-01, got '2019-01-01'",
        "price: expected at most 5, got '5.5'",
        "name: expected at least 2 characters, got 1 character",
    ]
