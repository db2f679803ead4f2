"""What the integrations share: which tools a source offers, and calls made in their provider's name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from time import perf_counter
from typing import TYPE_CHECKING, Any

import attrs

from planning.errors import show
from planning.prompt.definitions import ToolSource, tools_of
from planning.tools import Toolbox, ToolResult
from planning.tools.context import AGENT, LONGEST_ID
from planning.tools.errors import ErrorKind
from planning.tools.outcome import failed
from planning.tools.repeats import guessed_key

if TYPE_CHECKING:
    from planning.prompt import PlanningToolsSection
    from session import Session

_SHORTEST_ID = 20
"""The fewest characters of an id that no other response has. Servers count shorter ones, draw them from few,
or give all responses the same: ``chatcmpl-1``, ``chatcmpl-637``, ``chatcmpl-A1``."""
_TIMES = ("created", "created_at")
_LENGTHS = ("prompt_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


_OUTPUTS = {"function_call_output", "custom_tool_call_output"}
_INPUTS = {"input_text", "input_image", "input_file"}
"""The items of the Responses API that answer a call of ours, and the parts that its messages have."""


@attrs.frozen(slots=False)  # made in half the time
class Call:
    """One call of a model's turn.

    Attributes:
        call_id: The provider's id of the call, as it must be answered.
        name: The tool's name.
        arguments: JSON text, or a mapping.
        is_cut: Whether the turn ended before the call was complete: then it is refused.
        turn: What no other turn is named, in any conversation: with its id it names the call. None where
            nothing names the turn, or its calls have no ids of their own.
        agent: The run that makes the call, or its id: agents of one name hear of each other.
    """

    call_id: Any
    name: Any
    arguments: Any
    is_cut: bool = False
    turn: str | None = None
    agent: object = None

    def context(self, actor: str | None) -> dict[str, Any]:
        """Its context for ``Toolbox.call``."""
        ids = {"idempotency_key": guessed_key(self.turn, self.call_id), AGENT: self.agent}
        return call_context(self.call_id, actor, **ids)


def toolbox_of(source: ToolSource) -> Toolbox:
    """The toolbox that carries out calls: the source itself, or one made of its tools.

    Raises:
        TypeError: The source is not a toolbox, a section or a collection of tools.
        ValueError: Two tools have the same name, or are bound to different sessions.
    """
    return source if isinstance(source, Toolbox) else Toolbox(tools_of(source))


def call_context(call_id: object, actor: str | None = None, **values: Any) -> dict[str, Any]:
    """The context of a call for ``Toolbox.call``.

    Args:
        call_id: The provider's id of the call. One that is too long for an event, as some gateways make them,
            or has characters that cannot be printed is replaced by its SHA-256, which is the same for the
            same id; one that is blank is omitted.
        actor: The agent's name; an event has at most its first characters that can be printed.
        values: What tools may know besides, such as ``trace_id``.
    """
    if not isinstance(call_id, str) or not call_id:
        call_id = None
    elif len(call_id) > LONGEST_ID or not call_id.isprintable():
        call_id = f"sha256:{sha256(call_id.encode(errors='backslashreplace')).hexdigest()}"
    if isinstance(actor, str):
        actor = "".join(filter(str.isprintable, actor))[:LONGEST_ID] or None
    return {**values, "call_id": call_id, "actor": actor}


def carry_out(toolbox: Toolbox, call: Call, actor: str | None = None) -> ToolResult:
    """Carry out one call; never raises, but for what ends the program."""
    if call.is_cut:
        return _cut(call)
    return toolbox.call(call.name, call.arguments, context=call.context(actor))


async def acarry_out(toolbox: Toolbox, call: Call, actor: str | None = None) -> ToolResult:
    """The same from async code."""
    if call.is_cut:
        return _cut(call)
    return await toolbox.acall(call.name, call.arguments, context=call.context(actor))


def out_of_reach(name: str, error: Exception) -> ToolResult:
    """The result of a call whose session is out of reach.

    Args:
        name: The tool's name.
        error: One of ``AWAY``.
    """
    return failed(name, error, perf_counter())


def in_turn(response: Mapping[str, Any], calls: Sequence[Call]) -> list[Call]:
    """The calls of a response, with the name of their turn if the response has one.

    Services forward the id of a request as that of its response, so that several have the same: the time of a
    response and the length of its request are part of the name.

    Args:
        response: What the server said of the response: ``id``, the time and ``usage``.
        calls: Its calls.
    """
    turn, usage = response.get("id"), record(response.get("usage"))
    if not isinstance(turn, str) or len(turn) < _SHORTEST_ID:
        return list(calls)
    numbers = [*(response.get(name) for name in _TIMES), *(usage.get(name) for name in _LENGTHS)]
    # The clients make a time a float, where servers send an integer.
    named = repr([turn, *(int(n) if isinstance(n, float) and n.is_integer() else n for n in numbers)])
    ids = Counter(str(call.call_id) for call in calls)
    return [attrs.evolve(call, turn=named) if ids[str(call.call_id)] == 1 else call for call in calls]


def plain_data(value: Any) -> Any:
    """A client's objects as dictionaries and lists, with the fields that the server sent."""
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Mapping):
        return {name: plain_data(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_data(each) for each in value]
    if hasattr(value, "model_dump"):
        # The clients build their objects unchecked: a server may have sent another type than is declared.
        return value.model_dump(mode="json", exclude_unset=True, warnings=False)
    return plain_data(vars(value)) if hasattr(value, "__dict__") else value


def listed_or_plain(response: Any, kinds: str) -> dict[str, Any] | list[dict[str, Any]]:
    """A client's response as a dictionary; a list or a stream of them as a list of dictionaries.

    Args:
        response: The response.
        kinds: What it may be, for the message.

    Raises:
        TypeError: It is something else.
    """
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
    """Whether arguments are complete: a dictionary, or JSON text."""
    try:
        return isinstance(arguments, dict) or json.loads(arguments) is not None
    except (TypeError, ValueError, RecursionError):
        return False


def with_text(content: Any, text: str, kind: str = "text") -> Any:
    """The content of a message with a text behind it: a further part if it has parts."""
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

    Args:
        messages: The messages of the request, or the items of the Responses API.
        section: The section, whose ``reminder()`` is added.
        session: Whose plan; the section's session, or that of the current call, when omitted.

    Raises:
        ContextInvalid: The section finds no session.
        StoreError: The session's store cannot be read.
    """
    return with_tail(messages, section.reminder(session))


def with_tail(messages: Iterable[Any], text: str) -> list[Any]:
    """Messages with a text at their end, as ``with_reminder`` adds it; no message that is given changes."""
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


def _cut(call: Call) -> ToolResult:
    name = show(call.name).strip("'")
    why = "your reply was cut off before the call was complete"
    message = f"{name} was not called: {why}. Send it again, shorter: fewer steps in one call."
    return ToolResult(False, message, error=message, code=ErrorKind.PARAMETER)
