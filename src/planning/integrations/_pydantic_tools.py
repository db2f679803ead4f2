"""Tools of a toolbox as a toolset of Pydantic AI."""

from __future__ import annotations

import json
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from planning.errors import ToolValidationError
from planning.integrations._sessions import AgentTools
from planning.tools import Tool
from planning.tools.parameters.arguments import read_arguments

TEXT = "__text__"  # the arguments of a call that are not a JSON object


def definition(tool: Tool, given: AgentTools) -> ToolDefinition:
    return ToolDefinition(
        name=tool.name,
        description=tool.description,
        parameters_json_schema=tool.parameters_schema(),
        sequential=tool.name in given.in_order,
    )


class PlanningToolset(AbstractToolset[Any]):
    """The tools of a capability, whose toolboxes check the arguments: no validator refuses any before."""

    def __init__(self, planning: Any) -> None:
        self._planning = planning
        unchecked = _Unchecked()
        self._tools = {
            each.name: ToolsetTool(toolset=self, tool_def=each, max_retries=1, args_validator=unchecked)
            for each in planning._definitions
        }

    @property
    def id(self) -> str | None:
        """The capability's."""
        found: str | None = self._planning.id
        return found

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:  # noqa: ARG002 - each run has the same
        """The tools, with the schemas that the model reads."""
        return self._tools

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],  # noqa: ARG002 - found by its name
    ) -> Any:
        """Carry out a call."""
        return await self._planning.call(name, tool_args, ctx)


class _Unchecked:
    """Reads arguments, and refuses nothing: the toolbox does, with all that is wrong."""

    def validate_json(self, input: str | bytes | bytearray, **_: Any) -> dict[str, Any]:  # noqa: A002 - pydantic's name
        """Arguments as a dict; what is not a JSON object is kept as it is."""
        try:
            return read_arguments(bytes(input) if isinstance(input, bytearray) else input)
        except ToolValidationError:
            return {TEXT: input if isinstance(input, str) else bytes(input)}

    def validate_python(self, input: Any, **_: Any) -> dict[str, Any]:  # noqa: A002 - the same
        """The same, of what was read already."""
        return input if isinstance(input, dict) else {TEXT: json.dumps(input, default=str)}
