"""The rules for text that a plan may hold: ASCII, trimmed, and never too long.

This is their only home: handlers, tool schemas, prompt copy and the specs all read them here.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

__all__ = [
    "DETAILS",
    "NOTE",
    "OBJECTIVE",
    "OUTCOME",
    "STEP_ID",
    "TITLE",
    "TextRule",
    "ascii_spelling",
    "fitted",
]

_SPELLINGS = {
    "\u00ab": '"', "\u00bb": '"', "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u201b": "'",
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u201f": '"', "\u2032": "'", "\u2033": '"',
    "\u2022": "*", "\u00b7": "*", "\u2026": "...", "\u2044": "/", "\u2212": "-",
    "\u2190": "<-", "\u2192": "->", "\u2194": "<->", "\u21d2": "=>", "\u2713": "[x]", "\u2714": "[x]",
    "\u00d7": "x", "\u00f7": "/", "\u00b1": "+/-", "\u2264": "<=", "\u2265": ">=", "\u2260": "!=",
    "\u2248": "~", "\u20ac": "EUR", "\u00a3": "GBP", "\u00a5": "JPY", "\u00a9": "(c)", "\u00ae": "(R)",
    "\u2122": "(TM)", "\u00b0": " deg", "\u00b5": "u", "\u00df": "ss", "\u00e6": "ae", "\u00c6": "AE",
    "\u0153": "oe", "\u0152": "OE", "\u00f8": "o", "\u00d8": "O", "\u0142": "l", "\u0141": "L",
    "\u0111": "d", "\u0110": "D",
}  # fmt: skip
_UNSEEN = frozenset("\u00a0\u2009\u202f\u3000\u200c\u200d")
"""Blanks and joiners that belong to ordinary text, and that Python does not count as printable."""
_CONTROL_NAMES = {"\n": "a newline", "\t": "a tab", "\r": "a carriage return", "\0": "a null"}
_SHOWN = 3


@dataclass(slots=True, frozen=True)
class TextRule:
    """What one kind of text may hold.

    Text is trimmed first and measured after. It is ASCII; only text of several lines may hold
    newlines and tabs, and no text holds another control character.

    Attributes:
        limit: The most characters, after the trim.
        multiline: Whether newlines and tabs are allowed.
        blank_is_none: Whether blank text means None; otherwise it is refused.
    """

    limit: int
    multiline: bool = False
    blank_is_none: bool = False

    def clean(self, value: str) -> str | None:
        """The text to store, for a value that has no problems."""
        return value.strip() or None

    def keeps(self, value: object) -> bool:
        """Whether the value is plain text of one line that can be stored as it is; the fast way."""
        return (
            type(value) is str
            and 0 < len(value) <= self.limit
            and value.isascii()
            and value.isprintable()
            and value[0] != " " != value[-1]
        )

    def keeps_all(self, values: list[Any]) -> bool:
        """The same for many values at once; of text with two blanks side by side, it does not say so."""
        if {*map(type, values)} != {str}:
            return not values
        text = f" {' '.join(values)} "
        return (
            max(map(len, values)) <= self.limit and "  " not in text and text.isascii() and text.isprintable()
        )

    def problems(self, value: object) -> list[str]:
        """Everything that is wrong with a value, each with what to send instead; empty when fine."""
        if not isinstance(value, str):
            return [f"expected a string, got {type(value).__name__}"]
        text = value.strip()
        if not text:
            return [] if self.blank_is_none else [f"blank; send 1 to {self.limit} characters"]
        found = []
        if len(text) > self.limit:
            found.append(f"{len(text)} characters, at most {self.limit}; cut {len(text) - self.limit}")
        if not text.isascii() or not text.isprintable():
            found.extend(self._refused_characters(text))
        return found

    def unkept(self, value: object) -> str | None:
        """Why a plan cannot hold a value as it is, in whatever alphabet; None where it can."""
        if not isinstance(value, str):
            return f"expected a string, got {type(value).__name__}"
        if not value.strip() and not self.blank_is_none:
            return f"blank; send 1 to {self.limit} characters"
        if not value or value != value.strip():
            return "blank, or with blanks around it"
        if len(value) > self.limit:
            return f"{len(value)} characters, at most {self.limit}; cut {len(value) - self.limit}"
        for position, character in enumerate(value, start=1):
            if not (character.isprintable() or character in _UNSEEN or self._allows(character)):
                remedy = self._remedy(character) if character in "\n\t" else "remove it"
                return f"{_name(character)} at character {position}; {remedy}"
        return None

    def about(self, description: str) -> MappingProxyType[str, Any]:
        """Metadata for a dataclass field under this rule, as tool schemas and decoding read it."""
        shortest = {} if self.blank_is_none else {"min_length": 1}
        return MappingProxyType(
            {"description": description, **shortest, "max_length": self.limit, "check": self.problems}
        )

    def _refused_characters(self, text: str) -> Iterator[str]:
        seen: dict[str, int] = {}
        for position, character in enumerate(text, start=1):
            if not self._allows(character):
                seen.setdefault(character, position)
        unspelled = next(
            (char for char in seen if not _is_control(char) and ascii_spelling(char) is None), None
        )
        if unspelled is not None:  # to replace the other characters one by one would not help
            yield (
                f"{_name(unspelled)} at character {seen[unspelled]} has no ASCII spelling; "
                "write the text in English or in ASCII"
            )
            seen = {each: position for each, position in seen.items() if each.isascii()}
        for character, position in list(seen.items())[:_SHOWN]:
            yield f"{_name(character)} at character {position}; {self._remedy(character)}"
        if len(seen) > _SHOWN:
            more = len(seen) - _SHOWN
            yield f"{more} more {'character' if more == 1 else 'characters'} to replace"

    def _allows(self, character: str) -> bool:
        return (character.isascii() and character.isprintable()) or (self.multiline and character in "\n\t")

    def _remedy(self, character: str) -> str:
        if character in "\n\t":
            return 'this field is one line, write " "'
        spelling = ascii_spelling(character)
        if not spelling:
            return "remove it"
        quote = "'" if '"' in spelling else '"'
        return f"only ASCII is allowed, write {quote}{spelling}{quote}"


def ascii_spelling(character: str) -> str | None:
    """How a character is written in ASCII; empty when it is invisible; None when it cannot be written."""
    if character in _SPELLINGS:
        return _SPELLINGS[character]
    category = unicodedata.category(character)
    if category == "Pd":
        return "-"
    if category in {"Zs", "Zl", "Zp"}:
        return " "
    if category in {"Cf", "Mn"}:
        return ""
    plain = "".join(
        _SPELLINGS.get(part, part)
        for part in unicodedata.normalize("NFKD", character)
        if unicodedata.category(part) != "Mn"
    )
    return plain if plain and plain != character and plain.isascii() and plain.isprintable() else None


def fitted(text: str, rule: TextRule) -> str:
    """A text as a plan may hold it: in ASCII, on one line, and with ``...`` where it is cut to the limit.

    Returns:
        The text; empty if all of it is invisible, or if a character has no ASCII spelling.
    """
    if rule.keeps(text):
        return text
    spelled, room = list[str](), rule.limit
    for character in " ".join(text.split(maxsplit=rule.limit)):
        spelling = " " if _is_control(character) else ascii_spelling(character)
        if " " <= character <= "~":
            spelling = character
        if spelling is None:
            return ""
        spelled.append(spelling)
        room -= len(spelling.strip())
        if room < 0:
            break
    text = " ".join("".join(spelled).split())
    return text if len(text) <= rule.limit else f"{text[: rule.limit - 3].rstrip()}..."


def _is_control(character: str) -> bool:
    return unicodedata.category(character) == "Cc"


def _name(character: str) -> str:
    name = _CONTROL_NAMES.get(character) or unicodedata.name(character, "")
    if not name:
        name = "a control character" if _is_control(character) else "a character"
    return f"{name} (U+{ord(character):04X})"


OBJECTIVE = TextRule(limit=240)
TITLE = TextRule(limit=160)
DETAILS = TextRule(limit=512, multiline=True, blank_is_none=True)
NOTE = TextRule(limit=512, multiline=True)
STEP_ID = TextRule(limit=64)
OUTCOME = TextRule(limit=200)
"""How much of a step's outcome its note shows: a model may read the plan."""
