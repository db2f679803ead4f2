"""Tools as classes: declare what the tool is, write ``execute``, and call ``safe_execute``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar

from planning.tools.context import ToolContext
from planning.tools.contract import IDENTIFIERS, ToolExample
from planning.tools.envelopes import QueryResponses, pipeline_envelope
from planning.tools.errors import PASSING, ContextInvalid, type_name
from planning.tools.outcome import failed, from_outcome
from planning.tools.parameters.model import FreeModel
from planning.tools.pipeline import CallPipeline
from planning.tools.result import ToolResult
from planning.tools.tool import Tool

if TYPE_CHECKING:
    from planning.tools.guard import CircuitBreaker, Retry

_OPTIONS = (
    "examples", "requires_identifier", "identifiers", "input_request", "returns_private_data",
    "rate_limit_key", "timeout", "retry", "breaker", "read_only", "idempotent", "visible_errors",
)  # fmt: skip


class BaseTool(QueryResponses, ABC):
    """A tool that is a class.

    A subclass sets ``name`` and ``description``, and whatever else of the attributes below it needs;
    they mean what they mean for ``Tool``.

    Attributes:
        name: What a planner calls it by.
        description: Its description for a planner, which decides when to call it.
        parameters: What ``args`` are checked against and become; None for any dict.
        requires_identifier: Whether a call without an identifier is refused, and the user is asked for it.
        returns_private_data: Whether its arguments and results are private.
        rate_limit_key: The group of tools whose calls are limited together.
        read_only: Whether it changes nothing; see ``Tool``.
        idempotent: Whether a call may be repeated when the outcome of the first is unknown.
        visible_errors: The types of exceptions whose text the model reads.
    """

    name: str
    description: str
    parameters: ClassVar[Any] = None

    requires_identifier: bool = False
    returns_private_data: bool = False
    rate_limit_key: str | None = None

    identifiers: tuple[str, ...] = IDENTIFIERS
    input_request: str | None = None
    timeout: float | None = None
    retry: Retry | None = None
    breaker: CircuitBreaker | None = None
    read_only: bool = False
    idempotent: bool = True
    visible_errors: tuple[type[Exception], ...] = ()
    examples: tuple[ToolExample, ...] = ()

    @abstractmethod
    async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
        """Do the work. Called through ``safe_execute``, with arguments that are checked.

        Args:
            args: The arguments: a dict, or an instance of ``parameters``.
            context: Values from the caller, such as ``trace_id`` and ``conversation_id``; ``session`` too,
                where there is one.

        Returns:
            ``{"success": bool, "data": ..., "error": str or None, "user_message": str or None}``, of which
            only ``success`` must be there. A failure may have a ``code``, one of ``ErrorKind``; one that only
            the user can correct has ``needs_user_input`` and ``input_request``.

        Raises:
            ToolError: To say what went wrong in words that a model may read.
        """

    async def safe_execute(self, args: Any, context: Any) -> dict[str, Any]:
        """Execute, and never raise: but the cancelling of a task passes.

        Args:
            args: The arguments, as a mapping or as JSON text.
            context: See ``execute``; a mapping.

        Returns:
            The same dict as ``execute``, with all four keys. After a failure there is a ``code`` too, and
            with the code ``needs_user_input`` also ``needs_user_input`` and ``input_request``.
        """
        started = perf_counter()
        try:
            tool = self.as_tool
        except PASSING:
            raise
        except BaseException as error:  # noqa: BLE001 - a subclass may declare anything, or nothing
            return pipeline_envelope(failed(type_name(self), error, started))
        try:
            pipeline = CallPipeline(ToolContext.of(context))
        except ContextInvalid as error:
            return pipeline_envelope(CallPipeline().answer_bad_context(tool.name, error))
        return pipeline_envelope(await pipeline.acall(tool, args))

    @cached_property
    def as_tool(self) -> Tool:
        """The same tool in the form in which toolboxes and registries hold it."""
        return Tool(
            self.name,
            self.description,
            self._execute,
            parameters=FreeModel() if self.parameters is None else self.parameters,
            **{name: getattr(self, name) for name in _OPTIONS},
        )

    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return self.as_tool.parameters_schema()

    async def _execute(self, params: Any, context: ToolContext) -> ToolResult:
        values = dict(context.values)
        if context.session is not None:
            values["session"] = context.session
        return from_outcome(self.name, await self.execute(params, values))
