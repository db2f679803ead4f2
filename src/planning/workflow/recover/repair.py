"""One value of almost-JSON -> the edits that make it JSON, and everything that was wrong with it.

A machine that reads tokens with a stack of its own. Long runs of plain members are passed over by one
regular expression each, so that what costs is what is odd. It repairs what can be meant in one way only;
everything else is an error, behind which it goes on with the next step.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from planning.workflow.findings import Found
from planning.workflow.recover import tokens
from planning.workflow.recover.remarks import Notes
from planning.workflow.recover.values import Fault, ValueReader

__all__ = ["MOST_DEPTH", "Repaired", "repair"]

MOST_DEPTH: Final = 64

_AFTER = re.compile(r"[ \t\n\r]*+[,}\]]")
_NEXT = re.compile(r"[ \t\n\r]*+,?[ \t\n\r]*+(?=\{)")
_BRACKET = re.compile(r"[{}\[\]]")
_CLOSERS = {"{": "}", "[": "]"}
_STRUCTURE = re.compile(
    r"""["']?\b(?:step_id|description|type|name|agent|tool|inputs|parameters|outputs|depends_on|dependencies"""
    r"""|expected_key|output_path|done_check|status|completed_at|skipped"""
    r"""|schema_version|goal|steps|created_at|owner|can_modify)["']?[ \t\n\r]*+:"""
)
"""A field of a step or of the document, wherever it stands."""


class _Frame:
    """A container that is open.

    Attributes:
        start: The offset of its opening bracket.
        closer: The bracket that closes it.
        good: The offset behind the last thing in it that is complete.
        last: Its last member when that is an object: the offsets of its brackets.
    """

    __slots__ = ("closer", "good", "last", "start")

    def __init__(self, start: int, closer: str) -> None:
        self.start = start
        self.closer = closer
        self.good = start + 1
        self.last: tuple[int, int] | None = None


@attrs.frozen
class Repaired:
    """What a reading of one value gave.

    Attributes:
        start: The offset of its opening bracket.
        end: The offset behind the value.
        edits: What turns the text in between into JSON: replacements, in order.
        errors: What was wrong and is none of those.
        notes: What was repaired.
        broken: The offsets of containers that lack what could not be read.
        fault: Where reading stopped for the first time; None where it never did.
    """

    start: int
    end: int
    edits: list[tuple[int, int, str]]
    errors: list[Found]
    notes: Notes
    broken: set[int]
    fault: int | None


def repair(text: str, start: int) -> Repaired:
    """Read the value that starts with a bracket.

    Args:
        text: The text as a whole.
        start: The offset of the bracket.
    """
    return _Repairer(text, start).read()


