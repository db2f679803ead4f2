"""The properties of a terminal: its colours, its width, and text made printable."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import sys
from collections.abc import Mapping
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TextIO

from planning.errors import cut
from planning.observe.text import one_line

if TYPE_CHECKING:
    from rich.console import Console

    from planning.workflow.drawing import State

Line = tuple[str, str]
"""A line of a report and its style. The face that shows it makes it printable."""

HEADING: Final = "heading"
"""The style of a heading."""
TROUBLE: Final = "red"
"""The style of what went wrong and no step shows."""

MARKS: Final[Mapping[State, tuple[str, str, str]]] = MappingProxyType({
    "pending": ("○", ".", "dim"),
    "in_progress": ("▶", ">", "bold yellow"),
    "completed": ("✓", "x", "green"),
    "skipped": ("-", "-", "dim green"),
    "failed": ("✗", "!", "bold red"),
    "blocked": ("■", "#", "bold red"),
    "stopped": ("□", "=", "yellow"),
})  # fmt: skip
"""The mark of each state of a step, the mark where only ASCII prints, and its style."""

_JSON_STRING: Final = re.compile(r'"[\[{](?:\\.|[^"\\])*"')  # as the words of a change quote a note
_LEAST_TEXT: Final = 20  # columns
_MINUTE: Final = 60
_LONGEST_BRIEF: Final = 100


def lines_of(text: str) -> list[str]:
    """The lines of text, without blank ones around them."""
    return text.strip("\n").replace("\r\n", "\n").expandtabs(4).split("\n")


def is_terminal(stream: TextIO | None) -> bool:
    """True if a stream is a terminal."""
    return stream is not None and stream.isatty()


def can_redraw(stream: TextIO | None) -> bool:
    """True if a stream is a terminal that can move its cursor."""
    return is_terminal(stream) and os.environ.get("TERM") != "dumb"


def wants_color(stream: TextIO | None) -> bool:
    """True if what is written to a stream is coloured: ``NO_COLOR`` wins over ``FORCE_COLOR``."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or can_redraw(stream)


def columns(stream: TextIO | None) -> int | None:
    """The number of columns of a stream; None if it is not a terminal, so that nothing is cut."""
    return shutil.get_terminal_size().columns if is_terminal(stream) else None


def is_ascii(stream: TextIO | None) -> bool:
    """True if a stream may be unable to show more than ASCII."""
    return not (getattr(stream, "encoding", None) or "ascii").lower().startswith("utf")


def readable(text: str) -> str:
    """A change in words, with the JSON in it as JSON and not as a string of it."""
    return one_line(_JSON_STRING.sub(lambda found: _json_in(found[0]), text))


def _json_in(quoted: str) -> str:
    try:
        inside: str = json.loads(quoted)
        return inside if inside.endswith("…") else json.dumps(json.loads(inside), ensure_ascii=False)
    except ValueError:
        return quoted


def wrapped(head: str, text: str, stream: TextIO) -> str:
    """Text behind its head; in a terminal its lines end between words, and are below each other."""
    width = columns(stream)
    if width is None:
        return head + text
    from rich.text import Text

    lines = Text(text).wrap(console_of(stream), max(_LEAST_TEXT, width - len(head)))
    return head + f"\n{' ' * len(head)}".join(line.plain.rstrip() for line in lines)


def say(text: str) -> None:
    """Say something to the user on standard error."""
    sys.stderr.write(f"planning: {text}\n")


def console_of(stream: TextIO) -> Console:
    """A terminal to draw on."""
    from rich.console import Console

    return Console(file=stream, color_system="auto" if wants_color(stream) else None, highlight=False)


def painted(text: str, style: str, *, color: bool) -> str:
    """Text in a style as rich spells it: ``bold red``."""
    if not (color and style and text.strip()):
        return text
    from rich.color import ColorSystem
    from rich.style import Style

    return Style.parse(style).render(text, color_system=ColorSystem.STANDARD)


def count(number: int, thing: str) -> str:
    """A number with its noun: ``1 step``, ``2 steps``."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def seconds_text(seconds: float) -> str:
    """A time for a person: ``0.3 s``, ``12.0 s``, ``3:07 min``, ``2:01 h``."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), _MINUTE)
    if minutes < _MINUTE:
        return f"{minutes}:{rest:02} min"
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours}:{minutes:02} h"


def as_json(value: object) -> str:
    """A value as strict JSON.

    NaN and the infinities become the strings ``NaN``, ``Infinity`` and ``-Infinity``, bytes the text that SQL
    writes them in, and everything else that JSON does not know its text.
    """
    return json.dumps(_plain(value), indent=2, allow_nan=False)


def _plain(value: object) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(each) for each in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"x'{bytes(value).hex()}'"
    return str(value)


def brief(value: object) -> str:
    """The beginning of a value as JSON, or of text; however large a list is, only its beginning is read."""
    if value is None:
        return ""
    if isinstance(value, str):
        return cut(value, _LONGEST_BRIEF)
    encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)
    return cut("".join(islice(encoder.iterencode(value), _LONGEST_BRIEF + 1)), _LONGEST_BRIEF)
