"""Finds the document in text: bare, in a fence, after thoughts, or within prose."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Iterator
from heapq import merge

from planning.reading import tokens
from planning.reading.doubt import MOST_WEIGHED, could_be_another
from planning.reading.found import REMARKS, Found
from planning.reading.repair import Reading
from planning.reading.values import MOST_WORK, Notes, count
from planning.reading.wanted import Wanted
from planning.reading.wrapping import breaks_off_in_thoughts, thoughts_end

_NEAR = 300
_MOST_READINGS = 1_000
_MOST_PASSED = 100_000
_EMPTY = re.compile(r"\[\s*+\]")
_FIELD_BEFORE = re.compile(r"""(?:^|[,{}\]\n])[ \t]*+(?:"[^"\n]*+"|'[^'\n]*+')\s*+:$""")


def locate(text: str, wanted: Wanted, *, is_finished: bool = False) -> tuple[Reading | None, list[Found]]:
    """Find the one document in a text: its reading or None, and the errors and repairs."""
    return _Locator(text, wanted, is_finished=is_finished).locate()


class _Locator:
    def __init__(self, text: str, wanted: Wanted, *, is_finished: bool) -> None:
        self.text = text
        self.wanted = wanted
        self.is_finished = is_finished
        # A text that starts as JSON does has no thoughts before it: the tag is in one of its strings.
        self.begin = 0 if text.lstrip()[:1] in "[{\"'`~" else thoughts_end(text)
        self.errors: list[Found] = []
        self.notes: Notes = {}

    def locate(self) -> tuple[Reading | None, list[Found]]:
        text, noun = self.text, self.wanted.noun
        readings = self._readings()
        documents = [reading for reading in readings if self._is_wanted(reading)] or readings[:1]
        if not documents:
            return None, [self._nothing()]
        chosen = documents[0]
        self.errors, self.notes = list(chosen.errors), dict(chosen.notes)
        others = [reading for reading in documents[1:] if self._written(reading) != self._written(chosen)]
        last = readings[-1]
        if last is not chosen:  # a complete draft is not the document that was cut after it
            self.errors += [error for error in last.errors if error.code in {"truncated", "too_long"}]
        if others:
            message = f"the text contains {len(others) + 1} different {noun}s"
            self._error("several_documents", message, "send one", others[0].start)
        self._look_ahead(chosen)
        self._look_behind(chosen, {reading.start: reading for reading in readings})
        if "surrounding_text" in self.notes and _EMPTY.fullmatch(text, chosen.start, chosen.pos):
            return None, [self._nothing()]
        return chosen, self.errors + self._remarks()

    def _error(self, code: str, message: str, hint: str, start: int, end: int | None = None) -> None:
        self.errors.append(Found(code, message, hint, span=(start, start + 1 if end is None else end)))

    def _remarks(self) -> list[Found]:
        """One warning for each kind of repair, at its first place."""
        found = []
        for code, (start, end, times) in self.notes.items():
            one, many, hint = (words.format(noun=self.wanted.noun, count=times) for words in REMARKS[code])
            found.append(Found(code, many if times > 1 and many else one, hint, span=(start, end)))
        return found

    def _written(self, reading: Reading) -> str:
        return self.text[reading.start : reading.pos]

    def _is_wanted(self, reading: Reading) -> bool:
        end = reading.pos if reading.fault is None else reading.fault
        return self.wanted.marks.search(self.text, reading.start, max(end, reading.start)) is not None

    def _readings(self) -> list[Reading]:
        """Every value that may be the document, in order; none overlaps another."""
        start = self._pass_comments(self.begin, {})
        prose = tokens.PROSE.match(self.text, start)
        is_prose = prose is not None and any(character.isalpha() for character in prose[0])
        if self.text[start : start + 1] in ("[", "{") and not is_prose:
            first = Reading(self.text, start, self.wanted, is_finished=self.is_finished)
            return [first, *self._candidates(first.pos)]
        if self.wanted.is_fenced_first:
            fenced = self._candidates(self.begin, is_fenced=True)
            if any(map(self._is_wanted, fenced)):
                return fenced
        return self._candidates(self.begin)

    def _candidates(self, pos: int, *, is_fenced: bool = False) -> list[Reading]:
        """What may be the document, in a fence or within prose; the last is an error if they are too many."""
        text, readings = self.text, list[Reading]()
        work = 0
        fences = merge(*(self._fenced(mark * 3, pos) for mark in "`~" if mark in text))
        # The end of the fence that a reading is in; of the text, where those in prose count, too.
        end = pos if is_fenced else len(text)
        fenced, bare = next(fences, len(text)), self._bare(pos, end)
        while (start := min(fenced, bare)) < len(text):
            reading = Reading(text, start, self.wanted, is_prose=True, is_finished=self.is_finished)
            readings.append(reading)
            work += reading.work
            if len(readings) > _MOST_READINGS or work > MOST_WORK:
                message = "the text has too many lists and objects; it was read up to here"
                hint = f"send the {self.wanted.noun} alone"
                stopped = Found("too_long", message, hint, span=(start, start + 1))
                reading.errors = [stopped]
                break
            is_lost = reading.fault is not None and not self._is_wanted(reading)
            pos = max(start + 1, (reading.fault or 0) if is_lost else reading.pos)
            while fenced < pos:
                fenced = next(fences, len(text))
            if is_fenced and end < pos:
                mark = tokens.FENCE.search(text, pos)
                end, bare = len(text) if mark is None else mark.start(), 0
            if bare < pos:  # otherwise it is not looked for again: it may be far away
                bare = self._bare(pos, end)
        return readings

    def _bare(self, pos: int, end: int) -> int:
        """Where the next candidate starts before an end; the end of the text for none."""
        found = tokens.CANDIDATE.search(self.text, pos, end)
        return len(self.text) if found is None else found.start()

    def _fenced(self, fence: str, pos: int) -> Iterator[int]:
        """Where the text of each fence of a kind starts with a bracket."""
        while (start := self.text.find(fence, pos)) >= 0:
            if fenced := tokens.FENCED.match(self.text, start):
                yield fenced.end()
            mark = tokens.FENCE.match(self.text, start)
            pos = start + len(fence) if mark is None else mark.end()

    def _nothing(self) -> Found:
        noun = self.wanted.noun
        hint = f"send the {noun} as a JSON array or object"
        if not self.text.strip():
            return Found("no_json", "the text is empty", hint, span=(0, 1))
        try:
            if isinstance(json.loads(self.text), str):
                hint = f"send the {noun} itself, not a string that contains it"
        except (ValueError, RecursionError):
            pass
        return Found("no_json", f"the text contains no {noun}", hint, span=(0, 1))

    def _look_ahead(self, chosen: Reading) -> None:
        """Note the text before the document."""
        before = self._before(chosen.start)
        ahead = self.text[:before].rstrip()
        if not ahead:
            return
        noun = self.wanted.noun
        if not self.is_finished and breaks_off_in_thoughts(self.text, chosen.start):
            end = len(self.text.rstrip())
            self._error("truncated", "the text breaks off in its thoughts", f"send the {noun}", end, end)
        is_open = any(ahead.count(opening) > ahead.count(closing) for opening, closing in ("[]", "{}"))
        if ahead[-1] in "[{" or (ahead[-1] == "," and is_open) or _FIELD_BEFORE.search(ahead[-_NEAR:]):
            message, hint = f"the {noun}'s beginning cannot be read", f"send one {noun}, as plain JSON"
            self._error("syntax_error", message, hint, len(ahead) - 1)
        first = before - len(self.text[:before].lstrip())
        self._note_text(first, self.text[self.begin : before])

    def _before(self, start: int) -> int:
        """Pass over the comments and the fence before the document, backwards; gives where prose ends."""
        text = self.text
        if self._pass_comments(0, {}) >= start:
            self._pass_comments(0, self.notes)
            return 0
        fence = next(iter(deque(tokens.FENCE.finditer(text, self.begin, start), maxlen=1)), None)
        if fence is None:
            return start
        line_end = text.find("\n", fence.end(), start)
        inside = fence.end() if line_end < 0 else line_end
        if self._pass_comments(inside, {}) < start:
            return start
        self.notes["fenced"] = (fence.start(), fence.end(), 1)
        self._pass_comments(inside, self.notes)
        return fence.start()

    def _pass_comments(self, pos: int, notes: Notes) -> int:
        """Pass over spaces and comments, but not over a heading of prose."""
        for _ in range(_MOST_PASSED):
            piece = tokens.SKIPPED.match(self.text, pos)
            if piece is None:
                break
            if piece["comment"]:
                if piece["comment"].startswith("#") and piece["comment"][1:2] in " #":
                    break
                count(notes, "comment", pos, piece.end())
            pos = piece.end()
        return pos

    def _look_behind(self, chosen: Reading, readings: dict[int, Reading]) -> None:
        """Note the text after the document: its end, then other text."""
        text, pos, extra = self.text, chosen.pos, list[int]()
        while (pos := self._pass_comments(pos, self.notes)) < len(text):
            char = text[pos]
            if char in "`~" and (fence := tokens.FENCE.match(text, pos)):
                pos = fence.end() + len(text[fence.end() :]) - len(text[fence.end() :].lstrip())
                break
            if char == "," and not text[pos + 1 :].strip("` \t\r\n"):
                count(self.notes, "trailing_comma", pos, pos + 1)
            elif char in "]}" and len(extra) < _MOST_READINGS:
                extra.append(pos)
            else:
                break
            pos += 1
        if extra:
            self._drop(extra, chosen)
        if pos >= len(text) or any(error.code == "several_documents" for error in self.errors):
            return
        following = readings.get(pos)
        is_json = following is not None and self._written(following) != self._written(chosen)
        if text[pos] in ',:"' or is_json:
            noun = self.wanted.noun
            message = f"there is more text after the {noun}'s last bracket"
            self._error("syntax_error", message, f"send one {noun}, as plain JSON", pos)
        elif "surrounding_text" not in self.notes:
            self._note_text(pos, text[pos:])

    def _note_text(self, pos: int, text: str) -> None:
        """Note other text, or keep an error if it is not allowed; thoughts and backticks do not count."""
        if self.wanted.is_within_text:
            self.notes["surrounding_text"] = (pos, pos + 1, 1)
        elif text.strip("` \t\r\n"):
            noun = self.wanted.noun
            self._error(
                "syntax_error", f"there is extra text around the {noun}", f"send the {noun} alone", pos
            )

    def _drop(self, extra: list[int], chosen: Reading) -> None:
        """Ignore closing brackets after the document; an error if one may be meant for another place."""
        if any(error.code == "ambiguous_bracket" for error in self.errors):
            return
        text, known = self.text, self.wanted.fields or None
        alike = [pos for pos in extra if text[pos] == text[chosen.pos - 1]]
        if chosen.forced is not None:
            message, start = "some brackets are missing and some are extra", chosen.forced
        elif alike and (
            chosen.pos - chosen.start > MOST_WEIGHED
            or could_be_another(text, chosen.start, chosen.pos, known)
        ):
            message, start = "there is an extra closing bracket, and it is unclear which", alike[0]
        else:
            for pos in extra:
                count(self.notes, "extra_bracket", pos, pos + 1)
            return
        self._error("ambiguous_bracket", message, "close every bracket once", start)
        self.notes.pop("missing_bracket", None)
        self.notes.pop("extra_bracket", None)
