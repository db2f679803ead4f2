"""What breaks a schema is said in words, all of it, each at its path."""

from __future__ import annotations

from typing import Any

import pytest

from planning.workflow.findings import Path
from planning.workflow.wire.form import form_of
from planning.workflow.wire.shape import MOST_ERRORS, check_shape

STEP = {"step_id": "a", "description": "d", "type": "tool", "name": "search", "inputs": {}, "depends_on": []}
THOUGHT = {"step_id": "a", "description": "d"}
NUMBERED = {"step_id": 1, "description": "d"}
FIELDS = "step_id, description, type, name, inputs, outputs, depends_on"

Told = tuple[Path, str, str, str]


def told(value: Any) -> list[Told]:
    return [(each.path, each.code, each.message, each.hint) for each in check_shape(form_of(value))]


def first(**fields: Any) -> list[Any]:
    """A plan of version 1 whose step has these fields besides."""
    return [{**STEP, **fields}]


def second(step: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """A plan of version 2 with a step and these fields besides."""
    return {"schema_version": 2, "goal": "g", "steps": [step], **fields}


def without(step: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in step.items() if name not in names}


CASES: list[tuple[Any, list[Told]]] = [
    ([], []),
    ([STEP], []),
    (second(THOUGHT), []),
    (second(NUMBERED), []),
    ([NUMBERED], []),
    (
        first(description=3),
        [((0, "description"), "wrong_type", "expected text, got a number", "send text")],
    ),
    (first(inputs=None), [((0,), "missing_field", "inputs is missing", "add inputs: an object")]),
    (
        first(step_id=7, depends_on=[8]),
        [
            ((0, "step_id"), "wrong_type", "expected text, got a number", 'write it in quotes: "7"'),
            ((0, "depends_on", 0), "wrong_type", "expected text, got a number", 'write it in quotes: "8"'),
        ],
    ),
    (
        [{"id": "a", **without(STEP, "step_id")}],
        [((0, "id"), "unknown_field", "'id' is no field of a step", "did you mean step_id?")],
    ),
    (
        [{"tool": "search", **without(STEP, "type", "name")}],
        [
            (
                (0, "tool"),
                "unknown_field",
                "'tool' is no field of a step",
                'write "type": "tool" and "name" instead',
            )
        ],
    ),
    (
        first(inputs='{"q": 1}'),
        [
            (
                (0, "inputs"),
                "wrong_type",
                "expected an object, got text",
                "send an object itself, not a text that holds it",
            )
        ],
    ),
    (
        first(depends_on={}),
        [((0, "depends_on"), "wrong_type", "expected an array, got an object", "send an array")],
    ),
    (
        first(depends_on=["b", True, False]),
        [
            ((0, "depends_on", 1), "wrong_type", "expected text, got true", "send text"),
            ((0, "depends_on", 2), "wrong_type", "expected text, got false", "send text"),
        ],
    ),
    (["a", []], [
        ((0,), "wrong_type", "expected an object, got text", "send an object"),
        ((1,), "wrong_type", "expected an object, got an array", "send an object"),
    ]),
    (first(type="tol"), [((0, "type"), "unknown_option", "type is 'tol'", "use one of tool, handler")]),
    (first(type=1), [((0, "type"), "wrong_type", "expected text, got a number", "send text")]),
    (first(name=""), [((0, "name"), "empty_value", "name is empty", "send some text")]),
    (
        [without(STEP, "type", "inputs")],
        [
            ((0,), "missing_field", "type is missing", "add type: one of tool, handler"),
            ((0,), "missing_field", "inputs is missing", "add inputs: an object"),
        ],
    ),
    (
        first(args={}, descripton="d", zzz=1),
        [
            ((0, "args"), "unknown_field", "'args' is no field of a step", "did you mean inputs?"),
            (
                (0, "descripton"),
                "unknown_field",
                "'descripton' is no field of a step",
                "did you mean description?",
            ),
            (
                (0, "zzz"),
                "unknown_field",
                "'zzz' is no field of a step",
                f"leave it out; the fields are {FIELDS}",
            ),
        ],
    ),
    (
        second(THOUGHT, objective="x"),
        [(("objective",), "unknown_field", "'objective' is no field of a plan", "did you mean goal?")],
    ),
    (
        {"steps": []},
        [],
    ),
    (
        {"schema_version": 2, "steps": []},
        [((), "missing_field", "goal is missing", "add goal: text")],
    ),
    (
        second({**THOUGHT, "timeout": "5"}),
        [(("steps", 0, "timeout"), "wrong_type", "expected a number, got text", "send a number")],
    ),
    (
        second({**THOUGHT, "step_id": " "}),
        [(("steps", 0, "step_id"), "empty_value", "step_id is blank", "send some text")],
    ),
    (
        {"goal": "g"},
        [((), "missing_field", "steps is missing", "add steps: an array")],
    ),
    (
        {"goal": "g", "steps": {}},
        [(("steps",), "wrong_type", "expected an array, got an object", "send an array")],
    ),
    (
        second(THOUGHT, created_at=1, can_modify="yes"),
        [
            (("created_at",), "wrong_type", "expected text, got a number", "send text"),
            (("can_modify",), "wrong_type", "expected true or false, got text", "send true or false"),
        ],
    ),
    (
        second({**THOUGHT, "output_path": [], "status": "done", "expected_key": ""}),
        [
            (("steps", 0, "expected_key"), "empty_value", "expected_key is empty", "send some text"),
            (("steps", 0, "output_path"), "empty_value", "output_path is empty", "send at least one item"),
            (
                ("steps", 0, "status"),
                "unknown_option",
                "status is 'done'",
                "use one of pending, in_progress, completed, failed",
            ),
        ],
    ),
    (
        second({**THOUGHT, "type": "tool"}),
        [(("steps", 0), "conflicting_fields", "type stands without name", "add name, or leave type out")],
    ),
    (
        second({**THOUGHT, "name": "search"}),
        [(("steps", 0), "conflicting_fields", "name stands without type", "add type, or leave name out")],
    ),
    (
        second({**THOUGHT, "type": "tool", "name": "search", "agent": "x"}),
        [
            (
                ("steps", 0, "name"),
                "conflicting_fields",
                "name stands beside agent; a step calls one thing",
                "send agent, or type and name",
            ),
            (
                ("steps", 0, "type"),
                "conflicting_fields",
                "type stands beside agent; a step calls one thing",
                "send agent, or type and name",
            ),
        ],
    ),
    (
        second({**NUMBERED, "tool": "search", "agent": "x"}),
        [
            (
                ("steps", 0, "tool"),
                "conflicting_fields",
                "tool stands beside agent; a step calls one thing",
                "send agent, or tool",
            )
        ],
    ),
    (
        second({**NUMBERED, "dependencies": [1.5, "a"]}),
        [
            (
                ("steps", 0, "dependencies", 0),
                "wrong_type",
                "expected a whole number, got a number",
                "send a whole number",
            ),
            (
                ("steps", 0, "dependencies", 1),
                "wrong_type",
                "expected a whole number, got text",
                "send a whole number",
            ),
        ],
    ),
    (
        {"plan": [{"step_id": "a"}]},
        [
            (("plan", 0), "missing_field", f"{name} is missing", f"add {name}: {wanted}")
            for name, wanted in {
                "description": "text",
                "type": "one of tool, handler",
                "name": "text",
                "inputs": "an object",
                "depends_on": "an array",
            }.items()
        ],
    ),
    (
        {"step_id": "a", "description": 1},
        [(("description",), "wrong_type", "expected text, got a number", "send text")],
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value", "shown", "wanted"),
    [
        ("timeout", 0, "0", "more than 0 and at most 1,000,000"),
        ("timeout", -1, "-1", "more than 0 and at most 1,000,000"),
        ("timeout", 1e308, "1e+308", "more than 0 and at most 1,000,000"),
        ("retries", -1, "-1", "at least 0 and at most 100"),
        ("retries", 101, "101", "at least 0 and at most 100"),
        ("retries", 10**20, "a very large number", "at least 0 and at most 100"),
    ],
)
def test_a_number_out_of_its_range_is_told_the_range(
    name: str, value: float, shown: str, wanted: str
) -> None:
    assert told(second({**THOUGHT, name: value})) == [
        (("steps", 0, name), "out_of_range", f"{name} is {shown}", f"send a number, {wanted}")
    ]


@pytest.mark.parametrize(("value", "expected"), CASES)
def test_every_error_is_said_in_words_at_its_path(value: Any, expected: list[Told]) -> None:
    assert sorted(told(value), key=repr) == sorted(expected, key=repr)


def test_every_wrong_item_of_a_long_list_is_said_with_its_own_number() -> None:
    items: list[Any] = ["b"] * 3000
    for wrong in (0, 999, 1000, 2500, 2999):
        items[wrong] = wrong
    paths = [path for path, *_ in told(first(depends_on=items, outputs=["x"] * 1001))]
    assert paths == [(0, "depends_on", at) for at in (0, 999, 1000, 2500, 2999)]


def test_a_wrong_step_with_a_long_list_says_everything_else_once() -> None:
    value = first(depends_on=["b"] * 3000, description=1, extra=1)
    assert sorted(path for path, *_ in told(value)) == [(0, "description"), (0, "extra")]


def test_the_errors_of_the_document_stand_before_those_of_its_steps() -> None:
    value = second({**THOUGHT, "status": 1}, owner=1)
    assert [path for path, *_ in told(value)] == [("owner",), ("steps", 0, "status")]


def test_more_errors_than_are_written_out_are_one_error_more() -> None:
    found = told([1] * (MOST_ERRORS + 1))
    assert len(found) == MOST_ERRORS + 1
    assert found[-1] == ((), "too_many_errors", "more is wrong than is written out", "mend the others first")
    assert len(told([1] * MOST_ERRORS)) == MOST_ERRORS
    assert told([1] * MOST_ERRORS)[-1][1] == "wrong_type"
