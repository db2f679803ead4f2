"""A call with an idempotency key is made once: again later, after a crash, and twice at the same time."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pydantic
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from tool_entries import CALLS, SCHEMA, by, counting, enter, in_threads, reopener, through

from planning import Plan, PlanningToolsSection, Toolbox
from planning.tools import Tool, ToolContext
from planning.tools.guard import CircuitBreaker
from planning.tools.rate_limit import RateLimiter
from session import Session, ToolFailed, ToolInvoked
from session.stores import SqliteStore, StoreError

SETUP = {"objective": "Fix the login bug", "initial_steps": [{"title": "Reproduce it"}]}
MARK = {"step_id": "S001", "status": "done"}
OTHER = "{} was not called: it has the key of an earlier call {}. Send it as a new call."


@pytest.fixture(params=["memory", "a memory store", "a file"])
def reopened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Session]:
    return reopener(request.param, tmp_path)


def test_a_repeat_returns_what_the_model_got_and_changes_nothing(reopened: Callable[[], Session]) -> None:
    session = reopened()
    tool, made = counting()
    section = PlanningToolsSection(session=session)
    toolbox = Toolbox([*section.tools(), tool], session=session)
    heard: list[object] = []
    session.bus.subscribe(object, heard.append)
    calls: list[Any] = [("planning_setup_plan", SETUP), ("send", {"to": "Ann"}), ("planning_mark_step", MARK)]
    first = [toolbox.call(*each, context=by(each[0])) for each in calls]
    version, count, plan = session.version, len(heard), session.select_latest(Plan)
    calls[1] = ("send", '{"to": "Ann"}')
    again = [toolbox.call(*each, context=by(each[0])) for each in calls]
    assert [(each.success, each.code, each.message, each.value) for each in again] == [
        (each.success, each.code, each.message, None) for each in first
    ]
    assert (session.version, len(heard), session.select_latest(Plan), made) == (version, count, plan, ["Ann"])


def test_an_id_without_a_key_never_makes_a_repeat(reopened: Callable[[], Session]) -> None:
    session = reopened()
    tool, made = counting()
    toolbox = Toolbox([tool], session=session)
    for key in ({}, {"idempotency_key": None}):
        toolbox.call("send", {"to": "Ann"}, context={"call_id": "call_1", "actor": "agent", **key})
    assert (made, session.version) == (["Ann", "Ann"], 2)


@pytest.mark.parametrize("entry", CALLS)
def test_a_plan_is_never_read_from_the_past(reopened: Callable[[], Session], entry: str) -> None:
    session = reopened()
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    toolbox.call("planning_setup_plan", SETUP)
    first = enter(entry, toolbox, "planning_read_plan", {}, by("1"))
    toolbox.call("planning_mark_step", MARK)
    again = enter(entry, toolbox, "planning_read_plan", {}, by("1"))
    assert [first.message, again.message, again.value] == [
        "Fix the login bug (active, 0 of 1 done)\nS001 pending: Reproduce it",
        "Fix the login bug (completed, 1 of 1 done)\nS001 done: Reproduce it",
        session.select_latest(Plan),
    ]


def test_a_key_that_was_used_for_another_call_is_refused(reopened: Callable[[], Session]) -> None:
    session = reopened()
    toolbox = Toolbox([*PlanningToolsSection(session=session).tools(), counting()[0]], session=session)
    toolbox.call("planning_setup_plan", SETUP, context=by("0"))
    others: list[tuple[str, dict[str, Any], str]] = [
        ("send", {"to": "Ann"}, "of planning_setup_plan"),
        ("planning_setup_plan", {**SETUP, "objective": "Other"}, "with other arguments"),
        ("planning_read_plan", {}, "of planning_setup_plan"),
    ]
    for name, arguments, otherwise in others:
        refused = toolbox.call(name, arguments, context=by("0"))
        assert (refused.code, refused.message) == ("bad_context", OTHER.format(name, otherwise))
    assert [change.changed for change in session.history(1)] == [False] * 3


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


def test_refused_and_failed_calls_are_not_remembered(reopened: Callable[[], Session]) -> None:
    session, fail = reopened(), Mock(side_effect=ConnectionError)
    toolbox = Toolbox([Tool("send", "Send.", fail, parameters=SCHEMA)], session=session)
    for _ in range(2):
        assert not toolbox.call("send", {"to": 5}, context=by("1")).success
        assert not toolbox.call("send", {"to": "Ann"}, context=by("1")).success
    assert (fail.call_count, len(session.select_all(ToolFailed))) == (2, 4)


Login = pydantic.create_model("Login", word=(pydantic.SecretStr, ...))
Kept = dataclasses.make_dataclass("Kept", ["login"])
LOGINS = [Login(word=word) for word in "ab"]
OPEN = [pydantic.create_model("Open", __config__={"extra": "allow"})(word=word) for word in "ab"]


@pytest.mark.parametrize(
    ("first", "again", "is_same"),
    [
        ({"a": {"x": 2, "b": 3}, "c": 4}, {"c": 4, "a": {"b": 3, "x": 2}}, True),
        ({"to": 1}, {"to": 1.0}, False),
        ({"a": [1]}, {"a": [True]}, False),
        *(({"to": one}, {"to": other}, False) for one, other in (LOGINS, map(Kept, LOGINS), OPEN)),
    ],
)
def test_the_same_arguments_are_those_that_can_be_seen_to_be(first: Any, again: Any, is_same: bool) -> None:
    send = Mock(return_value="Sent")
    toolbox = Toolbox([Tool("send", "Send.", send, parameters={"type": "object"})], session=Session())
    answers = [toolbox.call("send", each, context=by("1")).message for each in (first, again)]
    assert answers == ["Sent", "Sent" if is_same else OTHER.format("send", "with other arguments")]
    assert send.call_count == 1


# A call that must not be made twice: its repeat is refused when its result is not known

REFUSED = (
    "send may have taken effect: this call was begun before, and its result is not known. Check what it did "
    "before you call it again."
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Sent 1 to Ann"),
        ({"idempotent": False}, REFUSED),
        ({"idempotent": False, "returns_private_data": True}, REFUSED),
    ],
)
def test_a_call_whose_result_was_lost_is_made_again_unless_it_must_not_be_made_twice(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    store, (tool, _) = SqliteStore(tmp_path / "plans.db"), counting(**options)
    killed = Tool("send", "Send.", Mock(side_effect=KeyboardInterrupt), parameters=SCHEMA, **options)
    first, second = (
        Toolbox([each], session=Session(session_id="run-7", store=store)) for each in (killed, tool)
    )
    with pytest.raises(KeyboardInterrupt):
        first.call("send", {"to": "Ann"}, context=by("1"))
    assert second.call("send", {"to": "Ann"}, context=by("1")).message == message
    # A claim keeps its name, or a later release would make the call again.
    assert [name for name, _ in store.claims("run-7")] == ["idempotency key 1"] * bool(options)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("is_private", [False, True])
def test_a_call_stopped_before_it_began_can_be_made(tmp_path: Path, is_async: bool, is_private: bool) -> None:
    session = Session(session_id="run-7", store=SqliteStore(tmp_path / "plans.db"))
    limiter = RateLimiter(default="1/hour")
    tool, made = counting(idempotent=False, rate_limit_key="mail", returns_private_data=is_private)

    def call(key: str, limiter: RateLimiter) -> Any:
        entry = "acall" if is_async else "call"
        return through(entry, tool, {"to": "Ann"}, session, context=by(key), limiter=limiter).code

    assert [call("1", limiter), call("2", limiter)] == [None, "rate_limit"]
    assert [call("2", RateLimiter(default="1/hour")), made] == [None, ["Ann", "Ann"]]


def test_a_call_whose_begin_could_not_be_recorded_was_not_made_and_can_be_made_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(session_id="run-7", store=SqliteStore(tmp_path / "plans.db"))
    tool, made = counting(idempotent=False, breaker=CircuitBreaker(failures=1))
    toolbox = Toolbox([tool], session=session)
    commit, lost_once = SqliteStore._commit, [True]

    def lose(store: SqliteStore, connection: Any, *rest: Any) -> None:
        commit(store, connection, *rest)
        if lost_once:
            lost_once.clear()
            raise StoreError("the store is gone", outcome="unknown")

    monkeypatch.setattr(SqliteStore, "_commit", lose)
    lost = toolbox.call("send", {"to": "Ann"}, context=by("1"))
    assert (lost.success, made) == (False, [])
    assert lost.message == "send cannot reach its data now. Try again later, or continue without it."
    again = toolbox.call("send", {"to": "Ann"}, context=by("1"))
    assert (again.message, made) == ("Sent 1 to Ann", ["Ann"])


def test_a_call_that_must_not_be_made_twice_is_refused_inside_a_transaction(tmp_path: Path) -> None:
    session = Session(session_id="run-7", store=SqliteStore(tmp_path / "plans.db"))
    tool, made = counting(idempotent=False)
    with session.transaction():
        refused = through("call", tool, {"to": "Ann"}, session, context=by("1"))
    assert (refused.code, refused.message, made) == (
        "bad_context",
        "send was not called: it must not be made twice, which cannot be recorded inside a transaction; call "
        "it outside of one",
        [],
    )


def test_a_transaction_takes_one_call_with_a_key(reopened: Callable[[], Session]) -> None:
    session = reopened()
    tool, made = counting()
    toolbox = Toolbox([tool], session=session)
    with session.transaction():
        said = [toolbox.call("send", {"to": to}, context=by(to)).message for to in ("Ann", "Ann", "Bob")]
    assert said == [
        *["Sent 1 to Ann"] * 2,
        "send was not called: the program is running other calls in one transaction. Call it again later.",
    ]
    assert made == ["Ann"]


@pytest.mark.parametrize("is_stored", [False, True])
def test_it_is_refused_if_the_first_raised_or_a_rewind_took_it_back(tmp_path: Path, is_stored: bool) -> None:
    store = SqliteStore(tmp_path / "plans.db") if is_stored else None
    session = Session(session_id="run-7", store=store)
    send = Mock(side_effect=["Sent", ConnectionError])
    toolbox = Toolbox([Tool("send", "Send.", send, parameters=SCHEMA, idempotent=False)], session=session)
    for name in ("Ann", "Bob"):
        toolbox.call("send", {"to": name}, context=by(name))
    session.rewind(0)
    for name in ("Ann", "Bob"):
        assert toolbox.call("send", {"to": name}, context=by(name)).message == REFUSED
    assert send.call_count == 2


# Calls with idempotency keys among rewinds and forks, in any order


class CallsWithKeys(RuleBasedStateMachine):
    """Random calls, rewinds and forks, against lists of the calls that a version has."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions = [Session()]
        self.models: list[list[dict[str, tuple[str, str]]]] = [[{}]]
        self.tool, self.made = counting()

    @rule(which=st.integers(0, 3), key=st.sampled_from("12"), to=st.sampled_from(["Ann", "Bob"]))
    def call(self, which: int, key: str, to: str) -> None:
        session, versions = self._pick(which)
        count, known = len(self.made), versions[-1]
        toolbox = Toolbox([self.tool], session=session)
        said = toolbox.call("send", {"to": to}, context=by(key)).message
        if key not in known:
            assert said == f"Sent {count + 1} to {to}"
            versions.append({**known, key: (to, said)})
            return
        first, answer = known[key]
        refusal = OTHER.format("send", "with other arguments")
        assert (said, len(self.made)) == (answer if first == to else refusal, count)
        if first != to:
            versions.append(known)

    @rule(which=st.integers(0, 3), back=st.integers(0, 4))
    def rewind(self, which: int, back: int) -> None:
        session, versions = self._pick(which)
        version = max(session.version - back, 0)
        session.rewind(version)
        versions.append(versions[version])

    @precondition(lambda self: len(self.sessions) < 4)
    @rule(which=st.integers(0, 3), back=st.integers(0, 4))
    def fork(self, which: int, back: int) -> None:
        session, versions = self._pick(which)
        version = max(session.version - back, 0)
        self.sessions.append(session.fork(version))
        self.models.append(versions[: version + 1])

    def _pick(self, which: int) -> tuple[Session, list[dict[str, tuple[str, str]]]]:
        return self.sessions[which % len(self.sessions)], self.models[which % len(self.sessions)]


