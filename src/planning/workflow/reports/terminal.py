"""The report as a person reads it in a terminal: each source line with carets under the place."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Final

from planning.errors import printable
from planning.reading import Source
from planning.workflow.codes import Severity
from planning.workflow.findings import Finding
from planning.workflow.reports.wording import by_importance, counted, listed, plain, short_pointer, step

_MOST = 100
_COLUMNS = 100
_NARROWEST = 40
_CUT: Final = "..."
_BOLD, _DIM, _CYAN, _GREEN = "1", "2", "36", "1;32"
_SGR: Final = MappingProxyType({Severity.ERROR: "1;31", Severity.WARNING: "1;33"})


def rendered(
    errors: Sequence[Finding],
    warnings: Sequence[Finding],
    source: Source | None,
    *,
    steps: int | None,
    color: bool,
    name: str,
    width: int | None,
) -> str:
    """The findings one after another, the errors first, and at the end how many there are.

    Args:
        errors: In the order of the document.
        warnings: In the order of the document.
        source: The original text, where there is one.
        steps: How many steps the workflow has, when it is valid.
        color: Whether to colour it.
        name: What the workflow is called.
        width: The columns of the terminal; None where the text does not go to one.
    """

    def paint(text: str, sgr: str) -> str:
        return f"\x1b[{sgr}m{text}\x1b[0m" if color else text

    shown = [*errors, *warnings][:_MOST]
    numbers = {each.line for each in shown if each.line is not None}
    # Each line is taken once: one may be the whole text.
    lines = {} if source is None else {number: source.line(number) for number in numbers}
    margin = " " * len(str(max(numbers, default=0)))
    room = (_COLUMNS if width is None else max(width, _NARROWEST)) - len(margin) - len(" | ")
    name = printable(name)

    def block(finding: Finding) -> Iterator[str]:
        sgr = _SGR[finding.severity]
        label = paint(f"{finding.severity}[{finding.code}]", sgr)
        yield label + paint(f": {plain(finding.message)}", _BOLD)
        place = "" if finding.line is None else f":{finding.line}:{finding.column}"
        yield f"{paint(f'{margin}-->', _DIM)} {name}{place}"
        if finding.line in lines and finding.column is not None:
            text, offset, carets = excerpt(lines[finding.line], finding.column, finding.length, room)
            yield paint(f"{margin} |", _DIM)
            yield f"{paint(f'{finding.line:>{len(margin)}} |', _DIM)} {text}".rstrip(" ")
            yield f"{paint(f'{margin} |', _DIM)} {' ' * offset}{paint('^' * carets, sgr)}"
        about = ", ".join(filter(None, (step(finding), short_pointer(finding.pointer))))
        if about:
            yield f"{paint(f'{margin} =', _DIM)} {about}"
        if finding.hint:
            yield f"{paint(f'{margin} =', _DIM)} {paint(f'help: {plain(finding.hint)}', _CYAN)}"

    blocks = ["\n".join(block(each)) for each in shown]
    left = listed(max(0, len(errors) - _MOST), len(warnings) - max(0, len(shown) - len(errors)), more="more ")
    blocks += [f"...and {left}"] if left else []
    if errors:
        first = by_importance(errors)[0]
        at = "" if first.line is None else f"{first.line}:{first.column}: "
        counts = paint(listed(len(errors), len(warnings)), _SGR[Severity.ERROR])
        blocks.append(f"{name}: {counts}\nmost critical: {at}{plain(first.message)}")
    else:
        parts = ("" if steps is None else counted(steps, "step"), listed(0, len(warnings)))
        blocks.append(f"{name}: " + ", ".join([paint("valid", _GREEN), *filter(None, parts)]))
    return "\n\n".join(blocks)


def excerpt(line: str, column: int, length: int, width: int) -> tuple[str, int, int]:
    """The part of a line around a place, the columns before the place in it, and those of the place.

    Args:
        line: The line, without its end; it may be of any length.
        column: Where the place begins, from 1; the one after the last character is its end.
        length: How many characters it has. What does not fit is omitted.
        width: The columns that there are.
    """
    at, start, end = min(column - 1, len(line)), 0, len(line)
    width = width if line.isascii() else width // 2  # a character may take two columns
    if end > width:
        room = width - 2 * len(_CUT)
        start = min(max(0, at - room // 2), end - room)
        end = start + room
    before = _CUT * (start > 0) + printable(line[start:at])
    place, rest = printable(line[at : min(at + length, end)]), printable(line[min(at + length, end) : end])
    return before + place + rest + _CUT * (end < len(line)), _columns(before), max(1, _columns(place))


def _columns(text: str) -> int:
    """How many columns a terminal needs for a text."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(each) in {"W", "F"} for each in text)
    return len(text) + wide - sum(unicodedata.category(each) in {"Mn", "Me"} for each in text)
