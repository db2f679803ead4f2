"""What a result holds can be sent on: bounded, valid Unicode, with a ``repr`` that never fails."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from tool_entries import piped, raising, returning, safely, through

from planning.tools import (
    BaseTool,
    Tool,
    ToolError,
    ToolResult,
    ToolValidationError,
)
from planning.tools.errors import ErrorKind, UserInputNeeded
from session import Session, ToolFailed

MOST = 50_000
FLOOD = "x" * 10_000_000
CUT = "x" * 49_940 + "... (9950060 more characters; ask for less)"


def texts(result: ToolResult) -> dict[str, str]:
    given = (result.message, result.error, result.user_message, result.input_request, result.cause)
    names = ("message", "error", "user_message", "input_request", "cause")
    return {name: text for name, text in zip(names, given, strict=True) if text is not None}


def test_a_text_of_the_most_characters_is_kept_and_one_more_is_cut() -> None:
    assert ToolResult(True, "x" * MOST).message == "x" * MOST
    assert ToolResult(True, "x" * (MOST + 1)).message == (
        "x" * 49_940 + "... (61 more characters; ask for less)"
    )


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


def test_the_other_entries_are_bounded_as_well(session: Session) -> None:
    class Look(BaseTool):
        name = "t"
        description = "T."

        async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
            return {"success": False, "error": FLOOD, "user_message": FLOOD}

    for told in (safely(Look()), piped([Look()], [{"tool": "t"}])["t"]):
        assert (told["error"], told["user_message"]) == (CUT, CUT)
    result = through("call", raising(UserInputNeeded(FLOOD, FLOOD)), {}, session)
    assert result.input_request == CUT
    assert session.select_all(ToolFailed)[0].result == result


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("a\ud800b", r"a\ud800b"),
        ("\udfff", r"\udfff"),
        ("\ud83d\ude00", r"\ud83d\ude00"),
        ("\U0001f600 \u00fc", "\U0001f600 \u00fc"),
    ],
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


def test_the_name_of_no_tool_is_sent_as_a_whole_text(session: Session) -> None:
    results = piped([], [{"tool": "a\ud800"}], session)
    assert {name: told["error"] for name, told in results.items()} == {r"a\ud800": r"Unknown tool: a\ud800"}
    assert session.select_all(ToolFailed)[0].name == r"a\ud800"


def test_a_message_that_is_no_text_becomes_one() -> None:
    message: Any = 5
    assert ToolResult(True, message).message == "5"
    message = None
    assert ToolResult(True, message).message == ""


class Odd(BaseException):
    pass


class Mute:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __repr__(self) -> str:
        raise self.error

    __str__ = __repr__


def doubled(times: int) -> Any:
    value: Any = ["x"]
    for _ in range(times):
        value = [value, value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        10**5000, [10**5000], Mute(ValueError()), Mute(Odd()), {"a": Mute(ValueError())}, FLOOD,
        ["x"] * 1_000_000, doubled(60), dict.fromkeys(range(3), FLOOD),
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_the_repr_of_a_result_is_short_and_never_fails(value: Any) -> None:
    shown = repr(ToolResult(True, "ok", value, elapsed=0.5))
    assert shown.startswith("ToolResult(success=True, code=None, elapsed=0.5, message='ok', value=")
    assert len(shown) < 50_000
    odd: Any = Mute(Odd())
    assert repr(ToolResult(odd, odd, odd, elapsed=odd, code=odd, is_private=True)) == (
        "ToolResult(success=<Mute>, code='<Mute>', elapsed=<Mute>, private)"
    )


def test_parts_that_are_repeated_now_and_then_are_told_each_time() -> None:
    row = {"a": [1]}
    assert through("call", returning([row, row])).message == '[{"a":[1]},{"a":[1]}]'
    told = ToolResult(True, "ok", [row, row]).to_dict()["value"]
    told[0]["a"].append(2)
    assert told == [{"a": [1, 2]}, {"a": [1]}]


@dataclass
class Empty:
    pass


def test_a_record_without_fields_is_an_empty_object() -> None:
    assert through("call", returning(Empty())).message == "{}"


class Hidden(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]  # what is tested
        raise ValueError("4711")


class Masked(Exception):
    @property  # type: ignore[misc]  # what is tested
    def __class__(self) -> Any:
        raise ValueError("4711")


class MaskedOdd(BaseException):
    @property  # type: ignore[misc]  # what is tested
    def __class__(self) -> Any:
        raise Odd("4711")


class Nameless(Exception, metaclass=Hidden):
    pass


class Worded(Exception):
    @property
    def message(self) -> str:
        raise Odd("4711")


class Unasked(UserInputNeeded):
    @property
    def input_request(self) -> Any:
        raise ValueError("4711")

    @input_request.setter
    def input_request(self, value: str) -> None: ...


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("is_private", [False, True])
@pytest.mark.parametrize("timeout", [None, 20.0])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Masked("4711"), "unknown"),
        (MaskedOdd("4711"), "unknown"),
        (Nameless("4711"), "unknown"),
        (Worded("4711"), "unknown"),
        (Unasked("4711", "4711"), "needs_user_input"),
    ],
    ids=["masked", "masked odd", "nameless", "worded", "unasked"],
)
def test_an_exception_that_fails_when_it_is_asked_anything_is_a_failed_result(
    error: BaseException, code: str, timeout: float | None, is_private: bool, is_async: bool, session: Session
) -> None:
    tool = raising(error, is_async=is_async, returns_private_data=is_private, timeout=timeout)
    for entry in ("call", "acall"):
        outcome = through(entry, tool, {}, session)
        assert (outcome.success, outcome.code, outcome.value) == (False, code, None)
    assert len(session.select_all(ToolFailed)) == 2
