"""What every tool call gives back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from typing import Any

import attrs

__all__ = ["ToolResult"]


@attrs.frozen
class ToolResult:
    """The outcome of one call, built from what was committed.

    Attributes:
        success: Whether the tool did what was asked.
        message: What the model reads, whether it succeeded or not.
        value: What Python code reads: the normalised command, the plan, a tool's own result.
        error: What went wrong; None on success.
        user_message: What a person may be told instead; None when there is nothing to tell.
        elapsed: How long it took, in seconds.
    """

    success: bool
    message: str
    value: Any = None
    error: str | None = None
    user_message: str | None = None
    elapsed: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The result as plain dictionaries and lists, ready for JSON."""
        return {
            "success": self.success,
            "message": self.message,
            "value": _plain(self.value),
            "error": self.error,
            "user_message": self.user_message,
            "elapsed": self.elapsed,
        }


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return _plain(value.value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if attrs.has(type(value)):
        return {field.name: _plain(getattr(value, field.name)) for field in attrs.fields(type(value))}
    return str(value)
