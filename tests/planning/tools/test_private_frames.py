"""What is raised for a private tool leads to nothing of the call, by frames or by the errors behind it."""

from __future__ import annotations

import asyncio
import gc
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from tool_entries import NOW, in_async

from planning.tools import BaseTool, Tool, Toolbox, ToolError, ToolSpec
from planning.tools.guard import CircuitBreaker, Retry
from planning.tools.rate_limit import RateLimiter
from session import Session

SHARED = (
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    type,
    types.CodeType,
    types.FrameType,
)


def reachable(error: BaseException) -> list[Any]:
    """Everything that an exception leads to: by its frames' variables, and by the errors behind it.

    Not the frames of this module: what the caller itself knows is no secret to it. Not modules and functions.
    """
    found: list[Any] = []
    seen = set[int]()
    todo: list[Any] = [error]
    while todo:
        each = todo.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        found.append(each)
        if isinstance(each, types.TracebackType):
            todo.append(each.tb_next)
            if each.tb_frame.f_globals is not globals():
                todo += each.tb_frame.f_locals.values()
        elif not isinstance(each, SHARED):
            todo += gc.get_referents(each)
            if isinstance(each, BaseException):
                todo += [each.__traceback__, each.__context__, each.__cause__]
    return found


def leads_to(error: BaseException, secret: str) -> bool:
    return any(isinstance(each, str) and secret in each for each in reachable(error))


def fail(given: object = None, **arguments: Any) -> Any:
    held = str((given, arguments))
    try:
        raise ValueError(held)
    except ValueError as error:
        raise KeyError(arguments["who"]) from error


afail = in_async(fail)


def refuse(**arguments: Any) -> Any:
    raise ToolError(arguments["who"])


def report(**arguments: Any) -> Any:
    return (each for each in [arguments])


async def hang(**arguments: Any) -> Any:
    await asyncio.sleep(20)


class Look(BaseTool):
    name = "t"
    description = "T."
    returns_private_data = True

    async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
        raise ValueError(args)


@dataclass
class Who:
    who: str

    def __post_init__(self) -> None:
        raise OSError(self.who)


@dataclass
class Refused:
    who: int


def private(function: Callable[..., Any], **options: Any) -> Tool:
    return Tool("t", "T.", function, returns_private_data=True, **options)


def limited() -> Toolbox:
    limiter = RateLimiter({"mail": "1/minute"})
    limiter.hit("mail")
    return Toolbox([private(fail, rate_limit_key="mail")], session=Session(), limiter=limiter)


def broken() -> Toolbox:
    breaker = CircuitBreaker(failures=1)
    breaker.failed(breaker.admit("t"))
    return Toolbox([private(fail, breaker=breaker)], session=Session())


def holding(tool: Any, **options: Any) -> Callable[[], Toolbox]:
    return lambda: Toolbox([tool], session=Session(), **options)


BOXES: dict[str, Callable[[], Toolbox]] = {
    "plain": holding(private(fail)),
    "async": holding(private(afail)),
    "thread": holding(private(fail, timeout=20.0)),
    "async in time": holding(private(afail, timeout=20.0)),
    "async out of time": holding(private(hang, timeout=0.01)),
    "retry": holding(private(fail, retry=NOW)),
    "async retry": holding(private(afail, retry=NOW)),
    "retry of what it retries": holding(private(fail, retry=Retry(
        attempts=2, on=(KeyError,), wait_initial=0, wait_max=0, wait_jitter=0
    ))),
    "breaker": holding(private(fail, breaker=CircuitBreaker())),
    "tool error": holding(private(refuse)),
    "bad result": holding(private(report)),
    "base": holding(Look()),
    "query": holding(private(lambda _t, q: fail(**q), parameters=ToolSpec("t", {"who": None}, "t"))),
    "check": holding(private(fail, parameters=Who)),
    "refused": holding(private(fail, parameters=Refused)),
    "no identifier": holding(private(fail, requires_identifier=True)),
    "rate limit": limited,
    "open breaker": broken,
}  # fmt: skip


@pytest.mark.parametrize("name", BOXES)
@pytest.mark.parametrize("door", ["invoke", "ainvoke", "invoke while another error is handled"])
def test_what_is_raised_for_a_private_tool_leads_to_nothing_of_the_call(name: str, door: str) -> None:
    toolbox, secret = BOXES[name](), uuid4().hex
    arguments: dict[str, Any] = {"who": secret, "deep": [{secret: secret}]}
    if name == "query":
        arguments = {"query_type": "who", "parameters": arguments}
    try:
        if door == "invoke":
            toolbox.invoke("t", arguments)
        elif door == "ainvoke":
            asyncio.run(toolbox.ainvoke("t", arguments))
        else:
            try:
                raise KeyError(secret)
            except KeyError:
                toolbox.invoke("t", arguments)
    except ToolError as error:
        caught = error
    else:
        raise AssertionError("nothing was raised")
    assert not leads_to(caught, secret)
    assert (caught.__context__, caught.__cause__) == (None, None)


@pytest.mark.parametrize("door", ["acall", "ainvoke", "safe_execute", "aexecute"])
def test_a_cancelling_of_a_private_tool_leads_to_nothing_of_the_call(door: str) -> None:
    secret, errors = uuid4().hex, list[BaseException]()

    class Wait(Look):
        async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
            await asyncio.sleep(20)
            raise AssertionError

    async def step() -> None:
        try:
            if door == "safe_execute":
                await Wait().safe_execute({"who": secret}, {})
            elif door == "aexecute":
                await private(hang).aexecute(who=secret)
            else:
                await getattr(Toolbox([private(hang)], session=Session()), door)("t", {"who": secret})
        except asyncio.CancelledError as error:
            errors.append(error)
            raise

    async def run() -> None:
        task = asyncio.create_task(step())
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(run())
    assert not leads_to(errors[0], secret)


@pytest.mark.parametrize("door", ["call", "invoke", "execute"])
def test_what_ends_the_program_leads_to_nothing_of_a_private_call(door: str) -> None:
    secret = uuid4().hex

    def end(**_arguments: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        if door == "execute":
            private(end).execute(who=secret)
        else:
            getattr(Toolbox([private(end)]), door)("t", {"who": secret})
    assert not leads_to(caught.value, secret)