TestCallsWithKeys = CallsWithKeys.TestCase


# Calls with one idempotency key at the same time: the second waits for the first


@pytest.mark.parametrize("tasks", [False, True])
def test_two_at_once_are_one(reopened: Callable[[], Session], tasks: bool) -> None:
    session, begun, go, made = reopened(), threading.Event(), threading.Event(), []

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

    def all_at_once() -> list[str]:
        found: list[str] = []
        call = lambda: found.append(toolbox.call("send", {"to": "Ann"}, context=by("1")).message)  # noqa: E731
        in_threads([*[call] * 4, lambda: go.set() if begun.wait(20) else None])
        return found

    assert (asyncio.run(in_tasks()) if tasks else all_at_once()) == ["Sent 1"] * 4
    assert made == ["Ann"]


RUNNING = "{} was not called: the same call is still running; wait until it ends"


def test_a_call_that_would_wait_for_itself_is_refused() -> None:
    session, said = Session(), list[str]()

    def send(arguments: dict[str, str]) -> str:
        said.append(toolbox.call("send", arguments, context=by("7")).message)
        return "Sent"

    async def asend(arguments: dict[str, str]) -> str:
        said.append((await toolbox.acall("asend", arguments, context=by("8"))).message)
        said.append(toolbox.call("asend", arguments, context=by("8")).message)
        return "Sent"

    tools = [Tool(each.__name__, "Send.", each, parameters=SCHEMA) for each in (send, asend)]
    toolbox = Toolbox(tools, session=session)
    assert toolbox.call("send", {"to": "Ann"}, context=by("7")).message == "Sent"
    assert asyncio.run(toolbox.acall("asend", {"to": "Ann"}, context=by("8"))).message == "Sent"
    assert said == [RUNNING.format("send"), RUNNING.format("asend"), RUNNING.format("asend")]


