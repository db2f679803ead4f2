"""A call that is made again with its id returns what it returned, and does nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from repeat_calls import SCHEMA, by, counting, openers

from planning import Plan, PlanningToolsSection, Toolbox
from planning.tools import Tool, ToolResult
from planning.tools.ledger import ToolCall
from session import Session, ToolFailed, ToolInvoked
from session.stores import SqliteStore, Store

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
        toolbox.call("planning_read_plan", {}, context=by("4")),
    ]
    version, count, plan = session.version, len(heard), session.select_latest(Plan)
    again = [
        toolbox.call("planning_setup_plan", SETUP, context=by("1")),
        toolbox.call("send", '{"to": "Ann"}', context=by("2")),
        toolbox.call("planning_mark_step", MARK, context=by("3")),
        toolbox.call("planning_read_plan", {}, context=by("4")),
    ]
    assert [(each.success, each.code, each.message, each.value) for each in again] == [
        (each.success, each.code, each.message, None) for each in first
    ]
    assert (session.version, len(heard), session.select_latest(Plan), made) == (version, count, plan, ["Ann"])


def test_a_repeat_is_found_after_a_restart(tmp_path: Path) -> None:
    def call() -> ToolResult:
        session = Session(session_id="run-7", store=SqliteStore(tmp_path / "plans.db"))
        section = PlanningToolsSection(session=session)
        return Toolbox(section.tools(), session=session).call("planning_setup_plan", SETUP, context=by("1"))

    first, again = call(), call()
    assert (again.success, again.message, again.value) == (True, first.message, None)
    assert Session(session_id="run-7", store=SqliteStore(tmp_path / "plans.db")).version == 1


def test_the_same_id_for_another_call_is_a_new_call_and_the_ledger_says_so(
    opened: Callable[[], Session],
) -> None:
    session = opened()
    tool, _ = counting()
    toolbox = Toolbox([tool, Tool("ask", "Ask.", lambda _: "No", parameters=SCHEMA)], session=session)
    assert [
        toolbox.call("send", {"to": "Ann"}, context=by("1")).message,
        toolbox.call("send", {"to": "Bob"}, context=by("1")).message,
        toolbox.call("ask", {"to": "Ann"}, context=by("1")).message,
        toolbox.call("send", {"to": "Bob"}, context=by("1")).message,
    ] == ["Sent 1 to Ann", "Sent 2 to Bob", "No", "Sent 2 to Bob"]
    lines = [(line.tool, line.call_id, line.is_id_reused) for line in session.select_all(ToolCall)]
    assert lines == [("send", "1", False), ("send", "1", True), ("ask", "1", True)]


def test_arguments_that_python_calls_equal_are_not_the_same() -> None:
    session = Session()
    schema = {"type": "object", "properties": {"count": {}}}
    toolbox = Toolbox([Tool("show", "Show.", lambda given: repr(given["count"]), parameters=schema)])
    toolbox = Toolbox(toolbox.tools.values(), session=session)
    shown = [toolbox.call("show", {"count": each}, context=by("1")).message for each in (1, True, 1.0, 1)]
    assert shown == ["1", "True", "1.0", "1"]


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


def test_ids_are_free_again_behind_a_rewind_and_in_an_earlier_fork(opened: Callable[[], Session]) -> None:
    session = opened()
    tool, made = counting()
    toolbox = Toolbox([tool], session=session)
    toolbox.call("send", {"to": "Ann"}, context=by("1"))
    toolbox.call("send", {"to": "Bob"}, context=by("2"))
    fork = session.fork(1, session_id="fork")
    session.rewind(1)
    toolbox.call("send", {"to": "Bob"}, context=by("2"))
    toolbox.call("send", {"to": "Ann"}, context=by("1"))
    assert made == ["Ann", "Bob", "Bob"]
    forked = Toolbox([tool], session=fork)
    forked.call("send", {"to": "Ann"}, context=by("1"))
    forked.call("send", {"to": "Bob"}, context=by("2"))
    assert made == ["Ann", "Bob", "Bob", "Bob"]
    assert [line.is_id_reused for line in session.select_all(ToolCall)] == [False, False, False]


def test_where_the_history_is_bounded_old_ids_are_forgotten() -> None:
    session = Session(history=2)
    tool, made = counting()
    toolbox = Toolbox([tool], session=session)
    for number in range(100):
        toolbox.call("send", {"to": "Ann"}, context=by(str(number)))
    toolbox.call("send", {"to": "Ann"}, context=by("99"))
    assert len(made) == 100
    toolbox.call("send", {"to": "Ann"}, context=by("0"))
    assert len(made) == 101


def test_a_private_result_is_repeated_here_and_refused_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "plans.db"

    def call(store: Store, to: str) -> ToolResult:
        tool, _ = counting(returns_private_data=True)
        toolbox = Toolbox([tool], session=Session(session_id="run-7", store=store))
        return toolbox.call("send", {"to": to}, context=by("1"))

    store = SqliteStore(path)
    session = Session(session_id="run-7", store=store)  # keeps it open between the calls
    assert [call(store, "Zq4711").message, call(store, "Zq4711").message] == ["Sent 1 to Zq4711"] * 2
    assert call(store, "Bob").message == "Sent 1 to Bob"
    assert len(session.select_all(ToolInvoked)) == 2
    store.close()
    refused = call(SqliteStore(path), "Zq4711")
    assert (refused.success, refused.message) == (
        False,
        "send was not called: a call with this id was made before, and its private result is not kept; call "
        "it with a new id",
    )
    assert b"Zq4711" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


def test_a_repeat_within_one_transaction_is_found() -> None:
    session = Session()
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    toolbox.call("planning_setup_plan", SETUP)
    with session.transaction():
        for _ in range(2):
            toolbox.call("planning_add_step", {"steps": [{"title": "Write a test"}]}, context=by("1"))
    plan = session.select_latest(Plan)
    assert plan is not None
    assert [step.title for step in plan.steps] == ["Reproduce it", "Write a test"]


def test_a_repeat_is_found_that_another_process_made_first(tmp_path: Path) -> None:
    tool, made = counting()
    sessions = [Session(session_id="run-7", store=SqliteStore(tmp_path / "plans.db")) for _ in range(2)]
    here, there = (Toolbox([tool], session=session) for session in sessions)
    here.call("send", {"to": "Ann"}, context=by("1"))
    there.call("send", {"to": "Bob"}, context=by("2"))
    assert here.call("send", {"to": "Bob"}, context=by("2")).message == "Sent 2 to Bob"
    assert (made, sessions[0].version) == (["Ann", "Bob"], 2)


class _Unreadable:
    def __str__(self) -> str:
        raise ValueError

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        raise ValueError

    __hash__ = object.__hash__


def _nested(value: Any) -> Any:
    for _ in range(150):
        value = [value]
    return value


@pytest.mark.parametrize(
    "pair", [(_Unreadable(), _Unreadable()), (_nested(1), _nested(2)), ({"a": [1]}, {"a": [True]})]
)
def test_arguments_that_cannot_be_seen_to_be_the_same_are_not(pair: tuple[object, object]) -> None:
    made: list[object] = []
    tool = Tool("send", "Send.", lambda given: made.append(given["to"]), parameters={"type": "object"})
    toolbox = Toolbox([tool], session=Session())
    for each in pair:
        toolbox.invoke("send", {"to": each}, context=by("1"))
    assert len(made) == 2


def test_the_order_of_names_and_of_a_set_makes_no_difference() -> None:
    made: list[object] = []

    def send(to: frozenset[str], how: dict[str, int]) -> None:
        made.append((to, how))

    toolbox = Toolbox([Tool("send", "Send.", send)], session=Session())
    first = {"to": ["a", "b"], "how": {"x": 1, "y": 2}}
    again = {"how": {"y": 2, "x": 1}, "to": ["b", "a"]}
    for each in (first, again):
        assert toolbox.call("send", each, context=by("1")).success
    assert len(made) == 1


def test_calls_that_all_have_one_id_are_told_apart(opened: Callable[[], Session]) -> None:
    session = opened()
    tool, made = counting()
    toolbox = Toolbox([tool], session=session)
    for _ in range(2):
        answers = [
            toolbox.call("send", {"to": str(each)}, context=by("call_0")).message for each in range(50)
        ]
        assert answers == [f"Sent {each + 1} to {each}" for each in range(50)]
    assert (len(made), session.version) == (50, 50)
    session.rewind(0)
    toolbox.call("send", {"to": "0"}, context=by("call_0"))
    assert [line.is_id_reused for line in session.select_all(ToolCall)] == [False, *[True] * 49, False]


def test_arguments_that_differ_deep_inside_are_not_the_same() -> None:
    made: list[int] = []
    schema = {"type": "object", "properties": {"value": {}}}

    def show(_arguments: dict[str, Any]) -> str:
        made.append(1)
        return str(len(made))

    toolbox = Toolbox([Tool("show", "Show.", show, parameters=schema)], session=Session())
    given = [
        {"value": _nested(1)},
        {"value": _nested(2)},
        {"value": _nested(1)},
        {"value": "..."},
        {"value": "..."},
    ]
    shown = [toolbox.call("show", each, context=by("1")).message for each in given]
    assert shown == ["1", "2", "1", "3", "3"]
