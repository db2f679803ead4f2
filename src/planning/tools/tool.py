"""Tools, and every way to declare one: as data, as a class, by query types, from a function or a schema."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any, ClassVar, overload

from planning.errors import ToolError
from planning.tools.context import ToolContext
from planning.tools.contract import IDENTIFIERS, ToolContract, ToolExample
from planning.tools.errors import PASSING, ContextInvalid, type_name
from planning.tools.outcome import QueryResponses, execution_envelope, failed, from_outcome, pipeline_envelope
from planning.tools.parameters.model import FreeModel
from planning.tools.parameters.signature import behind, read_docstring, read_signature, signature_fields
from planning.tools.pipeline import CallPipeline
from planning.tools.result import ToolResult
from planning.tools.spec import QueryTypes

if TYPE_CHECKING:
    from planning.tools.guard import CircuitBreaker, Retry


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
        """Run the tool in async code, with the same answer as ``execute``."""
        return execution_envelope(self.name, await CallPipeline().acall(self, kwargs))


class ToolSpec(QueryTypes):
    """A tool with several types of query; its attributes are those of ``QueryTypes``."""

    @cached_property
    def as_tool(self) -> Tool:
        """The tool that answers these queries; ``Tool(..., parameters=spec)`` makes one with more options."""
        function = _make_refusal(self.name) if self.function is None else self.function
        return Tool(
            self.name, self.description, function, parameters=self, visible_errors=self.visible_errors
        )


def _make_refusal(name: str) -> Callable[[str, Any], Any]:
    def refuse(_query_type: str, _parameters: Any) -> Any:
        raise ToolError(f"{name} cannot be called: it is declared without a function. Continue without it.")

    return refuse


_OPTIONS = (
    "examples", "requires_identifier", "identifiers", "input_request", "returns_private_data",
    "rate_limit_key", "timeout", "retry", "breaker", "read_only", "idempotent", "visible_errors",
)  # fmt: skip


class BaseTool(QueryResponses, ABC):
    """A tool that is a class.

    A subclass sets ``name`` and ``description``, and whatever else of the attributes it needs; those that are
    not listed here mean what they mean for ``Tool``.

    Attributes:
        name: What a planner calls it by.
        description: Its description for a planner, which decides when to call it.
        parameters: What ``args`` are checked against and become; None for any dict.
        requires_identifier: Whether a call without an identifier is refused, and the user is asked for it.
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
                if there is one.

        Returns:
            ``{"success": bool, "data": ..., "error": str or None, "user_message": str or None}``; only
            ``success`` must be there. A failure may have a ``code``, one of ``ErrorKind``; one that only
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


Declaration = Tool | BaseTool | ToolSpec | Callable[..., Any]


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Any,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool out of a function: ``@tool``, or ``@tool(timeout=5)``.

    The parameters are those of the function, by its type hints; a parameter with the type
    ``ToolContext`` is given the context. The model reads the docstring's text about a parameter.

    Args:
        function: The function, plain or async.
        name: The name that a model calls; the function's name if omitted.
        description: The description for a model; the docstring without its sections if omitted.
        options: Further attributes of ``Tool``.

    Raises:
        TypeError: It is not a function.
    """
    if function is None:
        return lambda decorated: _make(decorated, name, description, options)
    return _make(function, name, description, options)


def _make(
    function: Callable[..., Any], name: str | None, description: str | None, options: dict[str, Any]
) -> Tool:
    if isinstance(function, (type, Tool)):
        raise TypeError(f"@tool decorates a function, got {function!r}"[:200])
    if description is None:
        description, _ = read_docstring(inspect.getdoc(behind(function)))
    if name is None:
        name = getattr(behind(function), "__name__", type(behind(function)).__name__).strip("<>")
    return Tool(name, description, function, **options)


def tool_from_schema(
    name: str,
    description: str,
    schema: Mapping[str, Any] | None,
    function: Callable[..., Any],
    **options: Any,
) -> Tool:
    """Make a tool out of a plain JSON Schema and a function that is called with the arguments by keyword.

    A call is checked against the schema, and refused like that of any other tool. A field that the schema
    does not name is refused, unless the schema or the function takes any. A parameter with the type
    ``ToolContext`` is given the context.

    Args:
        name: The name that a model calls.
        description: The description for a model.
        schema: The JSON Schema of the arguments, of the type ``object``; None for no arguments.
        function: The function, plain or async.
        options: Further attributes of ``Tool``.

    Raises:
        TypeError: The function cannot be called as the schema says.
        ValueError: The name or the schema is invalid.
    """
    schema = {"type": "object", "properties": {}} if schema is None else dict(schema)
    signature = read_signature(function)
    fields, contexts, _ = signature_fields(function, signature, ToolContext)
    if not signature.is_open:
        schema.setdefault("additionalProperties", False)
        unknown = [
            each for each in schema.get("properties", {}) if each not in {field for field, _, _ in fields}
        ]
        if unknown:
            raise TypeError(f"the function of {name} has no parameter {unknown[0]}, which its schema names")
    needed = [
        field
        for field, _, default in fields
        if default is inspect.Parameter.empty and field not in schema.get("required", ())
    ]
    if needed:
        raise TypeError(f"the function of {name} needs {needed[0]}, which its schema does not require")

    def run(arguments: dict[str, Any], context: ToolContext) -> Any:
        return function(**arguments, **dict.fromkeys(contexts, context))

    async def run_async(arguments: dict[str, Any], context: ToolContext) -> Any:
        return await run(arguments, context)

    return Tool(name, description, run_async if signature.is_async else run, parameters=schema, **options)


def as_tool(declaration: Declaration) -> Tool:
    """The tool behind a declaration, in whichever way it was written."""
    if isinstance(declaration, Tool):
        return declaration
    if isinstance(declaration, (BaseTool, ToolSpec)):
        return declaration.as_tool
    if isinstance(declaration, type):
        raise TypeError(f"got the class {declaration.__name__} for a tool; write {declaration.__name__}()")
    if declaration is None:
        raise TypeError("a tool's function must be callable, got NoneType")
    return tool(declaration)
