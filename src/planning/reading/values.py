"""Strings, numbers and words that are not plain JSON: unambiguous ones are read, the rest is an error."""

from __future__ import annotations

import json
import math
import re
import sys
from typing import Any, Final, NoReturn

from planning.errors import show
from planning.reading import tokens
from planning.reading.found import Found, Wanted
from planning.reading.tokens import MOST_DIGITS

_ESCAPED_SURROGATES: Final = ("\\ud", "\\uD")
_OPENING: Final = re.compile(r"[ \t\n\r]*+[\[{]")


class NotStrict(Exception):
    """The text is JSON that Python reads, but something in it must be checked."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise NotStrict
    return made


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise NotStrict
    return number


def _short(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise NotStrict
    return int(digits)


def _no_constant(_name: str) -> NoReturn:
    raise NotStrict


ONCE: Final = json.JSONDecoder(object_pairs_hook=_once)
"""Decodes JSON in which no object has a field twice."""
_STRICT: Final = json.JSONDecoder(object_pairs_hook=_once, parse_float=_finite, parse_constant=_no_constant)
_PART: Final = json.JSONDecoder(
    object_pairs_hook=_once, parse_float=_finite, parse_int=_short, parse_constant=_no_constant
)


def read_strictly(text: str, most_levels: int) -> Any:
    """The value of text that is only JSON; None if it must be read with care."""
    if _OPENING.match(text) is None or any(escape in text for escape in _ESCAPED_SURROGATES):
        return None
    try:
        value = _STRICT.decode(text)
        if not text.isascii():
            text.encode()
    except (NotStrict, ValueError, RecursionError):  # of text that cannot be encoded, too
        return None
    return value if isinstance(value, (dict, list)) and _is_shallow(value, most_levels) else None


def value_at(text: str, start: int, most_levels: int) -> tuple[Any, int] | None:
    """The value that a bracket begins, and where it ends; None if it must be read with care."""
    try:
        value, end = _PART.raw_decode(text, start)
    except (NotStrict, ValueError, RecursionError):
        return None
    is_plain = not any(text.find(escape, start, end) >= 0 for escape in _ESCAPED_SURROGATES)
    return (value, end) if is_plain and _is_shallow(value, most_levels) else None


def _is_shallow(value: Any, most_levels: int) -> bool:
    """True if nothing in it is nested too deep."""
    level = [value]
    for _ in range(most_levels):
        level = [
            inner
            for each in level
            for inner in (each.values() if type(each) is dict else each)
            if type(inner) is dict or type(inner) is list
        ]
        if not level:
            return True
    return False


Notes = dict[str, tuple[int, int, int]]
"""By the code of a repair: its first place, as start and end, and how often there was one."""

_PYTHON: Final = {"True": "true", "False": "false", "None": "null"}
_NOT_NUMBERS: Final = {"nan", "infinity", "inf"}
_CHARACTERS: Final = 100  # of a comment, which cost as much as one value
_HEX_ESCAPE: Final = 4  # \x41
MOST_WORK: Final = 250_000
_CONTROLS: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def count(notes: Notes, code: str, start: int, end: int) -> None:
    """Count a repair, and keep the first place of its kind."""
    first, last, times = notes.get(code, (start, end, 0))
    notes[code] = (start, end, times + 1) if start < first else (first, last, times + 1)


class Fault(Exception):
    """An error after which reading cannot simply continue.

    Attributes:
        found: The error.
        start: Its offset.
    """

    def __init__(self, code: str, message: str, hint: str, start: int, end: int | None = None) -> None:
        super().__init__(message)
        self.found = Found(code, message, hint, span=(start, start + 1 if end is None else end))
        self.start = start


class ValueReader:
    """Reads single values, and collects what it changed and what was wrong.

    Attributes:
        text: The text as a whole.
        wanted: What it is expected to hold.
        edits: Replacements: start, end, and the text between them.
        errors: What was wrong.
        notes: What was repaired.
        spoilt: Where something is not a value, or not the one that was meant.
        had_line_break: Whether the last string held a raw line break.
        work: How many values and repairs were read one by one: what costs time and memory.
    """

    def __init__(self, text: str, wanted: Wanted) -> None:
        self.text = text
        self.wanted = wanted
        self.edits: list[tuple[int, int, str]] = []
        self.errors: list[Found] = []
        self.notes: Notes = {}
        self.spoilt: set[int] = set()
        self.had_line_break = False
        self.work = 0

    def count_work(self, pos: int) -> None:
        """Count one more value or repair; called where reading may stop."""
        self.work += 1
        if self.work > MOST_WORK:
            raise self.too_much(pos)

    def too_much(self, pos: int) -> Fault:
        """The error of text that takes too long to repair."""
        message = "too much of the text is not plain JSON; it was read up to here"
        return Fault("too_long", message, f"send plain JSON, or a shorter {self.wanted.noun}", pos)

    def plain_value(self, start: int) -> tuple[Any, int] | None:
        """The value that a bracket begins, and its end; None if it is not plain JSON, or the text is long."""
        is_short = len(self.text) <= MOST_WORK // 2  # each character is counted twice at most
        return value_at(self.text, start, self.wanted.most_levels) if is_short else None

    def edit(self, start: int, end: int, replacement: str, code: str | None = None) -> None:
        """Replace a part of the text; with a code, note that this is a repair."""
        self.edits.append((start, end, replacement))
        if code is not None:
            self.note(code, start, end)

    def note(self, code: str, start: int, end: int) -> None:
        """Count a repair, and keep the first place of its kind."""
        count(self.notes, code, start, end)

    def error(self, code: str, message: str, hint: str, start: int, end: int) -> None:
        """Keep an error after which reading continues."""
        self.errors.append(Found(code, message, hint, span=(start, end)))
        self.spoilt.add(start)

    def is_over(self, pos: int) -> bool:
        """True if the text ends there, or a fence closes it."""
        return pos >= len(self.text) or self.text.startswith(("```", "~~~"), pos)

    def cut_off(self, pos: int | None = None) -> Fault:
        """The error of text that ends too early."""
        end = len(self.text) if pos is None else pos
        while end and self.text[end - 1].isspace():
            end -= 1
        hint = f"send the whole {self.wanted.noun}, shorter"
        return Fault("truncated", "the text ends too early", hint, end, end)

    def ends_too_early(self, pos: int) -> Fault:
        """The error of a string that ends where it should not."""
        message = "the string ends early: escape the quote inside it, or add the closing one"
        return Fault("unescaped_quote", message, 'write a quote in a string as \\"', pos)

    def shown(self, pos: int) -> str:
        """The text at an offset, for a message."""
        return show(self.text[pos])

    def skip(self, pos: int, *, quiet: bool = False) -> int:
        """Pass over spaces and comments; quietly, to look ahead only."""
        while piece := tokens.SKIPPED.match(self.text, pos):
            kind = piece.lastgroup
            if kind is not None and not quiet:
                self.count_work(pos)
                if piece["odd"]:
                    self.edit(pos, piece.end(), " ", "odd_space")
                else:
                    self.edit(pos, piece.end(), " ", "comment")
                    if self.text.startswith("/*", pos) and not piece["closed"]:
                        raise self.cut_off()
            self.work += (piece.end() - pos) // _CHARACTERS  # a long one may be passed over again and again
            pos = piece.end()
        return pos

    def odd_value(self, pos: int) -> int:
        """Read a value that is not a plain scalar; returns the offset after it."""
        char = self.text[pos : pos + 1]
        self.had_line_break = False
        if self.is_over(pos):
            raise self.cut_off(pos)
        if char in "\"'":
            return self.odd_string(pos)
        if number := tokens.ODD_NUMBER.match(self.text, pos):
            return self._number(pos, number[0])
        sign = char in "+-"
        word = tokens.WORD.match(self.text, pos + sign)
        if word is not None:
            return self._word(pos, word.end(), word[0].strip(), is_signed=sign)
        if char in ",}]:":
            raise Fault("syntax_error", f"a value is missing before {show(char)}", "send a value", pos)
        message = f"expected a value, got {self.shown(pos)}"
        raise Fault("syntax_error", message, "send plain JSON, with strings in double quotes", pos)

    def _word(self, pos: int, end: int, word: str, *, is_signed: bool) -> int:
        end = pos + is_signed + len(word)
        if word in _PYTHON and not is_signed:
            self.edit(pos, end, _PYTHON[word], "python_literal")
        elif tokens.REST.match(self.text, end):
            raise self.cut_off()
        elif word.casefold() in _NOT_NUMBERS:
            self.edit(pos, end, "null")
            message = f"{self.text[pos:end]} is not a JSON value"
            self.error("not_a_number", message, "send a number or null", pos, end)
        else:
            self.edit(pos, pos, '"')
            self.edit(end, end, '"')
            self.error(
                "unquoted_text", f"{show(word)} has no quotes", "write strings in double quotes", pos, end
            )
        return end

    def _number(self, pos: int, token: str) -> int:
        end = pos + len(token)
        bare = token.removeprefix("+")
        if bare.removeprefix("-").startswith("."):
            bare = bare.replace(".", "0.", 1)
        if bare.endswith("."):
            bare += "0"
        if not _is_number(bare):
            self.edit(pos, end, "0")
            message = f"{show(token)} is not a readable number"
            self.error("bad_number", message, "write a plain number, or text in quotes", pos, end)
        elif bare != token:
            self.edit(pos, end, bare, "number_form")
        return end

    def odd_string(self, pos: int) -> int:
        """Read a string in either quotes; returns the offset after it."""
        quote = self.text[pos]
        string = tokens.QUOTED[quote].match(self.text, pos)
        if string is None:
            raise self.cut_off()
        self.had_line_break = False
        start, end = pos + 1, string.end() - 1
        if quote == "'":
            self.edit(pos, start, '"')
            self.note("single_quotes", pos, end + 1)
        while odd := tokens.ESCAPE.search(self.text, start, end):
            self.count_work(start)
            start = self._in_string(odd[0], odd.start())
        if quote == "'":
            self.edit(end, end + 1, '"')
        return end + 1

    def _in_string(self, odd: str, pos: int) -> int:
        """Check one thing in a string; returns the offset after it."""
        if odd[0] == "\\":
            return self._escape(odd, pos)
        if odd == '"':  # only between single quotes
            self.edit(pos, pos, "\\")
        else:
            self.had_line_break = self.had_line_break or odd in "\n\r"
            self.edit(pos, pos + 1, _CONTROLS.get(odd, f"\\u{ord(odd):04x}"), "raw_control")
        return pos + 1

    def _escape(self, odd: str, pos: int) -> int:
        text = self.text
        if valid := tokens.JSON_ESCAPE.match(text, pos):
            return valid.end()
        digits = text[pos + 2 : pos + 4]
        if odd == "\\'":
            self.edit(pos, pos + 2, "'", "escape_form")
            return pos + 2
        if odd == "\\x" and len(digits) == 2 and _is_hex(digits):
            self.edit(pos, pos + _HEX_ESCAPE, f"\\u00{digits}", "escape_form")
            return pos + _HEX_ESCAPE
        if odd == "\\u" and _is_hex(text[pos + 2 : pos + 6]) and len(text[pos + 2 : pos + 6]) == 4:
            self.edit(pos, pos + 6, "\\ufffd")
            self.error("lone_surrogate", "half of a surrogate pair", "send the whole character", pos, pos + 6)
            return pos + 6
        if odd[1] < " ":
            self.edit(pos, pos + 2, f"\\\\\\u{ord(odd[1]):04x}")
            message = "a backslash before a line break or another control character"
        else:
            self.edit(pos, pos, "\\")
            message = f"a backslash before {show(odd[1])} is not a JSON escape"
        self.error("bad_escape", message, "write a backslash as \\\\", pos, pos + 2)
        return pos + 2


def _is_hex(text: str) -> bool:
    return all(character in "0123456789abcdefABCDEF" for character in text)


def _is_number(token: str) -> bool:
    """True if this is a number of JSON that Python keeps."""
    if tokens.NUMBER.fullmatch(token) is None:
        return False
    if any(character in token for character in ".eE"):
        return math.isfinite(float(token))
    return len(token) <= most_digits()


def most_digits() -> int:
    """The most digits that a whole number may have: Python may be configured for fewer."""
    return min(tokens.MOST_DIGITS, sys.get_int_max_str_digits() or tokens.MOST_DIGITS)
