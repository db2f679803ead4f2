"""What a message history of Pydantic AI holds of a plan."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

from planning.integrations._rewind import Position, checked, restored
from planning.policy import PlanPolicy
from planning.suite import planning_tools, register_plan
from planning.tools import Toolbox
from session import Session

__all__ = ["KEY", "made_of", "name_of_turn", "position_in", "unkept"]

KEY = "planning"


def made_of(messages: Sequence[ModelMessage], policy: PlanPolicy | None) -> tuple[Session, bool]:
    """A new session in memory with the plan of a message history, and whether that plan is lost.

    Calls whose results lost their metadata are made again: each must have the same result.

    Raises:
        SnapshotError: What the messages hold of a session cannot be read.
    """
    session, position = Session(), position_in(messages)
    register_plan(session, policy)
    if position is not None:
        session.rollback(restored(position))
    box = Toolbox(planning_tools(session, policy), session=session)
    for call, answer in unkept(messages, box.tools):
        if call is None or box.call(call.tool_name, call.args).message != answer.content:
            session.reset()
            return session, True
    return session, False


def unkept(
    messages: Sequence[ModelMessage], names: Container[str]
) -> Iterator[tuple[ToolCallPart | None, ToolReturnPart]]:
    """The calls whose results have no position, since the last one that has; None for a call that is lost."""
    start = next((i + 1 for i in reversed(range(len(messages))) if position_in(messages[i : i + 1])), 0)
    calls = dict[str, ToolCallPart]()
    for message in messages:
        calls |= {part.tool_call_id: part for part in message.parts if isinstance(part, ToolCallPart)}
    for message in messages[start:]:
        for part in message.parts:
            if isinstance(part, ToolReturnPart) and part.tool_name in names and part.outcome == "success":
                yield calls.get(part.tool_call_id), part


def position_in(messages: Sequence[ModelMessage]) -> Position | None:
    """The last position that messages hold.

    Raises:
        SnapshotError: It is not a position.
    """
    for message in reversed(messages):
        kept = (each[KEY] for each in _metadata(message) if isinstance(each, dict) and KEY in each)
        known = [each for each in map(checked, kept) if each is not None]
        if known:
            return max(known, key=lambda position: position["version"])
    return None


def name_of_turn(messages: Sequence[ModelMessage], call_id: str | None) -> str | None:
    """What names a call's turn, also in a later run that begins with these messages.

    It is the run and the time of the response that has the call, and the run of the request before it: a
    model may give a response twice.

    Returns:
        None if no response has the call, or nothing names it.
    """
    names, found, asked = list[str](), "", None
    for message in messages:
        if isinstance(message, ModelResponse):
            about = (asked, message.run_id, str(message.timestamp), message.provider_response_id)
            names.append(repr(about) if message.run_id else "")
            if any(call.tool_call_id == call_id for call in message.tool_calls):
                found = names[-1]
        asked = message.run_id
    return found if found and names.count(found) == 1 else None


def _metadata(message: ModelMessage) -> list[Any]:
    if isinstance(message, ModelRequest):
        return [part.metadata for part in message.parts if isinstance(part, ToolReturnPart)]
    return [message.metadata]
