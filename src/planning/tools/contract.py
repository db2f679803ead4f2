"""The tool contract: what a tool is, and what it is given when it runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from planning.errors import Problem
from session import Session

__all__ = ["Tool", "ToolContext", "ToolExample"]


@attrs.frozen
class ToolContext:
    """What a tool is given beside its parameters.

    Attributes:
        session: The session of the agent that calls; None outside any session.
    """

    session: Session | None = None


@attrs.frozen
class ToolExample:
    """A worked example of one call.

    Attributes:
        arguments: What a model sends.
        message: What it reads then.
    """

    arguments: Mapping[str, Any]
    message: str


def _nothing_else(_arguments: Mapping[str, Any], _context: ToolContext) -> Iterable[Problem]:
    return ()


def _not_async(_tool: Tool, _field: attrs.Attribute[Any], function: object) -> None:
    if inspect.iscoroutinefunction(function):
        raise TypeError("a tool's function must be a plain function, not a coroutine function")


@attrs.frozen(kw_only=True)
class Tool:
    """Something a model can call.

    Attributes:
        name: What the model calls it by.
        description: What the model is told about it.
        parameters: A dataclass; arguments are decoded into it, and its schema is what the model sees.
        function: Called with the parameters and a ``ToolContext``; returns a ``ToolResult``, or any
            value, which then becomes the result's ``value``. It may raise ``ToolError``.
        examples: Worked examples.
        diagnose: Asked what else is wrong with arguments that cannot be decoded, so that a model
            hears of everything at once.
        reduces: Whether the session reduces what the tool returns, as the event's ``value``.
        publishes: Whether the function publishes its own ``ToolInvoked``, because it does so within
            the transaction that it needs.
    """

    name: str = attrs.field(validator=attrs.validators.min_len(1))
    description: str
    parameters: type[Any]
    function: Callable[[Any, ToolContext], Any] = attrs.field(repr=False, validator=_not_async)
    examples: tuple[ToolExample, ...] = attrs.field(default=(), repr=False)
    diagnose: Callable[[Mapping[str, Any], ToolContext], Iterable[Problem]] = attrs.field(
        default=_nothing_else, repr=False
    )
    reduces: bool = attrs.field(default=False, repr=False)
    publishes: bool = attrs.field(default=False, repr=False)

    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the parameters: descriptions, limits, enums, no further properties.

        Each call returns a copy of its own.
        """
        from planning.tools.schema import published_schema  # noqa: PLC0415 - it needs msgspec

        schema = published_schema(self.parameters)
        if self.examples:
            schema["examples"] = [dict(example.arguments) for example in self.examples]
        return schema
