"""What a declaration says is enforced, or refused where it is declared; and rules of your own."""

from __future__ import annotations

import dataclasses
import datetime
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, Literal, TypeVar

import annotated_types
import attrs
import jsonschema
import pydantic
import pytest
from decoding import decode, problems
from syrupy.assertion import SnapshotAssertion

from planning.errors import Problem
from planning.tools import Tool, Toolbox, ToolSpec, tool
from planning.tools.spec import model_of

T = TypeVar("T")


def echo(given: object) -> str:
    return str(given)


@dataclass
class Node:
    name: str
    children: list[Node] = field(default_factory=list)
    twin: Node | None = None


@attrs.define
class Leaf:
    name: str
    below: list[Leaf] = attrs.field(factory=list)


def test_a_type_may_hold_itself() -> None:
    sent: dict[str, Any] = {"name": "a", "children": [{"name": "b", "twin": {"name": "c"}}]}
    assert decode(Node, sent) == Node("a", [Node("b", [], Node("c"))])
    assert decode(Leaf, {"name": "a", "below": [{"name": "b"}]}) == Leaf("a", [Leaf("b")])
    schema = jsonschema.Draft202012Validator(model_of(Node).schema())
    assert schema.is_valid(sent)
    sent["children"][0]["twin"] = {"nam": 1}
    assert not schema.is_valid(sent)
    assert problems(Node, sent) == [
        "children[0].twin.name: missing; send a string",
        "children[0].twin.nam: unknown field; did you mean name?",
    ]


@attrs.define
class Renamed:
    _size: int
    kind: str = attrs.field(default="a", alias="sort")


def test_the_fields_of_a_class_are_sent_by_their_names_whatever_its_constructor_calls_them() -> None:
    assert decode(Renamed, {"_size": 1, "kind": "b"}) == Renamed(size=1, sort="b")


def connected(to: sqlite3.Connection) -> None: ...


def called(back: Callable[[], int]) -> None: ...


def defaulted(a: int = pydantic.Field(1, ge=1)) -> None: ...


def by_position(size: int, /, other: int = 1) -> None: ...


def listing(folder: str, *paths: str) -> None: ...


def dated(at: list[Annotated[datetime.datetime, annotated_types.Timezone("UTC")]]) -> None: ...


class Thing:
    def method(self, a: int) -> int:
        return a


@attrs.define
class AttrsDefault:
    a: int = pydantic.Field(default=1, ge=1)


UNZONED = Annotated[datetime.datetime, annotated_types.Timezone(...)]
DataclassDefault = dataclasses.make_dataclass(
    "DataclassDefault", [("a", int, pydantic.Field(default=1, ge=1))]
)
Dated = dataclasses.make_dataclass("Dated", [("at", UNZONED)])
Unread = dataclasses.make_dataclass("Unread", [("a", "Nowhere")])
Initial = dataclasses.make_dataclass("Initial", [("a", dataclasses.InitVar[int])])
NO_TOOLS: list[Any] = [
    connected, called, defaulted, dated, by_position, len, listing, Thing, Thing.method,
    type("x" * 300, (), {}),
]  # fmt: skip
OfAny: Any = dataclasses.make_dataclass("OfAny", [("content", T)], bases=(Generic[T],))  # type: ignore[index]  # a base all the same
OfAny.__module__ = __name__
Generics = [dataclasses.make_dataclass("Made", [("x", kind)]) for kind in (OfAny, OfAny[int])]
NO_PARAMETERS: list[Any] = [DataclassDefault, AttrsDefault, Dated, int, Unread, Initial, *Generics]


def test_what_cannot_be_a_tool_or_its_parameters_is_refused_where_it_is_declared(
    snapshot: SnapshotAssertion,
) -> None:
    def refusal(declare: Callable[[Any], Any], declared: Any) -> str:
        with pytest.raises(TypeError) as caught:
            declare(declared)
        return str(caught.value)

    said = [refusal(tool, each) for each in NO_TOOLS]
    said += [
        refusal(lambda kind: Tool("t", "T.", echo, parameters=kind).model, each) for each in NO_PARAMETERS
    ]
    of_specs = [refusal(lambda kind: ToolSpec("t", {"q": kind}, "t"), each) for each in NO_PARAMETERS]
    assert of_specs == said[-len(of_specs) :]
    assert "\n".join(said) == snapshot


