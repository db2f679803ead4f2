"""Calls of the callables that users pass in, with the values that their parameters name."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from inspect import Parameter
from itertools import takewhile
from typing import Any, Final, TypeVar

import attrs

from planning.tools.background import run_coroutine, run_in_thread
from planning.tools.parameters.model import FreeModel
from planning.tools.parameters.signature import Signature, read_signature
from planning.tools.tool import Tool

__all__ = ["Named", "in_own_loop", "is_in_loop", "named", "named_tool"]

T = TypeVar("T")

_FOREVER: Final = 1_000_000.0
_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_VARIABLE = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


@attrs.frozen
class Named:
    """A function, and which of the offered values it takes.

    Attributes:
        function: The function.
        is_async: Whether it is a coroutine function.
        positional: The values that it gets by position.
        keywords: The values that it gets by name: the parameter, and the value's name.
    """

    function: Callable[..., Any]
    is_async: bool
    positional: tuple[str, ...]
    keywords: tuple[tuple[str, str], ...]

    def __call__(self, offered: Mapping[str, Any]) -> Any:
        """Call it; a coroutine function returns an awaitable."""
        positional = [offered[name] for name in self.positional]
        return self.function(*positional, **{name: offered[what] for name, what in self.keywords})


def named(
    what: str,
    function: Callable[..., Any],
    offered: Sequence[str],
    *,
    aliases: Mapping[str, str] | None = None,
) -> Named:
    """Match the parameters of a user's function to the values that are offered.

    A parameter whose name is offered gets that value. The other parameters without a default get the
    remaining values in order; but a single parameter that matches no name gets the last value, which is the
    whole of it. ``**kwargs`` gets everything else, and ``*args`` alone everything, in order.

    Args:
        what: The name of the function in messages.
        function: The function, or any callable object.
        offered: The names of the values, the most wanted first, the whole last.
        aliases: Other names of the values.

    Raises:
        TypeError: It is not callable, or has parameters that match no value.
    """
    if not callable(function):
        raise TypeError(f"{what} must be callable, got {type(function).__name__}")
    signature = read_signature(function)
    known = {name: name for name in offered} | dict(aliases or {})
    parameters = {name: each for name, each in signature.parameters.items() if each.kind not in _VARIABLE}
    given = {name: known[name] for name in parameters if name in known}
    strange = [name for name, each in parameters.items() if name not in given and each.default is each.empty]
    left = [name for name in offered if name not in given.values()]
    if strange and not given and len(strange) == 1:
        left = left[-1:]
    if len(strange) > len(left) or any(parameters[name].kind not in _POSITIONAL for name in strange):
        raise TypeError(
            f"{what} has unknown parameters: {', '.join(strange)}; name them after what it can take:"
            f" {', '.join(offered)}"
        )
    given |= zip(strange, left, strict=False)
    if signature.is_open:
        given |= {name: name for name in offered if name not in given.values() and name not in parameters}
    by_place = [name for name in parameters if parameters[name].kind is Parameter.POSITIONAL_ONLY]
    # After a parameter that keeps its default, nothing can be given by position.
    positional = tuple(given[name] for name in takewhile(given.__contains__, by_place))
    if _takes_any_place(signature) and not parameters and not given:
        positional = tuple(offered)
    return Named(
        function,
        signature.is_async,
        positional,
        tuple((name, each) for name, each in given.items() if name not in by_place),
    )


def _takes_any_place(signature: Signature) -> bool:
    return any(each.kind is Parameter.VAR_POSITIONAL for each in signature.parameters.values())


def is_in_loop() -> bool:
    """Whether this thread runs an event loop, which synchronous code would block."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def in_own_loop(start: Callable[[], Awaitable[T]], name: str) -> T:
    """Run a coroutine from synchronous code: in another thread if this one runs an event loop.

    Args:
        start: Returns the awaitable.
        name: The thread's name.

    Raises:
        BaseException: Whatever the coroutine raises.
    """
    if not is_in_loop():
        return run_coroutine(start, name)
    return run_in_thread(lambda: run_coroutine(start, name), name, _FOREVER)


def named_tool(name: str, description: str, function: Named, timeout: float | None) -> Tool:
    """A user's function as a tool that takes the offered values."""

    def run(params: dict[str, Any]) -> Any:
        outcome = function(params)
        # A synchronous function may return an awaitable.
        return in_own_loop(partial(_awaited, outcome), name) if inspect.isawaitable(outcome) else outcome

    async def arun(params: dict[str, Any]) -> Any:
        return await function(params)

    return Tool(
        name,
        description,
        arun if function.is_async else run,
        parameters=FreeModel(),
        timeout=timeout,
    )


async def _awaited(outcome: Awaitable[Any]) -> Any:
    return await outcome
