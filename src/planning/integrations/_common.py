"""What the integrations share: which tools a source offers, and calls made in their provider's name."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import attrs

from planning.definitions import ToolSource, tools_of
from planning.errors import show
from planning.prompt import PlanningToolsSection
from planning.tools import Toolbox, ToolResult
from planning.tools.context import LONGEST_ID
from planning.tools.errors import ErrorKind

__all__ = ["Call", "acarry_out", "call_context", "carry_out", "part", "toolbox_of"]


@attrs.frozen
class Call:
    """One call of a model's turn.

    Attributes:
        call_id: The provider's id of the call, as it must be answered.
        name: The tool's name.
        arguments: JSON text, or a mapping.
        is_cut: Whether the turn ended before the call was complete: then it is refused.
    """

    call_id: Any
    name: Any
    arguments: Any
    is_cut: bool = False


def toolbox_of(source: ToolSource) -> Toolbox:
    """The toolbox that carries out calls: the source itself, or one made of its tools.

    The calls of a section's tools are recorded in the section's session.

    Raises:
        TypeError: The source is not a toolbox, a section or a collection of tools.
    """
    if isinstance(source, Toolbox):
        return source
    session = source.session if isinstance(source, PlanningToolsSection) else None
    return Toolbox(tools_of(source), session=session)


def call_context(call_id: object, actor: str | None = None, **values: Any) -> dict[str, Any]:
    """The context of a call for ``Toolbox.call``.

    Args:
        call_id: The provider's id of the call. One that is too long for an event, as some gateways make them,
            is replaced by its SHA-256, which is the same for the same id; one that is blank is omitted.
        actor: The agent's name.
        values: What tools may know besides, such as ``trace_id``.
    """
    if not isinstance(call_id, str) or not call_id:
        call_id = None
    elif len(call_id) > LONGEST_ID:
        call_id = f"sha256:{sha256(call_id.encode(errors='backslashreplace')).hexdigest()}"
    return {**values, "call_id": call_id, "actor": actor}


def carry_out(toolbox: Toolbox, call: Call, actor: str | None = None) -> ToolResult:
    """Carry out one call; never raises, but for what ends the program."""
    if call.is_cut:
        return _cut(call)
    return toolbox.call(call.name, call.arguments, context=call_context(call.call_id, actor))


async def acarry_out(toolbox: Toolbox, call: Call, actor: str | None = None) -> ToolResult:
    """The same from async code."""
    if call.is_cut:
        return _cut(call)
    return await toolbox.acall(call.name, call.arguments, context=call_context(call.call_id, actor))


def part(value: object, name: str, default: Any = None) -> Any:
    """A field of an SDK's object or of a plain dict; the default where it is missing or None."""
    found = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    return default if found is None else found


def _cut(call: Call) -> ToolResult:
    name = show(call.name).strip("'")
    message = f"{name} was not called: your reply was cut off before the call was complete. Send it again."
    return ToolResult(False, message, error=message, code=ErrorKind.PARAMETER)
