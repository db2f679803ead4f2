"""Decoding: what models send becomes parameters, or every problem with its path."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any

import jsonschema
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning import AddStep, MarkStep, NewPlanStep, ReadPlan, SetupPlan, UpdateStep
from planning.tools import Tool, Toolbox, ToolContext
from planning.tools.errors import Problem

MOST = 1_000_000
NOT_JSON_VALUES = "arguments must hold JSON values only: text, numbers, booleans, null, arrays, objects"
BROKEN = "arguments are not JSON: NaN, Infinity and broken Unicode are not allowed; send one JSON object"
TOO_DEEP = "arguments are nested too deep; send a flat JSON object"
OUT_OF_RANGE = "arguments hold a number that is out of range; send a smaller one"


def taking(kind: Any, **options: Any) -> Tool:
    return Tool("t", "T.", lambda given: given, parameters=kind, **options)


def decoded(kind: Any, arguments: Any) -> Any:
    result = Toolbox([taking(kind)]).call("t", arguments)
    assert result.success, result.message
    return result.value


def refusal(kind: Any, arguments: Any, **options: Any) -> str:
    """What is wrong: one problem as it is, several as the lines of a list."""
    result = Toolbox([taking(kind, **options)]).call("t", arguments)
    assert (result.success, result.value, result.message) == (
        False,
        None,
        f"Refused, nothing changed. {result.error}",
    )
    return str(result.error)


def listed(*problems: str) -> str:
    return "\n- ".join([f"{len(problems)} problems:", *problems]) if len(problems) > 1 else problems[0]


MARK = '{"step_id": "S001", "status": "done", "note": "ok"}'


@pytest.mark.parametrize(
    "arguments",
    [
        MARK,
        MARK.encode(),
        bytearray(MARK.encode()),
        json.loads(MARK),
        MappingProxyType(json.loads(MARK)),
        json.dumps(MARK),
    ],
    ids=["text", "bytes", "bytearray", "dict", "mapping", "written twice"],
)
def test_arguments_come_as_text_or_as_a_mapping(arguments: object) -> None:
    assert decoded(MarkStep, arguments) == MarkStep("S001", "done", "ok")


@pytest.mark.parametrize("arguments", [None, "", "  \n", b"", "null", "{}", {}])
def test_no_arguments_are_an_empty_object(arguments: object) -> None:
    assert decoded(ReadPlan, arguments) == ReadPlan()


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
    assert decoded(AddStep, {"steps": steps}) == AddStep(expected)
    assert decoded(SetupPlan, {"objective": "x", "initial_steps": steps}) == SetupPlan("x", expected)


@pytest.mark.parametrize("title", ["[urgent] fix", "[1]", "123", "null", '"quoted"', "S{}"])
def test_a_plain_string_is_a_title(title: str) -> None:
    assert decoded(AddStep, {"steps": [title]}) == AddStep((NewPlanStep(title),))


@pytest.mark.parametrize("title", ["{not json", "{}x", ' {"title": "a"'])
def test_a_plain_string_that_begins_like_an_object_must_be_one(title: str) -> None:
    expected = "steps[0]: expected an object with title, details, got a string"
    assert refusal(AddStep, {"steps": [title]}) == expected


@dataclass(frozen=True)
class Counted:
    count: int
    label: str | int = ""
    tags: tuple[str, ...] = field(default=(), metadata={"min_items": 1})


class Page(pydantic.BaseModel):
    number: Annotated[int, pydantic.Field(ge=1)]


@pytest.mark.parametrize(
    ("kind", "arguments", "expected"),
    [
        (SetupPlan, {"objective": "x", "initial_steps": None}, SetupPlan("x")),
        (UpdateStep, '{"step_id": "S001", "title": null, "details": "d"}', UpdateStep("S001", None, "d")),
        # A field of text is never read as JSON.
        (UpdateStep, {"step_id": "S001", "title": '{"title": "x"}'}, UpdateStep("S001", '{"title": "x"}')),
        # Colons within texts separate no fields.
        (AddStep, '{"steps": [{"title": "a: b \\"c\\": {"}, "x: y"]}',
         AddStep((NewPlanStep('a: b "c": {'), NewPlanStep("x: y")))),
        (Counted, '{"count": 2.0}', Counted(2)),
        (Page, '{"number": 1}', Page(number=1)),
    ],
)  # fmt: skip
def test_a_field_is_taken_for_what_it_says(kind: Any, arguments: Any, expected: object) -> None:
    assert decoded(kind, arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"note": ' + "9" * 5_000 + "}", OUT_OF_RANGE),
        ('{"note": 1e400}', OUT_OF_RANGE),
        ('{"note": NaN}', BROKEN),
        ('{"note": "\ud800"}', BROKEN),
        ('{"note": "\\ud800"}', BROKEN),
        (b'{"note": "\xff"}', BROKEN),
        (b"\xff", BROKEN),
        ("[" * 100_000, TOO_DEEP),
        ('{"left": ' + "[" * 100_000 + "]" * 100_000 + "}", TOO_DEEP),
        ("[]", "arguments must be a JSON object, got an array"),
        ("1", "arguments must be a JSON object, got a number"),
        ("true", "arguments must be a JSON object, got a boolean"),
        ([], "arguments must be a JSON object, got an array"),
        (1.5, "arguments must be a JSON object, got a number"),
        pytest.param(object(), "arguments must be a JSON object, got a value of type object", id="object"),
        (MarkStep("S001", "done"), "arguments must be a JSON object, got a value of type MarkStep"),
        (json.dumps(json.dumps(MARK)), "arguments must be a JSON object, got a string"),
        (" " * (MOST + 1), f"arguments of {MOST + 1} characters, at most {MOST}; send less at once"),
        (b" " * (MOST + 1), f"arguments of {MOST + 1} characters, at most {MOST}; send less at once"),
        ({1: 2}, NOT_JSON_VALUES),
        pytest.param(
            {"step_id": object(), "status": "done"},
            "step_id: expected a string of 1 to 64 characters, got a value of type object",
            id="an object",
        ),
        (
            {"step_id": {1}, "status": "done"},
            "step_id: expected a string of 1 to 64 characters, got a value of type set",
        ),
        ('{"status": "a", "status": "b"}',
         "arguments give 'status' twice in one object; send each field once"),
        ('{"steps": [{"title": "a", "title": "b"}]}',
         "arguments give 'title' twice in one object; send each field once"),
        (b'{"steps" :[{"title":"a: b","title":"c"}]}',
         "arguments give 'title' twice in one object; send each field once"),
    ],
    ids=lambda value: ascii(value)[:30],
)  # fmt: skip
def test_what_is_no_json_object_is_refused(arguments: object, expected: str) -> None:
    assert refusal(MarkStep, arguments) == expected


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [("{", 1, 2), ('{"step_id": "S001",\n "status" "done"}', 2, 11), ("mark S001 done", 1, 1)],
)
def test_a_text_that_is_no_json_is_refused_with_its_place(text: str, line: int, column: int) -> None:
    told = refusal(MarkStep, text)
    assert re.fullmatch(
        rf"arguments are not JSON at line {line}, column {column}: [^\n]+; send one JSON object", told
    )


def test_a_mapping_that_holds_itself_is_refused() -> None:
    endless: dict[str, Any] = {"step_id": "S001", "status": "done"}
    endless["note"] = endless
    assert refusal(MarkStep, endless) == "note: expected a string of 1 to 512 characters, got an object"


@pytest.mark.parametrize("depth", [500, 900, 5_000])
def test_arguments_of_any_depth_are_refused_and_nothing_else(depth: int) -> None:
    told = refusal(ReadPlan, '{"x":' * depth + "1" + "}" * depth)
    assert told in {TOO_DEEP, "x: unknown field; send no fields"}


def test_a_flood_of_problems_is_cut_short() -> None:
    lines = refusal(AddStep, {f"field{number}": 1 for number in range(50_000)}).split("\n- ")
    assert len(lines) == 52
    assert lines[1:3] == [
        "steps: missing; send an array of at least 1 item",
        "field0: unknown field; the fields are steps",
    ]
    assert lines[-1] == "there may be more errors; fix these first"


STEPS = "steps: expected an array of at least 1 item, got"
STATUSES = "send one of pending, in_progress, blocked, done"


@pytest.mark.parametrize(
    ("kind", "arguments", "expected"),
    [
        (
            SetupPlan,
            {
                "objective": "x" * 241,
                "initial_steps": [
                    "", {"titel": "b"}, {"title": "a \u2014 b", "details": 7}, 5, {"title": None},
                ],
                "bogus": 1,
            },
            [
                "objective: 241 characters, at most 240; cut 1",
                "initial_steps[0].title: blank; send 1 to 160 characters",
                "initial_steps[1].title: missing; send a string of 1 to 160 characters",
                "initial_steps[1].titel: unknown field; did you mean title?",
                'initial_steps[2].title: EM DASH (U+2014) at character 3; only ASCII is allowed, write "-"',
                "initial_steps[2].details: expected a string of 0 to 512 characters, got a number",
                "initial_steps[3]: expected an object with title, details, got a number",
                "initial_steps[4].title: expected a string of 1 to 160 characters, got null",
                "bogus: unknown field; the fields are objective, initial_steps",
            ],
        ),
        (MarkStep, {"step_id": "S001", "status": "completed"},
         [f"status: 'completed' is unknown; did you mean done? {STATUSES}"]),
        (MarkStep, {"step_id": "S001", "status": 3},
         [f"status: a value of type int is unknown; {STATUSES}"]),
        (MarkStep, {}, ["step_id: missing; send a string of 1 to 64 characters",
                        f"status: missing; {STATUSES}"]),
        (ReadPlan, {"verbose": True}, ["verbose: unknown field; send no fields"]),
        (AddStep, {"steps": "just do it"}, [f"{STEPS} a string"]),
        (AddStep, {"steps": {"title": "x"}}, [f"{STEPS} an object"]),
        (AddStep, {"steps": "[1"}, [f"{STEPS} a string"]),
        (AddStep, {"steps": '{"title": "x"}'}, [f"{STEPS} a string"]),
        (AddStep, {"steps": "[" * 100_000}, [f"{STEPS} a string"]),
        (AddStep, {"st\u00e9ps": []}, ["steps: missing; send an array of at least 1 item",
                                       "st\\xe9ps: unknown field; did you mean steps?"]),
        (Counted, {"count": "many", "label": [], "tags": ["a", 1]},
         ["count: expected an integer, got a string",
          "label: expected a string or an integer, got an array",
          "tags[1]: expected a string, got a number"]),
        (Page, {"number": 0}, ["number: expected at least 1, got 0"]),
    ],
)  # fmt: skip
def test_every_problem_is_listed_with_its_path_and_what_to_send(
    kind: type, arguments: dict[str, Any], expected: list[str]
) -> None:
    assert refusal(kind, arguments) == listed(*expected)


def test_further_problems_are_asked_for_once_there_are_some() -> None:
    asked: list[Mapping[str, Any]] = []

    def diagnose(arguments: Mapping[str, Any], _context: ToolContext) -> list[Problem]:
        asked.append(arguments)
        return [Problem("no such step", "step_id")]

    box = Toolbox([taking(MarkStep, diagnose=diagnose)])
    assert (box.call("t", {"step_id": "S001", "status": "done"}).success, asked) == (True, [])
    wrong = {"step_id": "S001", "status": "ready"}
    assert refusal(MarkStep, wrong, diagnose=diagnose) == listed(
        "step_id: no such step", f"status: 'ready' is unknown; {STATUSES}"
    )
    assert asked == [wrong]


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
    tool = taking(kind)
    # A second opinion: another implementation of JSON Schema.
    is_valid = jsonschema.Draft202012Validator(tool.parameters_schema()).is_valid(arguments)
    result = Toolbox([tool]).call("t", json.dumps(arguments))
    if result.success:
        assert type(result.value) is kind
    else:
        assert not is_valid
        assert result.code == "parameter"
        assert ": " in result.message.removeprefix("Refused, nothing changed. ")


def test_a_problem_far_down_a_long_array_is_found() -> None:
    steps: list[object] = ["a"] * 3_000
    assert len(decoded(AddStep, {"steps": steps}).steps) == 3_000
    steps[2_500] = 7
    assert refusal(AddStep, {"steps": steps}) == (
        "steps[2500]: expected an object with title, details, got a number"
    )