def test_what_an_inner_call_left_running_does_not_wait_for_the_outer_one_that_waits_for_it() -> None:
    ended, left = asyncio.Event(), list[asyncio.Task[str]]()

    async def call_outer(arguments: dict[str, str]) -> str:
        await ended.wait()
        return (await toolbox.acall("outer", arguments, context=by("1"))).message

    async def inner(arguments: dict[str, str]) -> None:
        left.append(asyncio.create_task(call_outer(arguments)))

    async def outer(arguments: dict[str, str]) -> str:
        await toolbox.acall("inner", arguments, context=by("2"))
        ended.set()
        return await left[0]

    tools = [Tool(each.__name__, "Send.", each, parameters=SCHEMA) for each in (inner, outer)]
    toolbox = Toolbox(tools, session=Session())
    said = asyncio.wait_for(toolbox.acall("outer", {"to": "Ann"}, context=by("1")), 20)
    assert asyncio.run(said).message == RUNNING.format("outer")


def test_calls_that_wait_for_each_other_are_refused_and_not_stuck() -> None:
    both, ended, said = threading.Barrier(2), threading.Barrier(2), list[str]()
    others = {"1": "2", "2": "1"}

    def send(_arguments: dict[str, str], context: ToolContext) -> str:
        both.wait(20)
        inner = by(others[str(context.idempotency_key)])
        said.append(toolbox.call("send", {"to": "Bob"}, context=inner).message)
        ended.wait(20)
        return "Sent"

    toolbox = Toolbox([Tool("send", "Send.", send, parameters=SCHEMA)], session=Session())
    in_threads([partial(toolbox.call, "send", {"to": "Ann"}, context=by(each)) for each in others])
    assert said == [RUNNING.format("send")] * 2


