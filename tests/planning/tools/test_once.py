"""A call that is made again with its idempotency key returns what it returned, and does nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pydantic
import pytest
from repeat_calls import SCHEMA, by, counting, openers

from planning import Plan, PlanningToolsSection, Toolbox
from planning.tools import Tool, ToolContext, ToolResult
from session import Session, ToolFailed, ToolInvoked
from session.stores import SqliteStore

SETUP = {"objective": "Fix the login bug", "initial_steps": [{"title": "Reproduce it"}]}
MARK = {"step_id": "S001", "status": "done"}


@pytest.fixture(params=["memory", "a memory store", "a file"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Session]:
    return openers(tmp_path)[request.param]


def test_a_repeat_returns_what_the_model_got_and_changes_nothing(opened: Callable[[], Session]) -> None:
    session = opened()
    tool, made = counting()
    section = PlanningToolsSection(session=session)
    toolbox = Toolbox([*section.tools(), tool], session=session)
    heard: list[object] = []
    session.bus.subscribe(object, heard.append)
    first = [
        toolbox.call("planning_setup_plan", SETUP, context=by("1")),
        toolbox.call("send", {"to": "Ann"}, context=by("2")),
        toolbox.call("planning_mark_step", MARK, context=by("3")),
    ]
    version, count, plan = session.version, len(heard), session.select_latest(Plan)
    again = [
        toolbox.call("planning_setup_plan", SETUP, context=by("1")),
        toolbox.call("send", '{"to": "Ann"}', context=by("2")),
        toolbox.call("planning_mark_step", MARK, context=by("3")),
    ]
    assert [(each.success, each.code, each.message, each.value) for each in again] == [
        (each.success, each.code, each.message, None) for each in first
    ]
    assert (session.version, len(heard), session.select_latest(Plan), made) == (version, count, plan, ["Ann"])


def test_an_id_without_a_key_never_makes_a_repeat(opened: Callable[[], Session]) -> None:
    session = opened()
    tool, made = counting()
    toolbox = Toolbox([tool], session=session)
    for key in ({}, {"idempotency_key": None}):
        toolbox.call("send", {"to": "Ann"}, context={"call_id": "call_1", "actor": "agent", **key})
    assert (made, session.version) == (["Ann", "Ann"], 2)


def test_a_plan_is_never_read_from_the_past(opened: Callable[[], Session]) -> None:
    session = opened()
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    toolbox.call("planning_setup_plan", SETUP)
    first = toolbox.call("planning_read_plan", {}, context=by("1"))
    toolbox.call("planning_mark_step", MARK)
    again = toolbox.call("planning_read_plan", {}, context=by("1"))
    assert [first.message, again.message, again.value] == [
        "Fix the login bug (active, 0 of 1 done)\nS001 pending: Reproduce it",
        "Fix the login bug (completed, 1 of 1 done)\nS001 done: Reproduce it",
        session.select_latest(Plan),
    ]


def test_a_repeat_is_found_after_a_restart(tmp_path: Path) -> None:
    def call() -> ToolResult:
        session = Session(session_id="run-7", store=SqliteStore(tmp_path / "plans.db"))
        section = PlanningToolsSection(session=session)
        return Toolbox(section.tools(), session=session).call("planning_setup_plan", SETUP, context=by("1"))

    first, again = call(), call()
    assert (again.success, again.message, again.value) == (True, first.message, None)
    assert Session(session_id="run-7", store=SqliteStore(tmp_path / "plans.db")).version == 1


def test_a_key_that_was_used_for_another_call_is_refused(opened: Callable[[], Session]) -> None:
    session = opened()
    tool, made = counting()
    ask = Tool("ask", "Ask.", lambda _: "No", parameters=SCHEMA)
    toolbox = Toolbox([*PlanningToolsSection(session=session).tools(), tool, ask], session=session)
    toolbox.call("planning_setup_plan", SETUP, context=by("0"))
    toolbox.call("send", {"to": "Ann"}, context=by("1"))
    version = session.version
    refused = [
        toolbox.call("send", {"to": "Bob"}, context=by("1")),
        toolbox.call("ask", {"to": "Ann"}, context=by("1")),
        toolbox.call("planning_setup_plan", {**SETUP, "objective": "Other"}, context=by("0")),
        toolbox.call("planning_read_plan", {}, context=by("0")),
    ]
    assert [(each.success, each.code) for each in refused] == [(False, "bad_context")] * 4
    assert [each.message for each in refused] == [
        f"{name} was not called: it was sent as a repeat of an earlier call {otherwise}. Send it as a new "
        "call."
        for name, otherwise in [
            ("send", "with other arguments"),
            ("ask", "of send"),
            ("planning_setup_plan", "with other arguments"),
            ("planning_read_plan", "of planning_setup_plan"),
        ]
    ]
    assert (made, session.version, [change.changed for change in session.history(version)]) == (
        ["Ann"],
        version + 4,
        [False] * 4,
    )


def test_the_calls_that_a_tool_makes_itself_do_not_have_its_key() -> None:
    session = Session()
    tool, made = counting()

    def delegate(arguments: dict[str, str], context: ToolContext) -> str:
        return toolbox.call("send", arguments, context=context.values).message

    outer = Tool("delegate", "Delegate.", delegate, parameters=SCHEMA)
    toolbox = Toolbox([tool, outer], session=session)
    assert toolbox.call("delegate", {"to": "Ann"}, context=by("1")).message == "Sent 1 to Ann"
    assert [event.idempotency_key for event in session.select_all(ToolInvoked)] == [None, "1"]
    assert made == ["Ann"]


def test_refused_and_failed_calls_are_not_remembered(opened: Callable[[], Session]) -> None:
    session = opened()
    made: list[str] = []

    def fail(arguments: dict[str, str]) -> str:
        made.append(arguments["to"])
        raise ConnectionError

    toolbox = Toolbox([Tool("send", "Send.", fail, parameters=SCHEMA)], session=session)
    for _ in range(2):
        assert not toolbox.call("send", {"to": 5}, context=by("1")).success
        assert not toolbox.call("send", {"to": "Ann"}, context=by("1")).success
    assert (made, len(session.select_all(ToolFailed))) == (["Ann", "Ann"], 4)


def test_a_repeat_of_a_call_with_private_data_is_refused(opened: Callable[[], Session]) -> None:
    session = opened()
    tool, made = counting(returns_private_data=True)
    toolbox = Toolbox([tool], session=session)
    assert toolbox.call("send", {"to": "Zq4711"}, context=by("1")).message == "Sent 1 to Zq4711"
    again = toolbox.call("send", {"to": "Zq4711"}, context=by("1"))
    assert (again.success, again.code, again.message) == (
        False,
        "bad_context",
        "send was not called: it repeats an earlier call, whose private result is not kept. Make a new call "
        "if you need it.",
    )
    assert made == ["Zq4711"]
    assert [event.fingerprint for event in session.select_all(ToolInvoked)] == [None]


class _Login(pydantic.BaseModel):
    word: pydantic.SecretStr


@pytest.mark.parametrize(
    "pair",
    [
        (1, 1.0),
        ({"a": [1]}, {"a": [True]}),
        (_Login(word=pydantic.SecretStr("a")), _Login(word=pydantic.SecretStr("b"))),
    ],
)
def test_arguments_that_cannot_be_seen_to_be_the_same_are_not(pair: tuple[object, object]) -> None:
    made: list[object] = []
    tool = Tool("send", "Send.", lambda given: made.append(given["to"]), parameters={"type": "object"})
    toolbox = Toolbox([tool], session=Session())
    first, again = (toolbox.call("send", {"to": each}, context=by("1")) for each in pair)
    assert (first.success, again.message) == (
        True,
        "send was not called: it was sent as a repeat of an earlier call with other arguments. Send it as a "
        "new call.",
    )
    assert len(made) == 1
