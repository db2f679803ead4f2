"""Decoding: what models send becomes parameters, or every problem with its path."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import Any, Literal

import pytest
from syrupy.assertion import SnapshotAssertion
from tool_entries import made, through, told

from planning import AddStep, MarkStep, NewPlanStep, ReadPlan, SetupPlan
from planning.errors import cut
from planning.tools import ToolResult

MOST = 1_000_000


class Odd:
    """A value without a JSON form."""

    def __repr__(self) -> str:
        return "Odd()"


def taken(kind: Any, arguments: Any) -> ToolResult:
    """The result of a tool that returns what it is given."""
    return through("call", made(lambda given: given, parameters=kind), arguments)


def refusal(kind: Any, arguments: Any) -> str:
    """What is wrong: one problem as it is, several as the lines of a list."""
    result = taken(kind, arguments)
    assert told(result)[:3] == (False, f"Refused, nothing changed. {result.error}", None)
    return str(result.error)


MARK = '{"step_id": "S001", "status": "done", "note": "ok"}'


MAPPING = json.loads(MARK)
FORMS = [MARK, MARK.encode(), bytearray(MARK.encode()), MAPPING, MappingProxyType(MAPPING), json.dumps(MARK)]


@pytest.mark.parametrize("arguments", FORMS, ids=lambda form: type(form).__name__)
def test_arguments_come_as_text_or_as_a_mapping(arguments: object) -> None:
    assert taken(MarkStep, arguments).value == MarkStep("S001", "done", "ok")


@pytest.mark.parametrize("arguments", [None, "", "  \n", b"", "null", "{}", {}])
def test_no_arguments_are_an_empty_object(arguments: object) -> None:
    assert taken(ReadPlan, arguments).value == ReadPlan()


STEPS = [{"title": "a"}, {"title": "b", "details": "c"}]
SHORT = ["a", STEPS[1]]


@pytest.mark.parametrize(
    "steps", [STEPS, json.dumps(STEPS), SHORT, json.dumps(SHORT), [*map(json.dumps, STEPS)], tuple(STEPS)]
)
def test_steps_are_taken_for_what_they_mean(steps: object) -> None:
    expected = (NewPlanStep("a"), NewPlanStep("b", "c"))
    assert taken(AddStep, {"steps": steps}).value == AddStep(expected)
    assert taken(SetupPlan, {"objective": "x", "initial_steps": steps}).value == SetupPlan("x", expected)


NEW: list[Any] = ["", {"titel": "b"}, {"title": "a \u2014 b", "details": 7}, 5, {"title": None}]
WRONG: list[tuple[type, Any]] = [
    (SetupPlan, {"objective": "x" * 241, "initial_steps": NEW, "bogus": 1}),
    (MarkStep, {"step_id": "S001", "status": 3}),
    (MarkStep, {}),
    (AddStep, {"steps": "just do it"}),
    (AddStep, {"st\u00e9ps": []}),
    *((MarkStep, text) for text in (
        '{"note": ' + "9" * 5_000 + "}", '{"note": NaN}', '{"note": "\\ud800"}', '{"\\udc00": 1}',
        "```json\n{'note': 'x \\ud83c\\ud83c\\udf0d'}\n```", b'{"note": "\xff"}', "[" * 100_000, "[]",
        '"text"', Odd(), MarkStep("S001", "done"), json.dumps(json.dumps(MARK)), " " * (MOST + 1), {1: 2},
        {"step_id": Odd(), "status": "done"}, '{"step_id": "S001", "status": "a", "status": "b"}',
        '{"steps": [{"details": "", "title": "a", "title": "b"}]}',
    )),
    *((ReadPlan, '{"x":' * depth + "1" + "}" * depth) for depth in (100, 500, 5_000)),
]  # fmt: skip


def test_every_problem_is_listed_with_its_path_and_what_to_send(snapshot: SnapshotAssertion) -> None:
    assert taken(ReadPlan, " " * MOST).success
    said = [
        f"{kind.__name__} {cut(ascii(arguments), 120)}\n{refusal(kind, arguments)}\n"
        for kind, arguments in WRONG
    ]
    assert "\n".join(said) == snapshot


# Arguments that are text are read as plans are: what can be meant in one way only is repaired


@dataclass
class Saved:
    title: str
    tags: list[str] | None = None


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"title": "it\'s", "tags": ["a"]}\n```',
        '<think>a title</think>\n{"title": "it\'s", "tags": ["a"]}',
        "{\"title\": \"it's\", 'tags': ['a']} // saved",
    ],
    ids=["fence", "thoughts", "single quotes and a comment"],
)
@pytest.mark.parametrize("kind", [str, str.encode])
def test_what_is_repaired_in_a_plan_is_repaired_in_arguments(text: str, kind: type) -> None:
    assert taken(Saved, kind(text)).value == Saved("it's", ["a"])


@pytest.mark.parametrize(
    ("text", "column"),
    [('{"title": "a", "tags": ["a"', 28), ('Saved: {"title": "a"} as asked', 1)],
    ids=["cut", "prose"],
)
def test_what_may_mean_several_things_or_was_cut_is_refused_at_its_place(text: str, column: int) -> None:
    place, words = refusal(Saved, text).split(": ", maxsplit=1)  # the words are of each Python
    assert place == f"arguments are not JSON at line 1, column {column}"
    assert words.endswith("; send one JSON object")


# What a model's arguments are taken for, and what they are never taken for: through the entry of a model

Switch = Enum("Switch", {"ON": True, "OFF": False})


@dataclass
class Booking:
    count: int = 1
    price: float = 1.0
    either: int | float = 1
    maybe: int | None = None
    level: Literal[1, 2] = 1
    text: str = "t"
    text_or_number: str | int = "t"
    flag: bool = False
    flag_or_number: bool | int = False
    flag_or_text: bool | str = False
    maybe_flag: bool | None = None
    switch: Switch = Switch.OFF
    flags: list[bool] = field(default_factory=list)
    word: Literal["true", "false"] = "true"
    anything: Any = None


def sent(**arguments: Any) -> Any:
    """What the tool is given by these names, or else the message."""
    result = taken(Booking, json.dumps(arguments))
    return {name: getattr(result.value, name) for name in arguments} if result.success else result.message


NUMBERS = [
    *(("count", "5000"), ("count", "5.0"), ("count", f"{2**53 - 1}.0"), ("price", "2.5"), ("either", "2")),
    *(
        ("count", "123456789012345678901234567890"),
        ("count", "1" * 400),
        ("level", "2"),
        ("flag_or_number", "1"),
    ),
]


def test_a_text_that_is_a_number_is_one_where_only_a_number_fits(snapshot: SnapshotAssertion) -> None:
    assert "\n".join(f"{text!r}: {sent(**{name: text})}" for name, text in NUMBERS) == snapshot


NO_BOOLEANS = ("yes", "1", "", " true", "null")


@pytest.mark.parametrize("text", ["true", "TRUE", "False"])
def test_a_text_that_is_a_boolean_is_one_where_a_boolean_fits_and_no_text_does(text: str) -> None:
    is_true = text.lower() == "true"
    flags = dict.fromkeys(("flag", "maybe_flag", "flag_or_number"), text)
    assert sent(**flags, switch=text, flags=[text, True]) == {
        **dict.fromkeys(flags, is_true),
        "switch": Switch(is_true),
        "flags": [is_true, True],
    }
    same = dict.fromkeys(("text", "flag_or_text", "text_or_number", "anything"), text)
    assert sent(**same, word=text.lower()) == {**same, "word": text.lower()}


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        *((name, text, "a boolean") for name in ("flag", "maybe_flag") for text in NO_BOOLEANS),
        *(("count", number, "an integer") for number in (f"{2**53}.0", f"{2**53 + 1}.0", "1" * 401)),
        ("price", "1e999", "a number"),
    ],
)
def test_text_that_is_no_boolean_and_a_number_that_is_not_exact_fail(name: str, text: str, kind: str) -> None:
    assert sent(**{name: text}) == f"Refused, nothing changed. {name}: expected {kind}, got a string"
