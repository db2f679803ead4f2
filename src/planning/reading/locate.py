"""Finding the plan in a text: bare, in a fence, or within prose."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from heapq import merge

import attrs

from planning.reading import tokens
from planning.reading.doubt import MOST_WEIGHED, could_be_another
from planning.reading.found import Found
from planning.reading.remarks import Notes, count, remarks
from planning.reading.repair import Repaired, repair
from planning.reading.values import MOST_WORK

__all__ = ["Located", "locate"]

_NEAR = 300
_MOST_READINGS = 1_000
_MOST_PASSED = 100_000
_EMPTY = re.compile(r"\[\s*+\]")
_FIELD_BEFORE = re.compile(r"""(?:^|[,{}\]\n])[ \t]*+(?:"[^"\n]*+"|'[^'\n]*+')\s*+:$""")


@attrs.frozen
class Located:
    """The plan in a text.

    Attributes:
        repaired: The reading of it; None where there is no plan.
        found: What was wrong, or repaired.
    """

    repaired: Repaired | None
    found: list[Found]


def locate(text: str, *, is_finished: bool = False) -> Located:
    """Find the one plan in a text.

    Args:
        text: The text.
        is_finished: Whether its author ended it, so that it was not cut.
    """
    readings = _readings(text, is_finished=is_finished)
    plans = [each for each in readings if _is_plan(text, each)] or readings[:1]
    if not plans:
        return Located(None, [_nothing(text)])
    chosen = plans[0]
    errors, notes = list(chosen.errors), dict(chosen.notes)
    others = [each for each in plans[1:] if _written(text, each) != _written(text, chosen)]
    last = readings[-1]
    if last is not chosen:  # a draft that is whole is not the plan that was cut behind it
        errors += [each for each in last.errors if each.code in {"truncated", "too_long"}]
    if not is_finished and _is_in_thoughts(text, chosen):
        end = len(text.rstrip())
        errors.append(
            Found("truncated", "the text breaks off in its thoughts", "send the plan", span=(end, end))
        )
    if others:
        told = f"the text holds {len(others) + 1} different plans"
        span = others[0].start, others[0].start + 1
        errors.append(Found("several_documents", told, "send one", span=span))
    _look_ahead(text, chosen, notes, errors)
    _look_behind(text, chosen, notes, errors, {each.start: each for each in readings})
    if "surrounding_text" in notes and _EMPTY.fullmatch(text, chosen.start, chosen.end):
        return Located(None, [_nothing(text)])
    return Located(chosen, errors + remarks(notes))


def _is_in_thoughts(text: str, chosen: Repaired) -> bool:
    """Whether the plan is a draft in a block of thoughts that never ends."""
    opening = max(text.rfind(tag, 0, chosen.start) for tag in ("<think>", "<thinking>"))
    return opening >= 0 and not any(text.find(tag, opening) >= 0 for tag in ("</think>", "</thinking>"))


def _written(text: str, reading: Repaired) -> str:
    return text[reading.start : reading.end]


def _readings(text: str, *, is_finished: bool) -> list[Repaired]:
    """Every value that may be a plan, in order; none overlaps another."""
    start = _pass_comments(text, 0, {})
    prose = tokens.PROSE.match(text, start)
    is_prose = prose is not None and any(each.isalpha() for each in prose[0])
    if text[start : start + 1] in ("[", "{") and not is_prose:
        first = repair(text, start, is_finished=is_finished)
        return [first, *_candidates(text, first.end, is_finished=is_finished)]
    return _candidates(text, 0, is_finished=is_finished)


