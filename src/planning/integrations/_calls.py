"""One call of a model's turn, made through a toolbox in its provider's name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from time import perf_counter
from typing import Any

import attrs

from planning.errors import show
from planning.prompt.definitions import ToolSource, tools_of
from planning.tools import Toolbox, ToolResult
from planning.tools.context import AGENT, LONGEST_ID
from planning.tools.once import Turn
from planning.tools.outcome import failed

_SHORTEST_ID = 20
"""The fewest characters of an id that no other response has. Servers count shorter ones, draw them from few,
or give all responses the same: ``chatcmpl-1``, ``chatcmpl-637``, ``chatcmpl-A1``."""
_TIMES = ("created", "created_at")
_LENGTHS = ("prompt_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@attrs.frozen(slots=False)  # made in half the time
class Call:
    """One call of a model's turn.

    Attributes:
        call_id: The provider's id of the call, as it must be answered.
        name: The tool's name.
        arguments: JSON text, or a mapping.
        is_cut: Whether the turn ended before the call was complete: then it is refused.
        turn: The turn that it is a call of, if it is known.
        agent: The run that makes the call, or its id: agents of one name hear of each other.
    """

    call_id: Any
    name: Any
    arguments: Any
    is_cut: bool = False
    turn: Turn | None = None
    agent: object = None

    def context(self, actor: str | None) -> dict[str, Any]:
        """Its context for ``Toolbox.call``."""
        key = None if self.turn is None else self.turn.key_of(self.call_id)
        return call_context(self.call_id, actor, **{"idempotency_key": key, AGENT: self.agent})


def toolbox_of(source: ToolSource) -> Toolbox:
    """The toolbox that runs calls: the source itself, or one made of its tools."""
    return source if isinstance(source, Toolbox) else Toolbox(tools_of(source))


def call_context(call_id: object, actor: str | None = None, **values: Any) -> dict[str, Any]:
    """The context of a call for ``Toolbox.call``, with further values.

    An id that is too long for an event, as some gateways make them, or has characters that cannot be printed
    is replaced by its SHA-256, which is the same for the same id; a blank one is omitted. An event has at
    most the first characters of the actor's name that can be printed.
    """
    if not isinstance(call_id, str) or not call_id:
        call_id = None
    elif len(call_id) > LONGEST_ID or not call_id.isprintable():
        call_id = f"sha256:{sha256(call_id.encode(errors='backslashreplace')).hexdigest()}"
    if isinstance(actor, str):
        actor = "".join(filter(str.isprintable, actor))[:LONGEST_ID] or None
    return {**values, "call_id": call_id, "actor": actor}


def carry_out(toolbox: Toolbox, call: Call, actor: str | None = None) -> ToolResult:
    """Run one call; never raises, but for what ends the program."""
    if call.is_cut:
        return _cut(call)
    return toolbox.call(call.name, call.arguments, context=call.context(actor))


async def acarry_out(toolbox: Toolbox, call: Call, actor: str | None = None) -> ToolResult:
    """Run one call from async code."""
    if call.is_cut:
        return _cut(call)
    return await toolbox.acall(call.name, call.arguments, context=call.context(actor))


def out_of_reach(name: str, error: Exception) -> ToolResult:
    """The result of a call whose session is out of reach."""
    return failed(name, error, perf_counter())


def in_turn(response: Mapping[str, Any], calls: Sequence[Call]) -> list[Call]:
    """The calls of a response, with their turn if something names it: the ``id``, the time and ``usage``.

    Services forward the id of a request as that of its response, so that several have the same: the time of a
    response and the length of its request are part of the name.
    """
    turn, usage = response.get("id"), response.get("usage")
    if not isinstance(turn, str) or len(turn) < _SHORTEST_ID:
        return list(calls)
    lengths = usage if isinstance(usage, dict) else {}
    numbers = [*(response.get(name) for name in _TIMES), *(lengths.get(name) for name in _LENGTHS)]
    # The clients make a time a float, where servers send an integer.
    named = repr([turn, *(int(n) if isinstance(n, float) and n.is_integer() else n for n in numbers)])
    made = Turn(named, [call.call_id for call in calls])
    return [attrs.evolve(call, turn=made) for call in calls]


def _cut(call: Call) -> ToolResult:
    name = show(call.name).strip("'")
    why = "your reply was cut off before the call was complete"
    message = f"{name} was not called: {why}. Send it again, shorter: fewer steps in one call."
    return ToolResult(False, message)
