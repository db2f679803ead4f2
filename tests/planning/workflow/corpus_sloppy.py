"""Writes a JSON value as careless models write it: in every form that can mean only one value."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import strategies as st

__all__ = ["json_values", "sloppy"]

_SPACES = ["", "", "", " ", "\n", "\r\n  ", "\t"]
_COMMENTS = ["/* a, \"b' }] */", "// it's ] \"}\n", "# {'\n", "/**/", "//\n"]
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_PYTHON = {True: "True", False: "False", None: "None"}
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.text(
    "\"'\\/ ,:[]{}#\n\tau0x$", max_size=8
)


def json_values() -> st.SearchStrategy[Any]:
    """Any JSON value of a few levels."""
    numbers = st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False)
    leaves = st.none() | st.booleans() | numbers | _TEXTS
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
        max_leaves=8,
    )


@st.composite
def sloppy(draw: st.DrawFn, value: Any) -> str:
    """A text that means the value, and nothing else."""
    return _written(draw, value)


def _written(draw: st.DrawFn, value: Any) -> str:
    if isinstance(value, dict):
        fields = [
            f"{_name(draw, key)}{_gap(draw)}:{_gap(draw)}{_written(draw, each)}"
            for key, each in value.items()
        ]
        return "{" + _joined(draw, fields, list(value.values())) + "}"
    if isinstance(value, list):
        return "[" + _joined(draw, [_written(draw, each) for each in value], value) + "]"
    if isinstance(value, str):
        return _string(draw, value)
    if isinstance(value, bool) or value is None:
        return _PYTHON[value] if draw(st.booleans()) else json.dumps(value)
    return _number(draw, value)


def _gap(draw: st.DrawFn) -> str:
    """White space, and now and then a comment."""
    gap = draw(st.sampled_from(_SPACES))
    if draw(st.integers(0, 9)) == 9:
        gap += draw(st.sampled_from(_COMMENTS)) + draw(st.sampled_from(_SPACES))
    return gap


def _joined(draw: st.DrawFn, items: list[str], values: list[Any]) -> str:
    text = _gap(draw)
    for index, item in enumerate(items):
        text += item + _gap(draw)
        if index < len(items) - 1:
            text += draw(st.sampled_from(_between(values[index], items[index + 1]))) + _gap(draw)
        elif draw(st.integers(0, 3)) == 3:
            text += "," + _gap(draw)
    return text


def _between(before: Any, behind: str) -> list[str]:
    """What may stand between two values; no comma is needed where it can be told that one is missing.

    A sign on the next line may as well go on with a sum; and a string with a line break in it may as well
    lack its quote.
    """
    is_broken = isinstance(before, str) and ("\n" in before or "\r" in before)
    return [","] if is_broken or behind[0] in "+-." else [",", ",", "\n"]


def _name(draw: st.DrawFn, name: str) -> str:
    if _NAME.fullmatch(name) and draw(st.booleans()):
        return name
    return _string(draw, name)


def _string(draw: st.DrawFn, string: str) -> str:
    quote = draw(st.sampled_from('""\''))
    return quote + "".join(_character(draw, each, quote) for each in string) + quote


def _character(draw: st.DrawFn, character: str, quote: str) -> str:
    if character == "\\":
        return "\\\\"
    if character == quote:
        return "\\" + quote
    if character == "'" and draw(st.booleans()):
        return "\\'"
    if character < " " and draw(st.booleans()):
        return character  # as it is: not allowed in JSON, and kept
    if character == "\n":
        return "\\n"
    code = ord(character)
    if code < 0x20 or (code > 0x7E and draw(st.booleans())):
        return f"\\x{code:02x}" if code < 0x100 and draw(st.booleans()) else json.dumps(character)[1:-1]
    return character


def _number(draw: st.DrawFn, number: float) -> str:
    text = json.dumps(number)
    if not draw(st.booleans()):
        return text
    if text.startswith("0.") and len(text) > 2:
        return text[1:]
    if text.endswith(".0"):
        return text[:-1]
    return text if text.startswith("-") else f"+{text}"
