"""One value of almost-JSON -> the edits that make it JSON, and its problems.

Reads tokens with its own stack. Long runs of plain members are skipped by one
regular expression each, so that what costs is what is odd. It repairs what can be meant in one way only;
everything else is an error, after which it continues with the next step.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from operator import itemgetter
from typing import Any, Final

import attrs

from planning.reading import tokens
from planning.reading.found import Wanted
from planning.reading.values import Fault, ValueReader

MOST_WEIGHED: Final = 2_000_000
"""The characters that are read once more to settle doubts; beyond them a doubt remains."""

_TOKEN: Final = re.compile(
    r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|(?://|\#)[^\n\r]*+|/\*(?:[^*]|\*(?!/))*+\*/|[^\s\"'/\#{}\[\],:]++|.",
    re.DOTALL,
)


class _Node:
    """A container, as far as it matters here."""

    __slots__ = ("is_object", "members", "start")

    def __init__(self, text: str, start: int) -> None:
        self.start = start
        self.is_object = text[start] == "{"
        self.members: list[tuple[int, str, _Node | None]] = []


def could_belong_outside(text: str, start: int, end: int, known: Container[str] | None) -> int | None:
    """The first member that could belong to the enclosing container instead, which lacks a bracket."""
    for node in _last_ones(text, start, end):
        for offset, name, _ in node.members[1:]:
            if known is None or name in known:
                return offset
        known = None
    return None


def could_be_another(text: str, start: int, end: int, known: Container[str] | None) -> bool:
    """True if, for an extra bracket after a container, an earlier one inside could be the wrong one."""
    for node in _last_ones(text, start, end):
        is_behind = False
        for _, name, inner in node.members:
            if is_behind and (known is None or name not in known):
                return True
            is_behind = is_behind or (inner is not None and inner.is_object == node.is_object)
        known = None
    return False


def last_object(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The offsets of the object that ends a part of an object; None where it ends with something else."""
    end = len(text[start:end].rstrip()) + start
    members = _read(text, start, end).members
    last = members[-1][2] if members else None
    return (last.start, end) if last is not None and last.is_object and text[end - 1] == "}" else None


def _last_ones(text: str, start: int, end: int) -> Iterator[_Node]:
    """A container, and the last thing in each as long as that is a container of the same kind."""
    node: _Node | None = _read(text, start, end)
    while node is not None:
        yield node
        last = node.members[-1][2] if node.members else None
        node = last if last is not None and last.is_object == node.is_object else None


def _read(text: str, start: int, end: int) -> _Node:
    root = _Node(text, start)
    stack, before = [root], start
    for token in _TOKEN.finditer(text, start + 1, end):
        char, node = token[0][0], stack[-1]
        if char.isspace() or char == "," or token[0].startswith(("//", "#", "/*")):
            continue
        if char in "}]":
            del stack[max(len(stack) - 1, 1) :]
        elif node.is_object and char == ":":
            node.members.append((before, text[before : token.start()].strip(" \t\r\n\"'"), None))
        elif char in "{[":
            inner = _Node(text, token.start())
            stack.append(inner)
            if not node.is_object:
                node.members.append((token.start(), "", inner))
            elif node.members:
                node.members[-1] = (*node.members[-1][:2], inner)
        elif not node.is_object:
            node.members.append((token.start(), "", None))
        before = token.start()
    return root


_CLOSERS: Final = {"{": "}", "[": "]"}
MOST_FAULTS: Final = 1_000
_FIELD_IN_LIST: Final = "a field is among the items of a list: a bracket is missing"
_AFTER = re.compile(r"[ \t\n\r]*+[,}\]]")
_NEXT = re.compile(r"\s*+,?\s*+(?=\{)")
_BRACKET = re.compile(r"[{}\[\]]")


@attrs.define(eq=False)
class _Frame:
    """A container that is open: its opening bracket's offset, and the bracket that closes it."""

    start: int
    closer: str
    good: int  # the offset after the last complete item in it
    last: tuple[int, int] | None = None  # the offsets of its last member or item, if that is a container too


