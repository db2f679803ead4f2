"""Timeouts: a call that takes too long is given up, and what comes of it later reaches nobody."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import pytest
from tool_entries import CALLS, NOW, in_async, raising, through
from tool_entries import made as tool

from planning import PlanningToolsSection, Toolbox
from planning.tools import StorageUnavailable
from planning.tools.errors import ErrorKind, ToolTimeout
from planning.tools.guard import CircuitBreaker, Retry
from planning.tools.rate_limit import RateLimiter
from session import Session

GIVEN_UP = "t took longer than 0.01 s and was given up; call it again, or go on without it"
SLOWLY = Retry(attempts=2, wait_initial=60, wait_max=60, wait_jitter=0)


CHECK = "It may have taken effect: check before you call it again."


class Hanging:
    """A function that waits until it is let go, and then ends late."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.threads: list[threading.Thread] = []
        self._error = error
        self._go = threading.Event()

    def __call__(self) -> str:
        self.threads.append(threading.current_thread())
        self._go.wait(20)
        if self._error is not None:
            raise self._error
        return "late"

    def end(self) -> None:
        self._go.set()
        for thread in self.threads:
            thread.join(20)


async def forever() -> None:
    await asyncio.sleep(60)


def test_a_tool_that_must_not_run_twice_is_never_to_be_called_again_unseen() -> None:
    hanging = Hanging()
    sent = tool(hanging, timeout=0.01, idempotent=False)
    for entry in CALLS:
        assert through(entry, sent).message == f"t took longer than 0.01 s and was given up. {CHECK}"
        hidden = raising(RuntimeError("secret"), idempotent=False)
        assert through(entry, hidden).message == f"t failed. {CHECK}"
    hanging.end()


@pytest.mark.parametrize("whose", ["tool", "toolbox"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_tool_that_hangs_is_given_up(is_async: bool, whose: str) -> None:
    hanging = Hanging()
    function = forever if is_async else hanging
    options: list[dict[str, Any]] = [{"timeout": 0.01}, {}]
    own, boxes = options if whose == "tool" else options[::-1]
    for entry in CALLS:
        result = through(entry, tool(function, **own), **boxes)
        assert (result.code, result.message) == (ErrorKind.TIMEOUT, GIVEN_UP)
    for entry in ("invoke", "ainvoke"):
        with pytest.raises(TimeoutError) as caught:
            through(entry, tool(function, **own), **boxes)
        assert (type(caught.value), str(caught.value)) == (ToolTimeout, GIVEN_UP)
        assert caught.value.__context__ is None
    hanging.end()


def test_only_a_tool_that_waits_has_a_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    timers = list[float]()

    async def ready(waits: bool) -> str:
        if waits:
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return "ready"

    async def calls() -> list[int]:
        loop = asyncio.get_running_loop()
        at = loop.call_at

        def counting(when: float, *rest: Any, **more: Any) -> asyncio.TimerHandle:
            timers.append(when)
            return at(when, *rest, **more)

        monkeypatch.setattr(loop, "call_at", counting)
        toolbox = Toolbox([tool(ready, timeout=20.0)])
        counted = []
        for waits in (False, True):
            assert (await toolbox.acall("t", {"waits": waits})).message == "ready"
            counted.append(len(timers))
        return counted

    assert asyncio.run(calls()) == [0, 1]


def test_the_time_before_a_tool_first_waits_counts() -> None:
    turns = list[int]()

    async def late() -> None:
        time.sleep(0.02)
        for turn in range(1_000_000):
            await asyncio.sleep(0)
            turns.append(turn)

    result = asyncio.run(Toolbox([tool(late, timeout=0.01)]).acall("t", {}))
    assert (result.code, result.message) == (ErrorKind.TIMEOUT, GIVEN_UP)
    assert len(turns) <= 2


@pytest.mark.parametrize("timeout", [None, 20.0])
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("entry", ["invoke", "ainvoke"])
def test_a_tools_own_timeout_error_is_its_own(entry: str, is_async: bool, timeout: float | None) -> None:
    with pytest.raises(TimeoutError) as caught:
        through(entry, raising(TimeoutError("database"), is_async=is_async, timeout=timeout))
    assert (type(caught.value), str(caught.value)) == (TimeoutError, "database")


@pytest.mark.parametrize("entry", CALLS)
def test_a_given_up_tool_is_not_tried_again(entry: str) -> None:
    hanging = Hanging(StorageUnavailable("later"))
    assert through(entry, tool(hanging, timeout=0.01, retry=NOW)).code == ErrorKind.TIMEOUT
    hanging.end()
    assert len(hanging.threads) == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_retries_and_their_waits_are_inside_the_timeout(is_async: bool) -> None:
    later = raising(StorageUnavailable("later"), is_async=is_async, timeout=0.01, retry=SLOWLY)
    for entry in CALLS:
        assert through(entry, later).code == ErrorKind.TIMEOUT


@pytest.mark.parametrize(("entry", "options"), [("call", {"timeout": 20.0}), ("acall", {})])
def test_a_plain_tool_runs_in_a_thread_of_its_own_with_the_callers_context(
    entry: str, options: dict[str, Any]
) -> None:
    word: ContextVar[str] = ContextVar("word", default="nothing")
    word.set("here")

    def look() -> list[Any]:
        thread = threading.current_thread()
        return [word.get(), thread.name, thread.daemon, thread is threading.main_thread()]

    # The interpreter does not wait for it at its end.
    assert through(entry, tool(look, **options)).value == ["here", "tool t", True, False]


@pytest.mark.parametrize("timeout", [None, 0.05])
@pytest.mark.parametrize("entry", CALLS)
def test_the_planning_tools_run_in_the_callers_thread_whatever_the_toolboxs_timeout(
    entry: str, timeout: float | None, session: Session
) -> None:
    threads: list[int] = []
    session.bus.subscribe(object, lambda _event: threads.append(threading.get_ident()))
    setup = PlanningToolsSection(session=session).tools()[0]
    assert through(entry, setup, {"objective": "x"}, session, timeout=timeout).success
    assert set(threads) == {threading.get_ident()}


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and answers nothing."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0?socket_timeout=20"


@pytest.mark.parametrize("breaker", [None, CircuitBreaker()])
@pytest.mark.parametrize("entry", CALLS)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_limiter_whose_server_is_silent_takes_no_longer_than_the_tool_may(
    silent: str, is_async: bool, entry: str, breaker: CircuitBreaker | None
) -> None:
    calls: list[int] = []

    def count() -> None:
        calls.append(1)

    function = in_async(count) if is_async else count
    counted = tool(function, rate_limit_key="mail", timeout=0.01, breaker=breaker)
    result = through(entry, counted, limiter=RateLimiter(storage=silent))
    assert (result.code, result.message, calls) == (ErrorKind.TIMEOUT, GIVEN_UP, [])
    assert breaker is None or breaker.state == "closed"
