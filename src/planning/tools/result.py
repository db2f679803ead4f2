"""What every tool call gives back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import Enum
from math import isfinite
from typing import Any

import attrs

from planning.tools.errors import PASSING, ErrorKind

__all__ = ["ToolResult", "plain", "safe_text"]

_DEEPEST = 100
_PLAIN = (bool, int, float, str)
_MOST_BITS = 10_000  # of more than some 4,300 digits Python itself writes no number


@attrs.frozen(repr=False)
class ToolResult:
    """The outcome of one call, built from what was committed.

    Attributes:
        success: Whether the tool did what was asked.
        message: What the model reads, whether it succeeded or not.
        value: What Python code reads: the normalised command, the plan, a tool's own result.
        error: What went wrong; None on success. Never the text of an exception that is no ``ToolError``.
        user_message: What a person may be told instead; None when there is nothing to tell.
        elapsed: How long it took, in seconds.
        code: Why it failed, a stable word; None on success.
        input_request: The question to put to the user, when the call waits for the answer.
        cause: The text of the exception behind a failure, for the developer's eyes; None where there
            is none, and always for a tool with private data.
        is_private: Whether ``repr`` keeps what is in it to itself.
    """

    success: bool
    message: str
    value: Any = None
    error: str | None = None
    user_message: str | None = None
    elapsed: float = 0.0
    code: ErrorKind | None = None
    input_request: str | None = None
    cause: str | None = attrs.field(default=None, eq=False)
    is_private: bool = False

    def __repr__(self) -> str:
        told = f"success={self.success!r}, code={self.code and str(self.code)!r}, elapsed={self.elapsed!r}"
        if self.is_private:
            return f"ToolResult({told}, private)"
        return f"ToolResult({told}, message={self.message!r}, value={self.value!r})"

    @property
    def needs_user_input(self) -> bool:
        """Whether the call was not made because only the user can say what it lacks."""
        return self.input_request is not None

    def to_dict(self) -> dict[str, Any]:
        """The result as plain dictionaries and lists, ready for JSON; a failure has its ``code`` too."""
        told = {
            "success": self.success,
            "message": self.message,
            "value": plain(self.value),
            "error": self.error,
            "user_message": self.user_message,
            "elapsed": self.elapsed,
        }
        return told if self.success else {**told, "code": None if self.code is None else str(self.code)}


def plain(value: Any, *, strict: bool = False) -> Any:
    """A value as JSON knows them: records become objects, what JSON does not know becomes text.

    What holds itself, or is nested a hundred levels deep, is cut there with ``"..."``.

    Args:
        value: Anything.
        strict: Whether a part that cannot be read raises what it raises. If not, the name of its type
            stands for it.
    """
    return _plain(value, (), strict=strict)


def safe_text(value: object) -> str:
    """``str(value)``, or the name of its type when that fails."""
    try:
        return str(value)
    except PASSING:
        raise
    except BaseException:  # noqa: BLE001 - any object may come here, and its __str__ may do anything
        return f"<{type(value).__name__}>"


def _plain(value: Any, around: tuple[int, ...], *, strict: bool) -> Any:
    kind = type(value)
    if value is None or kind in _PLAIN:
        return value if kind is str or kind is bool or value is None else _number(value)
    if id(value) in around or len(around) >= _DEEPEST:
        return "..."
    try:
        return _read(value, (*around, id(value)), strict=strict)
    except Exception:
        if strict:
            raise
        return f"<{kind.__name__}>"


def _number(value: int | float) -> int | float | str:
    """A number, or as text where JSON has no such number, or nobody reads one of so many digits."""
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    return value if value.bit_length() < _MOST_BITS else hex(value)


def _read(value: Any, around: tuple[int, ...], *, strict: bool) -> Any:
    if isinstance(value, Enum):
        return _plain(value.value, around, strict=strict)
    for kind in _PLAIN:
        if isinstance(value, kind):
            return _plain(kind(value), around, strict=strict)
    if isinstance(value, Mapping):
        return {str(key): _plain(item, around, strict=strict) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item, around, strict=strict) for item in value]
    if hasattr(type(value), "model_dump"):  # a pydantic model
        return _plain(value.model_dump(mode="json"), around, strict=strict)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [field.name for field in dataclasses.fields(value)]
    elif attrs.has(type(value)):
        names = [field.name for field in attrs.fields(type(value))]
    else:
        return str(value)
    return {name: _plain(getattr(value, name), around, strict=strict) for name in names}
