"""One field of any type, in a record of each kind: what it takes, and what is said of its mistakes."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, TypedDict, TypeVar

import attrs
import pydantic
import pytest
import typing_extensions
from decoding import decode, problems
from pydantic import AliasChoices, AliasPath, BeforeValidator, Field, StringConstraints, WrapValidator
from syrupy.assertion import SnapshotAssertion

from planning.tools import Toolbox, tool
from planning.tools.parameters.model import ParameterModel
from planning.tools.spec import model_of

T = TypeVar("T")


def models(hint: Any, *default: Any) -> dict[str, ParameterModel]:
    """A declaration with one field, x, in each of the five ways, or the four that can have a default."""

    def function(x: Any) -> Any: ...

    function.__annotations__, function.__defaults__ = {"x": hint}, default or None
    (given,) = default or (attrs.NOTHING,)
    field = dataclasses.field(default=dataclasses.MISSING if given is attrs.NOTHING else given)
    made: dict[str, Any] = {
        "dataclass": dataclasses.make_dataclass("Made", [("x", hint, field)]),
        "attrs": attrs.make_class("Made", {"x": attrs.field(type=hint, default=given)}),
    }
    if not default:
        made["TypedDict"] = typing_extensions.TypedDict("Made", {"x": hint})  # type: ignore[operator]  # a type made on the spot
    if hint not in READ_BY_PYDANTIC:
        made["pydantic"] = pydantic.create_model("Made", x=(hint, *(default or (...,))))
    return {**{way: model_of(kind) for way, kind in made.items()}, "function": tool(function).model}


def decoded(model: ParameterModel, sent: object) -> Any:
    """What a field x is given."""
    value = decode(model, {"x": sent})
    return value["x"] if isinstance(value, dict) else value.x


@dataclass
class Inner:
    size: int
    word: str = ""


@pydantic.dataclasses.dataclass
class Data:
    size: int
    word: str = Field(default="x", max_length=2)


@dataclass(frozen=True)
class Point:
    """A docstring for programmers, which no model reads."""

    size: int


class ModelBox(pydantic.BaseModel, Generic[T]):
    content: T


class Pair(NamedTuple):
    left: int
    right: str = "r"
    more: tuple[int, ...] = (1,)


class Fixed(TypedDict):
    around: Annotated[typing_extensions.ReadOnly[Inner], "What it holds"]
    note: NotRequired[str]


Model = pydantic.create_model("Model", size=(int, ...))
Digits = TypedDict("Digits", {"1": Inner, "a-b": int})
Stretch = TypedDict("Stretch", {"a-start": int, "a-stars": int})
Named = NewType("Named", Inner)
Alias = typing_extensions.TypeAliasType("Alias", list[Inner])
Generically = typing_extensions.TypeAliasType("Generically", list[T], type_params=(T,))


class Number(enum.IntEnum):
    TWO = 2
    ONE = 1


class Letter(enum.StrEnum):
    Z = "z"
    A = "a"


Odd = dataclasses.make_dataclass("Odd", [("default", int)])  # as a key of pydantic's own schemas
Box = dataclasses.make_dataclass("Box", [("width", Number), ("height", Number)])
Cat = dataclasses.make_dataclass(
    "Cat", [("type", Literal["cat"]), ("lives", int), ("name", str | None, None)]
)
Dog = dataclasses.make_dataclass("Dog", [("type", Literal["dog"]), ("sound", str), ("name", str, "")])
# Their tags are words of pydantic's own schemas.
Default, Config = (
    dataclasses.make_dataclass(tag.title(), [("kind", Literal[tag]), ("size", int)])
    for tag in ("default", "config")
)


class Kitten(pydantic.BaseModel):
    type: Literal["cat"]
    lives: int


class Puppy(pydantic.BaseModel):
    type: Literal["dog"]
    sound: str


Tagged = Annotated[Kitten | Puppy, Field(discriminator="type")]
# What stands in a model of pydantic is read by pydantic alone, which knows less of these.
READ_BY_PYDANTIC = [Fixed, list[Fixed], Cat | Dog, Default | Config]
if sys.version_info < (3, 12):  # there, its own models take no typing.TypedDict
    READ_BY_PYDANTIC += [Digits, dict[str, list[Stretch]]]
BETWEEN = Annotated[float, Field(gt=0, lt=2)]
AN_INTEGER = "expected an integer, got a string"
MIXED = [None, {"size": 1}, {"size": "x"}, {"sise": 1}]
MAPPED = {"a": {"size": "x"}, "b": {"more": 1}}

# The type of the field, and what is sent for it.
REFUSED: list[tuple[Any, Any]] = [
    (str, 3), (str, None), (int, 2.5), (list[str], ["a", 1, None]),
    (datetime.date, "2026-02-30"), (Inner, 3), (Inner, "{"),
    (Inner | None, {"size": "x", "more": 1}),
    (list[Inner | None], MIXED),
    (Inner | int, {"zzz": 1}),
    (Inner | int, "x"),
    (dict[str, Inner], MAPPED),
    (Model, {"size": "x", "z": 1}),
    (Data | None, {"size": "x", "word": "xxx", "z": 1}),
    (Fixed, {"around": {"size": 1, "z": 2}}),
    (ModelBox[int], {"content": "x"}), (Alias, [{"size": 1, "z": 2}]),
    (tuple[int, str], ["x", 1]), (dict[int, str], {"1": 5}), (dict[int, str], {"x": "y"}), (Pair, []),
    (dict[str, int], {"a.b": "x"}), (dict[str, int], {"x" * 61: "x"}),
    (dict[Number, Inner], {"2": {"size": "x", "z": 1}}),
    (dict[Number, Inner], {"3": {"size": 1}}),
    (dict[str, list[Stretch]], {"a": [{"a-start": 1, "a-star": 2}]}),
    (Digits, {"1": {"size": "x", "z": 1}, "a-b": 2}),
    (list[Literal["z", "a"]], ["a", "q"]),
    (Literal["z", None], "q"),
    (Number, 3),
    *((Literal[1, 2], number) for number in (-4, 10**15 - 1, 10**15)),
    (Literal["a", "b"], 4),
    (Letter | None, "q"),
    (Literal["b", "a"] | int, "c"),
    *((kind, "x") for kind in (datetime.datetime, datetime.time | None, datetime.timedelta, uuid.UUID)),
    (decimal.Decimal, "x"), (pydantic.HttpUrl, "x"), (pydantic.SecretStr, 1),
    (Annotated[str, Field(pattern="^a")], "b"),
    (Annotated[str, Field(pattern="^a")], 1),
    (Annotated[str, Field(max_length=3)], "aaaa"),
    (Annotated[list[int], Field(min_length=1)], []),
    (list[Annotated[int, Field(ge=0)]], [-1]),
    (Annotated[int, Field(multiple_of=3)], 4),
    *((Annotated[int, Field(le=5)], number) for number in (10**15 - 1, 10**15)),
    (BETWEEN, 0), (BETWEEN, 2), *((Annotated[int, Field(gt=1, lt=3)], number) for number in (1, 3)),
    (Annotated[dict[str, int], Field(min_length=1)], {}),
    (Annotated[dict[str, int], Field(max_length=1)], {"a": 1, "b": 2}),
    (Annotated[int, Field(ge=5)] | None, 1),
    (Cat | Dog, {}),
    (Cat | Dog, {"type": "cow"}),
    *((Default | Config, {"kind": kind, "size": True}) for kind in ("default", "config")),
    (Kitten, {"type": "dog", "lives": 1}),
    (Tagged, {"type": "cat", "lives": 9, "z": 1}),
    (Tagged, 3),
    (list[Tagged], [{"type": "dog"}, {}]),
    (list[int] | dict[str, int], 3),
]  # fmt: skip
# pydantic is as lax as it is configured to be, and by default its own models convert these.
CONVERTED: list[tuple[Any, Any]] = [
    (int, True), (Number, True), (Literal[1, 2], True), (bool, "yes"), (bool, 1),
    (datetime.date, "2026-01-31T00:00:00"), (Odd, {"default": True}),
    *((kind, number) for kind in (datetime.date, datetime.datetime, datetime.time | None, datetime.timedelta)
      for number in (4, "4", "-1.5")),
]  # fmt: skip


# Of these a published schema says less than the type: formats are not checked, and tags are fields.
MORE_THAN_A_SCHEMA: list[Any] = [
    *(datetime.datetime, datetime.time | None, datetime.timedelta, uuid.UUID, decimal.Decimal),
    *(pydantic.HttpUrl, pydantic.SecretStr), datetime.date, dict[int, str], dict[Number, Inner],
    dict[str, int], BETWEEN, Cat | Dog, list[Tagged], set[Point],
]  # fmt: skip


def test_a_mistake_is_told_once_at_its_place_in_every_way_of_declaring_it(
    snapshot: SnapshotAssertion,
) -> None:
    said = []
    for hint, sent in REFUSED + CONVERTED:
        every = models(hint)
        if (hint, sent) in CONVERTED:
            del every["pydantic"]
        expected = problems(every["dataclass"], {"x": sent})
        told = {way: problems(model, {"x": sent}) for way, model in every.items()}
        assert told == dict.fromkeys(told, expected), (hint, sent)
        said.append("\n".join([f"{sent!r}", *expected, ""]))
    assert "\n".join(said) == snapshot


@pytest.mark.parametrize(
    ("hint", "sent"), [each for each in REFUSED + CONVERTED if each[0] not in MORE_THAN_A_SCHEMA]
)
def test_a_mistake_is_told_in_the_same_words_by_the_schema_of_the_type(hint: Any, sent: Any) -> None:
    model = model_of(dataclasses.make_dataclass("Made", [("x", hint)]))
    assert sorted(problems(model.schema(), {"x": sent})) == sorted(problems(model, {"x": sent})) != []


TAKEN: list[tuple[Any, Any, Any]] = [
    (list[str], '["a", "b"]', ["a", "b"]),
    (Inner, '{"size": 1}', Inner(1)),
    (float, "-1.5e1", -15.0),
    (Inner, {"size": "7"}, Inner(7)),
    (list[Inner | None], [None, {"size": 1}], [None, Inner(1)]),
    (Model | None, {"size": 2.0}, Model(size=2)),
    (Data, {"size": 1}, Data(1)),
    (list[Fixed], [{"around": {"size": 1}}], [{"around": Inner(1)}]),
    (Digits, {"1": {"size": 1}, "a-b": 2}, {"1": Inner(1), "a-b": 2}),
    (Named, {"size": 1}, Inner(1)),
    (Generically[Inner], [{"size": 1}], [Inner(1)]),
    (tuple[int, Inner], [1, {"size": 2}], (1, Inner(2))),
    (set[Point], [{"size": 1}, {"size": 1}], {Point(1)}),
    (Sequence[int], [1], [1]),
    (dict[int, str], {"1": "a"}, {1: "a"}),
    (dict[Number, Inner], {"2": {"size": 1}}, {Number.TWO: Inner(1)}),
    (Pair, [2], Pair(2)),
    (Annotated[int, BeforeValidator(str)], 2, 2),
    (Annotated[int, WrapValidator(lambda given, read: read(str(given)))], 2, 2),
    (Number, 2.0, Number.TWO),
    (Box, {"width": 1, "height": 2}, Box(Number.ONE, Number.TWO)),
    (Cat | Dog, '{"type": "cat", "lives": 2}', Cat("cat", 2)),
    (Cat | Dog, {"type": "cat", "lives": 2.0, "name": None}, Cat("cat", 2)),
    (Cat | Dog, {"type": "dog", "sound": "w", "name": None}, Dog("dog", "w")),
    (list[Tagged], ['{"type": "dog", "sound": "w"}'], [Puppy(type="dog", sound="w")]),
]


@pytest.mark.parametrize(("hint", "sent", "expected"), TAKEN)
def test_what_fits_is_decoded_to_its_type(hint: Any, sent: Any, expected: Any) -> None:
    every = models(hint)
    schema = every["dataclass"].schema()
    assert ([] if hint in MORE_THAN_A_SCHEMA else problems(schema, {"x": sent})) == []
    for model in every.values():
        value = decoded(model, sent)
        assert (value, type(value)) == (expected, type(expected))


@dataclass
class Optionally:
    size: int
    word: str | None = None


# Each type, with its default if it has one: an option whose default is None is published without null.
PUBLISHED: list[tuple[Any, ...]] = [
    *((hint,) for hint in (Literal["z", "a"], Number, Letter | None, Literal["b", 1, "a"], int | str)),
    *((hint,) for hint in (Point, Point | None, int | None, Literal[1, None], Cat | Dog)),
    *((hint, None) for hint in (
        int | None, list[int | None] | None, Optionally | None, list[Optionally] | None,
        dict[str, int | None] | None, int | str | None, str | int | None, Letter | None, Literal["a", None],
        Annotated[int | None, Field(ge=1, description="N")], type(None),
    )),
    (int | None, 5),
    (Literal[1, None], 1),
]  # fmt: skip


def test_a_type_is_published_as_it_is_declared_with_null_where_that_is_not_the_default(
    snapshot: SnapshotAssertion,
) -> None:
    said = []
    for hint, *default in PUBLISHED:
        schemas = [model.schema() for model in models(hint, *default).values()]
        assert [(each["properties"], each.get("required")) for each in schemas] == [
            (schemas[0]["properties"], None if default else ["x"])
        ] * len(schemas)
        said.append(f"{default}: {json.dumps(schemas[0]['properties']['x'], sort_keys=True)}")
        for model in models(hint, *default).values() if default else ():
            assert decoded(model, None) is None
    assert "\n".join(said) == snapshot
    # The docstring of a record is published neither in a field nor alone.
    assert models(Point)["dataclass"].schema()["properties"]["x"] == model_of(Point).schema()


@pytest.mark.parametrize("count", [49, 50, 5_000])
def test_at_most_fifty_problems_are_told_and_then_that_there_are_more(count: int) -> None:
    expected = [f"x[{place}]: {AN_INTEGER}" for place in range(min(count, 50))]
    expected += ["there may be more errors; fix these first"] * (count >= 50)
    told = {way: problems(model, {"x": ["x"] * count}) for way, model in models(list[int]).items()}
    assert told == dict.fromkeys(told, expected)


# Models of pydantic: aliases, further fields, strictness, bounds


class Aliased(pydantic.BaseModel):
    first: int = Field(alias="firstName")
    second: int = Field(default=1, validation_alias=AliasChoices("two", "zwei"))
    third: int = Field(default=1, validation_alias=AliasPath("deep", "three"))


class Populated(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(populate_by_name=True)
    first: int = Field(alias="firstName")


Allowing, Ignoring = (
    pydantic.create_model("Made", __config__=pydantic.ConfigDict(extra=extra), size=(int, ...))
    for extra in ("allow", "ignore")
)


class Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", strict=True)
    size: int
    day: datetime.date | None = None
    pair: tuple[int, str] = (1, "a")
    plain: Point | None = None


def test_unknown_fields_are_refused_unless_the_model_says_otherwise() -> None:
    sent = {"size": 1, "more": 2}
    assert decode(Allowing, sent).model_extra == {"more": 2}
    assert decode(Ignoring, sent) == Ignoring(size=1)
    held = [each for way, each in models(Ignoring).items() if way != "pydantic"]
    unknown = [problems(each, {"x": sent, "z": 1}) for each in held]
    assert unknown == [["z: unknown field; the fields are x"]] * len(held)
    assert [model_of(kind).schema()["additionalProperties"] for kind in (Allowing, Strict)] == [True, False]


def test_a_strict_model_takes_what_json_has_no_other_way_to_say_and_nothing_more() -> None:
    text = '{"size": 1.0, "day": "2026-01-31", "pair": [2, "b"], "plain": {"size": 2}}'
    day = datetime.date(2026, 1, 31)
    assert decode(Strict, text) == Strict(size=1, day=day, pair=(2, "b"), plain=Point(2))


class Uncalled(pydantic.BaseModel):
    later: Nowhere | None = None  # type: ignore[name-defined]  # noqa: F821 - what the test is about


Strange = pydantic.create_model("Strange", action=(Callable[[], int] | None, None))


@pytest.mark.parametrize("arguments", [{}, {"again": 3}])
@pytest.mark.parametrize("kind", [Uncalled, Strange])
def test_a_model_without_a_schema_is_the_developers_mistake(kind: type, arguments: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=kind.__name__):
        decode(kind, arguments)


class Tree(pydantic.BaseModel):
    size: int = 0
    branches: list[Tree] = []


def test_two_parameters_may_have_the_same_model_that_contains_itself() -> None:
    def graft(stem: Tree, scion: Tree) -> str:
        return f"{stem.branches[0].size} {scion.size}"

    toolbox = Toolbox([graft])
    taken = '{"stem": {"branches": [{"size": 1}]}, "scion": {"size": 2}}'
    assert toolbox.call("graft", taken).message == "1 2"
    refused = '{"stem": {"branches": [{"size": "x"}]}, "scion": {"site": 2}}'
    assert toolbox.call("graft", refused).message == (
        f"Refused, nothing changed. 2 problems:\n- stem.branches[0].size: {AN_INTEGER}\n"
        "- scion.site: unknown field; did you mean size?"
    )


class Bounded(pydantic.BaseModel):
    """Bounds whose values are sent as text, and of text that is trimmed."""

    day: Annotated[datetime.date, Field(gt=datetime.date(2020, 1, 1))] = datetime.date(2026, 1, 1)
    price: Annotated[decimal.Decimal, Field(le=5)] = decimal.Decimal(1)
    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=2)] = "ab"


SENT: list[tuple[type, dict[str, Any]]] = [
    (Aliased, {"firstName": 1, "zwei": 2, "deep": {"three": 3}}),
    (Aliased, {"first": 1}),
    (Aliased, {"firstName": "x"}),
    (Populated, {"first": 1}),
    (Strict, {"size": 1, "more": 2}),
    (Strict, {"size": "one"}),
    (Bounded, {"day": "2019-01-01", "price": "5.5", "name": " a "}),
]


def test_the_mistakes_in_a_model_of_pydantic_are_told_by_its_aliases_its_fields_and_its_bounds(
    snapshot: SnapshotAssertion,
) -> None:
    said = ["\n".join([f"{kind.__name__} {sent}", *problems(kind, sent), ""]) for kind, sent in SENT]
    assert "\n".join([*said, json.dumps(model_of(Bounded).schema())]) == snapshot


def hand_written(part: Any) -> dict[str, Any]:
    """A schema with the same one under every keyword, in the order of publishing; the last by name."""
    listed, named = [part], {"a": part}
    return {
        "type": "object", "enum": ["a"], "const": "a", "properties": named, "required": ["a"], "items": part,
        "prefixItems": listed, "anyOf": listed, "oneOf": listed, "format": "a", "description": "d",
        "minLength": 1, "maxLength": 1, "minItems": 1, "maxItems": 1, "additionalProperties": part,
        "additionalItems": part, "allOf": listed, "contains": part, "contentSchema": part,
        "definitions": named, "dependencies": named, "dependentSchemas": named, "else": part, "if": part,
        "not": part, "patternProperties": named, "propertyNames": part, "then": part,
        "unevaluatedItems": part, "unevaluatedProperties": part,
    }  # fmt: skip


DROPPED = {"title": "A", "default": 1, "discriminator": {"propertyName": "a"}}


def test_a_schema_of_ones_own_is_shortened_under_every_keyword_and_published_in_order() -> None:
    kind = Annotated[Any, pydantic.WithJsonSchema(hand_written({**DROPPED, "type": ["integer"]}))]
    published = model_of(pydantic.create_model("Made", x=(kind, ...))).schema()["properties"]["x"]
    assert [*published.items()] == [*hand_written({"type": "integer"}).items()]
