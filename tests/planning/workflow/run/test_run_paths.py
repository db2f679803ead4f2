"""Values found by a path: where names and numbers lead, and what is said where there is nothing."""

from __future__ import annotations

from collections import defaultdict, namedtuple
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Any

import pydantic
import pytest
from run_cases import called, capable, flow, plain_tool, thought

from planning.tools import ToolResult
from planning.workflow import extract_value, run_workflow


@dataclass
class Data:
    total: int
    hidden: int = field(default=0, repr=False)


class Listing(Enum):
    ROWS = {"rows": [7]}  # noqa: RUF012 - an enum makes it a member


class Model(pydantic.BaseModel):
    total: int


Pair = namedtuple("Pair", ["total", "rest"])


@pytest.mark.parametrize("value", [Data(3), Model(total=3), {"total": 3}])
def test_a_name_leads_into_mappings_and_the_fields_of_records(value: Any) -> None:
    assert extract_value(value, ["total"]) == 3
    assert extract_value([{"in": value}], ["0", "in", "total"]) == 3


@pytest.mark.parametrize("value", [[1, 2, 3], (1, 2, 3), Pair(1, 2)])
def test_numbers_and_names_of_digits_lead_into_lists(value: Any) -> None:
    assert (extract_value(value, [1]), extract_value(value, ["1"]), extract_value(value, ["01"])) == (2, 2, 2)


def test_a_key_is_found_by_what_it_is_in_json_before_and_after_a_snapshot() -> None:
    for value in ({1: "x", 2.5: "y"}, {"1": "x", "2.5": "y"}):
        assert (extract_value(value, ["1"]), extract_value(value, [1])) == ("x", "x")
        assert extract_value(value, ["2.5"]) == "y"
    assert extract_value({date(2024, 1, 2): "x"}, ["2024-01-02"]) == "x"
    assert extract_value(frozenset({7}), [0]) == 7
    assert extract_value(Listing.ROWS, ["rows", "0"]) == 7


@pytest.mark.parametrize("value", [{True: "x", False: "y"}, {1.0: "x", 0.0: "y"}])
def test_an_index_is_no_key_that_only_python_takes_for_equal(value: dict[Any, str]) -> None:
    for part in (0, 1, "0", "1"):
        with pytest.raises(LookupError, match="is missing: the output has"):
            extract_value(value, [part])


@dataclass
class Unfinished:
    total: int = field(init=False)


class Odd:
    """Has an attribute, and is no record."""

    total = 3


REFUSED = [
    ({"a": 1}, ["b"], "the output.b is missing: the output has a"),
    ({"a": {}}, ["a", "b", "c"], "the output.a.b is missing: the output.a is empty"),
    ({"a": []}, ["a", "0"], "the output.a.0 is missing: the output.a has 0 items"),
    ([1], [-1], "the output[-1] is missing: the output has 1 item"),
    ([1], [True], "the output[True] is missing: the output has 1 item"),
    ([1, 2, 3, 4], ["\u0663"], "the output.\\u0663 is missing: the output has 4 items"),
    (Data(1), ["__class__"], "the output.__class__ is missing: the output has total, hidden"),
    (Model(total=1), ["model_fields"], "the output.model_fields is missing: the output has total"),
    (Odd(), ["total"], "the output.total is missing: the output is Odd"),
    (Pair(1, 2), ["total"], "the output.total is missing: the output has 2 items"),
    ("text", [0], "the output[0] is missing: the output is 'text'"),
    (1.5, ["real"], "the output.real is missing: the output is float"),
    (dict.fromkeys("abcdefghij"), ["x"],
     "the output.x is missing: the output has a, b, c, d, e, f, g, h and 2 more"),
    ({"in": [{}]}, ["in", 0, "a b", "c"], "the output.in[0].a b is missing: the output.in[0] is empty"),
    ([1], ["9" * 5000], f"the output.{'9' * 37}... is missing: the output has 1 item"),
    (Unfinished(), ["total"], "the output.total is missing: the output has total"),
    (None, ["x"], "the output.x is missing: the output is null"),
    ({"a\nb": 1}, ["c"], "the output.c is missing: the output has a\\nb"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "path", "message"), REFUSED)
def test_where_there_is_nothing_it_says_what_there_is(value: Any, path: list[Any], message: str) -> None:
    with pytest.raises(LookupError) as refused:
        extract_value(value, path)
    assert str(refused.value) == message


def test_a_missing_name_of_a_mapping_that_makes_its_values_is_missing_and_is_not_made() -> None:
    value: defaultdict[str, list[int]] = defaultdict(list, a=[1])
    with pytest.raises(LookupError):
        extract_value(value, ["b"])
    assert value == {"a": [1]}


@pytest.mark.parametrize(
    ("output", "path"),
    [
        pytest.param([1], ("9" * 5000,), id="a number too long"),
        pytest.param(Unfinished(), ("total",), id="a field without a value"),
    ],
)
def test_an_output_that_fails_while_it_is_searched_is_an_error_of_its_step(output: Any, path: Any) -> None:
    produce = plain_tool("produce", lambda: ToolResult(True, "Done.", output))
    workflow = flow(called("a", tool="produce", output_path=path), thought("b"))
    result = run_workflow(workflow, capable(produce))
    assert (list(result.errors), dict(result.outputs)) == (["a"], {"b": "Do b"})
