"""A call that is made again with its id returns what it returned, and does nothing else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from planning import Plan, PlanningToolsSection, Toolbox
from planning.tools import Tool, ToolContext, ToolResult
from planning.tools.ledger import ToolCall
from session import Session, ToolFailed, ToolInvoked
from session.stores import MemoryStore, SqliteStore, Store

SETUP = {"objective": "Fix the login bug", "initial_steps": [{"title": "Reproduce it"}]}
MARK = {"step_id": "S001", "status": "done"}
SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}


@pytest.fixture(params=["memory", "a memory store", "a file"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Session]:
    """Opens the session; each time another session in memory, and the same one in a store."""
    if request.param == "memory":
        return Session
    path = tmp_path / "plans.db"
    store: Store = MemoryStore() if request.param == "a memory store" else SqliteStore(path)
    return lambda: Session(session_id="run-7", store=store)


def counting(**options: Any) -> tuple[Tool, list[str]]:
    made: list[str] = []

    def send(arguments: dict[str, str]) -> str:
        made.append(arguments["to"])
        return f"Sent {len(made)} to {arguments['to']}"

    return Tool("send", "Send a mail.", send, parameters=SCHEMA, **options), made


def by(call_id: str) -> dict[str, Any]:
    return {"call_id": call_id, "actor": "agent"}


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


@pytest.mark.parametrize("tasks", [False, True])
def test_two_at_once_are_one(opened: Callable[[], Session], tasks: bool) -> None:
    session, begun, go, made = opened(), threading.Event(), threading.Event(), []

    def send(arguments: dict[str, str]) -> str:
        made.append(arguments["to"])
        begun.set()
        assert go.wait(20)
        return f"Sent {len(made)}"

    toolbox = Toolbox([Tool("send", "Send.", send, parameters=SCHEMA)], session=session)

    async def in_tasks() -> list[str]:
        calls = [toolbox.acall("send", {"to": "Ann"}, context=by("1")) for _ in range(5)]
        running = [asyncio.ensure_future(call) for call in calls]
        await asyncio.to_thread(begun.wait, 20)
        running[-1].cancel()
        go.set()
        return [each.message for each in await asyncio.gather(*running[:-1])]

    def in_threads() -> list[str]:
        found: list[str] = []
        call = lambda: found.append(toolbox.call("send", {"to": "Ann"}, context=by("1")).message)  # noqa: E731
        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        begun.wait(20)
        go.set()
        for thread in threads:
            thread.join(20)
        return found

    assert (asyncio.run(in_tasks()) if tasks else in_threads()) == ["Sent 1"] * 4
    assert made == ["Ann"]


def test_a_call_that_would_wait_for_itself_is_refused() -> None:
    session, said = Session(), list[str]()

    def send(arguments: dict[str, str], context: ToolContext) -> str:
        said.append(toolbox.call("send", arguments, context=context.values).message)
        return "Sent"

    async def asend(arguments: dict[str, str], context: ToolContext) -> str:
        said.append((await toolbox.acall("asend", arguments, context=context.values)).message)
        said.append(toolbox.call("asend", arguments, context=context.values).message)
        return "Sent"

    tools = [Tool(each.__name__, "Send.", each, parameters=SCHEMA) for each in (send, asend)]
    toolbox = Toolbox(tools, session=session)
    assert toolbox.call("send", {"to": "Ann"}, context=by("7")).message == "Sent"
    assert asyncio.run(toolbox.acall("asend", {"to": "Ann"}, context=by("7"))).message == "Sent"
    refusal = (
        "{} was not called: a call of it with the id 7 is being made by the code that makes this one; give "
        "it another id"
    )
    assert said == [refusal.format("send"), refusal.format("asend"), refusal.format("asend")]


def killed(store: Store, **options: Any) -> Iterator[Toolbox]:
    """The toolbox of a process that is killed while it sends, and that of the next one."""
    session = Session(session_id="run-7", store=store)

    def send(_arguments: dict[str, str]) -> str:
        raise KeyboardInterrupt

    yield Toolbox([Tool("send", "Send.", send, parameters=SCHEMA, **options)], session=session)
    tool, _ = counting(**options)
    yield Toolbox([tool], session=Session(session_id="run-7", store=store))


def test_a_call_whose_result_was_lost_is_made_again(tmp_path: Path) -> None:
    first, second = killed(SqliteStore(tmp_path / "plans.db"))
    with pytest.raises(KeyboardInterrupt):
        first.call("send", {"to": "Ann"}, context=by("1"))
    assert second.call("send", {"to": "Ann"}, context=by("1")).message == "Sent 1 to Ann"


@pytest.mark.parametrize("private", [False, True])
def test_but_not_where_it_must_not_be_made_twice(tmp_path: Path, private: bool) -> None:
    options = {"idempotent": False, "returns_private_data": private}
    first, second = killed(SqliteStore(tmp_path / "plans.db"), **options)
    with pytest.raises(KeyboardInterrupt):
        first.call("send", {"to": "Ann"}, context=by("1"))
    again = second.call("send", {"to": "Ann"}, context=by("1"))
    assert (again.success, again.message) == (
        False,
        "send may have taken effect: a call with this id was begun before, and it must not be made twice. "
        "Check what it did, and call it with a new id if that is needed.",
    )


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


def nested(value: int) -> dict[str, Any]:
    """Arguments that differ behind the depth to which they are written."""
    found: Any = value
    for _ in range(150):
        found = [found]
    return {"value": found}


def test_arguments_that_differ_deep_inside_are_not_the_same() -> None:
    made: list[int] = []
    schema = {"type": "object", "properties": {"value": {}}}

    def show(_arguments: dict[str, Any]) -> str:
        made.append(1)
        return str(len(made))

    toolbox = Toolbox([Tool("show", "Show.", show, parameters=schema)], session=Session())
    given = [nested(1), nested(2), nested(1), {"value": "..."}, {"value": "..."}]
    shown = [toolbox.call("show", each, context=by("1")).message for each in given]
    assert shown == ["1", "2", "1", "3", "3"]
