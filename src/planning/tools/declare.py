"""Tools from whatever declares them: the decorator for functions, and the one form that all of them have."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, overload

from planning.tools.base import BaseTool
from planning.tools.parameters.signature import behind
from planning.tools.tool import Tool, ToolSpec

__all__ = ["Declaration", "as_tool", "tool"]

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
        from planning.tools.docstrings import read_docstring  # noqa: PLC0415 - only declarations need it

        description, _ = read_docstring(inspect.getdoc(behind(function)))
    if name is None:
        name = getattr(behind(function), "__name__", type(behind(function)).__name__).strip("<>")
    return Tool(name, description, function, **options)


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
