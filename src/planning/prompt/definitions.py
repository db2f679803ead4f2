"""Tool definitions in the formats of providers and protocols."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal, get_args

from planning.errors import listed, show, unknown_option
from planning.prompt.section import Section
from planning.suite.tools import planning_tools
from planning.tools.parameters.schema import is_recursive, strict_schema
from planning.tools.tool import Declaration, Tool, as_tool
from planning.tools.toolbox import Toolbox
from session import Session

DefinitionFormat = Literal["openai", "openai-responses", "anthropic", "gemini", "mcp", "json-schema"]
_OF_OPENAI = (re.compile(r"[A-Za-z0-9_-]{1,64}"), "1 to 64 letters, digits, _ and -")
_NAMES = {
    "openai": _OF_OPENAI,
    "openai-responses": _OF_OPENAI,
    "anthropic": _OF_OPENAI,  # it takes 128 characters in definitions, but 64 where tools are searched
    "gemini": (
        re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}"),
        "1 to 64 letters, digits, _, . and -, a letter or _ first",
    ),
}
"""The names that providers take, where that is not every name of a tool."""

ToolSource = Toolbox | Section[Any] | Iterable[Declaration]
"""A source of tools: a toolbox, a section of a prompt, or the tools themselves."""


def tools_of(source: ToolSource) -> tuple[Tool, ...]:
    """The tools of a source, in the order in which a model reads them."""
    if isinstance(source, Toolbox):
        return tuple(source.tools.values())
    if isinstance(source, Section):
        return source.tools()
    tools: object = source
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        raise TypeError(f"expected a Toolbox, a Section or an iterable of tools, got {type(tools).__name__}")
    return tuple(map(as_tool, source))


def schemas_of(
    tools: Iterable[Tool], session: Session | None = None, *, strict: bool = False
) -> dict[str, dict[str, Any]]:
    """The schemas of the tools that one request offers, by the tools' names, in their order.

    Args:
        tools: The tools; those of a policy with ``offer="possible"`` are narrowed to what the plan takes.
        session: Whose plan; the session of each tool, or that of the current call, if omitted.
        strict: As for ``tool_definitions``.

    Raises:
        ContextInvalid: A tool that is narrowed finds no session.
        ValueError: A strict schema cannot describe a tool.
    """
    schemas = dict[str, dict[str, Any]]()
    for tool in tools:
        whole = tool.parameters_schema()
        schema = whole if tool.narrow is None else tool.narrow(whole, session)
        if schema is not None:
            schemas[tool.name] = strict_schema(schema, tool.name) if strict else schema
    return schemas


def tool_definitions(
    format: DefinitionFormat = "openai",  # noqa: A002 - the public name of the argument
    *,
    strict: bool = False,
    tools: ToolSource | None = None,
) -> Any:
    """The definitions of tools in one form; they need no session, except with ``offer="possible"``.

    Args:
        format: Who reads them: ``"openai"`` (Chat Completions), ``"openai-responses"``, ``"anthropic"``,
            ``"gemini"``, ``"mcp"`` or ``"json-schema"``.
        strict: Whether the provider is to constrain the model's output to the schemas. Then every property
            is required, optional ones also take null, which means that they are absent, and the schemas have
            only the keywords that the strict modes of OpenAI and Anthropic both take; a field's description
            mentions its limits. Otherwise they are the tools' own schemas.
        tools: A toolbox, a section or tools; the six planning tools if omitted.

    Returns:
        For OpenAI and Anthropic, the ``tools`` of a request; for Gemini, those of a ``generateContent``
        request; for MCP, the result of ``tools/list``; or the JSON Schema of each tool's parameters by
        the tool's name, with the tool's description.

    Raises:
        ContextInvalid: The policy has ``offer="possible"``, and the section finds no session.
        ValueError: The format is unknown, its provider does not take a tool's name, or a strict schema cannot
            describe a tool; the message says what to change.
    """
    offered = planning_tools(lambda: None) if tools is None else tools_of(tools)
    _check_names(format, offered)
    if strict and format == "anthropic":
        for tool in offered:
            if is_recursive(tool.model.published):
                raise ValueError(
                    f"{tool.name} cannot be strict: its parameters contain themselves; use strict=False"
                )
    schemas = schemas_of(offered, strict=strict)
    described = [(tool, schemas[tool.name]) for tool in offered if tool.name in schemas]

    def named(key: str, **more: Any) -> list[dict[str, Any]]:
        return [
            {"name": tool.name, "description": tool.description, key: schema, **more}
            for tool, schema in described
        ]

    flag = {"strict": True} if strict else {}
    match format:
        case "openai":
            return [{"type": "function", "function": each} for each in named("parameters", **flag)]
        case "openai-responses":  # which makes a function strict that does not say whether it is
            return [{"type": "function", **each} for each in named("parameters", strict=strict)]
        case "anthropic":
            return named("input_schema", **flag)
        case "gemini":
            return [{"functionDeclarations": named("parametersJsonSchema")}]
        case "mcp":
            return {"tools": named("inputSchema")}
        case "json-schema":
            return {tool.name: {"description": tool.description, **schema} for tool, schema in described}
    raise ValueError(f"format: {unknown_option(format, get_args(DefinitionFormat))}")


def _check_names(provider: str, tools: Iterable[Tool]) -> None:
    if provider in _NAMES:
        rule, said = _NAMES[provider]
        refused = [show(tool.name) for tool in tools if not rule.fullmatch(tool.name)]
        if refused:
            raise ValueError(
                f"{provider} takes no tool named {listed(refused)}: a name has {said}; "
                "rename it, as with attrs.evolve(tool, name=...)"
            )
