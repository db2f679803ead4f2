"""The tool contract and its execution.

The planning tools need only the contract and the toolbox; every other name is loaded when it is asked for.
"""

from typing import TYPE_CHECKING

from planning.errors import ToolError, ToolValidationError
from planning.lazy import lazy_names
from planning.tools.context import ToolContext
from planning.tools.contract import ToolExample
from planning.tools.errors import (
    DataNotFound,
    ErrorKind,
    ParameterError,
    QueryTypeUnsupported,
    StorageUnavailable,
    classify_error,
)
from planning.tools.ledger import ToolCall, tool_calls
from planning.tools.outcome import QueryResponses
from planning.tools.registry import (
    ToolRegistry,
    get_all_tools,
    get_tool,
    get_tool_descriptions,
    initialize_tools,
    register_tool,
    validate_call,
)
from planning.tools.result import ToolResult
from planning.tools.tool import BaseTool, Tool, ToolSpec, tool, tool_from_schema
from planning.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from planning.tools.guard import CircuitBreaker, Retry
    from planning.tools.planner import execute_tools, parse_planner_output, should_execute_tools
    from planning.tools.rate_limit import RateLimiter

__all__ = [
    "Tool",
    "BaseTool",
    "ToolSpec",
    "tool",
    "tool_from_schema",
    "ToolExample",
    "QueryResponses",
    "ToolContext",
    "ToolResult",
    "Toolbox",
    "Retry",
    "CircuitBreaker",
    "RateLimiter",
    "ToolCall",
    "tool_calls",
    "ToolRegistry",
    "register_tool",
    "get_tool",
    "get_all_tools",
    "get_tool_descriptions",
    "initialize_tools",
    "validate_call",
    "execute_tools",
    "parse_planner_output",
    "should_execute_tools",
    "classify_error",
    "ErrorKind",
    "ToolError",
    "ToolValidationError",
    "ParameterError",
    "QueryTypeUnsupported",
    "StorageUnavailable",
    "DataNotFound",
]

_HOMES = {
    "execute_tools": "planner",
    "parse_planner_output": "planner",
    "should_execute_tools": "planner",
    "Retry": "guard",
    "CircuitBreaker": "guard",
    "RateLimiter": "rate_limit",
}

__getattr__, __dir__ = lazy_names(__name__, globals(), _HOMES, __all__)
