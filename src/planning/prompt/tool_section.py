"""The section that lists the tools for a planner, with the JSON that calls them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol, runtime_checkable

from planning.prompt.section import Enabled, Section
from planning.tools.parameters.schema import listed, options
from planning.tools.registry import ToolRegistry
from planning.tools.tool import Declaration, Tool, as_tool

_MOST_LEVELS: Final = 3
_MOST_OPTIONS: Final = 20
_MARK: Final = "needs an identifier"
_ANYTHING: Final = "any value"

_WHEN: Final = (
    "Call a tool when the request needs an action, or data that no search gives. Put the calls into"
    " `tool_calls`, instead of `queries` or beside them. Use only these tools and these arguments:"
)
_FORMAT: Final = "Answer with one JSON object in this form:"
_RULE: Final = (
    "Never invent an argument. When the user has not given the identifier that a tool needs, do not call the"
    " tool; ask for it instead:"
)
_CALLING: Final = """\
{
  "intent": "what the user wants",
  "tool_calls": [
    {
      "tool": "tool_name",
      "args": {"argument_name": "value"},
      "reason": "why the tool is needed"
    }
  ],
  "queries": []
}"""
_ASKING: Final = """\
{
  "needs_user_input": true,
  "input_request": "Gladly. Which email address or ID is it under?"
}"""


@runtime_checkable
class Describable(Protocol):
    """A tool, as the section shows it."""

    @property
    def name(self) -> str:
        """The name by which the planner calls it."""

    @property
    def description(self) -> str:
        """Its purpose."""

    @property
    def requires_identifier(self) -> bool:
        """True if it needs an identifier of the user."""

    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""


class ToolAwarenessSection(Section[None]):
    """Lists the tools for a planner, with when and how to call them.

    ``parse_planner_output`` reads the planner's answer. Descriptions of tools are inserted unchanged, on one
    line each; nothing in them is a placeholder. Without tools the section is disabled.
    """

    def __init__(
        self, *, tools: Iterable[Describable | Declaration] | ToolRegistry, enabled: Enabled = True
    ) -> None:
        """Define the section.

        Args:
            tools: In the order in which the planner reads them, in any form that a registry takes. A
                registry is read at each rendering, so that tools registered later are listed.
            enabled: See ``Section``.

        Raises:
            TypeError: An item is not a tool.
        """
        super().__init__(title="Available tools", enabled=enabled)
        self._listed = _listing(tools)

    def is_enabled(self, params: None = None) -> bool:
        """True if the section takes part: it is switched on, and there are tools."""
        return super().is_enabled(params) and bool(self._listed())

    def tools(self) -> tuple[Tool, ...]:
        """None: the planner asks for these tools in its text, not through the provider's tool calling."""
        return ()

    def body(self, params: None = None) -> str:
        """When to use tools, which there are, and the JSON to answer with; empty without tools."""
        del params  # it takes none
        lines = [_line(tool) for tool in self._listed()]
        parts = [_WHEN, "\n".join(lines), _FORMAT, _fence(_CALLING), _RULE, _fence(_ASKING)]
        return "\n\n".join(parts) if lines else ""


def _listing(
    tools: Iterable[Describable | Declaration] | ToolRegistry,
) -> Callable[[], tuple[Describable, ...]]:
    """A function that returns the tools at each rendering."""
    if isinstance(tools, ToolRegistry):
        return lambda: tuple(tools)
    if isinstance(tools, Describable):
        raise TypeError(f"tools must be an iterable of tools, got one {type(tools).__name__}")
    listed = tuple(tool if isinstance(tool, Describable) else as_tool(tool) for tool in tools)
    return lambda: listed


def _fence(text: str) -> str:
    return f"```json\n{text}\n```"


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


def _line(tool: Describable) -> str:
    mark = f" ({_MARK})" if tool.requires_identifier else ""
    description = _one_line(tool.description)
    stop = "." if description and not description.endswith((".", "!", "?")) else ""
    schema = tool.parameters_schema()
    fields = _fields(schema, _MOST_LEVELS, _remark)
    arguments = f"Arguments: {fields}." if fields else "No arguments."
    return " ".join(filter(None, [f"- `{_one_line(tool.name)}`{mark}:", description + stop, arguments]))


def _fields(node: Mapping[str, Any], levels: int, remark: Callable[[Any], str] = lambda _value: "") -> str:
    """The properties of an object: ``name: type, required (remark); name: type``."""
    properties, required = node.get("properties"), node.get("required")
    fields = properties.items() if isinstance(properties, Mapping) else ()
    needed = required if isinstance(required, (list, tuple)) else ()
    return "; ".join(
        _one_line(name) + f": {_type(value, levels)}{', required' if name in needed else ''}{remark(value)}"
        for name, value in fields
    )


def _remark(node: Any) -> str:
    text = _one_line(node.get("description", "")) if isinstance(node, Mapping) else ""
    return f" ({text})" if text else ""


def _type(node: Any, levels: int) -> str:
    """A JSON Schema in a few words; what is nested deeper than the levels is omitted."""
    node = node if isinstance(node, Mapping) else {}
    if "const" in node:
        return _value(node["const"])
    values = node.get("enum")
    if isinstance(values, (list, tuple)):
        more = [f"{len(values) - _MOST_OPTIONS} more"] if len(values) > _MOST_OPTIONS else []
        return " | ".join([*map(_value, values[:_MOST_OPTIONS]), *more])
    kind = node.get("type", "object" if "properties" in node else _ANYTHING)
    allowed, needed = options({}, node), listed(node, "allOf")
    if allowed != [node] or needed:
        parts = [_type(each, levels - (kind is _ANYTHING)) for each in needed or allowed] if levels else []
        return (" and " if needed else " or ").join(dict.fromkeys(parts)) or _ANYTHING
    if kind == "object" and levels:
        return _object(node, levels - 1)
    if kind == "array" and levels and "items" in node:
        items = _type(node["items"], levels - 1)
        return f"array of ({items})" if " or " in items or " | " in items else f"array of {items}"
    return _one_line(kind)


def _object(node: Mapping[str, Any], levels: int) -> str:
    fields = _fields(node, levels)
    if fields:
        return f"{{{fields}}}"
    values = node.get("additionalProperties")
    return f"object of {_type(values, levels)}" if isinstance(values, Mapping) else "object"


def _value(value: object) -> str:
    return json.dumps(value, default=str)
