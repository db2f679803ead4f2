"""Errors and warnings about a plan: one value for each place."""

from __future__ import annotations

import re

import attrs

from planning.errors import cut
from planning.reading import Path
from planning.workflow.codes import CODES, Category, Severity

_FENCE = re.compile(r"`{3,}|~{3,}")
_LONGEST = 500


@attrs.frozen
class Finding:
    """One error or warning about a plan.

    Attributes:
        code: What kind of finding it is: one of the catalogue, and stable.
        message: What is wrong.
        hint: What to do about it.
        step_index: Which step it is about, from 0; None where it is about no single one.
        step_id: The id of that step, where it has one.
        pointer: Where in the parsed document: a JSON pointer (RFC 6901); empty for the whole.
        line: The line in the original text, from 1; None where there is no text.
        column: The column in that line, from 1, in characters.
        length: How many characters from there on are meant, at least 1.
    """

    code: str
    message: str
    hint: str
    step_index: int | None = None
    step_id: str | None = None
    pointer: str = ""
    line: int | None = None
    column: int | None = None
    length: int = 1

    @property
    def category(self) -> Category:
        """What the finding is about."""
        return CODES[self.code].category

    @property
    def severity(self) -> Severity:
        """Whether it makes the plan invalid."""
        return CODES[self.code].severity


def pointer_of(path: Path) -> str:
    """A path as a JSON pointer (RFC 6901)."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)


def plain(text: str, most: int = _LONGEST) -> str:
    r"""A text on one line of ASCII that controls nothing where it is shown: a line break becomes ``\n``.

    Args:
        text: Any text.
        most: The number of characters that are shown.
    """
    shown = cut(text, most)
    if not (shown.isascii() and shown.isprintable()):
        shown = "".join(each if " " <= each <= "~" else ascii(each)[1:-1] for each in shown)
    return _FENCE.sub(lambda fence: "".join(f"\\x{ord(each):02x}" for each in fence[0]), shown)
