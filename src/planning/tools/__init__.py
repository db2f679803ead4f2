"""The tool contract and its execution.

The planning tools need the contract and the toolbox alone; every other name is loaded when it is asked for.
"""

from typing import TYPE_CHECKING

from planning.lazy import lazy_names
from planning.tools.contract import Tool, ToolContext, ToolExample
from planning.tools.errors import (
    CircuitOpen,
    ContextInvalid,
    DataNotFound,
    ErrorKind,
    ParameterError,
    PrivateFailure,
    Problem,
    QueryTypeUnsupported,
    RateLimitExceeded,
    ResultInvalid,
    StorageUnavailable,
    ToolError,
    ToolTimeout,
    ToolValidationError,
    UserInputNeeded,
    classify_error,
)
from planning.tools.result import ToolResult
from planning.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from planning.tools.base import BaseTool
    from planning.tools.declare import tool
    from planning.tools.guard import CircuitBreaker, Retry
    from planning.tools.ledger import ToolCall, tool_calls
    from planning.tools.pipeline import execute_tools
    from planning.tools.planner import PlannerOutput, parse_planner_output, should_execute_tools
    from planning.tools.rate_limit import RateLimiter
    from planning.tools.registry import (
        ToolRegistry,
        default_registry,
        get_all_tools,
        get_tool,
        get_tool_descriptions,
        initialize_tools,
        register_tool,
        validate_call,
    )
    from planning.tools.spec import ToolSpec

__all__ = [
    "Tool",
    "BaseTool",
    "ToolSpec",
    "tool",
    "ToolContext",
    "ToolExample",
    "ToolResult",
    "Toolbox",
    "ToolRegistry",
    "default_registry",
    "register_tool",
    "get_tool",
    "get_all_tools",
    "get_tool_descriptions",
    "initialize_tools",
    "validate_call",
    "execute_tools",
    "parse_planner_output",
    "PlannerOutput",
    "should_execute_tools",
    "ToolCall",
    "tool_calls",
    "Retry",
    "CircuitBreaker",
    "RateLimiter",
    "classify_error",
    "ErrorKind",
    "Problem",
    "ToolError",
    "ToolValidationError",
    "ParameterError",
    "QueryTypeUnsupported",
    "StorageUnavailable",
    "DataNotFound",
    "RateLimitExceeded",
    "CircuitOpen",
    "ToolTimeout",
    "UserInputNeeded",
    "ResultInvalid",
    "ContextInvalid",
    "PrivateFailure",
]

_HOMES = {
    "BaseTool": "base",
    "tool": "declare",
    "CircuitBreaker": "guard",
    "Retry": "guard",
    "ToolCall": "ledger",
    "tool_calls": "ledger",
    "execute_tools": "pipeline",
    "PlannerOutput": "planner",
    "parse_planner_output": "planner",
    "should_execute_tools": "planner",
    "RateLimiter": "rate_limit",
    "ToolRegistry": "registry",
    "default_registry": "registry",
    "get_all_tools": "registry",
    "get_tool": "registry",
    "get_tool_descriptions": "registry",
    "initialize_tools": "registry",
    "register_tool": "registry",
    "validate_call": "registry",
    "ToolSpec": "spec",
}

__getattr__, __dir__ = lazy_names(__name__, globals(), _HOMES, __all__)
