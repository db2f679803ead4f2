"""Tools from any declaration: the decorator for functions, and the one form of all tools."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, overload

from planning.tools.base import BaseTool
from planning.tools.context import ToolContext
from planning.tools.docstrings import read_docstring
from planning.tools.parameters.signature import behind, read_signature, signature_fields
from planning.tools.tool import Tool, ToolSpec

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
        return lambda decorated: _made(decorated, name, description, options)
    return _made(function, name, description, options)


def _made(
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
    """The tool behind a declaration, in whichever way it was written.

    Raises:
        TypeError: It is not a declaration.
    """
    if isinstance(declaration, Tool):
        return declaration
    if isinstance(declaration, BaseTool):
        return declaration.as_tool
    if isinstance(declaration, ToolSpec):
        return declaration.as_tool
    if isinstance(declaration, type):
        raise TypeError(f"got the class {declaration.__name__} for a tool; write {declaration.__name__}()")
    if declaration is None:
        raise TypeError("a tool's function must be callable, got NoneType")
    return tool(declaration)