class Reading(ValueReader):
    """A reading of the value that starts with a bracket.

    Attributes:
        start: The offset of the bracket.
        fault: Where reading stopped for the first time; None where it never did.
        value: The value, where it is plain JSON.
        stack: The containers that are open, the innermost last.
        pos: Where reading continues.
        kept: How many of the edits are before the last complete item.
        broken: Where containers start that lack something.
        forced: Where it showed first that a bracket is missing.
        is_ambiguous: Whether a bracket can be meant in two ways.
    """

    def __init__(
        self, text: str, start: int, wanted: Wanted, *, is_prose: bool = False, is_finished: bool = False
    ) -> None:
        """Read the value."""
        super().__init__(text, wanted)
        self.start = start
        self.pos = start + 1
        self.stack = [_Frame(start, _CLOSERS[text[start]], start + 1)]
        self.kept = 0
        self.broken: set[int] = set()
        self.forced: int | None = None
        self.fault: int | None = None
        self.is_ambiguous = False
        self._in_doubt: set[int] = set()  # where the containers start that this concerns
        self._weighed = 0
        self._is_prose = is_prose
        self._is_finished = is_finished
        self._comma = -1  # the comma after which an item is expected
        self._first_comma = -1
        self._commas = 0  # how many commas were ignored: the commonest repair, counted here
        self._is_sequence = False
        self._faults = 0
        self._item = -1  # where the scalar starts that was read last, if it was one
        self.value: Any
        self.value, end = self.plain_value(start) or (None, start)

        while self.stack:
            try:
                if self.pos < end:
                    self._close(text[end - 1], end - 1)
                    self._pass_after()
                self._read()
            except Fault as fault:
                self._resume(fault)
        if self._commas:
            self.notes["trailing_comma"] = self._first_comma, self._first_comma + 1, self._commas
        if self.is_ambiguous:
            self.notes.pop("missing_bracket", None)
            self.notes.pop("extra_bracket", None)
        self.edits.sort(key=itemgetter(0, 1))  # insertions come before removals

    def _close(self, char: str, pos: int) -> None:
        """Take a closing bracket: of the innermost container, or of one around it, or of none."""
        stack = self.stack
        if stack[-1].closer != char:
            if not self._can_close(char):
                self._drop(pos)
                return
            while stack[-1].closer != char:
                self._force(pos, pos + 1)
        frame = stack.pop()
        self.pos = pos + 1
        self.had_line_break = False
        if stack:
            stack[-1].good = pos + 1
            stack[-1].last = (frame.start, pos + 1)
            self.kept = len(self.edits)
        elif char == "}":
            self._look_behind(frame)

    def _drop(self, pos: int) -> None:
        """Leave out a closing bracket without an opening one; an error where it may be another one."""
        last, self.pos, self.stack[-1].last = self.stack[-1].last, pos + 1, None
        if self.forced is not None:
            message = "some brackets are missing and some are extra"
            self._doubt(message, self.forced, self.forced + 1, self._in_doubt)
            self._in_doubt = set()
        elif last is not None and (
            self._is_too_long(*last) or could_be_another(self.text, *last, self._find_known(len(self.stack)))
        ):
            self._doubt("there is an extra closing bracket, and it is unclear which", pos, pos + 1, {last[0]})
        else:
            self.note("extra_bracket", pos, pos + 1)
        self.edit(pos, pos + 1, "")

    def _doubt(self, message: str, start: int, end: int, frames: set[int]) -> None:
        """Keep the error of a bracket that can be meant in two ways, instead of a repair."""
        if not self.is_ambiguous:
            self.error("ambiguous_bracket", message, "close every bracket once", start, end)
        self.is_ambiguous = True
        self.broken |= frames

    def _is_too_long(self, start: int, end: int) -> bool:
        """True if what would be read once more to settle a doubt is too long, with all that was before."""
        self._weighed += end - start
        return self._weighed > MOST_WEIGHED

    def _can_close(self, char: str) -> bool:
        """True if a container is open that this bracket closes."""
        return any(frame.closer == char for frame in self.stack)

    def _find_known(self, depth: int) -> frozenset[str] | None:
        """The fields that a container at a depth may have; None where it may have any."""
        return (self.wanted.fields or None) if depth <= self._level() + 1 else None

    def _level(self) -> int:
        """The depth of the list of items: the outermost list; -1 without one."""
        return next((depth for depth, frame in enumerate(self.stack) if frame.closer == "]"), -1)

    def _force(self, start: int, end: int) -> None:
        """Close the innermost container, which nothing closes; an error where it may have ended before."""
        known = self._find_known(len(self.stack) - 1)
        frame = self.stack.pop()
        doubtful = None
        last = frame.last
        if frame.good == frame.start + 1:
            if self.stack and self.stack[-1].closer == frame.closer:
                doubtful = frame.start  # "[3, 4 [ }": it may be meant as the closing bracket
        elif self._is_too_long(frame.start, frame.good):
            doubtful = frame.start
        else:
            if last is None and frame.closer == "}":
                last = last_object(self.text, frame.start, frame.good)
            if last is not None and self.text[last[0]] == self.text[frame.start]:
                doubtful = could_belong_outside(self.text, *last, known)
        if doubtful is None:
            self.note("missing_bracket", start, end)
            self.forced = start if self.forced is None else self.forced
            self._in_doubt.update(container.start for container in (frame, *self.stack))
        else:
            message = "a bracket is missing, and it is unclear what this belongs to"
            start, end = (doubtful, doubtful + 1) if frame.closer == "}" else (start, end)
            self._doubt(message, start, end, {frame.start})
        self.edit(frame.good, frame.good, frame.closer)
        if self.stack:
            self.stack[-1].good = frame.good
            self.stack[-1].last = (frame.start, frame.good)

    def _read(self) -> None:
        """Read items until everything is closed."""
        text, stack = self.text, self.stack
        members, items = tokens.MEMBERS.match, tokens.ITEMS.match
        while stack:
            self.count_work(self.pos)
            self._item = -1
            frame = stack[-1]
            is_object = frame.closer == "}"
            run = (members if is_object else items)(text, self.pos)
            assert run is not None  # noqa: S101 - it matches the empty text
            pos = run.end()
            comma = run.start(1)
            if comma >= 0:
                frame.good = self._comma = comma
                frame.last = None
                self.kept = len(self.edits)
            char = text[pos : pos + 1]
            if char not in '"{[}]':
                self.pos = pos = self.skip(pos)
                char = text[pos : pos + 1]
            if char and (char == frame.closer or (char in "}]" and self._can_close(char))):
                if self._comma >= 0:
                    self._drop_comma(self._comma)
                    self._comma = -1
                self._close(char, pos)
                self._pass_after()
                continue
            if is_object:
                key = tokens.KEY.match(text, pos)
                pos = self._odd_key(pos) if key is None else key.end()
                char = text[pos : pos + 1]
                if char in "/#" or char > "~":
                    pos = self.skip(pos)
                    char = text[pos : pos + 1]
            if char and char in "{[":
                if (char == "[" or is_object) and self._is_flat(char, pos, frame):
                    self._pass_after()
                else:
                    self._open(char, pos)
                continue
            self.had_line_break = False
            self._item = pos
            scalar = tokens.SCALAR.match(text, pos)
            self.pos = frame.good = self.odd_value(pos) if scalar is None else scalar.end()
            frame.last = None
            self.kept = len(self.edits)
            self._pass_after()

    def _drop_comma(self, pos: int) -> None:
        self.edits.append((pos, pos + 1, ""))
        if not self._commas:
            self._first_comma = pos
        self._commas += 1

    def _is_flat(self, char: str, pos: int, frame: _Frame) -> bool:
        """Pass over a container of scalars at once; whether it is one."""
        flat = (tokens.ARRAY if char == "[" else tokens.OBJECT).match(self.text, pos)
        if flat is None or len(self.stack) >= self.wanted.most_levels:
            return False
        if flat.lastindex == 1:
            self._drop_comma(flat.start(1))
        frame.last = (pos, flat.end())
        self.had_line_break = False
        self.pos = frame.good = flat.end()
        self.kept = len(self.edits)
        return True

    def _open(self, char: str, pos: int) -> None:
        if len(self.stack) >= self.wanted.most_levels:
            message = f"nested deeper than {self.wanted.most_levels} levels"
            raise Fault("too_deep", message, "send flatter values", pos)
        self.stack.append(_Frame(pos, _CLOSERS[char], pos + 1))
        self.pos, self._comma = pos + 1, -1
        self.kept = len(self.edits)

    def _pass_after(self) -> None:
        """After a value: read closing brackets up to the comma before the next item."""
        text, stack = self.text, self.stack
        while stack:
            self.count_work(self.pos)
            after = _AFTER.match(text, self.pos)
            if after is None:
                if self._pass_odd_after():
                    return
                continue
            end = after.end()
            if text[end - 1] == ",":
                self._comma, self.pos = end - 1, end
                return
            self._close(text[end - 1], end - 1)

    def _pass_odd_after(self) -> bool:
        """After a value without comma or bracket; whether an item follows."""
        text, value_end = self.text, self.pos
        self.pos = pos = self.skip(value_end)
        char = text[pos : pos + 1]
        if self.is_over(pos):
            self._end(pos)
            return False
        if char in ",}]":
            return False  # a comment was before it
        before = text[value_end - 1]
        if before in "}]" and _BRACKET.search(text, pos) is None:  # prose after the plan
            self._end(pos)
            return False
        is_apart = before in "}]" or re.search(r"[\n\r]", text[value_end:pos]) is not None
        if is_apart and not self.had_line_break and self._starts_item(pos):
            if not self._is_sequence or len(self.stack) > 1:
                self.note("missing_comma", pos, pos + 1)
            self.edits.append((self.stack[-1].good, self.stack[-1].good, ","))
            self._comma = -1
            return True
        is_bare = bool(self.errors) and self.errors[-1].span == (self._item, value_end)
        if char == ":" and self.stack[-1].closer == "]" and (before in "\"'" or is_bare):
            if is_bare:
                self.errors.pop()  # as the names of fields may be
            self.is_ambiguous = True
            hint = "close the list before the field, or write { before it and } after its value"
            raise Fault("ambiguous_bracket", _FIELD_IN_LIST, hint, self._item, value_end)
        if before in "\"'":
            raise self.ends_too_early(pos)
        expected = "a comma or a closing bracket"
        raise Fault("syntax_error", f"expected {expected}, got {self.shown(pos)}", "send plain JSON", pos)

    def _starts_item(self, pos: int) -> bool:
        if self.stack[-1].closer == "]":
            return self.text[pos] in "{[\"'-0123456789" or tokens.LITERAL.match(self.text, pos) is not None
        return self.text[pos] in "\"'" or tokens.NAME.match(self.text, pos) is not None

    def _odd_key(self, pos: int) -> int:
        """Read a field name that is not plain JSON, and its colon; returns the offset of the value."""
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
                message = f"expected a field name, got {self.shown(pos)}"
                raise Fault("syntax_error", message, "write field names in double quotes", pos)
            end = name.end()
            self.edit(pos, pos, '"')
            self.edit(end, end, '"')
            self.note("bare_key", pos, end)
        name_end, end = end, self.skip(end)
        if self.is_over(end):
            raise self.cut_off(end)
        if text[end] != ":":
            if char in "\"'" and text[name_end].isalnum():
                raise self.ends_too_early(end)
            message = f"expected a colon after a field name, got {self.shown(end)}"
            raise Fault("syntax_error", message, 'write fields as "name": value', end)
        return self.skip(end + 1)

    def _look_behind(self, outermost: _Frame) -> None:
        """Continue if further steps follow the first one, without an array around them."""
        wanted = self.wanted
        if not wanted.item:
            return
        end = self.skip(self.pos, quiet=True)
        following = _NEXT.match(self.text, end)
        if (
            following is not None
            and tokens.CANDIDATE.match(self.text, following.end()) is not None
            and re.search(rf"\b(?:{'|'.join(wanted.names)})\b", self.text[outermost.start : end]) is None
        ):
            self._begin_sequence(outermost)

    def _begin_sequence(self, frame: _Frame) -> None:
        self._is_sequence = True
        self.edit(frame.start, frame.start, "[")
        self.note("missing_bracket", frame.start, frame.start + 1)
        self.stack.append(_Frame(-1, "]", self.pos))
        self.kept = len(self.edits)

    def _end(self, pos: int) -> None:
        """The text ends, or continues with something else, while containers are open."""
        text, stack = self.text, self.stack
        good = stack[-1].good
        if self._is_sequence and len(stack) == 1:
            stack.clear()
            self.edit(good, good, "]")
            self.pos = pos
            return
        if pos >= len(text) and not self._is_finished:
            raise self.cut_off(pos)
        while stack:
            if self._is_sequence and len(stack) == 1:
                self.edit(good, good, stack.pop().closer)
            else:
                self._force(good, good)
        self.pos = pos

    def _resume(self, fault: Fault) -> None:
        """Keep an error, and continue with the next step, if there is one."""
        stack = self.stack
        self._faults += 1
        if self._faults > MOST_FAULTS:
            fault = self.too_much(fault.start)
        if not self._is_consequence(fault):
            self.errors.append(fault.found)
        start = fault.start
        if self.fault is None:
            self.fault = start
        self._comma = -1
        self.spoilt.add(self._item)
        level = next((place for place, frame in enumerate(stack) if frame.closer == "]"), None)
        is_lost = fault.found.code == "too_long" or (
            self._is_prose and self.wanted.marks.search(self.text, self.start, start) is None
        )
        self._is_prose = False
        upcoming = None if is_lost else self._next_step(level, start)
        good = stack[-1].good
        del self.edits[self.kept :]
        self.broken.update(frame.start for frame in stack[1 if level is None else level + 1 :])
        if level is None or upcoming is None:
            self.broken.update(frame.start for frame in stack)
            self.edits.append((good, len(self.text), "".join(frame.closer for frame in reversed(stack))))
            stack.clear()
            self.pos = len(self.text)
            return
        closers = "".join(frame.closer for frame in reversed(stack[level + 1 :]))
        del stack[level + 1 :]
        comma = "," if good > stack[level].start + 1 else ""
        self.edits.append((good, upcoming, closers + comma))
        stack[level].good = stack[level].start + 1 if not comma else upcoming
        self.pos = upcoming

    def _is_consequence(self, fault: Fault) -> bool:
        """True if it is but the rest of an error that was kept already."""
        last = self.errors[-1].span if self.errors else None
        return (
            last is not None
            and last[1] >= self.stack[-1].good
            and fault.found.code not in {"truncated", "too_long"}
        )

    def _next_step(self, level: int | None, start: int) -> int | None:
        """The start of the next item: an object that begins as items do, or as the one that is broken."""
        if level is None:
            return None
        names = [self.wanted.item] if self.wanted.item else []
        if len(self.stack) > level + 1:
            own = tokens.FIRST_KEY.match(self.text, self.stack[level + 1].start + 1)
            names += [re.escape(own[1])] if own else []
        if not names:
            return None
        first = re.compile(rf"\{{[ \t\n\r]*+[\"']?(?:{'|'.join(names)})[\"']?[ \t\n\r]*+:")
        found = first.search(self.text, start)
        return None if found is None else found.start()
