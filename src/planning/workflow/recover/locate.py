"""Finding the plan in a text: bare, in a fence, or within prose."""

from __future__ import annotations

import json
from collections import deque

import attrs

from planning.workflow.findings import Found
from planning.workflow.recover import tokens
from planning.workflow.recover.doubt import could_be_another
from planning.workflow.recover.remarks import Notes, count, remarks
from planning.workflow.recover.repair import Repaired, repair

__all__ = ["Located", "locate"]


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
    errors, notes = list(chosen.errors), dict(chosen.notes)
    others = [each for each in plans[1:] if _written(text, each) != _written(text, chosen)]
    if others:
        told = f"the text holds {len(others) + 1} different plans"
        span = others[0].start, others[0].start + 1
        errors.append(Found("several_documents", told, "send one", span=span))
    _look_ahead(text, chosen, notes, errors)
    _look_behind(text, chosen, notes, errors, {each.start: each for each in readings})
    return Located(chosen, errors + remarks(notes))


def _written(text: str, reading: Repaired) -> str:
    return text[reading.start : reading.end]


def _readings(text: str) -> list[Repaired]:
    """Every value that may be a plan, in order; none overlaps another."""
    start = _pass_comments(text, 0, {})
    prose = tokens.PROSE.match(text, start)
    is_prose = prose is not None and any(each.isalpha() for each in prose[0])
    if text[start : start + 1] in ("[", "{") and not is_prose:
        first = repair(text, start)
        return [first, *_candidates(text, first.end)]
    return _candidates(text, 0)


def _candidates(text: str, pos: int) -> list[Repaired]:
    """What may be a plan within prose, or in a fence."""
    readings: list[Repaired] = []
    while True:
        found = tokens.CANDIDATE.search(text, pos)
        bare = len(text) if found is None else found.start()
        start = _fenced(text, pos, bare)
        if start is None:
            if found is None:
                return readings
            start = bare
        reading = repair(text, start)
        readings.append(reading)
        is_lost = reading.fault is not None and not _is_plan(text, reading)
        pos = max(start + 1, reading.fault or 0) if is_lost else max(reading.end, start + 1)


def _fenced(text: str, pos: int, end: int) -> int | None:
    """Where the text of the next fence starts with a bracket, at most at an end."""
    while pos < end:
        marks = [mark for mark in (text.find("```", pos, end), text.find("~~~", pos, end)) if mark >= 0]
        if not marks:
            return None
        fenced = tokens.FENCED.match(text, min(marks))
        if fenced is not None and fenced.end() <= end:
            return fenced.end()
        pos = min(marks) + 3
    return None


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


def _look_ahead(text: str, chosen: Repaired, notes: Notes, errors: list[Found]) -> None:
    """Note what stands before the plan."""
    before = _before(text, chosen.start, notes)
    ahead = text[:before].rstrip()
    if not ahead:
        return
    is_open = any(ahead.count(opening) > ahead.count(closing) for opening, closing in ("[]", "{}"))
    if ahead[-1] in "[{" or (ahead[-1] == "," and is_open):
        told, span = "the plan's beginning cannot be read", (len(ahead) - 1, len(ahead))
        errors.append(Found("syntax_error", told, "send one plan, as plain JSON", span=span))
    first = before - len(text[:before].lstrip())
    notes["surrounding_text"] = (first, first + 1, 1)


def _before(text: str, start: int, notes: Notes) -> int:
    """Pass over the comments and the fence before the plan, backwards; gives where prose ends."""
    if _pass_comments(text, 0, {}) >= start:
        _pass_comments(text, 0, notes)
        return 0
    fence = next(iter(deque(tokens.FENCE.finditer(text, 0, start), maxlen=1)), None)
    if fence is None:
        return start
    line_end = text.find("\n", fence.end(), start)
    inside = fence.end() if line_end < 0 else line_end
    if _pass_comments(text, inside, {}) < start:
        return start
    notes["fenced"] = (fence.start(), fence.end(), 1)
    _pass_comments(text, inside, notes)
    return fence.start()


def _pass_comments(text: str, pos: int, notes: Notes) -> int:
    """Pass over spaces and comments, but not over a heading of prose."""
    while piece := tokens.SKIPPED.match(text, pos):
        if piece["comment"]:
            if piece["comment"].startswith("#") and piece["comment"][1:2] in " #":
                break
            count(notes, "comment", pos, piece.end())
        pos = piece.end()
    return pos


def _drop(text: str, pos: int, chosen: Repaired, notes: Notes, errors: list[Found]) -> None:
    """Leave out a closing bracket behind the plan; an error where it may be another one."""
    hint = "close every bracket once"
    if any(each.code == "ambiguous_bracket" for each in errors):
        return
    if chosen.forced is not None:
        told, span = "brackets are missing and too many", (chosen.forced, chosen.forced + 1)
    elif text[pos] == text[chosen.end - 1] and could_be_another(
        text, chosen.start, chosen.end, is_known=True
    ):
        told, span = "a closing bracket is too many, and which one is unknown", (pos, pos + 1)
    else:
        count(notes, "extra_bracket", pos, pos + 1)
        return
    errors.append(Found("ambiguous_bracket", told, hint, span=span))
    notes.pop("missing_bracket", None)
    notes.pop("extra_bracket", None)


def _look_behind(
    text: str, chosen: Repaired, notes: Notes, errors: list[Found], readings: dict[int, Repaired]
) -> None:
    """Note what stands behind the plan: what ends it, then other text."""
    pos = chosen.end
    while (pos := _pass_comments(text, pos, notes)) < len(text):
        char = text[pos]
        if char in "`~" and (fence := tokens.FENCE.match(text, pos)):
            pos = fence.end() + len(text[fence.end() :]) - len(text[fence.end() :].lstrip())
            break
        if char == "," and not text[pos + 1 :].strip("` \t\r\n"):
            count(notes, "trailing_comma", pos, pos + 1)
        elif char in "]}":
            _drop(text, pos, chosen, notes, errors)
        else:
            break
        pos += 1
    if pos >= len(text) or any(each.code == "several_documents" for each in errors):
        return
    following = readings.get(pos)
    is_json = following is not None and _written(text, following) != _written(text, chosen)
    if text[pos] in ',:"' or is_json:
        told = "the text goes on behind the plan's last bracket"
        errors.append(Found("syntax_error", told, "send one plan, as plain JSON", span=(pos, pos + 1)))
    elif "surrounding_text" not in notes:
        notes["surrounding_text"] = (pos, pos + 1, 1)
