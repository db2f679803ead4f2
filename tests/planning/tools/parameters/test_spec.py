"""Tools with query types: calls are checked before they are made."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import date
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel, field_validator, model_validator
from syrupy.assertion import SnapshotAssertion

from planning import Toolbox
from planning.errors import Problem
from planning.tools import ParameterError, QueryTypeUnsupported, Tool, ToolError, ToolRegistry, ToolSpec

# The next two classes are those that the contract was specified with, to the letter.


class FinancialFactsParams(BaseModel):
    """Parameters for financial facts queries."""

    ticker: str
    metrics: list[str]
    start_date: str
    end_date: str
    filing_type: str | None = None

    @field_validator("start_date", "end_date")
    @classmethod
    def validate_date_format(cls, v: Any) -> Any:
        # Simple validation for YYYY-MM-DD format
        if not isinstance(v, str) or not v.strip():
            raise ValueError("Date must be a non-empty string")

        # Check if it's already a date object
        if isinstance(v, date):  # type: ignore[unreachable]  # as it was written
            return v.isoformat()  # type: ignore[unreachable]  # as it was written

        # Basic format check
        parts = v.split("-")
        if len(parts) != 3:
            raise ValueError("Date must be in YYYY-MM-DD format")

        return v


@dataclass
class CompanyParams:
    name: str
    depth: int = 1
    tags: list[str] = field(default_factory=list)


class NewsParams(TypedDict):
    topic: str


SPEC = ToolSpec(
    name="sec_financial_data",
    input_schema={"financial_facts": FinancialFactsParams, "company": CompanyParams, "news": NewsParams},
    output_key="financial_data",
    description="Figures of companies.",
)
SUPPORTED = "Supported types are: financial_facts, company, news"
NOT_JSON = "arguments must contain only JSON values: text, numbers, booleans, null, arrays, objects"
THE_TOOLS = "the tools are sec_financial_data, nothing, plain"
FORMAT = "Date must be in YYYY-MM-DD format"
MISSING = "missing; send a string"
REGISTRY = ToolRegistry([SPEC, ToolSpec("nothing", {}, "nothing"), Tool("plain", "d", lambda size: size)])
FACTS = {"ticker": "AAPL", "metrics": ["Revenue"], "start_date": "2022-01-01", "end_date": "2022-12-31"}


@pytest.mark.parametrize(
    ("query_type", "params"),
    [
        ("financial_facts", FACTS),
        ("financial_facts", {**FACTS, "filing_type": None}),
        ("company", {"name": "Apple", "depth": 2.0, "tags": '["a"]'}),
        ("news", {"topic": "x"}),
    ],
)
def test_a_valid_call_is_none(query_type: str, params: Any) -> None:
    told = REGISTRY.validate_call("sec_financial_data", query_type, params)  # type: ignore[func-returns-value]  # tested
    assert told is None


@pytest.mark.parametrize(
    ("query_type", "params", "errors"),
    [
        ("financial_facts", {**FACTS, "start_date": "x"}, {"start_date": FORMAT}),
        ("financial_facts", {**FACTS, "end_date": " ", "metrics": ["a", 1], "filling_type": "x"},
         {"metrics[1]": "expected a string, got a number", "end_date": "Date must be a non-empty string",
          "filling_type": "unknown field; did you mean filing_type?"}),
        ("company", {"nam": "a"}, {"name": MISSING, "nam": "unknown field; did you mean name?"}),
        ("news", None, {"topic": MISSING}),
        ("news", [], {"": "parameters must be a mapping, got list"}),
        ("news", {1: 2}, {"": NOT_JSON}),
    ],
)  # fmt: skip
def test_wrong_parameters_are_told_whole(query_type: str, params: Any, errors: dict[str, str]) -> None:
    with pytest.raises(ParameterError) as caught:
        REGISTRY.validate_call("sec_financial_data", query_type, params)
    error, field = caught.value, next(iter(errors)).partition("[")[0] or None
    assert error.details == {
        "field": field,
        "errors": [{"path": path, "message": message} for path, message in errors.items()],
    }
    assert error.problems == tuple(Problem(message, path) for path, message in errors.items())
    if field is not None:
        first = next(iter(errors.values()))
        assert error.user_message() == f"The parameter '{field}' is invalid: {first}"
    assert (error.__cause__, error.__context__) == (None, None)
    assert isinstance(error, ToolError)
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    ("query_type", "shown"),
    [("filings", "filings"), (None, "a value of type NoneType"), (["news"], "a value of type list")],
)
def test_a_query_type_that_is_not_supported_is_told_with_those_that_are(query_type: Any, shown: str) -> None:
    with pytest.raises(QueryTypeUnsupported) as caught:
        REGISTRY.validate_call("sec_financial_data", query_type, FACTS)
    error, supported = caught.value, ["financial_facts", "company", "news"]
    message = f"Query type '{shown}' is not supported by the sec_financial_data tool. {SUPPORTED}"
    assert (str(error), error.user_message(), error.supported_types) == (message, message, supported)
    assert error.details == {
        "query_type": shown,
        "tool_name": "sec_financial_data",
        "supported_types": supported,
        "field": "query_type",
        "errors": [{"path": "query_type", "message": message}],
    }


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("plane", "Tool 'plane' not found in registry; did you mean plain?"),
        ("zzz", f"Tool 'zzz' not found in registry; {THE_TOOLS}"),
    ],
)
def test_an_unknown_tool_is_told_with_the_nearest_known(name: Any, message: str) -> None:
    with pytest.raises(ParameterError) as caught:
        REGISTRY.validate_call(name, "news", {})
    assert str(caught.value) == message
    errors = [{"path": "tool_name", "message": message}]
    assert caught.value.details == {"field": "tool_name", "errors": errors}


ANSWERING = ToolSpec("answering", dict(SPEC.input_schema), "k", function=lambda kind, given: (kind, given))


def test_the_tool_of_a_spec_is_called_with_the_query_type_and_its_parameters() -> None:
    tool = ANSWERING.as_tool
    assert tool is ANSWERING.as_tool
    for parameters in ({"name": "a"}, '{"name": "a"}'):
        envelope = tool.execute(query_type="company", parameters=parameters)
        assert envelope["result"] == ("company", CompanyParams("a"))


CALLS: list[dict[str, Any]] = [
    {"parameters": {}},
    {"query_type": 5, "topic": "x"},
    {"query_type": "news", "x": 1, "parameters": {"topc": "x"}},
    {"query_type": "nwes"},
]


def test_a_wrong_call_of_the_tool_is_told_what_to_send(snapshot: SnapshotAssertion) -> None:
    envelopes = [ANSWERING.as_tool.execute(**arguments) for arguments in CALLS]
    assert [each["result"] for each in envelopes] == [None] * len(CALLS)
    assert "\n".join(each["error"] for each in envelopes) == snapshot


class Folder(BaseModel):
    inner: list[Folder] = []


class Other:
    class Folder(BaseModel):
        inner: list[Other.Folder] = []
        size: int = 1


def test_types_that_contain_themselves_share_their_definitions_unless_they_differ() -> None:
    schema = ToolSpec("t", {"a": Folder, "b": Folder}, "k").as_tool.parameters_schema()
    assert list(schema["$defs"]) == ["Folder"]
    with pytest.raises(TypeError) as caught:
        _ = ToolSpec("t", {"a": Folder, "b": Other.Folder}, "k").as_tool.model
    assert str(caught.value) == "t has two parameter types Folder that contain themselves: rename one"


def test_a_spec_without_a_function_cannot_be_called() -> None:
    envelope = SPEC.as_tool.execute(query_type="news", parameters={"topic": "x"})
    assert (envelope["success"], envelope["error"]) == (
        False,
        "sec_financial_data cannot be called: it is declared without a function. Continue without it.",
    )


def test_the_schema_of_a_query_names_the_types_and_what_each_takes(snapshot: SnapshotAssertion) -> None:
    specs = (ToolSpec("one", {"news": NewsParams}, "k"), SPEC)
    schemas = [each.as_tool.parameters_schema() for each in specs]
    assert "\n".join(json.dumps(each, indent=1, sort_keys=True) for each in schemas) == snapshot


def test_a_validator_that_changes_what_it_refuses_refuses_it() -> None:
    class Renamed(BaseModel):
        size: int = 1

        @model_validator(mode="before")
        @classmethod
        def refuse(cls, given: dict[str, Any]) -> dict[str, Any]:
            if given.pop("length", None) is not None:
                raise ValueError("length is gone; send size")
            return given

    sent = {"length": 3}
    result = Toolbox([Tool("cut", "Cut.", lambda _: "Cut.", parameters=Renamed)]).call("cut", sent)
    assert (result.message, sent) == ("Refused, nothing changed. length is gone; send size", {"length": 3})
