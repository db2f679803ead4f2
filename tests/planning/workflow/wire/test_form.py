"""The format of a document is told by what it looks like, and what is remarkable about it is said."""

from __future__ import annotations

from typing import Any

import pytest

from planning.workflow.findings import Path
from planning.workflow.wire.form import form_of, is_numbered

THOUGHT = {"step_id": "a", "description": "d"}
STEP = {**THOUGHT, "type": "tool", "name": "search", "inputs": {}, "depends_on": []}
NUMBERED = {"step_id": 1, "description": "d"}


def within(levels: int, value: Any) -> Any:
    """A value under a name, under a name, and so on."""
    for _ in range(levels):
        value = {"plan": value}
    return value


@pytest.mark.parametrize(
    ("value", "version", "path", "steps_path", "codes"),
    [
        ([], 1, (), (), []),
        ([STEP], 1, (), (), []),
        ([STEP, NUMBERED], 2, (), (), []),
        ({"schema_version": 2, "steps": [THOUGHT]}, 2, (), ("steps",), []),
        ({"schema_version": 2.0, "steps": [THOUGHT]}, 2, (), ("steps",), []),
        ({"schema_version": 1, "steps": [STEP]}, 1, ("steps",), ("steps",), []),
        ({"schema_version": 1, "plan": [STEP]}, 1, ("plan",), ("plan",), []),
        ({"schema_version": 1, "plan": {}}, None, (), (), ["missing_field"]),
        ({"schema_version": 3, "steps": [STEP]}, None, (), (), ["unknown_version"]),
        ({"steps": [THOUGHT]}, 2, (), ("steps",), ["assumed_version"]),
        ({"steps": [NUMBERED]}, 2, (), ("steps",), []),
        ({"steps": []}, 2, (), ("steps",), []),
        ({}, 2, (), ("steps",), []),
        ({"plan": [STEP]}, 1, ("plan",), ("plan",), ["wrapped_plan"]),
        ({"plan": "x", "workflow": [STEP]}, 1, ("workflow",), ("workflow",), ["wrapped_plan"]),
        ({"plan": [STEP], "steps": []}, 2, (), ("steps",), ["ignored_field"]),
        ({"plan": [STEP], "steps": None}, 1, ("plan",), ("plan",), ["wrapped_plan"]),
        ({"schema_version": None, "steps": [THOUGHT]}, 2, (), ("steps",), ["assumed_version"]),
        ({"plan": {"workflow": [STEP]}}, 1, ("plan", "workflow"), ("plan", "workflow"), ["wrapped_plan"]),
        (within(3, [STEP]), 1, ("plan",) * 3, ("plan",) * 3, ["wrapped_plan"]),
        (within(4, [STEP]), 2, ("plan",) * 3, (*("plan",) * 3, "steps"), ["wrapped_plan"]),
        ({"plan": {"schema_version": 2, "steps": []}}, 2, ("plan",), ("plan", "steps"), ["wrapped_plan"]),
    ],
)  # fmt: skip
def test_a_document_is_told_by_its_looks(
    value: Any, version: int | None, path: Path, steps_path: Path, codes: list[str]
) -> None:
    form = form_of(value)
    assert (form.version, form.path, form.steps_path) == (version, path, steps_path)
    assert [each.code for each in form.found] == codes
    assert not form.is_single
    assert form.step_path(3) == (*steps_path, 3)


@pytest.mark.parametrize(
    ("step", "version"),
    [
        (STEP, 1),
        (THOUGHT, 2),
        (NUMBERED, 2),
        ({"description": "d", "name": "n", "inputs": {}}, 1),
        ({"description": "d", "tool": "n", "parameters": {}}, 2),
    ],
)
def test_a_single_step_is_a_plan_of_one_step(step: Any, version: int) -> None:
    for value, path in ((step, ()), ({"plan": step}, ("plan",))):
        form = form_of(value)
        assert (form.version, form.steps, form.steps_path, form.is_single) == (version, [step], path, True)
        assert form.step_path(0) == path
        assert form.found[-1].code == "single_step"
        assert form.found[-1].path == path


@pytest.mark.parametrize(
    ("version", "shown"),
    [
        (3, "3"),
        (2.5, "2.5"),
        (-1, "-1"),
        (1_000_000, "a value of type int"),
        (1.2345678901234567e300, "a value of type float"),
        (True, "a value of type bool"),
        ("2", "'2'"),
        ([2], "a value of type list"),
    ],
)
def test_an_unknown_version_is_shown_and_nothing_large_is_written_out(version: Any, shown: str) -> None:
    (found,) = form_of({"schema_version": version}).found
    assert found.message == f"schema version {shown} is unknown"
    assert found.hint == "send 2, or an array of steps"
    assert found.path == ("schema_version",)


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ({"step_id": 1}, True),
        ({"step_id": 1.0}, True),
        ({"step_id": 1.5}, False),
        ({"step_id": True}, False),
        ({"step_id": "1"}, False),
        ({"step_id": 1, "tool": "search", "inputs": {}}, True),
        ({"step_id": 1, "name": "search"}, False),
        ({"step_id": 1, "depends_on": []}, False),
        ({}, False),
        ([], False),
    ],
)
def test_a_step_is_in_the_older_form_when_its_id_is_a_whole_number(step: Any, expected: bool) -> None:
    assert is_numbered(step) is expected
