"""The envelopes are views of one result, each with its own keys, and agree on what happened."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.tools import ErrorKind, Tool, ToolError, ToolResult
from planning.tools.base import BaseTool
from planning.tools.envelopes import (
    error_response,
    execution_envelope,
    pipeline_envelope,
    query_envelope,
    success_response,
)

TEXTS = st.none() | st.text(max_size=5)
SUCCEEDED = st.builds(ToolResult, st.just(True), st.text(), st.integers(), user_message=TEXTS)
FAILED = st.builds(
    ToolResult,
    st.just(False),
    st.text(max_size=5),
    st.none() | st.integers(),
    TEXTS,
    TEXTS,
    st.floats(0, 1),
    st.none() | st.sampled_from(ErrorKind),
    TEXTS,
    TEXTS,
)


@given(SUCCEEDED | FAILED)
def test_all_envelopes_of_a_result_agree(result: ToolResult) -> None:
    executed = execution_envelope("t", result)
    piped = pipeline_envelope(result)
    queried = query_envelope("t", result, "all", {"a": 1})
    assert {executed["success"], piped["success"], queried["success"]} == {result.success}
    assert executed["result"] == piped["data"] == result.value
    assert queried["results"] == (result.value if result.success else [])
    assert (executed["error"] is None) == (piped["error"] is None) == ("error" not in queried)
    assert (executed["error"] is None) == result.success
    assert piped.get("error") == queried.get("error")
    assert [*executed] == ["success", "tool", "result", "error", "elapsed"]
    assert [*piped][:4] == ["success", "data", "error", "user_message"]
    assert [*queried][:5] == ["query_type", "parameters", "results", "output_key", "success"]


@given(SUCCEEDED | FAILED)
def test_the_pipelines_envelope_has_a_code_after_a_failure_and_a_question_where_there_is_one(
    result: ToolResult,
) -> None:
    piped = pipeline_envelope(result)
    assert ("code" in piped) is not result.success
    assert ("input_request" in piped) is ("needs_user_input" in piped) is (result.input_request is not None)
    assert piped.get("code") == (result.code.value if result.code else None)
    assert type(piped.get("code")) in {str, type(None)}


def test_the_execution_envelope_of_a_success_has_its_five_keys() -> None:
    assert execution_envelope("t", ToolResult(True, "two", 2, elapsed=0.5)) == {
        "success": True,
        "tool": "t",
        "result": 2,
        "error": None,
        "elapsed": 0.5,
    }


def test_only_the_execution_envelope_tells_the_text_of_an_exception() -> None:
    result = ToolResult(False, "Again.", None, "It failed", "Sorry.", 0.5, ErrorKind.UNKNOWN, cause="4711")
    assert execution_envelope("t", result)["error"] == "4711"
    assert pipeline_envelope(result) == {
        "success": False,
        "data": None,
        "error": "It failed",
        "user_message": "Sorry.",
        "code": "unknown",
    }
    assert query_envelope("t", result, "all", {})["error"] == "It failed"


def test_the_query_envelopes_have_exactly_their_keys() -> None:
    assert success_response("t", "facts", {"a": 1}, [2], total=1) == {
        "total": 1,
        "query_type": "facts",
        "parameters": {"a": 1},
        "results": [2],
        "output_key": "t",
        "success": True,
    }
    assert error_response("t", "facts", {"a": 1}, "no", kind="warning", total=0) == {
        "total": 0,
        "query_type": "facts",
        "parameters": {"a": 1},
        "results": [],
        "output_key": "t",
        "success": False,
        "warning": "no",
    }


def test_further_fields_take_no_core_fields_place() -> None:
    core: dict[str, Any] = {"output_key": "x", "success": "maybe", "results": "x"}
    refused = error_response("t", "q", {}, "no", kind="warning", **core)
    assert refused == error_response("t", "q", {}, "no", kind="warning")
    core.pop("results")
    assert success_response("t", "q", {}, [1], **core) == success_response("t", "q", {}, [1])


def test_a_further_field_may_be_called_tool() -> None:
    tool = Tool("t", "T.", lambda: 1)
    assert tool.format_success_response("q", {}, [], tool="hammer")["tool"] == "hammer"
    assert tool.format_error_response("q", {}, "no", tool="hammer")["tool"] == "hammer"


def test_parameters_are_copied() -> None:
    parameters = {"a": 1}
    success_response("t", "q", parameters, [])["parameters"]["a"] = 2
    error_response("t", "q", parameters, "no")["parameters"]["a"] = 2
    assert parameters == {"a": 1}


def test_an_unknown_kind_of_error_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^kind must be 'error' or 'warning', got 'success'$"):
        error_response("t", "q", {}, "no", kind="success")  # type: ignore[arg-type]  # what is tested


def test_tools_and_base_tools_format_alike() -> None:
    class Look(BaseTool):
        name = "t"
        description = "Look."

        async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
            return {"success": True}

    for tool in (Look(), Tool("t", "Look.", lambda: 1)):
        assert tool.format_success_response("q", {"a": 1}, [2], n=1) == success_response(
            "t", "q", {"a": 1}, [2], n=1
        )
        assert tool.format_error_response("q", {}, "no", kind="warning", n=1) == error_response(
            "t", "q", {}, "no", kind="warning", n=1
        )


def fail() -> None:
    raise ToolError("the queue is full")


async def afail() -> None:
    raise ToolError("the queue is full")


@pytest.mark.parametrize("function", [fail, afail])
def test_the_doors_of_one_tool_give_the_same_envelope(function: Any) -> None:
    tool = Tool("t", "T.", function)
    executed, awaited = tool.execute(), asyncio.run(tool.aexecute())
    assert executed.pop("elapsed") > 0
    assert awaited.pop("elapsed") > 0
    assert executed == awaited
    assert executed == {"success": False, "tool": "t", "result": None, "error": "the queue is full"}
