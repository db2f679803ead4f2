"""Calls with one idempotency key at the same time: the second waits for the first."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from repeat_calls import SCHEMA, by, openers
from tool_entries import in_threads

from planning import Toolbox
from planning.tools import Tool, ToolContext
from session import Session


@pytest.fixture(params=["memory", "a memory store", "a file"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Session]:
    return openers(tmp_path)[request.param]


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