def test_a_call_that_would_hold_the_loop_of_the_one_it_waits_for_is_refused() -> None:
    async def send(_arguments: dict[str, str]) -> str:
        await asyncio.sleep(0)
        return "Sent"

    toolbox = Toolbox([Tool("send", "Send.", send, parameters=SCHEMA)], session=Session())

    async def main() -> list[str]:
        running = asyncio.ensure_future(toolbox.acall("send", {"to": "Ann"}, context=by("1")))
        await asyncio.sleep(0)
        refused = toolbox.call("send", {"to": "Ann"}, context=by("1"))
        return [refused.message, (await running).message]

    assert asyncio.run(main()) == [RUNNING.format("send"), "Sent"]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_the_calls_of_its_parent() -> None:
    begun, go = threading.Event(), threading.Event()

    def send(_arguments: dict[str, str]) -> str:
        begun.set()
        assert go.wait(20)
        return "Sent"

    toolbox = Toolbox([Tool("send", "Send.", send, parameters=SCHEMA, blocking=False)], session=Session())
    thread = threading.Thread(target=lambda: toolbox.call("send", {"to": "Ann"}, context=by("1")))
    thread.start()
    begun.wait(20)
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        go.set()
        os._exit(0 if toolbox.call("send", {"to": "Ann"}, context=by("1")).message == "Sent" else 1)
    status = os.waitpid(child, 0)[1]
    go.set()
    thread.join(20)
    assert status == 0
