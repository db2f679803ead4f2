"""Tool definitions in the forms in which providers and protocols take them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from planning.tools import Tool

__all__ = ["Format", "definitions"]


class Format(StrEnum):
    """Who reads the definitions."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    MCP = "mcp"
    JSON_SCHEMA = "json-schema"


def definitions(form: Format, tools: Iterable[Tool]) -> Any:
    """The definitions of tools in one form.

    Returns:
        For OpenAI, the ``tools`` of a chat-completions request; for Anthropic, those of a request to its
        Messages API; for MCP, the result of ``tools/list``; or the JSON Schema of each tool's parameters by
        the tool's name, with the tool's description.
    """
    match form:
        case Format.OPENAI:
            return [{"type": "function", "function": _named(tool, "parameters")} for tool in tools]
        case Format.ANTHROPIC:
            return [_named(tool, "input_schema") for tool in tools]
        case Format.MCP:
            return {"tools": [_named(tool, "inputSchema") for tool in tools]}
        case Format.JSON_SCHEMA:
            return {
                tool.name: {"description": tool.description, **tool.parameters_schema()} for tool in tools
            }


def _named(tool: Tool, key: str) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, key: tool.parameters_schema()}
