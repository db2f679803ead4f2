"""The errors of tools, under the name where users of tools look for them."""

from __future__ import annotations

from planning.errors import Problem, ToolError, ToolValidationError

__all__ = ["Problem", "ToolError", "ToolValidationError"]
