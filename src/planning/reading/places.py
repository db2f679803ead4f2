"""The place of a value in the original text: from a path to offsets and back, and to lines."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from operator import itemgetter

import attrs

from planning.reading import tokens
from planning.reading.found import Path

_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*+,?[ \t\n\r]*+")
_BRACKET = re.compile(r'[^"\[\]{}]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\[\]{}]*+)*+([\[\]{}])', re.DOTALL)
_MOST_CHILDREN = 100_000
_MOST_REPEATED = 1_000
_LONG = 100_000
_FEW = 16
_LINE_END = re.compile(r"\r\n|\n|\r")
_UNIT = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|\\u[0-9a-fA-F]{4}|(?s:\\.|.)")

Span = tuple[int, int]


class Source:
    r"""Text and its lines. Lines end at ``\n``, ``\r\n`` or ``\r``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._has_returns = "\r" in text
        self._asked = 0

    @cached_property
    def _starts(self) -> list[int]:
        if self._has_returns:
            return [0, *(end.end() for end in _LINE_END.finditer(self.text))]
        lengths = (len(line) + 1 for line in self.text.split("\n"))
        return list(accumulate(lengths, initial=0))[:-1]

    def place(self, offset: int) -> tuple[int, int]:
        """The line and the column of an offset, both from 1, in characters."""
        self._asked += 1
        if self._asked <= _FEW and not self._has_returns:  # counting is faster than an index, for a few
            last = self.text.rfind("\n", 0, offset)
            return self.text.count("\n", 0, offset) + 1, offset - last
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line by its number, from 1, without its end."""
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")


class Edits:
    """A part of the text with replacements: the new text, and which offset in it came from which."""

    def __init__(self, text: str, start: int, end: int, edits: Sequence[tuple[int, int, str]]) -> None:
        """Carry the replacements out."""
        pieces: list[str] = []
        length = 0
        self._new, self._old, self._moves = new, old, moves = [0], [start], [True]
        for first, last, replacement in edits:
            pieces += text[start:first], replacement
            length += first - start
            if replacement:
                new.append(length)
                old.append(first)
                moves.append(False)
                length += len(replacement)
            new.append(length)
            old.append(last)
            moves.append(True)
            start = last
        pieces.append(text[start:end])
        self.text = "".join(pieces)

    def original(self, offset: int, *, is_end: bool = False) -> int:
        """The offset in the original of an offset in the new text."""
        at = bisect_right(self._new, offset - is_end) - 1
        if self._moves[at]:
            return self._old[at] + offset - self._new[at]
        is_all = is_end and offset == self._new[at + 1]  # the end of the whole replacement
        return self._old[at + 1 if is_all else at]

    def edited(self, offset: int) -> int:
        """The offset in the new text of an offset in the original."""
        at = bisect_right(self._old, offset) - 1
        return self._new[max(at, 0)] + (offset - self._old[at] if at >= 0 and self._moves[at] else 0)


@attrs.define(eq=False)
class _Children:
    """The members of an object, or the items of an array: those that were read so far."""

    rest: int
    parts: list[str | int] = attrs.field(factory=list)
    keys: list[Span] = attrs.field(factory=list)
    values: list[Span] = attrs.field(factory=list)
    index: dict[str | int, int] = attrs.field(factory=dict)


class Places:
    """The places of the values in a JSON text."""

    def __init__(self, text: str) -> None:
        """Look nothing up yet."""
        self._text = text
        self._known: dict[int, _Children] = {}
        self._strings: dict[
            int, list[int]
        ] = {}  # by its start, where each character of one with escapes starts
        start = len(text) - len(text.lstrip())
        self._root = start, len(text.rstrip())

    def span(self, path: Path, *, at_key: bool = False) -> Span:
        """The place of a value, or of the name of its field."""
        key = value = self._root
        for part in path:
            children = self._children(value[0])
            at = None if children is None else self._find(children, part)
            if children is None or at is None:
                break
            key, value = children.keys[at], children.values[at]
        return key if at_key else value

    def within(self, start: int, part: Span) -> Span:
        """The place of a part of a string, which is given as it is in the decoded string."""
        if start not in self._strings:
            end = self._end(start) - 1
            has_escapes = self._text.find("\\", start, end) >= 0
            found = _UNIT.finditer(self._text, start + 1, end) if has_escapes else ()
            self._strings[start] = [unit.start() for unit in found]
        units = self._strings[start]
        if not units:
            return start + 1 + part[0], start + 1 + part[1]
        return units[part[0]], (units[part[1]] if part[1] < len(units) else self._end(start) - 1)

    def path(self, offset: int) -> Path:
        """The path of the innermost value that starts at an offset or before it, and ends after it."""
        path: list[str | int] = []
        start = self._root[0]
        while (children := self._children(start)) is not None:
            while (not children.values or children.values[-1][1] <= offset) and self._read(children):
                pass
            at = bisect_right(children.keys, offset, key=itemgetter(0)) - 1
            if at < 0 or offset >= children.values[at][1]:
                break
            path.append(children.parts[at])
            start = children.values[at][0]
        return tuple(path)

    def repeated(self) -> list[tuple[Path, Span]]:
        """The first fields that an object has a second time: paths, and the spans of the names."""
        found: list[tuple[Path, Span]] = []
        todo: list[tuple[Path, int]] = [((), self._root[0])]
        while todo and len(found) < _MOST_REPEATED:
            path, start = todo.pop()
            children = self._members(start)
            while self._read(children):
                pass
            seen: set[str | int] = set()
            for part, key, value in zip(children.parts, children.keys, children.values, strict=True):
                if part in seen:
                    found.append(((*path, part), key))
                seen.add(part)
                if self._text[value[0]] in "{[":
                    todo.append(((*path, part), value[0]))
        return found[:_MOST_REPEATED]

    def _end(self, start: int) -> int:
        """The end of a value."""
        long = self._ends.get(start) if self._text[start] in "{[" else None
        return _DECODER.raw_decode(self._text, start)[1] if long is None else long

    @cached_property
    def _ends(self) -> dict[int, int]:
        """By its start, the end of each long container: decoding nested ones would take long."""
        ends: dict[int, int] = {}
        around: list[int] = []
        if len(self._text) <= _LONG:
            return ends
        for bracket in _BRACKET.finditer(self._text):
            at = bracket.start(1)
            if bracket[1] in "{[":
                around.append(at)
            elif at - (start := around.pop()) > _LONG:
                ends[start] = at + 1
        return ends

    def _children(self, start: int) -> _Children | None:
        """The content of a container, or None."""
        return self._members(start) if self._text[start] in "{[" else None

    def _members(self, start: int) -> _Children:
        children = self._known.get(start)
        if children is None:
            children = self._known[start] = _Children(self._pass(start + 1))
        return children

    def _find(self, children: _Children, part: str | int) -> int | None:
        """The child that has this name or number: the last one if there are several."""
        while (isinstance(part, str) or part not in children.index) and self._read(children):
            pass
        return children.index.get(part)

    def _read(self, children: _Children) -> bool:
        """Read one child more; whether there was one, and not too many before it."""
        text, pos = self._text, children.rest
        if text[pos] in "}]" or len(children.parts) >= _MOST_CHILDREN:
            return False
        key = tokens.KEY.match(text, pos)
        part: str | int = len(children.parts)
        name = pos, pos
        if key is not None:
            part, name_end = _DECODER.raw_decode(text, pos)
            name = pos, name_end
            pos = key.end()
        end = self._end(pos)
        children.index[part] = len(children.parts)
        children.parts.append(part)
        children.values.append((pos, end))
        children.keys.append((pos, end) if key is None else name)
        children.rest = self._pass(end)
        return True

    def _pass(self, pos: int) -> int:
        space = _SPACE.match(self._text, pos)
        assert space is not None  # noqa: S101 - it matches the empty text
        return space.end()
