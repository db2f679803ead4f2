"""The tool contract and its execution."""

from planning.tools.contract import Tool, ToolContext, ToolExample
from planning.tools.errors import Problem, ToolError, ToolValidationError
from planning.tools.result import ToolResult
from planning.tools.toolbox import Toolbox

__all__ = [
    "Tool",
    "ToolContext",
    "ToolExample",
    "ToolResult",
    "Toolbox",
    "Problem",
    "ToolError",
    "ToolValidationError",
]
