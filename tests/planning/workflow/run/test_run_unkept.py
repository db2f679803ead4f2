"""Values that JSON cannot hold are errors: nothing else is made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pydantic
import pytest
from run_cases import called, capable, flow, plain_tool, states, thought, told

from planning.tools import ToolResult
from planning.workflow import (
    WorkflowError,
    run_workflow,
)
from session import Session


class Connection:
    def __repr__(self) -> str:
        return "<Connection to postgres://u:hunter2@h>"


class Greedy(dict[str, int]):
    def __sizeof__(self) -> int:
        raise MemoryError


@dataclass
class Record:
    part: Any


class Model(pydantic.BaseModel):
    part: Any


def nested(level: Callable[[Any], Any]) -> Any:
    value: Any = "x"
    for _ in range(101):
        value = level(value)
    return value


TOO_DEEP = (
    "produce returned a value that contains itself or is nested more than 100 levels deep; use text, "
    "numbers, lists and objects"
)
NO_FORM = (
    "produce returned an object of type Connection, which has no form in JSON; use text, numbers, lists and "
    "objects"
)
UNKEPT: list[tuple[Any, str, str]] = [
    (Connection(), NO_FORM, "bad_result"),
    ({"in": [Connection()]}, NO_FORM, "bad_result"),
    ({("a", 1): 2}, "produce returned an object with a key of type tuple; use text, numbers, lists and "
     "objects", "bad_result"),
    ({1: 2, "1": 3}, "produce returned an object with two keys that are the same text in JSON; use text, "
     "numbers, lists and objects", "bad_result"),
    *(
        (each, "produce returned a number of more than 3,000 digits; use text, numbers, lists and objects",
         "bad_result")
        for each in (10**5000, {"n": [1, 10**5000]}, -(10**3000), [10**3000])
    ),
    *(
        (nested(each), TOO_DEEP, "bad_result")
        for each in (lambda part: [part], Record, lambda part: Model(part=part))
    ),
    (Greedy(a=1), "produce returned more than 32 MB, which is too much to keep; let it store its data "
     "and return where it is", "too_large"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "message", "code"), UNKEPT, ids=range(len(UNKEPT)))
def test_an_output_that_json_cannot_hold_is_an_error_of_its_step(value: Any, message: str, code: str) -> None:
    produce = plain_tool("produce", lambda: ToolResult(True, "Done.", value))
    result = run_workflow(
        flow(called("a", tool="produce", expected_key="key"), thought("b", "a"), thought("c")),
        capable(produce),
    )
    assert (dict(result.errors), dict(result.memory)) == ({"a": told(message, code)}, {})
    assert states(result.workflow) == {"a": "failed", "b": "pending", "c": "completed"}


@pytest.mark.parametrize("value", [10**3000 - 1, [1, -(10**3000) + 1]], ids=["alone", "listed"])
def test_a_number_of_three_thousand_digits_is_an_output(value: Any) -> None:
    result = run_workflow(flow(called("a", tool="produce")), capable(plain_tool("produce", lambda: value)))
    assert dict(result.outputs) == {"a": value}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Connection(), "the input '{db}' holds an object of type Connection, which has no form in JSON; use "
         "text, numbers, lists and objects"),
        ("x" * 33_000_000, "the input '{db}' takes more than 32 MB; store the data and pass where it is"),
    ],
)  # fmt: skip
def test_a_run_does_not_begin_with_an_input_that_it_cannot_keep(value: Any, message: str) -> None:
    session = Session()
    with pytest.raises(WorkflowError) as refused:
        run_workflow(flow(thought("a")), capable(), session=session, inputs={"x": 1, "{db}": value})
    assert (str(refused.value), session.snapshot().slices) == (message, {})
