"""The result of every tool call."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import attrs

from planning.errors import LONGEST_MESSAGE, cut, writable
from planning.tools.errors import PASSING, ErrorKind, type_name
from session.json_form import json_form

_SHOWN = 1_000
_FIXED = frozenset({type(None), bool, int, float, complex, str, bytes})
_LONE_SURROGATE = "[\ud800-\udfff]"


@attrs.frozen(repr=False, slots=False)
class ToolResult:
    """The outcome of one call, built from what was committed.

    Its strings can be sent unchanged: they have at most 50,000 characters and can be written as UTF-8. A
    longer text is cut and says so; half a character (a lone surrogate) is escaped.

    Attributes:
        success: Whether the tool did what was asked.
        message: What the model reads, whether it succeeded or not.
        value: What Python code reads: the normalised command, the plan, a tool's own result. No store keeps
            it: of what a store restores, it is None.
        error: What went wrong; None on success. Never the text of an exception other than ``ToolError``.
        user_message: The message for a person instead; None if there is none.
        elapsed: How long it took, in seconds.
        code: Why it failed, a stable word; None on success.
        input_request: The question to put to the user, when the call waits for the answer.
        cause: The text of the exception behind a failure, for the developer; None if there is none, and
            always for a tool with private data.
        is_private: Whether ``repr`` hides its content.
    """

    success: bool
    message: str
    value: Any = attrs.field(default=None, metadata={"stored": False})
    error: str | None = None
    user_message: str | None = None
    elapsed: float = 0.0
    code: ErrorKind | None = None
    input_request: str | None = None
    cause: str | None = attrs.field(default=None, eq=False)
    is_private: bool = False

    def __attrs_post_init__(self) -> None:
        message, error = self.message, self.error
        if (
            type(message) is str
            and message.isascii()
            and len(message) <= LONGEST_MESSAGE
            and error is self.user_message is self.cause
            and self.input_request is None
            and (error is None or (type(error) is str and error in message))
        ):
            return  # nearly every call that succeeds or is refused comes here
        for name in ("message", "error", "user_message", "cause", "input_request"):
            text = getattr(self, name)
            if not (_is_sendable(text) or (text is None and name != "message")):
                object.__setattr__(self, name, _sendable(text))

    def __repr__(self) -> str:
        code = None if self.code is None else str(self.code)
        said = "private" if self.is_private else f"message={cut(self.message, _SHOWN)!r}"
        return f"ToolResult(success={self.success!r}, code={code!r}, {said})"

    @property
    def needs_user_input(self) -> bool:
        """True if the call was not made because it lacks information from the user."""
        return self.input_request is not None

    def to_dict(self) -> dict[str, Any]:
        """The result as plain dictionaries and lists, ready for JSON; a failure has its ``code`` too."""
        shown = {
            "success": self.success,
            "message": self.message,
            "value": json_form(self.value),
            "error": self.error,
            "user_message": self.user_message,
            "elapsed": self.elapsed,
        }
        return shown if self.success else {**shown, "code": None if self.code is None else str(self.code)}


def copied(value: Any) -> Any:
    """A copy that nothing changes; of what cannot be copied the JSON form, or else the name of its type."""
    kind = type(value)
    if kind in _FIXED:
        return value
    if kind is dict and _FIXED.issuperset(map(type, value.values())):
        return value.copy()  # the arguments of most calls
    for copy_of in (deepcopy, json_form):
        try:
            return copy_of(value)
        except PASSING:
            raise
        except BaseException:  # noqa: BLE001, S112 - any object may come here, and copying it may do anything
            continue
    return f"<{type_name(value)}>"


def safe_text(value: object) -> str:
    """``str(value)``, or the name of its type when that fails."""
    return read_safely(str, value)


def read_safely(read: Callable[[object], str], value: object) -> str:
    """Read any object; the name of its type when that fails."""
    try:
        return read(value)
    except PASSING:
        raise
    except BaseException:  # noqa: BLE001 - any object may come here, and reading it may do anything
        return f"<{type_name(value)}>"


def _is_sendable(text: object) -> bool:
    return (
        type(text) is str
        and len(text) <= LONGEST_MESSAGE
        and (text.isascii() or re.search(_LONE_SURROGATE, text) is None)
    )


def _sendable(given: object) -> str:
    text = writable("" if given is None else safe_text(given))
    if len(text) <= LONGEST_MESSAGE:
        return text
    kept = LONGEST_MESSAGE - 60  # leaves room for the rest
    return f"{text[:kept]}... ({len(text) - kept} more characters; ask for less)"
