"""Text that is too long, or too wide, for where it is shown."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from planning import errors
from planning.errors import printable
from planning.plan.text import UNSEEN
from session.json_form import json_form


def one_line(text: str) -> str:
    """The lines of text beside each other, with the joiners and the blanks that its language needs."""
    return errors.one_line(text, UNSEEN)


def as_text(value: Any) -> str:
    """Text as it is, None as nothing, any other value as compact JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(json_form(value), ensure_ascii=False, separators=(",", ":"))


def shortened(text: str, limit: int) -> str:
    """Text, or its beginning if it has more characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def fitted(text: str, columns: int) -> str:
    """The beginning of text on one line, printable, cut if it is wider than so many columns."""
    line = printable(" ".join(text[: 4 * columns].split()), UNSEEN)
    widths = list(map(_width, line))
    if sum(widths) <= columns and len(text) <= 4 * columns:
        return line
    room, kept = columns - 1, 0
    while kept < len(line) and room >= widths[kept]:
        room -= widths[kept]
        kept += 1
    return line[:kept].rstrip(" \u200d") + "…"


def _width(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