def _candidates(text: str, pos: int, *, is_finished: bool) -> list[Repaired]:
    """What may be a plan within prose, or in a fence; the last is an error where they are too many."""
    readings: list[Repaired] = []
    work = 0
    fences = merge(_fenced(text, "```", pos), _fenced(text, "~~~", pos))
    fenced, bare = next(fences, len(text)), _bare(text, pos)
    while min(fenced, bare) < len(text):
        start = min(fenced, bare)
        reading = repair(text, start, is_prose=True, is_finished=is_finished)
        readings.append(reading)
        work += reading.work
        if len(readings) > _MOST_READINGS or work > MOST_WORK:
            told = "too many lists and objects stand in the text, and it is not read further than here"
            stopped = Found("too_long", told, "send the plan alone", span=(start, start + 1))
            readings[-1] = attrs.evolve(reading, errors=[stopped])
            break
        is_lost = reading.fault is not None and not _is_plan(text, reading)
        pos = max(start + 1, reading.fault or 0) if is_lost else max(reading.end, start + 1)
        while fenced < pos:
            fenced = next(fences, len(text))
        if bare < pos:  # otherwise it is not looked for again: it may be far away
            bare = _bare(text, pos)
    return readings


def _bare(text: str, pos: int) -> int:
    """Where the next value that may be a plan starts within prose; the end of the text for none."""
    found = tokens.CANDIDATE.search(text, pos)
    return len(text) if found is None else found.start()


def _fenced(text: str, fence: str, pos: int) -> Iterator[int]:
    """Where the text of each fence of a kind starts with a bracket."""
    while (start := text.find(fence, pos)) >= 0:
        if fenced := tokens.FENCED.match(text, start):
            yield fenced.end()
        mark = tokens.FENCE.match(text, start)
        pos = start + len(fence) if mark is None else mark.end()


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
    if ahead[-1] in "[{" or (ahead[-1] == "," and is_open) or _FIELD_BEFORE.search(ahead[-_NEAR:]):
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
    for _ in range(_MOST_PASSED):
        piece = tokens.SKIPPED.match(text, pos)
        if piece is None:
            break
        if piece["comment"]:
            if piece["comment"].startswith("#") and piece["comment"][1:2] in " #":
                break
            count(notes, "comment", pos, piece.end())
        pos = piece.end()
    return pos


def _drop(text: str, extra: list[int], chosen: Repaired, notes: Notes, errors: list[Found]) -> None:
    """Leave out closing brackets behind the plan; an error where one may be another one."""
    if any(each.code == "ambiguous_bracket" for each in errors):
        return
    alike = [pos for pos in extra if text[pos] == text[chosen.end - 1]]
    if chosen.forced is not None:
        told, start = "brackets are missing and too many", chosen.forced
    elif alike and (
        chosen.end - chosen.start > MOST_WEIGHED
        or could_be_another(text, chosen.start, chosen.end, is_known=True)
    ):
        told, start = "a closing bracket is too many, and which one is unknown", alike[0]
    else:
        for pos in extra:
            count(notes, "extra_bracket", pos, pos + 1)
        return
    span = start, start + 1
    errors.append(Found("ambiguous_bracket", told, "close every bracket once", span=span))
    notes.pop("missing_bracket", None)
    notes.pop("extra_bracket", None)


def _look_behind(
    text: str, chosen: Repaired, notes: Notes, errors: list[Found], readings: dict[int, Repaired]
) -> None:
    """Note what stands behind the plan: what ends it, then other text."""
    pos, extra = chosen.end, list[int]()
    while (pos := _pass_comments(text, pos, notes)) < len(text):
        char = text[pos]
        if char in "`~" and (fence := tokens.FENCE.match(text, pos)):
            pos = fence.end() + len(text[fence.end() :]) - len(text[fence.end() :].lstrip())
            break
        if char == "," and not text[pos + 1 :].strip("` \t\r\n"):
            count(notes, "trailing_comma", pos, pos + 1)
        elif char in "]}" and len(extra) < _MOST_READINGS:
            extra.append(pos)
        else:
            break
        pos += 1
    if extra:
        _drop(text, extra, chosen, notes, errors)
    if pos >= len(text) or any(each.code == "several_documents" for each in errors):
        return
    following = readings.get(pos)
    is_json = following is not None and _written(text, following) != _written(text, chosen)
    if text[pos] in ',:"' or is_json:
        told = "the text goes on behind the plan's last bracket"
        errors.append(Found("syntax_error", told, "send one plan, as plain JSON", span=(pos, pos + 1)))
    elif "surrounding_text" not in notes:
        notes["surrounding_text"] = (pos, pos + 1, 1)
