"""Tools with query types: calls are checked before they are made."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel, BeforeValidator, PlainValidator, WrapValidator, create_model, field_validator
from syrupy.assertion import SnapshotAssertion

from planning import Toolbox
from planning.tools import ParameterError, Tool, ToolError, ToolRegistry, ToolSpec


class FinancialFactsParams(BaseModel):
    ticker: str
    metrics: list[str]
    start_date: str
    end_date: str
    filing_type: str | None = None

    @field_validator("start_date", "end_date")
    @classmethod
    def validate_date_format(cls, v: str) -> str:
        if len(v.split("-")) != 3:
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


def test_a_valid_call_is_none() -> None:
    company, facts = {"name": "Apple", "depth": 2.0, "tags": '["a"]'}, {**FACTS, "filing_type": None}
    calls: list[Any] = [("company", company), ("news", {"topic": "x"})]
    calls += [("financial_facts", each) for each in (FACTS, facts)]
    told = [REGISTRY.validate_call(SPEC.name, *each) for each in calls]  # type: ignore[func-returns-value]  # tested
    assert told == [None] * 4


WRONG: list[tuple[Any, Any, Any]] = [
    (SPEC.name, "financial_facts", {**FACTS, "start_date": "x"}),
    (SPEC.name, "financial_facts", {**FACTS, "end_date": " ", "metrics": ["a", 1], "filling_type": "x"}),
    (SPEC.name, "company", {"nam": "a"}),
    (SPEC.name, "news", None),
    (SPEC.name, "news", []),
    (SPEC.name, "news", {1: 2}),
    *((SPEC.name, unsupported, FACTS) for unsupported in ("filings", None, ["news"])),
    *((name, "news", {}) for name in ("plane", "zzz")),
]


def test_a_wrong_call_is_told_whole_by_the_nearest_or_the_supported_names(
    snapshot: SnapshotAssertion,
) -> None:
    said = []
    for name, query_type, params in WRONG:
        with pytest.raises(ParameterError) as caught:
            REGISTRY.validate_call(name, query_type, params)
        error = caught.value
        assert (error.__cause__, error.__context__) == (None, None)
        assert isinstance(error, ToolError)
        assert isinstance(error, ValueError)
        told = [f"{problem.path}: {problem.message}" for problem in error.problems]
        assert getattr(error, "supported_types", None) == error.details.get("supported_types")
        texts = [type(error).__name__, str(error), error.user_message(), json.dumps(error.details), *told]
        said.append("\n".join([f"{name}, {query_type}, {params}", *(f"    {text}" for text in texts), ""]))
    assert "\n".join(said) == snapshot


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


def refuse(given: dict[str, Any]) -> dict[str, Any]:
    if given.pop("length", None) is not None:
        raise ValueError("length is gone; send size")
    return given


READING = [BeforeValidator(refuse), PlainValidator(refuse), WrapValidator(lambda given, _: refuse(given))]


@pytest.mark.parametrize("validator", READING)
def test_a_validator_that_changes_what_it_refuses_refuses_it(validator: Any) -> None:
    cut = create_model("Cut", by=(Annotated[dict[str, int], validator], ...))
    sent = {"by": {"length": 3}, "bye": 1}
    result = Toolbox([Tool("cut", "Cut.", str, parameters=cut)]).call("cut", sent)
    said = "2 problems:\n- by: length is gone; send size\n- bye: unknown field; did you mean by?"
    assert (result.error, sent) == (said, {"by": {"length": 3}, "bye": 1})
