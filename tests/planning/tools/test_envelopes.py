"""The envelopes are views of one result, each with its own keys, and agree on what happened."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tool_entries import Answer, piped, raising, returning, safely

from planning.tools import ToolResult
from planning.tools.errors import ErrorKind

TEXTS = st.none() | st.text(max_size=5)
TIMES = st.floats(0.001, 1)
SUCCEEDED = st.builds(ToolResult, st.just(True), st.text(), st.integers(), user_message=TEXTS, elapsed=TIMES)
FAILED = st.builds(
    ToolResult,
    st.just(False),
    st.text(max_size=5),
    st.none() | st.integers(),
    TEXTS,
    TEXTS,
    TIMES,
    st.sampled_from(ErrorKind),
    TEXTS,
    TEXTS,
)


@given(SUCCEEDED | FAILED)
def test_all_envelopes_of_a_result_agree(result: ToolResult) -> None:
    executed = returning(result).execute()
    told = piped([returning(result)], [{"tool": "t"}])["t"]
    assert safely(Answer(result)) == told
    assert executed == {
        "success": result.success,
        "tool": "t",
        "result": result.value,
        "error": None if result.success else result.cause or result.error or result.message,
        "elapsed": result.elapsed,
    }
    expected = {
        "success": result.success,
        "data": result.value,
        "error": None if result.success else result.error or result.message,
        "user_message": result.user_message,
    }
    if not result.success:
        expected["code"] = result.code and result.code.value
        assert type(told["code"]) is str
    if result.input_request is not None:
        expected |= {"needs_user_input": True, "input_request": result.input_request}
    assert told == expected
    assert [*executed] == ["success", "tool", "result", "error", "elapsed"]
    assert [*told][:4] == ["success", "data", "error", "user_message"]


def test_only_the_envelope_of_execute_tells_the_text_of_an_exception() -> None:
    made = raising(RuntimeError("4711"))
    assert made.execute()["error"] == "4711"
    assert piped([made], [{"tool": "t"}])["t"]["error"] == "Tool 't' encountered an error"


every_kind = pytest.mark.parametrize("tool", [Answer({}), returning(1)], ids=["BaseTool", "Tool"])


@every_kind
def test_the_answers_of_a_query_have_exactly_their_keys(tool: Any) -> None:
    assert tool.format_success_response("facts", {"a": 1}, [2], total=1) == {
        "total": 1,
        "query_type": "facts",
        "parameters": {"a": 1},
        "results": [2],
        "output_key": "t",
        "success": True,
    }
    core = {"query_type": "facts", "parameters": {"a": 1}, "results": [], "output_key": "t", "success": False}
    for kind in ("error", "warning"):
        told = tool.format_error_response("facts", {"a": 1}, "no", kind=kind, total=0)
        assert told == {"total": 0, **core, kind: "no"}
    assert tool.format_error_response("facts", {"a": 1}, "no") == {**core, "error": "no"}


def test_an_unknown_kind_of_error_is_refused() -> None:
    with pytest.raises(ValueError) as caught:
        returning(1).format_error_response("q", {}, "no", kind="success")  # type: ignore[arg-type]  # what is tested
    assert str(caught.value) == "kind must be 'error' or 'warning', got 'success'"
