"""The calls in a change, as the page and the terminal show them."""

from __future__ import annotations

from typing import Any

import pytest

from planning import MarkStep, SetupPlan
from planning.observe.calls import calls_of, characters_of
from planning.observe.text import shortened
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
