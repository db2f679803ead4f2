"""What the integrations share: which tools a source offers, and calls made in their provider's name."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from time import perf_counter
from typing import Any

import attrs

from planning.definitions import ToolSource, tools_of
from planning.errors import show
from planning.tools import Toolbox, ToolResult
from planning.tools.context import AGENT, LONGEST_ID
from planning.tools.errors import ErrorKind
from planning.tools.outcome import failed

__all__ = [
    "Call",
    "acarry_out",
    "call_context",
    "carry_out",
    "dicts",
    "in_turn",
    "is_json",
    "listed_or_plain",
    "out_of_reach",
    "plain_data",
    "record",
    "toolbox_of",
    "unknown_response",
]


_SHORTEST_ID = 20
"""The fewest characters of an id that no other response has. Servers count shorter ones, draw them from few,
or give all responses the same: ``chatcmpl-1``, ``chatcmpl-637``, ``chatcmpl-A1``."""


@attrs.frozen(slots=False)  # made in half the time
class Call:
    """One call of a model's turn.

    Attributes:
        call_id: The provider's id of the call, as it must be answered.
        name: The tool's name.
        arguments: JSON text, or a mapping.
        is_cut: Whether the turn ended before the call was complete: then it is refused.
        turn: What no other turn is named, in any conversation: with it the call has an idempotency key. None
            where nothing names the turn, or its calls have no ids of their own.
        agent: The run that makes the call, or its id: agents of one name hear of each other.
    """

    call_id: Any
    name: Any
    arguments: Any
    is_cut: bool = False
    turn: str | None = None
    agent: object = None

    @property
    def idempotency_key(self) -> str | None:
        """What the same call of the same turn has again, and no other call; None where nothing says so."""
        if not self.turn or not isinstance(self.call_id, str) or not self.call_id:
            return None
        try:
            named = json.dumps([self.turn, self.call_id, self.name, self.arguments], sort_keys=True)
        except (TypeError, ValueError, RecursionError):
            return None
        return f"sha256:{sha256(named.encode()).hexdigest()}"

    def context(self, actor: str | None) -> dict[str, Any]:
        """Its context for ``Toolbox.call``."""
        ids = {"idempotency_key": self.idempotency_key, AGENT: self.agent}
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


def in_turn(turn: object, calls: Sequence[Call]) -> list[Call]:
    """The calls of a response, with its id as the name of the turn where that names it.

    Args:
        turn: The response's id, as the server sent it.
        calls: Its calls.
    """
    if not isinstance(turn, str) or len(turn) < _SHORTEST_ID:
        return list(calls)
    ids = Counter(str(call.call_id) for call in calls)
    return [attrs.evolve(call, turn=turn) if ids[str(call.call_id)] == 1 else call for call in calls]


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


def unknown_response(response: object, kinds: str) -> TypeError:
    """The error for something that is not a response of the provider."""
    given = type(response).__name__
    return TypeError(
        f"expected {kinds} or the list of its chunks or events, got {given}: pass what the client returned"
    )


def _cut(call: Call) -> ToolResult:
    name = show(call.name).strip("'")
    message = f"{name} was not called: your reply was cut off before the call was complete. Send it again."
    return ToolResult(False, message, error=message, code=ErrorKind.PARAMETER)
