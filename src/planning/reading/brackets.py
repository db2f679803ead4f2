"""Open containers, and whether a closing bracket is theirs, another's, or extra."""

from __future__ import annotations

from typing import Final

from planning.reading.doubt import (
    MOST_WEIGHED,
    could_be_another,
    could_belong_outside,
    last_object,
)
from planning.reading.values import ValueReader
from planning.reading.wanted import Wanted

CLOSERS: Final = {"{": "}", "[": "]"}


class Frame:
    """A container that is open.

    Attributes:
        start: The offset of its opening bracket.
        closer: The bracket that closes it.
        good: The offset after the last complete item in it.
        last: The offsets of what is its last member, or its last item, when that is a container too.
    """

    __slots__ = ("closer", "good", "last", "start")

    def __init__(self, start: int, closer: str) -> None:
        self.start = start
        self.closer = closer
        self.good = start + 1
        self.last: tuple[int, int] | None = None


class Brackets(ValueReader):
    """Keeps the containers that are open.

    Attributes:
        stack: The containers, the innermost last.
        pos: Where reading continues.
        kept: How many of the edits are before the last complete item.
        broken: Where containers start that lack something.
        forced: Where it showed first that a bracket is missing.
        is_ambiguous: Whether a bracket can be meant in two ways.
    """

    def __init__(self, text: str, start: int, wanted: Wanted) -> None:
        super().__init__(text, wanted)
        self.pos = start + 1
        self.stack = [Frame(start, CLOSERS[text[start]])]
        self.kept = 0
        self.broken: set[int] = set()
        self.forced: int | None = None
        self.is_ambiguous = False
        self._in_doubt: set[int] = set()  # where the containers start that this concerns
        self._weighed = 0

    def look_behind(self, outermost: Frame) -> None:
        """Called when the outermost container was closed."""

    def close(self, char: str, pos: int) -> None:
        """Take a closing bracket: of the innermost container, or of one around it, or of none."""
        stack = self.stack
        if stack[-1].closer != char:
            if not self.can_close(char):
                self._drop(pos)
                return
            while stack[-1].closer != char:
                self.force(pos, pos + 1)
        frame = stack.pop()
        self.pos = pos + 1
        self.had_line_break = False
        if stack:
            stack[-1].good = pos + 1
            stack[-1].last = (frame.start, pos + 1)
            self.kept = len(self.edits)
        elif char == "}":
            self.look_behind(frame)

    def _drop(self, pos: int) -> None:
        """Leave out a closing bracket without an opening one; an error where it may be another one."""
        last, self.pos, self.stack[-1].last = self.stack[-1].last, pos + 1, None
        if self.forced is not None:
            message = "some brackets are missing and some are extra"
            self._doubt(message, self.forced, self.forced + 1, self._in_doubt)
            self._in_doubt = set()
        elif last is not None and (
            self._is_too_long(*last) or could_be_another(self.text, *last, self._known(len(self.stack)))
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
        """Whether what would be read once more to settle a doubt is too long, with all that was before."""
        self._weighed += end - start
        return self._weighed > MOST_WEIGHED

    def can_close(self, char: str) -> bool:
        """Whether a container is open that this bracket closes."""
        return any(frame.closer == char for frame in self.stack)

    def _known(self, depth: int) -> frozenset[str] | None:
        """The fields that a container at a depth may have; None where it may have any."""
        return (self.wanted.fields or None) if depth <= self.level() + 1 else None

    def level(self) -> int:
        """The depth of the list of items: the outermost list; -1 without one."""
        return next((depth for depth, frame in enumerate(self.stack) if frame.closer == "]"), -1)

    def force(self, start: int, end: int) -> None:
        """Close the innermost container, which nothing closes; an error where it may have ended before."""
        known = self._known(len(self.stack) - 1)
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
