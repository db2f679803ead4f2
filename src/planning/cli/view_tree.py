"""A workflow as a tree of lines: coloured and cut to a terminal, or plain and whole."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

import attrs
from rich.cells import cell_len, set_cell_size

from planning.cli.printable import one_line
from planning.workflow.drawing import State, TreeLine, called, state_of, tree_lines
from planning.workflow.model import Workflow

__all__ = ["tree_text"]

# state -> (mark, mark where only ASCII prints, SGR)
_MARKS: Final = MappingProxyType[State, tuple[str, str, str]]({
    "completed": ("✓", "x", "32"),
    "skipped": ("↷", "~", "2"),
    "in_progress": ("▶", ">", "1;33"),
    "failed": ("✗", "!", "1;31"),
    "pending": ("○", ".", "2"),
})  # fmt: skip
_ASCII_LEADS: Final = str.maketrans("├└│─↓", "|`|-v")
_BOLD, _DIM, _CYAN, _YELLOW = "1", "2", "36", "33"
_LEVELS = 12
_LEVEL = 10  # in a terminal, the columns for each level of the tree
_NARROWEST = 20
# The columns without which a part of a line is left out, what can be spared first: what is called, what the
# step is for, what it waits for.
_LEAST: Final = MappingProxyType({_CYAN: 16, "": 8, _YELLOW: 12})
_NAMED = 3  # steps after "after" in a terminal
_BETWEEN = 3  # " · "
_STAYS = "\u00a0"  # a blank at which no line is broken
_MARGIN = 40  # characters that may take no column, beyond the columns there are


def tree_text(
    workflow: Workflow, *, width: int | None = None, color: bool = False, is_ascii: bool = False
) -> str:
    """The tree of a workflow as lines of text, below its goal and how far it is.

    Nothing in the workflow can act on a terminal.

    Args:
        workflow: A valid workflow.
        width: The columns of the terminal, to which the lines are cut; None where nothing is cut.
        color: Whether to colour it.
        is_ascii: Whether to draw with ASCII alone; texts stay as they are.
    """
    pen = _Pen(None if width is None else max(width, _NARROWEST), color, is_ascii)
    lines = list(pen.head(workflow))
    levels = _LEVELS if pen.width is None else pen.width // _LEVEL
    lines += map(pen.line, tree_lines(workflow, levels=levels))
    return "\n".join(lines) + "\n"


@attrs.frozen
class _Pen:
    """What all lines of one tree have in common.

    Attributes:
        width: The columns of the terminal; None where nothing is cut.
        color: Whether to colour it.
        is_ascii: Whether to draw with ASCII alone.
    """

    width: int | None
    color: bool
    is_ascii: bool

    def head(self, workflow: Workflow) -> Iterator[str]:
        """The goal, how many steps there are, and in which states: with the marks of these states."""
        goal = self._text(workflow.goal.strip())
        if goal:
            yield self._paint(goal if self.width is None else self._cut(goal, self.width), _BOLD)
        count = len(workflow.steps)
        told = f"{count:,} step{'' if count == 1 else 's'}"
        states = Counter(map(state_of, workflow.steps))
        if set(states) - {"pending"}:
            # A mark, its number and its words stay on one line.
            counts = (f"{self._mark(each)} {states[each]:,} {each}" for each in _MARKS if states[each])
            told += ": " + ", ".join(each.replace("_", " ").replace(" ", _STAYS) for each in counts)
        lines = [told] if self.width is None else textwrap.wrap(told, self.width)
        yield from (line.replace(_STAYS, " ") for line in lines)
        if count:
            yield ""

    def line(self, line: TreeLine) -> str:
        """One step: its id, what it is for, what it calls, and what it waits for elsewhere in the tree."""
        state = state_of(line.step)
        lead = line.lead.translate(_ASCII_LEADS) if self.is_ascii else line.lead
        parts = {
            _BOLD: self._text(line.step.step_id),
            "": self._text(line.step.description.strip()),
            _CYAN: self._text(called(line.step)),
            _YELLOW: self._after(line.after),
        }
        parts = {sgr: text for sgr, text in parts.items() if text}
        if self.width is not None:
            widths = _widths(parts, self.width - len(lead) - len("x "))
            parts = {sgr: self._cut(parts[sgr], widths[sgr]) for sgr in parts if sgr in widths}
        told = self._paint(" - " if self.is_ascii else " · ", _DIM).join(
            self._paint(text, sgr) for sgr, text in parts.items()
        )
        return f"{self._paint(lead, _DIM)}{self._paint(self._mark(state), _MARKS[state][2])} {told}"

    def _after(self, ids: Sequence[str]) -> str:
        if not ids:
            return ""
        shown = ids if self.width is None or len(ids) <= _NAMED + 1 else ids[:_NAMED]
        told = "after " + ", ".join(map(self._text, shown))
        return told if len(shown) == len(ids) else f"{told} and {len(ids) - len(shown):,} more"

    def _text(self, text: str) -> str:
        """A text of the workflow on one line; in a terminal no more of it than could be shown."""
        if self.width is None or len(text) <= self.width + _MARGIN:
            return one_line(text)
        return one_line(text[: self.width + _MARGIN]) + self._tail

    def _cut(self, text: str, width: int) -> str:
        """The text in at most so many columns."""
        if cell_len(text) <= width:
            return text
        return set_cell_size(text, width - len(self._tail)).rstrip() + self._tail

    @property
    def _tail(self) -> str:
        """What stands for the rest of a text."""
        return "..." if self.is_ascii else "…"

    def _mark(self, state: State) -> str:
        mark, plain, _ = _MARKS[state]
        return plain if self.is_ascii else mark

    def _paint(self, text: str, sgr: str) -> str:
        return f"\x1b[{sgr}m{text}\x1b[0m" if self.color and sgr and text.strip() else text


def _widths(parts: Mapping[str, str], room: int) -> dict[str, int]:
    """How wide each part of a line may be, so that they stand beside each other in so many columns.

    Args:
        parts: By the SGR code that each is painted with. The first takes up to half of the columns, and what
            the others leave; these are left out where there is too little for them to be read.
        room: How many columns there are.
    """
    name, *rest = parts
    needs = {sgr: cell_len(text) for sgr, text in parts.items()}
    least = {sgr: min(needs[sgr], _LEAST[sgr]) for sgr in rest}
    first = min(needs[name], room // 2 if rest else room)
    for sgr in _LEAST:
        if first + sum(least.values()) + _BETWEEN * len(least) <= room:
            break
        least.pop(sgr, None)
    spare = room - first - sum(least.values()) - _BETWEEN * len(least)
    widths = {name: first}
    for sgr in (_YELLOW, _CYAN, "", name):
        if sgr in least or sgr == name:
            widths[sgr] = min(needs[sgr], least.get(sgr, first) + spare)
            spare -= widths[sgr] - least.get(sgr, first)
    return widths
