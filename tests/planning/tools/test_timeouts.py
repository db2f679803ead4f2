"""Timeouts, cancelling, and calls from async code."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import Annotated, Any
from unittest.mock import Mock

import pytest
from pydantic import AfterValidator
from tool_entries import CALLS, NOW, in_async, raising, through
from tool_entries import made as tool

from planning.tools import StorageUnavailable, Tool, Toolbox, ToolRegistry, background, execute_tools
from planning.tools.context import ToolContext
from planning.tools.errors import ErrorKind, ToolTimeout
from planning.tools.guard import CircuitBreaker, Retry
from planning.tools.ledger import tool_calls
from planning.tools.pipeline import CallPipeline
from planning.tools.rate_limit import RateLimiter
from session import Session, TransactionError
from session.stores import MemoryStore

GIVEN_UP = "t took longer than 0.01 s and timed out; call it again, or continue without it"
CHECK = "It may have taken effect: check before you call it again."
SLOWLY = Retry(attempts=2, wait_initial=60, wait_max=60, wait_jitter=0)


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


@pytest.fixture(autouse=True)
def _brief_clean_up(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clean-ups have instants instead of half a second and an hour, but for the test that measures it."""
    if "half_a_second" not in request.node.name:
        monkeypatch.setattr(background, "_CLEAN_UP", 0.02)
        monkeypatch.setattr(background, "_LONGEST", 0.3)


def test_a_tool_that_must_not_run_twice_is_never_to_be_called_again_unseen() -> None:
    hanging = Hanging()
    sent = tool(hanging, timeout=0.01, idempotent=False)
    for entry in CALLS:
        assert through(entry, sent).message == f"t took longer than 0.01 s and timed out. {CHECK}"
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
            through(entry, tool(function, **own), context={}, **boxes)
        assert (type(caught.value), str(caught.value)) == (ToolTimeout, GIVEN_UP)
        assert caught.value.__context__ is None
    hanging.end()


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


def slow(value: int) -> int:
    time.sleep(0.06)
    return value


def work(value: Annotated[int, AfterValidator(slow)]) -> int:
    return slow(value)


async def awork(value: Annotated[int, AfterValidator(slow)]) -> None:
    await asyncio.sleep(0.06)


@pytest.mark.parametrize("function", [work, awork])
@pytest.mark.parametrize("entry", CALLS)
def test_reading_the_arguments_is_a_part_of_the_time(entry: str, function: Any) -> None:
    assert through(entry, tool(function, timeout=0.1), {"value": 1}).code == ErrorKind.TIMEOUT


@pytest.mark.parametrize("timeout", [None, 20.0])
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("entry", ["invoke", "ainvoke"])
def test_a_tools_own_timeout_error_is_its_own(entry: str, is_async: bool, timeout: float | None) -> None:
    with pytest.raises(TimeoutError) as caught:
        through(entry, raising(TimeoutError("database"), is_async=is_async, timeout=timeout))
    assert (type(caught.value), str(caught.value)) == (TimeoutError, "database")


@pytest.mark.parametrize("entry", CALLS)
def test_a_given_up_tool_is_not_tried_again_and_retries_and_waits_are_inside_the_timeout(entry: str) -> None:
    hanging = Hanging(StorageUnavailable("later"))
    assert through(entry, tool(hanging, timeout=0.3, retry=NOW)).code == ErrorKind.TIMEOUT
    hanging.end()
    assert len(hanging.threads) == 1
    for is_async in (False, True):
        later = raising(StorageUnavailable("later"), is_async=is_async, timeout=0.01, retry=SLOWLY)
        assert through(entry, later).code == ErrorKind.TIMEOUT


def test_what_a_tool_calls_is_given_up_with_it() -> None:
    over, ended, seen = threading.Event(), threading.Event(), list[bool]()

    def inner() -> None:
        seen.append(over.wait(20) and background.is_given_up())

    def outer() -> None:
        tool(inner, timeout=20).execute()
        ended.set()

    assert through("call", tool(outer, timeout=0.01)).code == ErrorKind.TIMEOUT
    over.set()
    assert (ended.wait(20), seen) == (True, [True])


