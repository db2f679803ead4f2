"""Tools: what a model, a pipeline or Python code can call."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from planning.errors import ToolError
from planning.tools.contract import ToolContract
from planning.tools.envelopes import QueryResponses, execution_envelope
from planning.tools.pipeline import CallPipeline
from planning.tools.spec import QueryTypes


class Tool(ToolContract, QueryResponses):
    """Something a model can call; its attributes are those of ``ToolContract``."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, past all checks: for code and tests that use it as a function."""
        return self.function(*args, **kwargs)

    def execute(self, /, **kwargs: Any) -> dict[str, Any]:
        """Call it from Python; never raises, but for KeyboardInterrupt and SystemExit.

        An async function is run to its end, which needs a thread without a running event loop.

        Returns:
            ``{"success", "tool", "result", "error", "elapsed"}``: the error is None on success, and the
            elapsed time is in seconds.
        """
        return execution_envelope(self.name, CallPipeline().call(self, kwargs))

    async def aexecute(self, /, **kwargs: Any) -> dict[str, Any]:
        """The same from async code."""
        return execution_envelope(self.name, await CallPipeline().acall(self, kwargs))


class ToolSpec(QueryTypes):
    """What a tool expects for each type of query; its attributes are those of ``QueryTypes``."""

    @cached_property
    def as_tool(self) -> Tool:
        """The tool that answers these queries; ``Tool(..., parameters=spec)`` makes one with more options."""
        function = _unanswered(self.name) if self.function is None else self.function
        return Tool(
            self.name, self.description, function, parameters=self, visible_errors=self.visible_errors
        )


def _unanswered(name: str) -> Callable[[str, Any], Any]:
    def refuse(_query_type: str, _parameters: Any) -> Any:
        raise ToolError(f"{name} cannot be called: it is declared without a function. Go on without it.")

    return refuse
