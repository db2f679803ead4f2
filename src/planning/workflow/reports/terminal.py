"""The report as a person reads it in a terminal: each source line with carets under the place."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Final

import attrs

from planning.errors import printable
from planning.reading import Source
from planning.workflow.codes import Severity
from planning.workflow.findings import Finding
from planning.workflow.reports.excerpt import excerpt
from planning.workflow.reports.wording import by_importance, counted, listed, plain, short_pointer, step

__all__ = ["rendered"]

_MOST = 100  # problems
_MOST_PLACES = 20  # of one problem, besides the first
_COLUMNS = 100
_WIDEST = 140
_NARROWEST = 40
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
        steps: How many steps the plan has, when it is valid.
        color: Whether to colour it.
        name: What the plan is called.
        width: The columns of the terminal; None where the text does not go to one.
    """
    problems = [*_problems(errors), *_problems(warnings)]
    shown = [findings[0] for findings in problems[:_MOST]]
    last = max((finding.line or 0 for finding in shown), default=0)
    view = _View(_lines(source, shown), printable(name), color, width, " " * len(str(last)))
    blocks = ["\n".join(view.block(list(same))) for _, same in groupby(problems[:_MOST], key=_where)]
    omitted = [finding.severity for findings in problems[_MOST:] for finding in findings]
    left = listed(omitted.count(Severity.ERROR), omitted.count(Severity.WARNING), more="more ")
    if left:
        blocks.append(f"...and {left}")
    blocks.append("\n".join(view.summary(errors, warnings, steps)))
    return "\n\n".join(blocks)


def _problems(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The findings, those that say the same together, in the order of the first of each."""
    same: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        same.setdefault((finding.code, finding.message, finding.hint), []).append(finding)
    return list(same.values())


def _where(findings: Sequence[Finding]) -> tuple[object, ...]:
    """What problems have in common that are shown under one source line."""
    first = findings[0]
    if len(findings) > 1:
        return (first.code, first.message, first.hint)
    return first.severity, first.pointer, first.line, first.column, first.length


def _lines(source: Source | None, findings: Sequence[Finding]) -> dict[int, str]:
    """The source lines of findings by their numbers, each taken once: one line may be the whole text."""
    if source is None:
        return {}
    return {number: source.line(number) for number in {each.line for each in findings} if number is not None}


@attrs.frozen
class _View:
    """What all findings of one report have in common.

    Attributes:
        lines: The source lines that are shown, by their numbers.
        name: What the plan is called.
        color: Whether to colour it.
        width: The columns of the terminal, where it goes to one.
        margin: Blanks for the widest line number.
    """

    lines: Mapping[int, str]
    name: str
    color: bool
    width: int | None
    margin: str

    def block(self, problems: Sequence[Sequence[Finding]]) -> Iterator[str]:
        """The problems at one place, with their source line; or one problem with all of its places."""
        findings = [same[0] for same in problems]
        finding, *others = problems[0]
        severity = _SGR[finding.severity]
        for each in findings:
            label = f"{each.severity}[{each.code}]"
            first, *more = self._wrapped(f"{label}: ", plain(each.message), "  ")
            yield self._paint(label, severity) + self._paint(first.removeprefix(label), _BOLD)
            yield from (self._paint(line, _BOLD) for line in more)
        arrow = self._paint(f"{self.margin}-->", _DIM)
        if finding.line is None or finding.column is None:
            yield f"{arrow} {self.name}"
        else:
            yield f"{arrow} {self.name}:{finding.line}:{finding.column}"
            if finding.line in self.lines:
                yield from self._excerpt(finding.line, finding.column, finding.length, severity)
        about = ", ".join(filter(None, (step(finding), short_pointer(finding.pointer))))
        if about:
            yield from self._note("", about, "")
        for other in others[:_MOST_PLACES]:
            at = () if other.line is None else (f"{other.line}:{other.column}",)
            place = ", ".join(filter(None, (*at, step(other), short_pointer(other.pointer))))
            yield from self._note("", f"also at {place}", "")
        if len(others) > _MOST_PLACES:
            yield from self._note("", f"and at {counted(len(others) - _MOST_PLACES, 'more place')}", "")
        for hint in dict.fromkeys(each.hint for each in findings if each.hint):
            yield from self._note("help: ", plain(hint), _CYAN)

    def summary(
        self, errors: Sequence[Finding], warnings: Sequence[Finding], steps: int | None
    ) -> Iterator[str]:
        """How many findings there are, and the one to look at first."""
        counts = listed(len(errors), len(warnings))
        if not errors:
            parts = filter(None, ("" if steps is None else counted(steps, "step"), counts))
            yield f"{self.name}: " + ", ".join([self._paint("valid", _GREEN), *parts])
            return
        yield f"{self.name}: " + self._paint(counts, _SGR[Severity.ERROR])
        first = by_importance(errors)[0]
        at = "" if first.line is None else f"{first.line}:{first.column}: "
        yield from self._wrapped("most critical: ", f"{at}{plain(first.message)}", "  ")

    def _excerpt(self, line: int, column: int, length: int, sgr: str) -> Iterator[str]:
        gutter = self._paint(f"{self.margin} |", _DIM)
        room = self._columns - len(self.margin) - len(" | ")
        text, offset, carets = excerpt(self.lines[line], column, length, room)
        yield gutter
        number = self._paint(f"{line:>{len(self.margin)}} |", _DIM)
        yield f"{number} {text}" if text else number
        yield f"{gutter} {' ' * offset}{self._paint('^' * carets, sgr)}"

    def _note(self, label: str, text: str, sgr: str) -> Iterator[str]:
        bullet = f"{self.margin} = "
        first, *more = self._wrapped(bullet + label, text, " " * len(bullet + label))
        yield self._paint(bullet, _DIM) + self._paint(first.removeprefix(bullet), sgr)
        yield from (self._paint(line, sgr) for line in more)

    @property
    def _columns(self) -> int:
        return _COLUMNS if self.width is None else min(max(self.width, _NARROWEST), _WIDEST)

    def _wrapped(self, lead: str, text: str, indent: str) -> list[str]:
        """The text behind its lead, on lines of the terminal's width; on one where it goes to no terminal."""
        if self.width is None:
            return [lead + text]
        lines = textwrap.wrap(
            text, self._columns, initial_indent=lead, subsequent_indent=indent, break_on_hyphens=False
        )
        return lines or [lead]

    def _paint(self, text: str, sgr: str) -> str:
        return f"\x1b[{sgr}m{text}\x1b[0m" if self.color and sgr and text else text
