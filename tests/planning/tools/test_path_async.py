"""The path of a call from async code: threads for what blocks, cancelling through every door."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Any

import pytest

from planning import PlanningToolsSection
from planning.tools import (
    BaseTool,
    CircuitBreaker,
    ErrorKind,
    RateLimiter,
    Retry,
    StorageUnavailable,
    Tool,
    Toolbox,
    ToolRegistry,
    ToolTimeout,
    ToolValidationError,
    execute_tools,
    tool_calls,
)
from session import Session, TransactionError

SLOWLY = Retry(attempts=2, wait_initial=60, wait_max=60, wait_jitter=0)
NOW = Retry(attempts=3, wait_initial=0, wait_max=0, wait_jitter=0)


def tool(function: Any, **options: Any) -> Tool:
    return Tool("t", "T.", function, **options)


async def forever() -> None:
    await asyncio.sleep(60)


async def later() -> None:
    raise StorageUnavailable("later")


def blocked() -> None:
    threading.Event().wait(5)


Door = Callable[[Tool, Session], Awaitable[Any]]


async def by_execute_tools(made: Tool, session: Session) -> Any:
    return await execute_tools(
        {"tool_calls": [{"tool": "t"}]}, registry=ToolRegistry([made]), session=session
    )


DOORS: dict[str, Door] = {
    "acall": lambda made, session: Toolbox([made], session=session).acall("t"),
    "ainvoke": lambda made, session: Toolbox([made], session=session).ainvoke("t"),
    "execute_tools": by_execute_tools,
}
WAITING = {
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


@pytest.mark.parametrize("options", [{}, {"timeout": 20.0}, {"returns_private_data": True}])
@pytest.mark.parametrize("waiting", WAITING)
@pytest.mark.parametrize("door", DOORS)
def test_cancelling_passes_through_every_door_and_is_recorded(
    door: str, waiting: str, options: dict[str, Any]
) -> None:
    session = Session()
    made = WAITING[waiting](**options)
    asyncio.run(cancelled(DOORS[door](made, session)))
    (call,) = tool_calls(session)
    assert (call.tool, call.outcome, call.success) == ("t", "cancelled", False)


def test_cancelling_passes_through_a_base_tool_and_through_aexecute() -> None:
    class Slow(BaseTool):
        name = "slow"
        description = "Slow."

        async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
            await forever()
            return {"success": True}

    asyncio.run(cancelled(Slow().safe_execute({}, {})))
    asyncio.run(cancelled(tool(forever).aexecute()))


def test_a_timeout_of_the_callers_own_is_the_callers() -> None:
    async def run() -> None:
        with pytest.raises(TimeoutError) as caught:
            async with asyncio.timeout(0.01):
                await Toolbox([tool(forever, timeout=20.0)]).acall("t")
        assert type(caught.value) is TimeoutError

    asyncio.run(run())


@pytest.mark.parametrize("function", [forever, blocked])
def test_a_tool_that_hangs_is_given_up(function: Any) -> None:
    result = asyncio.run(Toolbox([tool(function, timeout=0.01)]).acall("t"))
    assert (result.code, result.message) == (
        ErrorKind.TIMEOUT,
        "t took longer than 0.01 s and was given up; call it again, or go on without it",
    )


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_a_program_passes(error: type[BaseException], private: bool) -> None:
    async def stop() -> None:
        raise error

    with pytest.raises(error):
        asyncio.run(Toolbox([tool(stop, returns_private_data=private)]).acall("t"))


def test_an_unknown_tool_is_a_failed_result_and_raised_to_python() -> None:
    toolbox = Toolbox([tool(forever)])
    assert asyncio.run(toolbox.acall("x")).code == ErrorKind.UNKNOWN_TOOL
    with pytest.raises(ToolValidationError):
        asyncio.run(toolbox.ainvoke("x"))


def test_retries_and_their_waits_are_inside_the_timeout() -> None:
    with pytest.raises(ToolTimeout):
        asyncio.run(Toolbox([tool(later, timeout=0.01, retry=SLOWLY)]).ainvoke("t"))


def fail_at_once() -> None:
    raise TimeoutError("database")


async def afail_at_once() -> None:
    raise TimeoutError("database")


@pytest.mark.parametrize("function", [fail_at_once, afail_at_once])
def test_a_tools_own_timeout_error_is_its_own(function: Any) -> None:
    with pytest.raises(TimeoutError) as caught:
        asyncio.run(Toolbox([tool(function, timeout=20.0)]).ainvoke("t"))
    assert (type(caught.value), str(caught.value)) == (TimeoutError, "database")


def test_plain_tools_run_in_a_thread_of_their_own_with_the_callers_context() -> None:
    word: ContextVar[str] = ContextVar("word", default="nothing")

    async def run() -> Any:
        word.set("here")
        made = tool(lambda: [word.get(), threading.current_thread().name, threading.get_ident()])
        return (await Toolbox([made]).acall("t")).value

    told, name, thread = asyncio.run(run())
    assert (told, name) == ("here", "tool t")
    assert thread != threading.get_ident()


def test_a_tool_that_does_not_block_runs_on_the_loop() -> None:
    made = tool(threading.get_ident, blocking=False)
    assert asyncio.run(Toolbox([made]).acall("t")).value == threading.get_ident()


@pytest.mark.parametrize("timeout", [None, 20.0])
def test_the_planning_tools_run_on_the_loop_whatever_the_toolboxs_timeout(
    timeout: float | None, session: Session
) -> None:
    from planning import PlanningToolsSection

    threads: list[int] = []
    session.bus.subscribe(object, lambda _event: threads.append(threading.get_ident()))
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session, timeout=timeout)
    assert asyncio.run(toolbox.acall("planning_setup_plan", {"objective": "x"})).success
    assert set(threads) == {threading.get_ident()}


def test_the_loop_goes_on_while_a_plain_tool_blocks() -> None:
    go = threading.Event()

    async def run() -> bool:
        call = asyncio.create_task(Toolbox([tool(lambda: go.wait(20))]).acall("t"))
        await asyncio.sleep(0)
        go.set()
        return bool((await call).value)

    assert asyncio.run(run()) is True


def test_an_async_tool_can_be_called_from_plain_code_but_not_from_a_running_loop() -> None:
    async def two() -> int:
        return 2

    toolbox = Toolbox([tool(two)])
    assert (toolbox.call("t").value, toolbox.invoke("t").value, tool(two).execute()["result"]) == (2, 2, 2)

    async def inside() -> Any:
        return toolbox.call("t")

    assert asyncio.run(inside()).message == (
        "t is async: await acall, aexecute or ainvoke from code that runs in an event loop"
    )


def test_what_an_async_tool_raises_in_plain_code_is_raised() -> None:
    with pytest.raises(TimeoutError, match=r"^database$"):
        Toolbox([tool(afail_at_once)]).invoke("t")


def test_a_transient_failure_is_tried_again() -> None:
    calls = []

    async def third() -> int:
        calls.append(1)
        if len(calls) < 3:
            raise StorageUnavailable("later")
        return len(calls)

    assert asyncio.run(Toolbox([tool(third, retry=NOW)]).acall("t")).value == 3


def test_a_cancelled_probe_is_given_back() -> None:
    breaker = CircuitBreaker(failures=1, clock=iter([0.0, 40.0, 40.0, 40.0]).__next__)
    breaker.failed(breaker.admit("t"))
    asyncio.run(cancelled(Toolbox([tool(forever, breaker=breaker)]).acall("t")))
    states = [breaker.state]
    assert asyncio.run(Toolbox([tool(lambda: 1, breaker=breaker)]).acall("t")).success
    assert [*states, breaker.state] == ["open", "closed"]


def test_a_call_over_the_limit_is_refused_and_not_made() -> None:
    calls = []

    async def run() -> list[bool]:
        toolbox = Toolbox(
            [tool(lambda: calls.append(1), rate_limit_key="k")], limiter=RateLimiter({"k": "2/minute"})
        )
        results = await asyncio.gather(*(toolbox.acall("t") for _ in range(5)))
        return [result.success for result in results]

    assert sorted(asyncio.run(run())) == [False, False, False, True, True]
    assert len(calls) == 2


def test_a_call_while_another_task_holds_the_transaction_fails_and_the_next_works() -> None:
    session = Session()
    ran: list[int] = []
    toolbox = Toolbox([tool(lambda: ran.append(1), blocking=False)], session=session)

    async def run() -> Any:
        entered, leave = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            with session.transaction():
                entered.set()
                await leave.wait()

        holder = asyncio.create_task(hold())
        await entered.wait()
        refused = await toolbox.acall("t")
        with pytest.raises(TransactionError):
            await toolbox.ainvoke("t")
        assert (ran, tool_calls(session)) == ([], ())
        leave.set()
        await holder
        return refused, await toolbox.acall("t")

    refused, done = asyncio.run(run())
    assert (refused.success, refused.code, done.success) == (False, ErrorKind.UNKNOWN, True)
    assert refused.message == (
        "t was not carried out: another task holds a transaction of this session open: "
        "never await inside one. Call it again."
    )
    assert ran == [1]
    assert [call.outcome for call in tool_calls(session)] == ["success", "unknown", "unknown"]


def test_a_tool_that_ran_while_another_task_took_the_session_succeeds_and_is_recorded_later() -> None:
    session = Session()

    async def run() -> None:
        entered, leave = asyncio.Event(), asyncio.Event()

        async def work() -> str:
            leave.set()
            await entered.wait()
            return "done"

        async def hold() -> None:
            await leave.wait()
            with session.transaction():
                entered.set()
                for _ in range(5):
                    await asyncio.sleep(0)
                assert task.done()

        task = asyncio.create_task(Toolbox([tool(work)], session=session).acall("t"))
        await hold()
        assert ((await task).message, (await task).success) == ("done", True)

    asyncio.run(run())
    assert [call.outcome for call in tool_calls(session)] == ["success"]


def test_a_planning_call_while_another_task_holds_the_session_says_so_and_is_recorded() -> None:
    session = Session()
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)

    async def run() -> Any:
        async def call() -> Any:
            return await toolbox.acall("planning_setup_plan", {"objective": "o"})

        with session.transaction():
            refused = await asyncio.create_task(call())
            assert tool_calls(session) == ()
        return refused, await call()

    refused, done = asyncio.run(run())
    assert refused.message == (
        "planning_setup_plan was not carried out: another task holds a transaction of this session open: "
        "never await inside one. Call it again."
    )
    assert done.success
    assert [(call.tool, call.outcome) for call in tool_calls(session)] == [
        ("planning_setup_plan", "success"),
        ("planning_setup_plan", "unknown"),
    ]


def test_a_tool_may_await_another_toolbox() -> None:
    session = Session()

    async def outer() -> Any:
        return (await Toolbox([Tool("inner", "I.", lambda: 2)], session=session).acall("inner")).value + 1

    assert asyncio.run(Toolbox([tool(outer)], session=session).acall("t")).value == 3
    assert [call.tool for call in tool_calls(session)] == ["t", "inner"]


def test_calls_at_the_same_time_are_all_recorded() -> None:
    session = Session()

    async def run() -> None:
        toolbox = Toolbox([tool(lambda: 1)], session=session)
        await asyncio.gather(*(toolbox.acall("t") for _ in range(50)))

    asyncio.run(run())
    assert [call.outcome for call in tool_calls(session)] == ["success"] * 50


def test_a_tool_that_swallows_its_cancelling_is_believed() -> None:
    async def stubborn() -> str:
        try:
            await forever()
        except asyncio.CancelledError:
            return "done"
        return "never"

    assert asyncio.run(Toolbox([tool(stubborn, timeout=0.01)]).acall("t")).value == "done"


def test_a_closed_coroutine_of_a_call_leaves_nothing_behind() -> None:
    session = Session()

    async def run() -> None:
        call = Toolbox([tool(forever)], session=session).acall("t")
        call.send(None)
        call.close()

    asyncio.run(run())
    assert tool_calls(session) == ()
