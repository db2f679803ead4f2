"""Calls from async code: cancelling through every entry, the loop, and a session that others hold."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tool_entries import made as tool
from tool_entries import through

from planning.tools import StorageUnavailable, Tool, Toolbox, ToolRegistry, execute_tools
from planning.tools.errors import ErrorKind
from planning.tools.guard import CircuitBreaker, Retry
from planning.tools.ledger import tool_calls
from session import Session, TransactionError

SLOWLY = Retry(attempts=2, wait_initial=60, wait_max=60, wait_jitter=0)
HELD = (
    "was not carried out: another task holds a transaction of this session open: "
    "never await inside one. Call it again."
)


async def forever() -> None:
    await asyncio.sleep(60)


async def later() -> None:
    raise StorageUnavailable("later")


def blocked() -> None:
    threading.Event().wait(5)


def outcomes(session: Session) -> list[str]:
    return [call.outcome for call in tool_calls(session)]


Entry = Callable[[Tool, Session], Awaitable[Any]]
ENTRIES: dict[str, Entry] = {
    "acall": lambda made, session: Toolbox([made], session=session).acall("t"),
    "ainvoke": lambda made, session: Toolbox([made], session=session).ainvoke("t"),
    "execute_tools": lambda made, session: execute_tools(
        {"tool_calls": [{"tool": "t"}]}, registry=ToolRegistry([made]), session=session
    ),
}
WAITING: dict[str, Callable[..., Tool]] = {
    "async": lambda **options: tool(forever, **options),
    "thread": lambda **options: tool(blocked, **options),
    "retry": lambda **options: tool(later, retry=SLOWLY, **options),
}


async def cancelled(start: Awaitable[Any]) -> None:
    task = asyncio.ensure_future(start)
    for _ in range(20):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


@pytest.mark.parametrize("options", [{"timeout": 20.0}, {"returns_private_data": True}])
@pytest.mark.parametrize("waiting", WAITING)
@pytest.mark.parametrize("entry", ENTRIES)
def test_cancelling_passes_through_every_entry_and_is_recorded(
    entry: str, waiting: str, options: dict[str, Any], session: Session
) -> None:
    made = WAITING[waiting](**options)
    asyncio.run(cancelled(ENTRIES[entry](made, session)))
    (call,) = tool_calls(session)
    assert (call.tool, call.outcome, call.success) == ("t", "cancelled", False)


def test_a_cancelled_probe_is_given_back() -> None:
    breaker = CircuitBreaker(failures=1, clock=iter([0.0, 40.0, 40.0, 40.0]).__next__)
    breaker.record_failure(breaker.admit("t"))
    asyncio.run(cancelled(Toolbox([tool(forever, breaker=breaker)]).acall("t")))
    assert str(breaker.state) == "open"
    assert through("acall", tool(lambda: 1, breaker=breaker)).success
    assert str(breaker.state) == "closed"


def test_a_tool_that_does_not_block_runs_on_the_loop() -> None:
    assert through("acall", tool(threading.get_ident, blocking=False)).value == threading.get_ident()


def test_an_async_tool_can_be_called_from_plain_code_but_not_from_a_running_loop() -> None:
    async def two() -> int:
        return 2

    made = tool(two)
    assert (through("call", made).value, through("invoke", made).value) == (2, 2)

    async def inside() -> tuple[Any, ...]:
        toolbox = Toolbox([made])
        return toolbox.call("t").message, made.execute()["error"], (await made.aexecute())["result"]

    refused = "t is async: await acall, aexecute or ainvoke from code that runs in an event loop"
    assert asyncio.run(inside()) == (refused, refused, 2)


@asynccontextmanager
async def another_task_holds(session: Session, when: asyncio.Event | None = None) -> AsyncIterator[None]:
    """A transaction that another task holds open in here, from a moment on."""
    entered, leave = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        if when is not None:
            await when.wait()
        with session.transaction():
            entered.set()
            await leave.wait()

    holder = asyncio.create_task(hold())
    await entered.wait()
    yield
    leave.set()
    await holder


def test_a_call_while_another_task_holds_the_transaction_fails_and_the_next_works(session: Session) -> None:
    ran: list[int] = []
    toolbox = Toolbox([tool(lambda: ran.append(1), blocking=False)], session=session)

    async def run() -> Any:
        async with another_task_holds(session):
            refused = await toolbox.acall("t")
            with pytest.raises(TransactionError):
                await toolbox.ainvoke("t")
            assert (ran, tool_calls(session)) == ([], ())
        return refused, await toolbox.acall("t")

    refused, done = asyncio.run(run())
    assert (refused.success, refused.code, done.success) == (False, ErrorKind.UNKNOWN, True)
    assert refused.message == f"t {HELD}"
    assert (ran, outcomes(session)) == ([1], ["success"])  # what was refused could not be recorded


def test_a_tool_that_ran_while_another_task_took_the_session_says_that_it_is_not_recorded(
    session: Session,
) -> None:
    async def run() -> Any:
        begun, go = asyncio.Event(), asyncio.Event()

        async def work() -> str:
            begun.set()
            await go.wait()
            return "done"

        task = asyncio.create_task(Toolbox([tool(work)], session=session).acall("t"))
        async with another_task_holds(session, begun):
            go.set()
            return await task

    result = asyncio.run(run())
    assert (result.success, result.code) == (False, ErrorKind.STORAGE)
    assert result.message == (
        "t was carried out, but the session could not store its result. Check what it did before you "
        "call it again."
    )
    assert outcomes(session) == []
