"""Calling what somebody hands over, with what it names among its parameters."""

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
    """A function, and what it takes of what is there.

    Attributes:
        function: The function.
        is_async: Whether it is a coroutine function.
        positional: What it is given by place.
        keywords: What it is given by name: the parameter, and what it gets.
    """

    function: Callable[..., Any]
    is_async: bool
    positional: tuple[str, ...]
    keywords: tuple[tuple[str, str], ...]

    def __call__(self, offered: Mapping[str, Any]) -> Any:
        """Call it; a coroutine function returns what is to be awaited."""
        positional = [offered[name] for name in self.positional]
        return self.function(*positional, **{name: offered[what] for name, what in self.keywords})


def named(
    what: str,
    function: Callable[..., Any],
    offered: Sequence[str],
    *,
    aliases: Mapping[str, str] | None = None,
) -> Named:
    """Find out how to call a function that somebody handed over.

    A parameter with a name that is offered gets that. Of the others, those without a default get in their
    order what no parameter has named; but a single one without any such name gets the last of what is
    offered, which is the whole of it. ``**kwargs`` gets everything else, and ``*args`` alone everything, in
    order.

    Args:
        what: What the function is, for messages.
        function: The function, or any object that can be called.
        offered: The names of what it can be given, the most wanted first, the whole last.
        aliases: Other names of the same.

    Raises:
        TypeError: It cannot be called, or takes more than there is.
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
            f"{what} takes {', '.join(strange)}, and nobody knows what that is; name its parameters after"
            f" what it can be given: {', '.join(offered)}"
        )
    given |= zip(strange, left, strict=False)
    if signature.is_open:
        given |= {name: name for name in offered if name not in given.values() and name not in parameters}
    by_place = [name for name in parameters if parameters[name].kind is Parameter.POSITIONAL_ONLY]
    # Behind one that keeps its default, nothing can be given by place.
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
    """Whether this thread runs an event loop, which plain code would have to wait for."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def in_own_loop(start: Callable[[], Awaitable[T]], name: str) -> T:
    """Run a coroutine to its end from plain code: in a thread of its own where this one runs an event loop.

    Args:
        start: Gives what is to be awaited.
        name: The thread's name.

    Raises:
        BaseException: What it raised.
    """
    if not is_in_loop():
        return run_coroutine(start, name)
    return run_in_thread(lambda _stop: run_coroutine(start, name), name, _FOREVER)


def named_tool(name: str, description: str, function: Named, timeout: float | None) -> Tool:
    """What somebody handed over as a tool that takes what it may be given."""

    def run(params: dict[str, Any]) -> Any:
        outcome = function(params)
        # A plain function may hand over what is to be awaited.
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