@pytest.mark.parametrize(
    ("kind", "sent", "expected"),
    [
        (Node, {"nam": "s3cret"},
         "2 problems:\n- name: missing; send a string\n- refused; send an object with name, children, twin"),
        (Node, {"name": 5, "children": [{"name": "a", "s3cret": 1}], "twin": {"name": ["s3cret"]}},
         "3 problems:\n- name: refused; send a string\n"
         "- children[0]: refused; send an object with name, children, twin\n"
         "- twin.name: refused; send a string"),
        ({"type": "object"}, '{"s3cret": 1, "s3cret": 2}', "refused; send an object"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("options", [{}, {"requires_identifier": True, "identifiers": ("name", "nam")}])
def test_a_private_refusal_has_the_words_of_the_schema_and_none_of_what_was_sent(
    kind: Any, sent: Any, expected: str, options: dict[str, Any]
) -> None:
    private = Tool("t", "T.", echo, parameters=kind, returns_private_data=True, **options)
    assert Toolbox([private]).call("t", sent).message == f"Refused, nothing changed. {expected}"


FETCHED = (
    "the parameters are not a valid JSON Schema: Resource 'file:///etc/passwd' is not present in a registry "
    "and retrieving it failed: ValueError: it refers to file:///etc/passwd, which is not fetched; put the "
    "definition under $defs"
)


@pytest.mark.parametrize(
    ("schema", "kind", "message"),
    [
        ({"type": "string"}, ValueError, 'parameters are an object: write {"type": "object", "properties": '),
        ({"type": "object", "minimum": float("nan")}, TypeError, "a JSON Schema contains only JSON values: "),
        ({"type": "object", "default": {1}}, TypeError, "a JSON Schema contains only JSON values: "),
        ({"type": "object", "properties": {"a": {"type": "text"}}}, ValueError,
         "the parameters are not a valid JSON Schema: "),
        ({"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}, ValueError, FETCHED),
    ],
)  # fmt: skip
def test_a_schema_that_is_none_is_refused(schema: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=f"^{re.escape(message)}"):
        Tool("t", "T.", print, parameters=schema)


@dataclass(frozen=True)
class ByName:
    """One form of a query."""

    name: str


@dataclass(frozen=True)
class ByNumber:
    """The other."""

    number: int


def test_the_fields_of_two_forms_at_once_are_named_and_no_field_is_said_to_mean_itself() -> None:
    def find(query: ByName | ByNumber) -> None: ...

    assert problems(tool(find).model, {"query": {"name": "a", "number": 1}}) == [
        f"query.{name}: only one form has this field; send the fields of one form"
        for name in ("number", "name")
    ]


def test_a_value_is_named_by_its_kind_and_text_that_reads_as_another_value_is_quoted() -> None:
    kinds = {"a boolean": True, "a number": 1.5, "an array": (), "an object": {}, "null": None}
    words = ["true", "false", "null", "NaN", "Infinity", "-1"]
    kind = dataclasses.make_dataclass("Made", [("a", str), ("b", Literal[(*words, "a b")])])
    quoted = f"b: 'q' is unknown; send one of {', '.join(map(json.dumps, words))}, a b"
    wrong = [problems(kind, {"a": value, "b": "q"}) for value in kinds.values()]
    assert wrong == [[f"a: expected a string, got {name}", quoted] for name in kinds]


INTEGER = {"type": "integer"}
TUPLE = {"type": "array", "prefixItems": [{"type": "integer"}], "items": False}


KEYWORDS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"properties": {"a": False}}, {"a": 1}),
    ({"propertyNames": False}, {"a": 1}),
    ({"properties": {"a": TUPLE}}, {"a": [1, 2]}),
    ({"properties": {"a": {**TUPLE, "maxItems": 1}}}, {"a": [1, 2]}),
    ({"properties": {"a": {"properties": {"b": {**TUPLE, "maxItems": 1}}}}}, {"a": {"b": [1, 2]}}),
    ({"properties": {"a": {"anyOf": [False, INTEGER]}}}, {"a": "x"}),
    ({"properties": {"a": {"anyOf": [False]}}}, {"a": 1}),
    ({"properties": {"a": {"anyOf": [True]}, "b": INTEGER}}, {"a": 1, "b": "x"}),
    ({"properties": {"a": {"enum": ["yes"]}}, "required": ["a"]}, {}),
    ({"properties": {"a": {"type": "string", "format": "email"}}}, {"a": 5}),
    ({"properties": {"a": {"uniqueItems": True}}}, {"a": [1, 1]}),
    ({"properties": {"a": {"oneOf": [{"maximum": 5}, {"minimum": 3}]}}}, {"a": 4}),
    ({"properties": {"a": {"anyOf": [{"oneOf": [INTEGER]}, {"type": ["boolean"]}, TUPLE]}}}, {"a": "x"}),
]


def test_a_keyword_of_a_plain_schema_is_kept_to(snapshot: SnapshotAssertion) -> None:
    said = [f"{kept} {given}\n{problems({'type': 'object', **kept}, given)}\n" for kept, given in KEYWORDS]
    assert "\n".join(said) == snapshot


@pytest.mark.parametrize(
    ("field", "sent", "taken"),
    [
        (INTEGER, {"a": None}, {}),
        ({"type": ["integer", "null"]}, {"a": None}, {"a": None}),
        (INTEGER, {"a": "5"}, {"a": 5}),
        *(({"anyOf": [five, TUPLE]}, {"a": "5"}, {"a": 5}) for five in ({"const": 5}, {"enum": [5]})),
        ({"enum": [0.5, None]}, {"a": "0.5"}, {"a": 0.5}),
        ({"type": "object", "properties": {"b": {"$ref": "#/$defs/no"}, "c": INTEGER, "d": {"enum": [None]}}},
         {"a": {"b": None, "c": "5", "d": None}}, {"a": {"b": None, "c": 5, "d": None}}),
        ({"type": "array", "items": INTEGER}, {"a": '["1", 2.0]'}, {"a": [1, 2]}),
        ({"type": "array", "prefixItems": [INTEGER]}, {"a": ["1", "2"]}, {"a": [1, "2"]}),
        ({"type": "object", "additionalProperties": INTEGER}, {"a": {"x": "1"}}, {"a": {"x": 1}}),
        ({"anyOf": [{"type": "object", "properties": {"b": INTEGER, "c": INTEGER}, "required": each}
                    for each in (["b", "c"], ["b"])]}, {"a": {"b": "5"}}, {"a": {"b": 5}}),
    ],
)  # fmt: skip
def test_arguments_are_taken_for_what_a_plain_schema_asks_for(
    field: dict[str, Any], sent: dict[str, Any], taken: dict[str, Any]
) -> None:
    no = {"no": {"type": ["integer", "null"]}}
    assert decode({"type": "object", "properties": {"a": field}, "$defs": no}, sent) == taken


# Refusals that a slip in one word of the code would change: of options and of unions with tags


def tagged(tag: str, **properties: Any) -> dict[str, Any]:
    """One object of a union that a tag tells apart."""
    properties = {"kind": {"const": tag}, **properties}
    return {"type": "object", "properties": properties, "required": [*properties]}


FORMATS = ("date", "date-time", "time", "duration", "uuid", "decimal", "email", "uri")
SHAPES = [tagged("circle", size=INTEGER), tagged("square", size=INTEGER)]
DRAWING: dict[str, Any] = {
    "mode": {"enum": ["slow", "fast"]},
    "exact": {"const": "yes"},
    "open": {"type": "object", "required": ["x"]},
    "none": {"type": "object", "properties": {}, "additionalProperties": False},
    **{name: {"type": "string", "format": name} for name in FORMATS},
}


DRAWN: list[dict[str, Any]] = [
    {"shape": {"kind": "circle", "size": "big"}},
    {"shape": {"kind": "sqare", "size": 1}},
    {"shape": {}},
    {"shape": 5},
    {"mode": "fats"},
    {"exact": "no"},
    {"open": "text"},
    dict.fromkeys(("none", *FORMATS), 1),
    # A field beside those of the form that is meant changes nothing for the others.
    {"shape": {"kind": "circle", "size": "7", "z": 1}},
]


def test_a_plain_json_schema_says_what_is_wrong_by_the_option_that_is_meant(
    snapshot: SnapshotAssertion,
) -> None:
    def told(union: str) -> str:
        properties = {**DRAWING, "shape": {union: SHAPES}}
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        return "\n".join(f"{sent}\n{problems(schema, sent)}\n" for sent in DRAWN)

    assert told("anyOf") == told("oneOf") == snapshot


OPERAND = {"$ref": "#/$defs/e"}


def recursive(union: str) -> dict[str, Any]:
    forms = [*(tagged(name, left=OPERAND, right=OPERAND) for name in "abc"), INTEGER]
    return {"type": "object", "properties": {"x": OPERAND}, "$defs": {"e": {union: forms}}}


@dataclass
class Left:
    kind: str
    left: Left | Right | int = 1


@dataclass
class Right(Left):
    right: int = 1


@dataclass
class Holding:
    x: Left | Right | int


@pytest.mark.parametrize(
    ("kind", "forms"),
    [
        (recursive("anyOf"), "an object with kind, left, right"),
        (recursive("oneOf"), "an object with kind, left, right"),
        (Holding, "an object with kind, left or an object with kind, left, right"),
    ],
)
def test_a_union_within_a_union_is_tried_to_the_eighth_level(kind: Any, forms: str) -> None:
    def deep(levels: int) -> Any:
        return {"kind": "a", "left": deep(levels - 1), "right": 1} if levels else "no number"

    for levels in (3, 8):
        wanted = f"x{'.left' * levels}: expected {forms} or an integer, got a string"
        assert problems(kind, {"x": deep(levels)})[0] == wanted
    for levels in (9, 40):
        for sent in (deep(levels), json.dumps(deep(levels))):
            assert problems(kind, {"x": sent}) == ["nested more than 8 levels; send a flatter object"]


# Rules of one's own: limits in metadata, validators, converters, ``__post_init__``

Make = Callable[[str], BaseException]


SMALL = "Nothing is smaller than 0"


def checked_by(make: Make) -> Callable[[int], int]:
    def check(value: int) -> int:
        if value < 0:
            raise make(SMALL)
        return value

    return check


def constructed(make: Make) -> type[Any]:
    @dataclass
    class Positive:
        size: int
        other: int = 0

        def __post_init__(self) -> None:
            checked_by(make)(self.size)

    return Positive


def validated(make: Make) -> type[Any]:
    size: Any = attrs.field(validator=lambda _record, _attribute, value: checked_by(make)(value), type=int)
    return attrs.make_class("Positive", {"size": size, "other": attrs.field(type=int, default=0)})


def converted(make: Make) -> type[Any]:
    return attrs.make_class("Converted", {"size": attrs.field(converter=checked_by(make), type=int)})


def by_pydantic(make: Make) -> type[Any]:
    size = Annotated[int, pydantic.AfterValidator(checked_by(make))]
    return pydantic.create_model("Refusing", size=(size, ...))


DECLARED: dict[Callable[[Make], type[Any]], str] = {
    constructed: SMALL,
    validated: SMALL,
    converted: SMALL,
    by_pydantic: f"size: {SMALL}",
}


@pytest.mark.parametrize("declare", DECLARED)
def test_a_check_refuses_by_value_errors_and_fails_by_others(declare: Callable[[Make], type[Any]]) -> None:
    assert problems(declare(ValueError), {"size": -1}) == [DECLARED[declare]]
    coded = UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad")
    for wrong, words in ((coded, str(coded)), (ValueError(), "ValueError")):
        (said,) = problems(declare(lambda _told, wrong=wrong: wrong), {"size": -1})  # type: ignore[misc]  # bound now
        assert said.removeprefix("size: ") == words
    for failure in (KeyError, OSError, AssertionError):
        error = failure("dsn=postgres://u:hunter2@h")
        kind = declare(lambda _told, error=error: error)  # type: ignore[misc]  # bound now
        if declare is by_pydantic and failure is AssertionError:  # with these its validators refuse
            assert problems(kind, {"size": -1}) == ["size: dsn=postgres://u:hunter2@h"]
            continue
        with pytest.raises(failure) as caught:
            decode(kind, {"size": -1})
        assert caught.value is error


def doubled(record: Any, size: int) -> None:
    record.size = 2 * size


def noted(kind: type[Any], size: int) -> Any:
    record = object.__new__(kind)
    record.noted = size
    return record


def test_a_dataclass_of_its_own_making_is_made_as_it_says() -> None:
    size, noting = ("size", int), {"__new__": noted}
    doubling = dataclasses.make_dataclass("Made", [size], namespace={"__init__": doubled}, init=False)
    assert decode(doubling, {"size": 1}) == doubling(1)
    assert decode(dataclasses.make_dataclass("Made", [size], namespace=noting), {"size": 1}).noted == 1
    hidden = ("hidden", int, field(init=False, default=2))
    assert decode(dataclasses.make_dataclass("Made", [size, hidden]), {"size": 1}).hidden == 2


@attrs.define
class Ranged:
    low: int = attrs.field(default=0, validator=attrs.validators.ge(0))
    high: int = attrs.field(default=9, validator=[attrs.validators.instance_of(int), attrs.validators.lt(10)])
    word: str = attrs.field(default="a", validator=attrs.validators.in_(["a", "b"]))

    def __attrs_post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low is above high")


def checked(text: str) -> Iterator[str]:
    if "-" in text:
        yield "no dashes"


@dataclass
class Limited:
    text: str | None = field(default="ab", metadata={"min_length": 2, "max_length": 3, "description": "T"})
    items: list[str] = field(default_factory=lambda: ["a"], metadata={"min_items": 1})
    free: str | int = field(default="", metadata={"check": checked})


def lowered(text: str) -> str:
    return text.lower()


@attrs.define
class Period:
    start: datetime.date = datetime.date(2026, 1, 2)
    end: datetime.date = attrs.field(default=datetime.date(2026, 1, 3))
    unit: str = attrs.field(default="day", converter=lowered, validator=attrs.validators.in_(["day"]))

    @end.validator
    def _later(self, _attribute: object, value: datetime.date) -> None:
        if value < self.start:
            raise ValueError("End is before start")
        if self.length() > 366:
            raise ValueError("Too long")

    def length(self) -> int:
        return (self.end - self.start).days


EARLY = {"start": "2026-01-02", "end": "2026-01-01"}


RULED: list[tuple[Any, dict[str, Any]]] = [
    (Ranged, {"low": -1, "high": 10}),  # attrs stops at the first
    (Ranged, {"low": 5, "high": 4}),
    (Ranged, {"low": 5, "high": 4, "word": "c"}),
    (Limited, {"text": "abcd"}),
    (Limited, {"text": "a", "items": 1, "free": "-"}),
    # A validator sees what was sent, read and converted.
    (Period, {**EARLY, "unit": "Q"}),
    (Period, {"unit": "Q"}),
    (Period, {**EARLY, "start": "x"}),
    (Period, {"end": "2028-01-01"}),
]


def test_a_rule_refuses_at_its_place_at_any_depth(snapshot: SnapshotAssertion) -> None:
    def told(kind: Any, sent: dict[str, Any]) -> list[str]:
        places: list[tuple[str, Any, Any]] = [
            ("one", kind | None, sent),
            ("several", list[kind], [{}, sent]),
            ("named", dict[str, kind], {"a": sent}),
            ("pair", tuple[int, kind], [1, sent]),
            ("deep", dict[str, list[list[kind]]], {"a": [[], [sent]]}),
        ]
        holder = attrs.make_class("Holder", {name: attrs.field(type=hint) for name, hint, _ in places})
        return problems(kind, sent) + problems(holder, {name: given for name, _, given in places})

    said = ["\n".join([f"{kind.__name__} {sent}", *told(kind, sent), ""]) for kind, sent in RULED]
    assert "\n".join(said) == snapshot


def test_a_tool_that_diagnoses_checks_texts_itself_unless_there_are_problems() -> None:
    def diagnose(_arguments: Mapping[str, Any]) -> list[Problem]:
        return []

    assert decode(Limited, {"text": "a", "free": "-"}, diagnose) == Limited("a", free="-")
    assert decode(Limited, {"text": "a", "items": '["b"]'}, diagnose) == Limited("a", ["b"])
    for free in ("a", 1):
        assert decode(Limited, {"text": "abc", "free": free}) == Limited("abc", free=free)
    text = {"type": "string", "minLength": 2, "maxLength": 3}
    assert model_of(Limited).schema()["properties"]["text"] == {
        "anyOf": [text, {"type": "null"}],
        "description": "T",
    }