@pytest.mark.parametrize(
    ("entry", "options", "is_own"),
    [("call", {"timeout": 20.0}, True), ("acall", {}, True), ("acall", {"blocking": False}, False)],
)
def test_a_plain_tool_that_may_block_has_a_thread(entry: str, options: dict[str, Any], is_own: bool) -> None:
    word: ContextVar[str] = ContextVar("word", default="nothing")
    word.set("here")

    def look() -> list[Any]:
        thread = threading.current_thread()
        return [word.get(), thread.name, thread.daemon, thread is threading.main_thread()]

    own = ["here", "tool t", True, False]  # the interpreter does not wait for it at its end
    found = through(entry, tool(look, **options)).value
    assert found == (own if is_own else ["here", "MainThread", False, True])


@pytest.mark.parametrize("breaker", [None, CircuitBreaker()])
@pytest.mark.parametrize("entry", CALLS)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_silent_limiter_is_given_up(is_async: bool, entry: str, breaker: CircuitBreaker | None) -> None:
    count = Mock()
    function = in_async(count) if is_async else count
    counted = tool(function, rate_limit_key="mail", timeout=0.01, breaker=breaker)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes connections and answers nothing
        storage = f"redis://127.0.0.1:{silent.getsockname()[1]}/0?socket_timeout=20"
        result = through(entry, counted, limiter=RateLimiter(storage=storage))
    assert (result.code, result.message, count.call_count) == (ErrorKind.TIMEOUT, GIVEN_UP, 0)
    assert getattr(breaker, "state", "closed") == "closed"


class Untidy:
    """An async function that takes its time to clean up, or does not stop when it is cancelled."""

    def __init__(self, how: str) -> None:
        self.how = how
        self.events: list[str] = []

    async def __call__(self) -> str:
        self.events.append("began")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await self.clean_up()
        finally:
            self.events.append("ended")
        return "late"

    async def clean_up(self) -> None:
        match self.how:
            case "never_ends":
                await asyncio.Event().wait()
            case "raises_at_once":
                raise StorageUnavailable("secret")
            case "raises":
                await asyncio.sleep(0.1)
                raise ValueError("secret")
            case "cleans_up":
                await asyncio.sleep(0.1)
                self.events.append("cleaned")
            case "works_on":
                for _ in range(10):
                    with contextlib.suppress(asyncio.CancelledError):
                        await asyncio.sleep(0.01)
                self.events.append("cleaned")


AT_ONCE = {"raises_at_once": ["ended"], "returns": ["ended"]}
LATER = {
    "cleans_up": ["cleaned", "ended"],
    "works_on": ["cleaned", "ended"],
    "raises": ["ended"],
    "never_ends": ["ended"],
}


