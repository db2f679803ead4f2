"""The toolbox: tools by name, and the only place where an exception becomes a result."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from time import perf_counter
from types import MappingProxyType
from typing import Any

from planning.errors import Problem, ToolError, ToolValidationError, show
from planning.tools.contract import Tool, ToolContext
from planning.tools.result import ToolResult
from session import Session, ToolInvoked

__all__ = ["Toolbox"]

logger = logging.getLogger(__name__)


class Toolbox:
    """The tools that one agent may call, in the name of its session.

    ``invoke`` is for Python callers and raises; ``call`` and ``acall`` are for a model's calls and
    always return a ``ToolResult`` with a message that the model can act on.
    """

    def __init__(self, tools: Iterable[Tool], *, session: Session | None = None) -> None:
        """Collect tools.

        Args:
            tools: In the order in which a model is told of them.
            session: Where their calls are published. With None, only tools that are bound to a
                session, such as the planning tools, publish in theirs.

        Raises:
            ValueError: Two tools have the same name.
        """
        by_name: dict[str, Tool] = {}
        for tool in tools:
            if by_name.setdefault(tool.name, tool) is not tool:
                raise ValueError(f"two tools are named {tool.name}")
        self._tools = by_name
        self._context = ToolContext(session)

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name."""
        return MappingProxyType(self._tools)

    @property
    def session(self) -> Session | None:
        """Where calls are published."""
        return self._context.session

    def invoke(self, name: str, params: object = None) -> ToolResult:
        """Call a tool from Python.

        Args:
            name: The tool's name.
            params: An instance of its parameter type, or a mapping to make one from.

        Raises:
            ToolValidationError: No such tool, or the call is refused; nothing has changed.
            Exception: Whatever the tool itself raises.
        """
        tool = self._find(name)
        if type(params) is not tool.parameters:
            if params is not None and not isinstance(params, Mapping):
                expected = tool.parameters.__name__
                raise ToolValidationError(f"{name} takes {expected}, got {type(params).__name__}")
            params = _decoder()(tool.parameters, params, self._diagnose(tool))
        return self._run(tool, params)

    def call(self, name: str, arguments: str | bytes | Mapping[str, Any] | None = None) -> ToolResult:
        """Carry out a model's call; never raises.

        Args:
            name: The tool's name.
            arguments: The JSON text that the provider handed over, or a mapping.
        """
        started = perf_counter()
        try:
            tool = self._find(name)
            return self._run(tool, _decoder()(tool.parameters, arguments, self._diagnose(tool)))
        except ToolValidationError as error:
            message = f"Refused, nothing changed. {error}"
            return _failed(message, str(error), error.user_message(), started)
        except ToolError as error:
            return _failed(error.message, error.message, error.user_message(), started)
        except Exception as error:  # noqa: BLE001 - a tool may fail in any way; its text may hold anything
            logger.error(  # noqa: TRY400 - a traceback would carry the exception's text
                "tool_failed", extra={"tool": show(name), "error": type(error).__name__}
            )
            message = f"{name} failed. Call it again, or go on without it."
            return _failed(message, message, message, started)

    async def acall(self, name: str, arguments: str | bytes | Mapping[str, Any] | None = None) -> ToolResult:
        """Carry out a model's call from async code; never raises.

        The call does not await: its transaction is over before any other task runs.
        """
        return self.call(name, arguments)

    def _diagnose(self, tool: Tool) -> Callable[[Mapping[str, Any]], Iterable[Problem]]:
        return lambda arguments: tool.diagnose(arguments, self._context)

    def _run(self, tool: Tool, params: Any) -> ToolResult:
        if tool.publishes:
            committed: ToolResult = tool.function(params, self._context)
            return committed
        started = perf_counter()
        outcome = tool.function(params, self._context)
        if isinstance(outcome, ToolResult):
            result = outcome
        else:
            result = ToolResult(True, str(outcome), outcome, elapsed=perf_counter() - started)
        session = self._context.session
        if session is not None:
            with session.transaction() as transaction:
                value = result.value if tool.reduces and result.success else None
                event = ToolInvoked(tool.name, params, result, value, session_id=session.session_id)
                transaction.publish(event)
        return result

    def _find(self, name: object) -> Tool:
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            import difflib  # noqa: PLC0415 - only a wrong name needs it

            near = (
                difflib.get_close_matches(name, self._tools, n=1, cutoff=0.75)
                if isinstance(name, str)
                else []
            )
            hint = f"did you mean {near[0]}?" if near else f"the tools are {', '.join(self._tools) or 'none'}"
            raise ToolValidationError(f"no tool is named {show(name)}; {hint}")
        return tool


@cache
def _decoder() -> Callable[..., Any]:
    """Load decoding when the first call needs it, and msgspec and jsonschema-rs with it."""
    from planning.tools.decode import decode  # noqa: PLC0415 - it needs msgspec and jsonschema-rs

    return decode


def _failed(message: str, error: str, user_message: str, started: float) -> ToolResult:
    return ToolResult(False, message, None, error, user_message, perf_counter() - started)
