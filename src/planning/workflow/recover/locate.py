"""Finding the plan in a text: bare, in a fence, or within prose."""

from __future__ import annotations

import json
import re
from collections import deque
from typing import Final

import attrs

from planning.workflow.findings import Found
from planning.workflow.recover import tokens
from planning.workflow.recover.remarks import Notes, remarks
from planning.workflow.recover.repair import Repaired, repair

__all__ = ["Located", "locate"]

_STARTS: Final = re.compile(r"[{\[](?=[ \t\n\r]*+(?:[\"'{\[\]}\-0-9/#]|[^\W\d][\w$-]*+[ \t\n\r]*+:|$))")


@attrs.frozen
class Located:
    """The plan in a text.

    Attributes:
        repaired: The reading of it; None where there is no plan.
        found: What was wrong, or repaired.
    """

    repaired: Repaired | None
    found: list[Found]


def locate(text: str) -> Located:
    """Find the one plan in a text."""
    readings = _readings(text)
    plans = [each for each in readings if _is_plan(text, each)] or readings[:1]
    if not plans:
        return Located(None, [_nothing(text)])
    chosen = plans[0]
    errors = list(chosen.errors)
    others = [each for each in plans[1:] if text[each.start : each.end] != text[chosen.start : chosen.end]]
    if others:
        second = others[0]
        told = f"the text holds {len(others) + 1} different plans"
        errors.append(Found("several_documents", told, "send one", span=(second.start, second.start + 1)))
    notes = dict(chosen.notes)
    _look_around(text, chosen, notes, errors)
    return Located(chosen, errors + remarks(notes))


def _readings(text: str) -> list[Repaired]:
    """Every value that may be a plan, in order; none overlaps another."""
    readings: list[Repaired] = []
    pos = _first(text)
    while True:
        found = _STARTS.match(text, pos) if not readings and pos == _first(text) else None
        found = found or tokens.CANDIDATE.search(text, pos)
        if found is None:
            return readings
        reading = repair(text, found.start())
        readings.append(reading)
        failed = reading.fault is not None and not _is_plan(text, reading)
        pos = max(found.end(), reading.fault or 0) if failed else reading.end


def _first(text: str) -> int:
    """The offset of the first thing that is neither space nor comment."""
    pos = 0
    while piece := tokens.SKIPPED.match(text, pos):
        if piece["comment"] and piece["comment"].startswith("#"):
            break  # prose may have a heading
        pos = piece.end()
    return pos


def _is_plan(text: str, reading: Repaired) -> bool:
    end = reading.end if reading.fault is None else reading.fault
    return tokens.PLAN_KEY.search(text, reading.start, max(end, reading.start)) is not None


def _nothing(text: str) -> Found:
    hint = "send the plan as a JSON array or object"
    if not text.strip():
        return Found("no_json", "the text is empty", hint, span=(0, 1))
    try:
        if isinstance(json.loads(text), str):
            hint = "send the plan itself, not a text that holds it"
    except (ValueError, RecursionError):
        pass
    return Found("no_json", "the text holds no plan", hint, span=(0, 1))


def _look_around(text: str, chosen: Repaired, notes: Notes, errors: list[Found]) -> None:
    """Note what stands before and behind the plan."""
    before = _before(text, chosen.start, notes)
    if text[:before].strip():
        first = before - len(text[:before].lstrip())
        notes["surrounding_text"] = (first, first + 1, 1)
    pos = _behind(text, chosen.end, notes, errors)
    if pos < len(text):
        notes.setdefault("surrounding_text", (pos, pos + 1, 1))


def _before(text: str, start: int, notes: Notes) -> int:
    """Pass over the comments and the fence before the plan, backwards; gives where prose ends."""
    fence = next(iter(deque(tokens.FENCE.finditer(text, 0, start), maxlen=1)), None)
    if fence is not None and _pass_comments(text, fence.end(), {}) >= start:
        notes["fenced"] = (fence.start(), fence.end(), 1)
        _pass_comments(text, fence.end(), notes)
        return fence.start()
    return 0 if _pass_comments(text, 0, {}) >= start and _pass_comments(text, 0, notes) else start


def _pass_comments(text: str, pos: int, notes: Notes) -> int:
    """Pass over spaces and comments, but not over a heading of prose."""
    while piece := tokens.SKIPPED.match(text, pos):
        if piece["comment"]:
            if piece["comment"].startswith("#") and piece["comment"][1:2] in " #":
                break
            first, last, count = notes.get("comment", (pos, piece.end(), 0))
            notes["comment"] = first, last, count + 1
        pos = piece.end()
    return pos


def _behind(text: str, pos: int, notes: Notes, errors: list[Found]) -> int:
    """Pass over what ends a plan; gives where prose starts, or the end of the text."""
    while (pos := _pass_comments(text, pos, notes)) < len(text):
        char = text[pos]
        if char in "`~" and (fence := tokens.FENCE.match(text, pos)):
            return fence.end() + len(text[fence.end() :]) - len(text[fence.end() :].lstrip())
        if char == "," and not text[pos + 1 :].strip("` \t\r\n"):
            notes.setdefault("trailing_comma", (pos, pos + 1, 1))
        elif char in "]}":
            first, last, count = notes.get("extra_bracket", (pos, pos + 1, 0))
            notes["extra_bracket"] = first, last, count + 1
        else:
            if char in ',:"{[' and not any(each.code == "several_documents" for each in errors):
                told = "the text goes on behind the plan's last bracket"
                errors.append(
                    Found("syntax_error", told, "send one plan, as plain JSON", span=(pos, pos + 1))
                )
                return len(text)
            return pos
        pos += 1
    return pos
