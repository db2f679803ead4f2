"""Waiting for a place is a part of a call's time: what a limiter's server takes is not free."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator

import pytest

from planning.tools import CircuitBreaker, ErrorKind, RateLimiter, Tool, Toolbox, ToolTimeout
from planning.tools.background import await_within, run_in_thread, run_off_loop

TOO_LONG = "t took longer than 60 s and was given up; call it again, or go on without it"


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and answers nothing."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield f"redis://127.0.0.1:{server.getsockname()[1]}/0?socket_timeout=20"


@pytest.mark.parametrize("breaker", [None, CircuitBreaker()])
@pytest.mark.parametrize("door", ["call", "acall"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_limiter_whose_server_is_silent_takes_no_longer_than_the_tool_may(
    silent: str, is_async: bool, door: str, breaker: CircuitBreaker | None
) -> None:
    calls: list[int] = []

    async def slow() -> None:
        calls.append(1)

    def plain() -> None:
        calls.append(1)

    tool = Tool("t", "T.", slow if is_async else plain, rate_limit_key="mail", timeout=0.2, breaker=breaker)
    toolbox = Toolbox([tool], limiter=RateLimiter(storage=silent))
    result = toolbox.call("t") if door == "call" else asyncio.run(toolbox.acall("t"))
    assert (result.code, result.message, calls) == (ErrorKind.TIMEOUT, TOO_LONG.replace("60 s", "0.2 s"), [])
    assert breaker is None or breaker.state == "closed"


def test_what_is_spent_of_a_calls_time_is_over() -> None:
    go = threading.Event()
    with pytest.raises(ToolTimeout) as caught:
        run_in_thread(lambda _stop: go.wait(20), "t", 60, spent=60)
    assert str(caught.value) == TOO_LONG
    for waiting in (
        lambda: run_off_loop(lambda _stop: go.wait(20), "t", 60, spent=61),
        lambda: await_within(asyncio.sleep(20), "t", 60, spent=61),
    ):

        async def run() -> None:
            await waiting()  # noqa: B023 - it is run at once

        with pytest.raises(ToolTimeout) as caught:
            asyncio.run(run())
        assert str(caught.value) == TOO_LONG
    go.set()


def test_a_limiter_of_this_process_is_asked_in_the_callers_thread() -> None:
    class Told(RateLimiter):
        def hit(self, key: str) -> None:
            threads.append(threading.current_thread())

    threads: list[threading.Thread] = []
    toolbox = Toolbox([Tool("t", "T.", int, rate_limit_key="mail", timeout=20.0)], limiter=Told())
    assert toolbox.call("t").success
    assert threads == [threading.current_thread()]
    assert (Told().is_local, RateLimiter(storage="redis://127.0.0.1:1/0").is_local) == (True, False)
