"""Background work: threads whose end nobody waits for, and coroutines from plain code."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from planning.tools import ToolError, ToolTimeout
from planning.tools.background import await_within, run_coroutine, run_in_thread, run_off_loop

Stop = Callable[[], bool]


class Late:
    """A function that waits until it is let go, and then asks whether anybody still waits."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.go = threading.Event()
        self.thread: threading.Thread | None = None
        self.stopped: bool | None = None
        self.error = error

    def __call__(self, stop: Stop) -> str:
        self.thread = threading.current_thread()
        self.go.wait(20)
        self.stopped = stop()
        if self.error is not None:
            raise self.error
        return "late"

    def end(self) -> None:
        self.go.set()
        if self.thread is not None:
            self.thread.join(20)


@pytest.mark.parametrize("error", [None, ValueError("late"), KeyboardInterrupt("late"), SystemExit("late")])
def test_what_comes_after_the_time_reaches_nobody(
    error: BaseException | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hooked: list[Any] = []
    monkeypatch.setattr("threading.excepthook", hooked.append)
    late = Late(error)
    with caplog.at_level(logging.DEBUG):
        with pytest.raises(ToolTimeout) as caught:
            run_in_thread(late, "t", 0.01)
        late.end()
    assert (
        str(caught.value) == "t took longer than 0.01 s and was given up; call it again, or go on without it"
    )
    assert (late.stopped, hooked, caplog.records) == (True, [], [])


def test_what_comes_after_the_time_reaches_nobody_in_a_loop_either(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hooked: list[Any] = []
    monkeypatch.setattr("threading.excepthook", hooked.append)
    inside, outside = Late(ValueError("late")), Late(ValueError("late"))

    async def run() -> None:
        for late in (inside, outside):
            with pytest.raises(ToolTimeout):
                await run_off_loop(late, "t", 0.01)
        inside.end()
        await asyncio.sleep(0)

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
        outside.end()  # the loop is closed
    assert (inside.stopped, outside.stopped, hooked, caplog.records) == (True, True, [], [])


def test_a_thread_that_is_in_time_gives_what_it_returns_or_raises() -> None:
    def fail(_stop: Stop) -> None:
        raise KeyError("x")

    assert run_in_thread(lambda stop: stop(), "t", 20.0) is False
    with pytest.raises(KeyError):
        run_in_thread(fail, "t", 20.0)
    assert asyncio.run(run_off_loop(lambda stop: stop(), "t", 20.0)) is False
    assert asyncio.run(run_off_loop(lambda _stop: 1, "t", None)) == 1
    with pytest.raises(KeyError):
        asyncio.run(run_off_loop(fail, "t", None))


def test_the_interpreter_does_not_wait_for_the_threads() -> None:
    assert run_in_thread(lambda _stop: threading.current_thread().daemon, "t", 20.0) is True


def test_a_hanging_call_takes_no_thread_from_the_next() -> None:
    lates = [Late() for _ in range(40)]
    for late in lates:
        with pytest.raises(ToolTimeout):
            run_in_thread(late, "t", 0.001)
    assert run_in_thread(lambda _stop: "done", "t", 20.0) == "done"
    for late in lates:
        late.end()


def test_cancelling_stops_the_waiting_and_tells_the_function() -> None:
    late = Late()

    async def run() -> None:
        task = asyncio.create_task(run_off_loop(late, "t", None))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    late.end()
    assert late.stopped is True


def test_awaiting_within_a_time() -> None:
    async def one() -> int:
        return 1

    async def own() -> None:
        raise TimeoutError("own")

    async def own_later() -> None:
        await asyncio.sleep(0)
        raise TimeoutError("later")

    async def one_later() -> int:
        try:
            await asyncio.sleep(0)
            raise ValueError
        except ValueError:
            await asyncio.sleep(0.001)
        return 1

    async def run() -> None:
        assert await await_within(one(), "t", None) == 1
        assert await await_within(one_later(), "t", 20.0) == 1
        with pytest.raises(TimeoutError, match=r"^later$"):
            await await_within(own_later(), "t", 20.0)
        assert await await_within(one(), "t", 20.0) == 1
        with pytest.raises(TimeoutError, match=r"^own$"):
            await await_within(own(), "t", 20.0)
        with pytest.raises(ToolTimeout) as caught:
            await await_within(asyncio.sleep(60), "t", 0.01)
        assert caught.value.__context__ is None

    asyncio.run(run())


def test_a_coroutine_is_run_from_plain_code_and_refused_in_a_loop() -> None:
    async def one() -> int:
        return 1

    async def inside() -> None:
        run_coroutine(one, "t")

    assert run_coroutine(one, "t") == 1
    with pytest.raises(ToolError) as caught:
        asyncio.run(inside())
    assert (
        str(caught.value)
        == "t is async: await acall, aexecute or ainvoke from code that runs in an event loop"
    )
    assert caught.value.__context__ is None


def test_what_a_coroutine_gives_is_in_no_log_of_asyncio(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    make = asyncio.new_event_loop

    def talkative() -> asyncio.AbstractEventLoop:
        loop = make()
        loop.set_debug(True)
        loop.slow_callback_duration = 0
        return loop

    async def one() -> str:
        return "zq4711"

    monkeypatch.setattr("asyncio.events.new_event_loop", talkative)
    with caplog.at_level(logging.DEBUG):
        assert run_coroutine(one, "t") == "zq4711"
    assert "zq4711" not in caplog.text
