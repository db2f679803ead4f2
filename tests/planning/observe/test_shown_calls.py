"""The calls in a change, and text that is cut, as the page, a picture and the terminal show them."""

from __future__ import annotations

from typing import Any

import pytest

from planning import MarkStep, SetupPlan
from planning.observe.calls import calls_of, characters_of
from planning.observe.text import fitted, one_line, shortened
from planning.tools import ToolResult
from session import Session, ToolFailed, ToolInvoked

FOUND = ToolResult(True, "found", None, None, None, 0.0123456)
MARK = MarkStep("S001", "done")
REFUSED = ToolResult(False, "Refused, nothing changed. no", None, "no", None, float("nan"))


def result(message: str, **more: Any) -> ToolResult:
    return ToolResult(True, message, None, None, None, 0.5, **more)


@pytest.mark.parametrize(
    ("event", "shown"),
    [
        (ToolInvoked("search", {"q": "a", "x": None}, FOUND),
         {"name": "search", "ms": 12.35, "arguments": '{"q":"a"}', "message": "found", "characters": 14}),
        (ToolInvoked("search", {}, "found"),
         {"name": "search", "arguments": "{}", "message": "found", "characters": 7}),
        (ToolInvoked("search", "all", {"n": 1, "m": None}),
         {"name": "search", "arguments": "all", "message": '{"n":1}', "characters": 10}),
        (ToolInvoked("search", None, None), {"name": "search", "characters": 0}),
        (ToolInvoked("search", {"q": "a"}, result("found", is_private=True)),
         {"name": "search", "ms": 500.0, "private": True}),
        (ToolFailed("search", REFUSED),
         {"name": "search", "error": "tool", "message": "Refused, nothing changed. no", "characters": 28}),
        (ToolFailed("search", "it broke"),
         {"name": "search", "error": "tool", "message": "it broke", "characters": 8}),
        (ToolInvoked("planning_mark_step", MARK, result("S001 done."), MARK),
         {"name": "planning_mark_step", "ms": 500.0, "characters": 44}),
    ],
)  # fmt: skip
def test_a_call_is_shown_with_what_it_got_and_said(event: Any, shown: dict[str, Any]) -> None:
    session = Session()
    session.dispatch(event)
    (change,) = session.history()
    assert calls_of(change) == [shown]
    assert calls_of(change, is_timed=False) == [{name: each for name, each in shown.items() if name != "ms"}]


def test_only_the_characters_of_planning_calls_are_counted() -> None:
    session = Session()
    setup = SetupPlan("x")
    with session.transaction() as transaction:
        transaction.dispatch(ToolInvoked("search", {"q": "a"}, FOUND))
        transaction.dispatch(ToolInvoked("planning_setup_plan", setup, result("Plan set."), setup))
        transaction.dispatch(ToolFailed("planning_mark_step", "no"))
    (change,) = session.history()
    planned = sum(each["characters"] for each in calls_of(change)[1:])
    assert (characters_of(change), planned > 20) == (planned, True)


def test_a_text_that_is_too_long_is_cut_with_a_sign() -> None:
    assert [shortened("abc", limit) for limit in (4, 3, 2)] == ["abc", "abc", "a\u2026"]


PERSIAN = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("\u6d4b\u8bd5\u6d4b\u8bd5", 8, "\u6d4b\u8bd5\u6d4b\u8bd5"),
        ("\u6d4b\u8bd5\u6d4b\u8bd5", 7, "\u6d4b\u8bd5\u6d4b\u2026"),
        ("e\u0301" * 8, 8, "e\u0301" * 8),
        ("e\u0301" * 9, 8, "e\u0301" * 7 + "\u2026"),
        (PERSIAN, 7, PERSIAN),
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467", 4, "\U0001f468\u2026"),
        ("a\u202eb", 20, "a\\u202eb"),
    ],
)
def test_a_text_is_cut_by_its_columns(text: str, columns: int, expected: str) -> None:
    assert fitted(text, columns) == expected


def test_a_line_keeps_the_joiners_and_blanks_of_a_language() -> None:
    assert one_line("\u5168\u3000\u89d2 \u0645\u06cc\u200c\u062e\n\u202e\x1b") == (
        "\u5168\u3000\u89d2 \u0645\u06cc\u200c\u062e | \\u202e\\x1b"
    )
