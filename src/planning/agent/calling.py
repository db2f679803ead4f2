"""Functions of users as tools that get the values which their parameters name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from typing import Any, Final

from planning.tools.parameters.model import FreeModel
from planning.tools.parameters.signature import read_signature
from planning.tools.tool import Tool

_VARIABLE: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def named_tool(
    name: str,
    description: str,
    function: Callable[..., Any],
    offered: Sequence[str],
    timeout: float | None,
) -> tuple[Tool, frozenset[str]]:
    """A user's function as a tool that takes the offered values, and the names of those that it takes.

    A parameter whose name is offered gets that value, and ``**kwargs`` gets all of them. The other parameters
    without a default get the remaining values in order; but a single parameter that matches no name gets the
    last value, which is the whole of it.

    Args:
        name: The tool's name.
        description: Its description.
        function: The function, or any callable object.
        offered: The names of the values, the most wanted first, the whole last.
        timeout: The seconds for a call; None for no limit.

    Raises:
        TypeError: It is not callable, or has parameters that match no value.
    """
    if not callable(function):
        raise TypeError(f"{name} must be callable, got {type(function).__name__}")
    signature = read_signature(function)
    taken = _taken(name, signature.parameters, offered, is_open=signature.is_open)

    def run(values: dict[str, Any]) -> Any:
        return function(**{parameter: values[value] for parameter, value in taken.items()})

    async def arun(values: dict[str, Any]) -> Any:
        return await run(values)

    called = arun if signature.is_async else run
    tool = Tool(name, description, called, parameters=FreeModel(), timeout=timeout)
    return tool, frozenset(taken.values())


def _taken(
    name: str, parameters: Mapping[str, Parameter], offered: Sequence[str], *, is_open: bool
) -> dict[str, str]:
    """The value for each parameter, by its name."""
    required = [
        each for each in parameters.values() if each.kind not in _VARIABLE and each.default is each.empty
    ]
    strange = [each.name for each in required if each.name not in offered]
    left = [value for value in offered if value not in parameters]
    if len(strange) == 1 and len(left) == len(offered):
        left = left[-1:]
    if len(strange) > len(left) or any(each.kind is Parameter.POSITIONAL_ONLY for each in required):
        names = ", ".join(each.name for each in required)
        can_take = ", ".join(offered)
        raise TypeError(f"{name} cannot be called with {names}; name its parameters out of {can_take}")
    placed = dict(zip(strange, left, strict=False))
    named = [value for value in offered if value in parameters or is_open]
    return {value: value for value in named if value not in placed.values()} | placed
