"""Decoding: what models send becomes parameters, or every problem with its path."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning import AddStep, MarkStep, NewPlanStep, ReadPlan, SetupPlan, ToolValidationError, UpdateStep
from planning.errors import Problem
from planning.tools.decode import MOST_CHARACTERS, decode
from planning.tools.parameters.record_model import _no_retrieval
from planning.tools.parameters.schema import structural_schema

NOT_JSON_VALUES = "arguments must hold JSON values only: text, numbers, booleans, null, arrays, objects"


def problems(kind: type, arguments: object) -> list[str]:
    with pytest.raises(ToolValidationError) as caught:
        decode(kind, arguments)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    "arguments",
    [
        '{"step_id": "S001", "status": "done", "note": "ok"}',
        b'{"step_id": "S001", "status": "done", "note": "ok"}',
        bytearray(b'{"step_id": "S001", "status": "done", "note": "ok"}'),
        {"step_id": "S001", "status": "done", "note": "ok"},
        MappingProxyType({"step_id": "S001", "status": "done", "note": "ok"}),
        json.dumps('{"step_id": "S001", "status": "done", "note": "ok"}'),
    ],
    ids=["text", "bytes", "bytearray", "dict", "mapping", "written twice"],
)
def test_arguments_come_as_text_or_as_a_mapping(arguments: object) -> None:
    assert decode(MarkStep, arguments) == MarkStep("S001", "done", "ok")


@pytest.mark.parametrize("arguments", [None, "", "  \n", b"", "null", "{}", {}])
def test_no_arguments_are_an_empty_object(arguments: object) -> None:
    assert decode(ReadPlan, arguments) == ReadPlan()


@pytest.mark.parametrize(
    "steps",
    [
        [{"title": "a"}, {"title": "b", "details": "c"}],
        '[{"title": "a"}, {"title": "b", "details": "c"}]',
        ["a", {"title": "b", "details": "c"}],
        '["a", {"title": "b", "details": "c"}]',
        ['{"title": "a"}', '{"title": "b", "details": "c"}'],
        [{"title": "a", "details": None}, {"title": "b", "details": "c"}],
        ({"title": "a"}, {"title": "b", "details": "c"}),
    ],
)
def test_steps_are_taken_for_what_they_mean(steps: object) -> None:
    expected = (NewPlanStep("a"), NewPlanStep("b", "c"))
    assert decode(AddStep, {"steps": steps}) == AddStep(expected)
    assert decode(SetupPlan, {"objective": "x", "initial_steps": steps}) == SetupPlan("x", expected)


def test_null_leaves_an_optional_field_out() -> None:
    assert decode(SetupPlan, {"objective": "x", "initial_steps": None}) == SetupPlan("x")
    assert decode(UpdateStep, '{"step_id": "S001", "title": null, "details": "d"}') == UpdateStep(
        "S001", None, "d"
    )


@pytest.mark.parametrize("title", ["[urgent] fix", "[1]", "123", "null", '"quoted"', "S{}"])
def test_a_plain_string_is_a_title(title: str) -> None:
    assert decode(AddStep, {"steps": [title]}) == AddStep((NewPlanStep(title),))


@pytest.mark.parametrize("title", ["{not json", "{}x", ' {"title": "a"'])
def test_a_plain_string_that_begins_like_an_object_must_be_one(title: str) -> None:
    expected = "steps[0]: expected an object with title, details, got a string"
    assert problems(AddStep, {"steps": [title]}) == [expected]


def test_a_text_field_is_never_read_as_json() -> None:
    title = '{"title": "x"}'
    assert decode(UpdateStep, {"step_id": "S001", "title": title}) == UpdateStep("S001", title)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"note": ' + "9" * 5_000 + "}", "arguments hold a number that is out of range; send a smaller one"),
        ('{"note": 1e400}', "arguments hold a number that is out of range; send a smaller one"),
        ("{", "arguments are not JSON at line 1, column 2: Expecting property name enclosed in double "
         "quotes; send one JSON object"),
        ('{"step_id": "S001",\n "status" "done"}',
         "arguments are not JSON at line 2, column 11: Expecting ':' delimiter; send one JSON object"),
        ("mark S001 done",
         "arguments are not JSON at line 1, column 1: Expecting value; send one JSON object"),
        ('{"note": NaN}', "arguments are not JSON: NaN, Infinity and broken Unicode are not allowed; "
         "send one JSON object"),
        ('{"note": "\ud800"}', "arguments are not JSON: NaN, Infinity and broken Unicode are not allowed; "
         "send one JSON object"),
        (b'{"note": "\xff"}', "arguments are not JSON: NaN, Infinity and broken Unicode are not allowed; "
         "send one JSON object"),
        ("[" * 100_000, "arguments are nested too deep; send a flat JSON object"),
        ("[]", "arguments must be a JSON object, got an array"),
        ("1", "arguments must be a JSON object, got a number"),
        ("true", "arguments must be a JSON object, got a boolean"),
        ([], "arguments must be a JSON object, got an array"),
        (1.5, "arguments must be a JSON object, got a number"),
        (object(), "arguments must be a JSON object, got a value of type object"),
        (MarkStep("S001", "done"), "arguments must be a JSON object, got a value of type MarkStep"),
        (" " * (MOST_CHARACTERS + 1),
         f"arguments of {MOST_CHARACTERS + 1} characters, at most {MOST_CHARACTERS}; send less at once"),
    ],
)  # fmt: skip
def test_what_is_no_object_is_refused(arguments: object, expected: str) -> None:
    assert problems(MarkStep, arguments) == [expected]


@pytest.mark.parametrize(
    ("arguments", "twice"),
    [
        ('{"steps": [], "steps": ["a"]}', "steps"),
        ('{"steps": [{"title": "a", "title": "b"}]}', "title"),
        (b'{"steps" :[{"title":"a: b","title":"c"}]}', "title"),
    ],
)
def test_a_field_that_stands_twice_is_refused_and_never_chosen_from(arguments: object, twice: str) -> None:
    expected = f"arguments give {twice!r} twice in one object; send each field once"
    assert problems(AddStep, arguments) == [expected]


@pytest.mark.parametrize("depth", [500, 900, 5_000])
def test_arguments_of_any_depth_are_refused_and_nothing_else(depth: int) -> None:
    (told,) = problems(ReadPlan, '{"x":' * depth + "1" + "}" * depth)
    assert told in {
        "arguments are nested too deep; send a flat JSON object",
        "x: unknown field; send no fields",
    }


def test_a_flood_of_problems_is_cut_short() -> None:
    told = problems(AddStep, {f"field{number}": 1 for number in range(50_000)})
    assert len(told) == 51
    assert told[0] == "field0: unknown field; the fields are steps"
    assert told[-1] == "more may be wrong; mend these first"


def test_colons_in_texts_are_no_fields() -> None:
    assert decode(AddStep, '{"steps": [{"title": "a: b \\"c\\": {"}, "x: y"]}') == AddStep(
        (NewPlanStep('a: b "c": {'), NewPlanStep("x: y"))
    )


def test_every_problem_is_listed_with_its_path() -> None:
    arguments = {
        "objective": "x" * 241,
        "initial_steps": ["", {"titel": "b"}, {"title": "a \u2014 b", "details": 7}, 5, {"title": None}],
        "bogus": 1,
    }
    assert problems(SetupPlan, arguments) == [
        "objective: 241 characters, at most 240; cut 1",
        "initial_steps[0].title: blank; send 1 to 160 characters",
        "initial_steps[1].title: missing; send a string of 1 to 160 characters",
        "initial_steps[1].titel: unknown field; did you mean title?",
        'initial_steps[2].title: EM DASH (U+2014) at character 3; only ASCII is allowed, write "-"',
        "initial_steps[2].details: expected a string of 0 to 512 characters, got a number",
        "initial_steps[3]: expected an object with title, details, got a number",
        "initial_steps[4].title: expected a string of 1 to 160 characters, got null",
        "bogus: unknown field; the fields are objective, initial_steps",
    ]


@pytest.mark.parametrize(
    ("kind", "arguments", "expected"),
    [
        (MarkStep, {"step_id": "S001", "status": "completed"},
         ["status: 'completed' is unknown; did you mean done? "
          "send one of pending, in_progress, blocked, done"]),
        (MarkStep, {"step_id": "S001", "status": 3},
         ["status: a value of type int is unknown; send one of pending, in_progress, blocked, done"]),
        (MarkStep, {}, ["step_id: missing; send a string of 1 to 64 characters",
                        "status: missing; send one of pending, in_progress, blocked, done"]),
        (ReadPlan, {"verbose": True}, ["verbose: unknown field; send no fields"]),
        (AddStep, {"steps": "just do it"}, ["steps: expected an array of at least 1 item, got a string"]),
        (AddStep, {"steps": {"title": "x"}}, ["steps: expected an array of at least 1 item, got an object"]),
        (AddStep, {"steps": "[1"}, ["steps: expected an array of at least 1 item, got a string"]),
        (AddStep, {"steps": '{"title": "x"}'}, ["steps: expected an array of at least 1 item, got a string"]),
        (AddStep, {"steps": "[" * 100_000}, ["steps: expected an array of at least 1 item, got a string"]),
        (AddStep, {"stéps": []}, ["steps: missing; send an array of at least 1 item",
                                  "st\\xe9ps: unknown field; did you mean steps?"]),
    ],
)  # fmt: skip
def test_a_wrong_field_says_what_to_send(kind: type, arguments: dict[str, Any], expected: list[str]) -> None:
    assert problems(kind, arguments) == expected


@pytest.mark.parametrize(
    "arguments", [{1: 2}, {"step_id": object(), "status": "done"}, {"step_id": {1}, "status": "done"}]
)
def test_a_mapping_that_is_no_json_is_refused(arguments: Mapping[Any, Any]) -> None:
    assert problems(MarkStep, arguments) == [NOT_JSON_VALUES]


def test_a_mapping_that_holds_itself_is_refused() -> None:
    endless: dict[str, Any] = {"step_id": "S001", "status": "done"}
    endless["note"] = endless
    assert problems(MarkStep, endless) == [NOT_JSON_VALUES]


@dataclass(frozen=True)
class Counted:
    count: int
    label: str | int = ""
    tags: tuple[str, ...] = field(default=(), metadata={"min_items": 1})


def test_the_schemas_integer_may_be_written_with_a_point() -> None:
    assert decode(Counted, '{"count": 2.0}') == Counted(2)


def test_fields_of_other_types_are_explained_too() -> None:
    assert problems(Counted, {"count": "many", "label": [], "tags": ["a", 1]}) == [
        "count: expected an integer, got a string",
        "label: expected a string or an integer, got an array",
        "tags[1]: expected a string, got a number",
    ]


def test_further_problems_are_asked_for_once_there_are_some() -> None:
    asked: list[Mapping[str, Any]] = []

    def diagnose(arguments: Mapping[str, Any]) -> list[Problem]:
        asked.append(arguments)
        return [Problem("no such step", "step_id")]

    assert decode(MarkStep, {"step_id": "S001", "status": "done"}, diagnose).status == "done"
    assert asked == []
    with pytest.raises(ToolValidationError) as caught:
        decode(MarkStep, {"step_id": "S001", "status": "ready"}, diagnose)
    assert [problem.path for problem in caught.value.problems] == ["step_id", "status"]
    assert asked == [{"step_id": "S001", "status": "ready"}]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from(["", "S001", "done", "[]", "{}", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["title", "details", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
FIELDS = ["step_id", "status", "note", "title", "details", "steps", "objective", "initial_steps"]


@given(
    kind=st.sampled_from([SetupPlan, AddStep, UpdateStep, MarkStep, ReadPlan]),
    arguments=st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4),
)
def test_what_the_schema_takes_is_decoded_and_all_else_is_refused_with_its_place(
    kind: type, arguments: dict[str, Any]
) -> None:
    # A second opinion: another implementation of JSON Schema.
    plain = jsonschema.Draft202012Validator(structural_schema(kind)).is_valid(arguments)
    try:
        decoded: object = decode(kind, json.dumps(arguments))
    except ToolValidationError as error:
        assert not plain
        assert error.problems
    else:
        assert type(decoded) is kind


@dataclass(frozen=True)
class Bounded:
    page: Annotated[int, msgspec.Meta(ge=1)]


def test_limits_that_msgspec_knows_are_enforced_too() -> None:
    assert decode(Bounded, {"page": 1}) == Bounded(1)
    assert problems(Bounded, {"page": 0}) == ["page: expected at least 1, got 0"]


def test_a_schema_never_fetches_another() -> None:
    with pytest.raises(ValueError, match=r"^schemas are complete: file:///etc/passwd is not fetched$"):
        _no_retrieval("file:///etc/passwd")


def test_a_problem_far_down_a_long_array_is_found() -> None:
    steps: list[object] = ["a"] * 3_000
    assert len(decode(AddStep, {"steps": steps}).steps) == 3_000
    steps[2_500] = 7
    assert problems(AddStep, {"steps": steps}) == [
        "steps[2500]: expected an object with title, details, got a number"
    ]
