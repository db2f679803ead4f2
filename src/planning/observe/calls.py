"""The calls in a change, as the page has them; of private ones, only how they ended."""

from __future__ import annotations

from math import isfinite
from typing import Any, Final

from planning.observe.deltas import Fields
from planning.observe.text import as_text, shortened
from planning.plan.commands import MarkSteps, ReadPlan
from planning.plan.reducers import REDUCERS
from planning.policy.reducers import PLANNING_TOOLS
from planning.tools.result import ToolResult
from session import Change, ToolFailed, ToolInvoked
from session.json_form import json_form
from session.records import Unread

_LONGEST: Final = 2_000
_PLANNING: Final = (*REDUCERS, MarkSteps, ReadPlan)


def calls_of(change: Change, *, is_timed: bool = True) -> list[Fields]:
    """The calls in a change, in order."""
    calls = [_call(event) for event in change.events if isinstance(event, (ToolInvoked, ToolFailed))]
    for call in calls:
        if not is_timed:
            call.pop("ms", None)
    return calls


def characters_of(change: Change) -> int:
    """The characters of the arguments and replies of the planning calls in a change, where they are known."""
    calls = [each for each in change.events if isinstance(each, (ToolInvoked, ToolFailed))]
    return sum(_call(each).get("characters", 0) for each in calls if is_planning(each))


def is_planning(event: ToolInvoked | ToolFailed) -> bool:
    """True if a call is one of a planning tool: it carries a command, or was refused under its name."""
    value = getattr(event, "value", None)
    return event.name in PLANNING_TOOLS if value is None else isinstance(value, _PLANNING)


def _call(event: ToolInvoked | ToolFailed) -> Fields:
    result = event.result
    call: Fields = {"name": event.name}
    is_success = isinstance(event, ToolInvoked)
    if isinstance(result, ToolResult):
        is_success = result.success is True
        elapsed: object = result.elapsed  # what was read from a store may be anything
        if isinstance(elapsed, (int, float)) and isfinite(elapsed):
            call["ms"] = round(elapsed * 1_000, 2)
    if not is_success:
        call["error"] = str(getattr(result, "code", None) or "tool")
    if isinstance(result, ToolResult) and result.is_private:
        return {**call, "private": True}
    params = event.params if isinstance(event, ToolInvoked) else None
    arguments = _as_text(params)
    message = result.message if isinstance(result, ToolResult) else _as_text(result)
    cause = str(getattr(result, "cause", None) or "")
    call["cause"] = "" if cause in message else shortened(cause, _LONGEST)
    is_planning = isinstance(event, ToolInvoked) and isinstance(event.value, _PLANNING)
    if not (is_planning and is_success):
        call |= {"arguments": shortened(arguments, _LONGEST), "message": shortened(message, _LONGEST)}
    call["characters"] = len(arguments) + len(message)
    return {name: value for name, value in call.items() if value != ""}


def _as_text(value: Any) -> str:
    """The text of a value; absent fields are omitted, as a model omits them."""
    shown = json_form(value.fields if isinstance(value, Unread) else value)
    if isinstance(shown, dict):
        shown = {name: item for name, item in shown.items() if item is not None}
    return as_text(shown)