@pytest.mark.parametrize("how", [*AT_ONCE, *LATER])
@pytest.mark.parametrize("entry", CALLS)
@pytest.mark.parametrize("options", [{"timeout": 0.01}, {"timeout": 0.01, "retry": NOW}])
def test_a_call_ends_at_its_time_and_its_clean_up_goes_on_behind_it_which_the_log_says(
    entry: str, how: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    untidy = Untidy(how)
    box = Toolbox([tool(untidy, **options)])

    async def call() -> Any:
        result = await (box.acall("t") if entry == "acall" else asyncio.to_thread(box.call, "t"))
        assert untidy.events == ["began", *AT_ONCE.get(how, [])]
        while "ended" not in untidy.events:
            await asyncio.sleep(0.01)
        for _ in range(3):  # an error that nobody read would be reported now
            await asyncio.sleep(0)
            gc.collect()
        assert untidy.events == ["began", *{**AT_ONCE, **LATER}[how]]
        return result.code, result.message

    assert asyncio.run(call()) == (ErrorKind.TIMEOUT, GIVEN_UP)
    left = [(each.name, vars(each)["tool"]) for each in caplog.records if each.message == "tool_runs_on"]
    assert left == [("planning.tools", "t")] * (how in LATER)
    assert [record.name for record in caplog.records if record.name == "asyncio"] == []


@pytest.mark.parametrize("options", [{}, {"blocking": False}, {"timeout": 20.0}, {"retry": NOW}])
@pytest.mark.parametrize("is_async", [False, True])
def test_an_executor_runs_every_tool_and_the_host_is_told(is_async: bool, options: dict[str, Any]) -> None:
    given, heard = list[Any](), list[threading.Thread]()

    async def run(*call: Any) -> Any:
        given.append(call[:3])
        return await asyncio.to_thread(pipeline.attempt, *call[:2])

    made = tool(in_async(lambda: 2) if is_async else lambda: 2, **options)
    context = ToolContext(Session(session_id="run-7", store=MemoryStore()))
    pipeline = CallPipeline(context, runner=run, tell=lambda _: heard.append(threading.current_thread()))
    assert asyncio.run(pipeline.acall(made, {})).value == 2
    assert (given, heard) == ([(made, {}, options.get("timeout"))], [threading.main_thread()])


def test_a_clean_up_has_half_a_second() -> None:
    began = time.perf_counter()
    assert through("call", tool(Untidy("never_ends"), timeout=0.01)).code == ErrorKind.TIMEOUT
    assert 0.5 <= time.perf_counter() - began < 20


def test_a_caller_that_is_cancelled_waits_no_longer_for_the_clean_up_than_a_timeout_does() -> None:
    async def call() -> str:
        task = asyncio.ensure_future(Toolbox([tool(untidy, timeout=20)]).acall("t"))
        while not untidy.events:
            await asyncio.sleep(0.01)
        task.cancel()
        done, _ = await asyncio.wait([task], timeout=30)
        return "cancelled" if [each.cancelled() for each in done] == [True] else "waits"

    untidy = Untidy("never_ends")
    assert asyncio.run(call()) == "cancelled"


# Calls from async code: cancelling through every entry, the loop, and a session that others hold
HELD = (
    "was not run: another task holds a transaction of this session open: "
    "never await inside one. Call it again."
)


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
    "thread": lambda **options: tool(lambda: threading.Event().wait(5), **options),
    "retry": lambda **options: raising(StorageUnavailable("x"), is_async=True, retry=SLOWLY, **options),
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
def test_cancelling_is_recorded(entry: str, waiting: str, options: dict[str, Any], session: Session) -> None:
    made = WAITING[waiting](**options)
    asyncio.run(cancelled(ENTRIES[entry](made, session)))
    (call,) = tool_calls(session)
    assert (call.tool, call.outcome, call.success) == ("t", "cancelled", False)


def test_an_async_tool_can_be_called_from_plain_code_but_not_from_a_running_loop() -> None:
    made = tool(in_async(lambda: 2))
    assert (through("call", made).value, through("invoke", made).value) == (2, 2)

    async def inside() -> tuple[Any, ...]:
        toolbox = Toolbox([made])
        return toolbox.call("t").message, made.execute()["error"], (await made.aexecute())["result"]

    refused = "t is async: await acall, aexecute or ainvoke from code that runs in an event loop"
    assert asyncio.run(inside()) == (refused, refused, 2)


@asynccontextmanager
async def another_task_holds(session: Session) -> AsyncIterator[None]:
    """A transaction that another task holds open in here."""
    entered, leave = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        with session.transaction():
            entered.set()
            await leave.wait()

    holder = asyncio.create_task(hold())
    await entered.wait()
    yield
    leave.set()
    await holder


def test_a_call_while_another_task_holds_fails(session: Session, caplog: pytest.LogCaptureFixture) -> None:
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
    assert ran == [1]
    assert [call.outcome for call in tool_calls(session)] == ["success"]  # the refusal could not be recorded
    lost = [vars(record) for record in caplog.records if record.message == "call_not_recorded"]
    assert [(each["tool"], each["error"]) for each in lost] == [("t", "SessionBusyError")] * 2


def test_a_refusal_does_not_wait_for_the_end_of_another_threads_transaction(session: Session) -> None:
    entered, leave, left = threading.Event(), threading.Event(), list[bool]()

    def hold() -> None:
        with session.transaction():
            entered.set()
            left.append(leave.wait(5))

    holder = threading.Thread(target=hold)
    holder.start()
    entered.wait(10)
    refused = Toolbox([], session=session).call("nothing")
    leave.set()
    holder.join()
    assert (refused.code, left) == (ErrorKind.UNKNOWN_TOOL, [True])


def test_a_tool_that_ran_while_a_task_took_the_session_says_it_is_not_recorded(session: Session) -> None:
    async def run() -> Any:
        async with AsyncExitStack() as stack:

            async def work() -> None:
                await stack.enter_async_context(another_task_holds(session))

            return await Toolbox([tool(work)], session=session).acall("t")

    result = asyncio.run(run())
    assert (result.success, result.code) == (False, ErrorKind.STORAGE)
    assert result.message == (
        "t ran, but the session could not store its result. Check what it did before you call it again."
    )
    assert tool_calls(session) == ()
