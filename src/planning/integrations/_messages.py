"""Clients' responses and messages as plain data, and the reminder behind the messages of a request."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planning.prompt import PlanningToolsSection
    from session import Session

_OUTPUTS = {"function_call_output", "custom_tool_call_output"}
_INPUTS = {"input_text", "input_image", "input_file"}
"""The items of the Responses API that answer a call of ours, and the parts that its messages have."""


def plain_data(value: Any) -> Any:
    """A client's objects as dictionaries and lists, with the fields that the server sent."""
    if isinstance(value, Mapping):
        return {name: plain_data(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(each) for each in value]
    if hasattr(value, "model_dump"):
        # The clients build their objects unchecked: a server may have sent another type than is declared.
        return value.model_dump(mode="json", exclude_unset=True, warnings=False)
    return plain_data(vars(value)) if hasattr(value, "__dict__") else value


def listed_or_plain(response: Any, kinds: str) -> dict[str, Any] | list[dict[str, Any]]:
    """A client's response as a dictionary; a list or a stream of them as a list of dictionaries."""
    is_one = isinstance(response, (Mapping, str, bytes)) or hasattr(response, "model_dump")
    data = plain_data(list(response) if isinstance(response, Iterable) and not is_one else response)
    if isinstance(data, dict) or (isinstance(data, list) and all(isinstance(each, dict) for each in data)):
        return data
    raise unknown_response(response, kinds)


def dicts(values: Any) -> list[dict[str, Any]]:
    """The dictionaries in a list; a server may send anything in its place."""
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []


def record(value: Any) -> dict[str, Any]:
    """A dictionary, or an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def is_json(arguments: Any) -> bool:
    """True if arguments are complete: a dictionary, or JSON text."""
    try:
        return isinstance(arguments, dict) or json.loads(arguments) is not None
    except (TypeError, ValueError, RecursionError):
        return False


def with_text(content: Any, text: str, kind: str = "text") -> Any:
    """The content of a message with text behind it: a further part if it has parts."""
    if isinstance(content, (list, tuple)):
        return [*content, {"type": kind, "text": text}]
    return "\n\n".join(filter(None, [content, text]))


def with_reminder(
    messages: Iterable[Any], section: PlanningToolsSection, *, session: Session | None = None
) -> list[Any]:
    """The messages of one request with the live plan at their end: send them, and keep ``messages``.

    The plan is behind all that the provider caches. It is added to the last message if that is of the user or
    of a tool, because templates of local models refuse two messages of one role; otherwise it is a message of
    the user. Without an active plan the messages stay as they are.

    Raises:
        ContextInvalid: The section finds no session.
        StoreError: The session's store cannot be read.
    """
    return with_tail(messages, section.reminder(session))


def with_tail(messages: Iterable[Any], text: str) -> list[Any]:
    """Messages with text at their end, as ``with_reminder`` adds it; no message that is given changes."""
    sent = [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
    if not text:
        return sent
    last = sent[-1] if sent else None
    about = last if isinstance(last, Mapping) else record(plain_data(last))
    field = "output" if about.get("type") in _OUTPUTS else "content"
    given, is_added_to = about.get(field), field == "output" or about.get("role") in {"user", "tool"}
    if not is_added_to or not isinstance(given, str | list | tuple | None):
        return [*sent, {"role": "user", "content": text}]
    is_item = field == "output" or any(each.get("type") in _INPUTS for each in dicts(given))
    return [*sent[:-1], {**about, field: with_text(given, text, "input_text" if is_item else "text")}]


def unknown_response(response: object, kinds: str) -> TypeError:
    """The error for something that is not a response of the provider."""
    given = type(response).__name__
    return TypeError(
        f"expected {kinds} or the list of its chunks or events, got {given}: pass what the client returned"
    )
