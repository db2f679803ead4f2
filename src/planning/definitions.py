"""Tool definitions in the forms in which providers and protocols take them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

from planning.errors import unknown_option
from planning.prompt.section import Section
from planning.suite import planning_tools
from planning.tools.declare import Declaration, as_tool
from planning.tools.parameters.forms import is_recursive
from planning.tools.tool import Tool
from planning.tools.toolbox import Toolbox
from session import Session

__all__ = ["DefinitionFormat", "ToolSource", "tool_definitions", "tools_of"]

DefinitionFormat = Literal["openai", "openai-responses", "anthropic", "gemini", "mcp", "json-schema"]
ToolSource = Toolbox | Section[Any] | Iterable[Declaration]
"""What offers tools: a toolbox, a section of a prompt, or the tools themselves."""


def tools_of(source: ToolSource) -> tuple[Tool, ...]:
    """The tools of a source, in the order in which a model reads them.

    Raises:
        TypeError: It is not a toolbox, a section or a collection of tools.
    """
    if isinstance(source, Toolbox):
        return tuple(source.tools.values())
    if isinstance(source, Section):
        return source.tools()
    if isinstance(source, str) or not isinstance(source, Iterable):
        raise TypeError(f"expected a Toolbox, a Section or an iterable of tools, got {type(source).__name__}")
    return tuple(map(as_tool, source))


def tool_definitions(
    format: DefinitionFormat = "openai",  # noqa: A002 - the public name of the argument
    strict: bool = False,
    tools: ToolSource | None = None,
) -> Any:
    """The definitions of tools in one form; they need no session.

    Args:
        format: Who reads them: ``"openai"`` (Chat Completions), ``"openai-responses"``, ``"anthropic"``,
            ``"gemini"``, ``"mcp"`` or ``"json-schema"``.
        strict: Whether the provider is to constrain the model's output to the schemas. Then every property
            is required, optional ones also take null, which means that they are absent, and the schemas have
            only the keywords that the strict modes of OpenAI and Anthropic both take; a field's description
            mentions its limits. Otherwise the schemas are open: they allow each form of the arguments that a
            call accepts, for hosts that validate calls themselves.
        tools: A toolbox, a section or tools; the six planning tools if omitted.

    Returns:
        For OpenAI and Anthropic, the ``tools`` of a request; for Gemini, those of a ``generateContent``
        request; for MCP, the result of ``tools/list``; or the JSON Schema of each tool's parameters by
        the tool's name, with the tool's description.

    Raises:
        ValueError: The format is unknown, or a strict schema cannot describe a tool; the message says why.
    """
    found = planning_tools(Session()) if tools is None else tools_of(tools)
    if strict and format == "anthropic":
        for tool in found:
            if is_recursive(tool.model.published):
                raise ValueError(f"{tool.name} cannot be strict: its parameters contain themselves; use strict=False")
    flag = {"strict": True} if strict else {}
    match format:
        case "openai":
            functions = [{**_named(tool, "parameters", strict), **flag} for tool in found]
            return [{"type": "function", "function": function} for function in functions]
        case "openai-responses":
            # Without a word, the Responses API makes a function strict.
            return [
                {"type": "function", **_named(tool, "parameters", strict), "strict": strict} for tool in found
            ]
        case "anthropic":
            return [{**_named(tool, "input_schema", strict), **flag} for tool in found]
        case "gemini":
            return [{"functionDeclarations": [_named(tool, "parametersJsonSchema", strict) for tool in found]}]
        case "mcp":
            return {"tools": [_named(tool, "inputSchema", strict) for tool in found]}
        case "json-schema":
            return {tool.name: {"description": tool.description, **_schema(tool, strict)} for tool in found}
    raise ValueError(f"format: {unknown_option(format, get_args(DefinitionFormat))}")


def _named(tool: Tool, key: str, strict: bool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, key: _schema(tool, strict)}


def _schema(tool: Tool, strict: bool) -> dict[str, Any]:
    return tool.strict_schema() if strict else tool.open_schema()
