"""Tool definitions in the forms in which providers and protocols take them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from planning.tools import Tool

__all__ = ["FORMATS", "Format", "anthropic_tools", "json_schemas", "mcp_tools", "openai_tools"]


class Format(StrEnum):
    """Who is going to read the definitions."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    MCP = "mcp"
    JSON_SCHEMA = "json-schema"


def openai_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """For the ``tools`` of a chat-completions request."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters_schema(),
            },
        }
        for tool in tools
    ]


def anthropic_tools(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """For the ``tools`` of a request to Anthropic's Messages API."""
    return [
        {"name": tool.name, "description": tool.description, "input_schema": tool.parameters_schema()}
        for tool in tools
    ]


def mcp_tools(tools: Iterable[Tool]) -> dict[str, Any]:
    """The result of ``tools/list`` in the Model Context Protocol."""
    return {
        "tools": [
            {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters_schema()}
            for tool in tools
        ]
    }


def json_schemas(tools: Iterable[Tool]) -> dict[str, Any]:
    """The JSON Schema of each tool's parameters by the tool's name, with the tool's description."""
    return {tool.name: {"description": tool.description, **tool.parameters_schema()} for tool in tools}


FORMATS: Final[Mapping[Format, Callable[[Iterable[Tool]], Any]]] = MappingProxyType({
    Format.OPENAI: openai_tools,
    Format.ANTHROPIC: anthropic_tools,
    Format.MCP: mcp_tools,
    Format.JSON_SCHEMA: json_schemas,
})  # fmt: skip