class _Repairer(ValueReader):
    def __init__(self, text: str, start: int) -> None:
        super().__init__(text)
        self._start = start
        self._pos = start + 1
        self._comma = -1  # where the comma stands behind which an item is expected
        self._stack = [_Frame(start, _CLOSERS[text[start]])]
        self._is_sequence = False
        self._broken: set[int] = set()
        self._fault: int | None = None
        self._kept = 0  # how many of the edits stand before the last thing that is complete

    def read(self) -> Repaired:
        while self._stack:
            try:
                self._read()
            except Fault as fault:
                self._resume(fault)
        self.edits.sort(key=lambda edit: edit[:2])  # what is put in stands before what is taken out
        return Repaired(
            self._start, self._pos, self.edits, self.errors, self.notes, self._broken, self._fault
        )

    def _read(self) -> None:
        """Read items until everything is closed."""
        text, stack = self.text, self._stack
        members, items = tokens.MEMBERS.match, tokens.ITEMS.match
        while stack:
            frame = stack[-1]
            is_object = frame.closer == "}"
            run = (members if is_object else items)(text, self._pos)
            assert run is not None  # noqa: S101 - it matches the empty text
            pos = run.end()
            comma = run.start(1)
            if comma >= 0:
                frame.good = self._comma = comma
                frame.last = None
                self._kept = len(self.edits)
            char = text[pos : pos + 1]
            if char not in '"{[}]':
                self._pos = pos = self.skip(pos)
                char = text[pos : pos + 1]
            if char and (char == frame.closer or (char in "}]" and self._can_close(char))):
                if self._comma >= 0:
                    self.edit(self._comma, self._comma + 1, "", "trailing_comma")
                    self._comma = -1
                self._close(char, pos)
                self._pass_after()
                continue
            if is_object:
                key = tokens.KEY.match(text, pos)
                pos = self._odd_key(pos) if key is None else key.end()
                char = text[pos : pos + 1]
            if is_object and char == "{" and (flat := tokens.OBJECT.match(text, pos)):
                frame.last = (pos, flat.end())
                self.had_raw_control = False
                self._pos = frame.good = flat.end()
                self._kept = len(self.edits)
                self._pass_after()
                continue
            if char and char in "{[":
                if len(stack) >= MOST_DEPTH:
                    raise Fault(
                        "too_deep", f"nested deeper than {MOST_DEPTH} levels", "send flatter values", pos
                    )
                stack.append(_Frame(pos, _CLOSERS[char]))
                self._pos, self._comma = pos + 1, -1
                self._kept = len(self.edits)
                continue
            self.had_raw_control = False
            scalar = tokens.SCALAR.match(text, pos)
            self._pos = frame.good = self.odd_value(pos) if scalar is None else scalar.end()
            frame.last = None
            self._kept = len(self.edits)
            self._pass_after()

    def _pass_after(self) -> None:
        """Behind a value: read closing brackets up to the comma behind which the next item stands."""
        text, stack = self.text, self._stack
        while stack:
            after = _AFTER.match(text, self._pos)
            if after is None:
                if self._pass_odd_after():
                    return
                continue
            end = after.end()
            if text[end - 1] == ",":
                self._comma, self._pos = end - 1, end
                return
            self._close(text[end - 1], end - 1)

    def _pass_odd_after(self) -> bool:
        """Behind a value, where neither comma nor bracket stands; whether an item follows."""
        text, value_end = self.text, self._pos
        self._pos = pos = self.skip(value_end)
        char = text[pos : pos + 1]
        if self.is_over(pos):
            self._end(pos)
            return False
        if char in ",}]":
            return False  # a comment stood before it
        before = text[value_end - 1]
        if before in "}]" and _BRACKET.search(text, pos) is None:  # prose behind the plan
            self._end(pos)
            return False
        is_apart = before in "}]" or re.search(r"[\n\r]", text[value_end:pos]) is not None
        if is_apart and not self.had_raw_control and self._starts_item(pos):
            if not self._is_sequence or len(self._stack) > 1:
                self.note("missing_comma", pos, pos + 1)
            self.edits.append((self._stack[-1].good, self._stack[-1].good, ","))
            self._comma = -1
            return True
        if before in "\"'":
            raise Fault(
                "unescaped_quote",
                "a text ends too early: it has a quote in it, or lacks the closing one",
                'write a quote in a text as \\"',
                pos,
            )
        expected = "a comma or a closing bracket"
        raise Fault("syntax_error", f"expected {expected}, got {self.shown(pos)}", "send plain JSON", pos)

    def _starts_item(self, pos: int) -> bool:
        if self._stack[-1].closer == "]":
            return self.text[pos] in "{[\"'-0123456789" or tokens.SCALAR.match(self.text, pos) is not None
        return self.text[pos] in "\"'" or tokens.NAME.match(self.text, pos) is not None

    def _odd_key(self, pos: int) -> int:
        """A field name that is no plain JSON, and its colon; gives the offset of the value."""
        text = self.text
        char = text[pos : pos + 1]
        if self.is_over(pos):
            raise self.cut_off(pos)
        if char == ",":
            raise Fault(
                "syntax_error", "expected a field, got a comma", "write one comma between fields", pos
            )
        if char in "\"'":
            end = self.odd_string(pos)
        else:
            name = tokens.NAME.match(text, pos)
            if name is None:
                told = f"expected a field name, got {self.shown(pos)}"
                raise Fault("syntax_error", told, "write field names in double quotes", pos)
            end = name.end()
            self.edit(pos, pos, '"')
            self.edit(end, end, '"')
            self.note("bare_key", pos, end)
        end = self.skip(end)
        if self.is_over(end):
            raise self.cut_off(end)
        if text[end] != ":":
            told = f"expected a colon behind a field name, got {self.shown(end)}"
            raise Fault("syntax_error", told, 'write fields as "name": value', end)
        return self.skip(end + 1)

    def _can_close(self, char: str) -> bool:
        return any(frame.closer == char for frame in self._stack)

    def _close(self, char: str, pos: int) -> None:
        """Take a closing bracket: of the innermost container, or of one around it, or of none."""
        stack = self._stack
        if stack[-1].closer != char:
            if not self._can_close(char):
                self.edit(pos, pos + 1, "", "extra_bracket")
                self._pos = pos + 1
                return
            while stack[-1].closer != char:
                self._force()
                self.note("missing_bracket", pos, pos + 1)
        frame = stack.pop()
        self._pos = pos + 1
        if stack:
            stack[-1].good = pos + 1
            stack[-1].last = (frame.start, pos + 1) if char == "}" else None
            self._kept = len(self.edits)
        elif char == "}" and self._goes_on(frame):
            self._begin_sequence(frame)

    def _force(self) -> None:
        """Close the innermost container, which nothing closes; an error where it may have ended before."""
        frame = self._stack.pop()
        if frame.closer == "}" and frame.last is not None:
            first = tokens.FIRST_KEY.match(self.text, frame.last[0] + 1)
            moved = first and _STRUCTURE.search(self.text, first.end(), frame.last[1])
            if moved:
                place = (moved.start(), moved.end())
                self.error(
                    "ambiguous_bracket",
                    "a bracket is missing, and which object this field belongs to is unknown",
                    "close every bracket",
                    *place,
                )
        self.edit(frame.good, frame.good, frame.closer)
        if self._stack:
            self._stack[-1].good = frame.good
            self._stack[-1].last = (frame.start, frame.good) if frame.closer == "}" else None

    def _goes_on(self, frame: _Frame) -> bool:
        """Whether further steps stand behind the first one, without an array around them."""
        end = self.skip(self._pos, quiet=True)
        following = _NEXT.match(self.text, end)
        return (
            following is not None
            and tokens.CANDIDATE.match(self.text, following.end()) is not None
            and re.search(r"\b(?:steps|plan|workflow|schema_version)\b", self.text[frame.start : end]) is None
        )

    def _begin_sequence(self, frame: _Frame) -> None:
        self._is_sequence = True
        self.edit(frame.start, frame.start, "[")
        self.note("missing_bracket", frame.start, frame.start + 1)
        around = _Frame(-1, "]")
        around.good = self._pos
        self._stack.append(around)
        self._kept = len(self.edits)

    def _end(self, pos: int) -> None:
        """The text ends, or goes on with something else, while containers are open."""
        text, stack = self.text, self._stack
        good = stack[-1].good
        if self._is_sequence and len(stack) == 1:
            stack.clear()
            self.edit(good, good, "]")
            self._pos = pos
            return
        if pos >= len(text) and text[good - 1] not in "}]":
            raise self.cut_off(pos)
        while stack:
            if not (self._is_sequence and len(stack) == 1):
                self.note("missing_bracket", good, good)
            self._force()
        self._pos = pos

    def _resume(self, fault: Fault) -> None:
        """Keep an error, and go on with the next step; without one, with nothing."""
        stack = self._stack
        self.errors.append(fault.found)
        start = fault.start
        if self._fault is None:
            self._fault = start
        self._comma = -1
        level = next((place for place, frame in enumerate(stack) if frame.closer == "]"), None)
        upcoming = self._next_step(level, start)
        good = stack[-1].good
        del self.edits[self._kept :]
        self._broken.update(frame.start for frame in stack[1 if level is None else level + 1 :])
        if level is None or upcoming is None:
            self._broken.update(frame.start for frame in stack)
            self.edits.append((good, len(self.text), "".join(frame.closer for frame in reversed(stack))))
            stack.clear()
            self._pos = len(self.text)
            return
        closers = "".join(frame.closer for frame in reversed(stack[level + 1 :]))
        del stack[level + 1 :]
        comma = "," if good > stack[level].start + 1 else ""
        self.edits.append((good, upcoming, closers + comma))
        stack[level].good = stack[level].start + 1 if not comma else upcoming
        self._pos = upcoming

    def _next_step(self, level: int | None, start: int) -> int | None:
        """Where the next step starts: an object that begins as steps do."""
        if level is None:
            return None
        names = ["step_id"]
        if len(self._stack) > level + 1:
            own = tokens.FIRST_KEY.match(self.text, self._stack[level + 1].start + 1)
            names += [re.escape(own[1])] if own else []
        first = re.compile(rf"\{{[ \t\n\r]*+[\"']?(?:{'|'.join(names)})[\"']?[ \t\n\r]*+:")
        found = first.search(self.text, start)
        return None if found is None else found.start()
