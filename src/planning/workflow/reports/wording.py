"""The words that every form of a report shares: a finding on one line, its place, and counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from planning.errors import show
from planning.workflow.codes import Category
from planning.workflow.findings import Finding, plain

__all__ = [
    "by_importance",
    "counted",
    "item",
    "listed",
    "place",
    "plain",
    "sentence",
    "short_pointer",
    "step",
]

_RANK: Final = {category: rank for rank, category in enumerate(Category)}
_POINTER_HEAD = 60
_POINTER_TAIL = 37


def counted(count: int, noun: str) -> str:
    """A number with its noun: ``1 error``, ``2 errors``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def listed(errors: int, warnings: int, *, more: str = "") -> str:
    """How many errors and warnings there are, omitting a count of zero."""
    numbers = ((errors, f"{more}error"), (warnings, f"{more}warning"))
    return " and ".join(counted(number, noun) for number, noun in numbers if number)


def step(finding: Finding) -> str:
    """The step by its number, from 1, and its id; empty where the finding is about no single one."""
    if finding.step_index is None:
        return ""
    number = f"step {finding.step_index + 1}"
    return number if finding.step_id is None else f"{number} {plain(show(finding.step_id))}"


def short_pointer(pointer: str) -> str:
    """The JSON pointer; a very long one without its middle."""
    if len(pointer) > _POINTER_HEAD + _POINTER_TAIL + 3:
        pointer = f"{pointer[:_POINTER_HEAD]}...{pointer[-_POINTER_TAIL:]}"
    return plain(pointer)


def place(finding: Finding) -> str:
    """Where it is, as far as that is known: ``line 4, column 15, step 2 'fetch', /steps/1/name``."""
    line = "" if finding.line is None else f"line {finding.line}, column {finding.column}"
    return ", ".join(filter(None, (line, step(finding), short_pointer(finding.pointer))))


def item(words: tuple[str, str]) -> str:
    """A message and its hint, on one line."""
    return "; ".join(plain(part) for part in words if part)


def sentence(finding: Finding) -> str:
    """The whole finding on one line."""
    at, what = place(finding), item((finding.message, finding.hint))
    return f"{at}: {what}" if at else what


def by_importance(errors: Iterable[Finding]) -> Sequence[Finding]:
    """The most critical first; of the same category in the order of the document."""
    return sorted(errors, key=lambda each: _RANK[each.category])
