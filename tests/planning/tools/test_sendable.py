"""What a result holds can be sent on: bounded, valid Unicode, with a ``repr`` that never fails."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tool_entries import raising, returning, through

from planning.tools import Tool, ToolError, ToolResult, ToolValidationError
from planning.tools.errors import ErrorKind
from session import Session

MOST = 50_000
FLOOD = "x" * 10_000_000
CUT = "x" * 49_940 + "... (9950060 more characters; ask for less)"


def texts(result: ToolResult) -> dict[str, str]:
    given = (result.message, result.error, result.user_message, result.input_request, result.cause)
    names = ("message", "error", "user_message", "input_request", "cause")
    return {name: text for name, text in zip(names, given, strict=True) if text is not None}


@pytest.mark.parametrize(
    ("tool", "cut"),
    [
        (returning(FLOOD), {"message": CUT}),
        (raising(ToolError(FLOOD)), {"message": CUT, "error": CUT, "user_message": CUT, "cause": CUT}),
        (
            returning(ToolResult(False, FLOOD, None, FLOOD, FLOOD, 0.5, ErrorKind.TOOL, FLOOD, FLOOD)),
            dict.fromkeys(("message", "error", "user_message", "input_request", "cause"), CUT),
        ),
        (returning(ToolResult(True, FLOOD, None, None, FLOOD, 0.5)), {"message": CUT, "user_message": CUT}),
        (
            returning({"success": False, "error": FLOOD, "user_message": FLOOD}),
            {"message": CUT, "error": CUT, "user_message": CUT, "cause": CUT},
        ),
    ],
)
def test_every_text_is_bounded_whoever_made_it(tool: Tool, cut: dict[str, str]) -> None:
    assert texts(through("call", tool)) == cut


@pytest.mark.parametrize(
    ("text", "sent"),
    [("a\ud800b", r"a\ud800b"), ("\udfff", r"\udfff"), ("\U0001f600 \u00fc", "\U0001f600 \u00fc")],
)
def test_half_a_character_is_escaped_in_every_text(text: str, sent: str) -> None:
    every = ToolResult(False, text, None, text, text, 0.5, ErrorKind.TOOL, text, text)
    assert set(texts(every).values()) == {sent}
    for tool in (returning(text), raising(ToolError(text)), raising(ToolValidationError(text))):
        result = through("call", tool)
        told = result.message.removeprefix("t failed: ")
        assert told == sent
        json.dumps(result.to_dict(), ensure_ascii=False).encode()
    named = through("call", returning({text: [text]}))
    assert (json.loads(named.message), named.value) == ({sent: [sent]}, {text: [text]})
    assert named.to_dict()["value"] == {sent: [sent]}


def doubled(times: int) -> Any:
    value: Any = ["x"]
    for _ in range(times):
        value = [value, value]
    return value


def test_a_value_that_repeats_itself_is_written_in_bounded_time() -> None:
    result = through("call", returning(doubled(60)), {}, Session())
    assert (result.success, len(result.message) <= MOST) == (True, True)
