"""The rules for text in a plan: ASCII or any language, trimmed, and of limited length.

This is their only home: handlers, tool schemas, prompt copy and the specs all read them here.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Any

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
_LONGEST_COMPOSED = 4
"""The most characters that become one when text is composed."""
_SHOWS_NOTHING = frozenset(("Cc", "Cf", "Me", "Mn", "Zl", "Zp", "Zs"))
_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
_STATUS = r"(?:pending|in[ _-]progress|blocked|done|completed|active|abandoned)"
_MISREAD = "|".join((
    r"""^["'`{<]|^\[[ x~-]?\]|^\[["{\d\[]|^[\]}>|*+=~_#-](?![a-z0-9])|\|.*\|""",  # markup
    r":$|\s{3}|`{3}|~{3}|\*{3}|-{3}|={3}|_{3}",  # what opens, or separates
    r"</|<[!?|a-z][^<>]*>|\s<[!?|a-z]|\][(\[:]|!\[|\[/?(?:inst|sys|user|assistant|tool|end)\w*\]",
    r"[\x00-\x1f\x7f]|\\[nrtux]|&(?:#|\w+;)|%0[ad]",  # line breaks, and escapes
    rf"(?<![a-z0-9])[s\u0455\u0573]-?\d{{3}}|\bs\d+\W{{1,3}}{_STATUS}\b",  # an id
    rf"^{_STATUS}\b|[.,;(:] ?{_STATUS}(?:[.,;):]|$)|\d of \d+ (?:is |are )?done|\d not shown",
    r"^(?:next|order|blocked|evidence for|new plan|new objective)\s*:",
    r"\bno other step|\byou last\b|\bnothing changed",
    rf"\b(?:plan|steps?)(?: \d+)? (?:is |was |are |were )?(?:set|removed|{_STATUS})\b",
    r"(?:^|[^\w\s]\s*)(?:system|assistant|user|developer|human|model|tool|admin)(?: \w+)?\s*:",
    r"\b(?:ignor|disregard|forget|overrid|bypass)(?:e|es|ed|s|ing|ting)?\b.{0,40}"
    r"\b(?:above|below|previous|prior|preceding|earlier|before|instruction|rule|prompt|message|every|all)",
    r"\b(?:new|following|system) (?:instructions?|prompt|message)\b|\byou (?:are|must|have)\b",
    r"\bend of (?:the |this )?(?:plan|reminder|list|prompt|system|instruction|message|context|step|data)",
    r"\breported with\b|(?:^|[,(:] ?)verified\b|\bwaits? for (?:the )?(?:user|approval)",
    r"(?:^|\b(?:is|was|been|already|user|host) )approved\b",
    r"\buser (?:said|says|wants|approves|rejected)\b",
))  # fmt: skip
"""The patterns that look like a plan's structure, markup or an instruction; of lower-case text.

Like ``_HIDDEN`` it is compiled when the first text needs it: that takes 2 ms.
"""
_MARKS = re.compile(r"""["'`\[\](){}<>|*+=~_#\\&%:]|s-?\d|^-|---|\s{3}|[\x00-\x1f\x7f]""")
_WORDS = frozenset((
    "pending", "progress", "blocked", "done", "completed", "active", "abandoned", "set", "removed",
    "approved", "rejected", "ignore", "ignores", "ignoring", "ignored", "disregard", "disregarding",
    "forget", "forgets", "forgetting", "override", "overrides", "overriding", "bypass", "bypasses",
    "bypassing", "instruction", "instructions", "prompt", "message", "you", "no", "nothing", "end",
    "reported", "verified", "wait", "waits", "shown", "said", "says", "wants", "approves",
))  # fmt: skip
"""An ASCII text without one of these words or marks cannot be misread, which is quick to see."""
_LETTERS = re.compile("[a-z]+")
_HIDDEN = (
    "[\x7f-\x9f\u00ad\u034f\u115f\u1160\u180b-\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164"
    "\ud800-\udfff\ufeff\uffa0\U000e0000-\U000e0fff]"
    "|[\u200c\u200d]{2,}|[\ufe00-\ufe0f]{2,}|[\u00a0\u2009\u202f\u3000]{2,}"
)
"""Invisible characters, except the joiners, selectors and blanks of ordinary text."""
UNSEEN = frozenset("\u00a0\u2009\u202f\u3000\u200c\u200d")
"""Blanks and joiners that belong to ordinary text, and that Python does not count as printable."""
_CONTROL_NAMES = {"\n": "a newline", "\t": "a tab", "\r": "a carriage return", "\0": "a null"}
_SHOWN = 3


@dataclass(slots=True, frozen=True)
class TextRule:
    """The rule for one kind of text.

    Text is trimmed first and measured after. It is ASCII, or printable text in any language, composed
    (NFC). Only text of several lines may hold newlines and tabs. No text holds another control character.

    Attributes:
        limit: The most characters, after the trim.
        multiline: Whether newlines and tabs are allowed.
        blank_is_none: Whether blank text means None; otherwise it is refused.
        is_unicode: Whether text may be in any language.
    """

    limit: int
    multiline: bool = False
    blank_is_none: bool = False
    is_unicode: bool = False

    def judge(self, value: object) -> tuple[str | None, Sequence[str]]:
        """A value as a plan stores it, and everything that is wrong with it, each with what to send instead.

        The text is None when it is blank or has a problem.
        """
        if type(value) is str and self.is_plain(value):  # as nearly always: a tenth of the time
            return value, ()
        if not isinstance(value, str):
            return None, [f"expected a string, got {type(value).__name__}"]
        text = self.trimmed(value)
        if not text:
            return None, [] if self.blank_is_none else [self._blank]
        problems = [] if len(text) <= self.limit else [self._too_long(text)]
        if not text.isprintable() or not (self.is_unicode or text.isascii()):
            problems.extend(self._find_refused(text))
        return None if problems else text, problems

    def is_plain(self, text: str) -> bool:
        """True if text is one line of ASCII that is stored as it is, whatever the language."""
        return (
            0 < len(text) <= self.limit
            and text.isascii()
            and text.isprintable()
            and text[0] != " " != text[-1]
        )

    def problems(self, value: object) -> Sequence[str]:
        """Everything that is wrong with a value."""
        return self.judge(value)[1]

    def require(self, value: object, place: str) -> None:
        """Refuse what no plan can hold, in any language: a wrong length, or a character that is not shown."""
        if isinstance(value, str) and value.isprintable() and len(value) <= self.limit and value.strip():
            return
        if not isinstance(value, str):
            problem = f"expected a string, got {type(value).__name__}"
        elif not value.strip():
            problem = self._blank
        elif len(value) > self.limit:
            problem = self._too_long(value)
        else:
            any_language = replace(self, is_unicode=True)
            refused = [(at, each) for at, each in enumerate(value, 1) if not any_language.allows(each)]
            if not refused:
                return
            at, character = refused[0]
            remedy = self._remedy(character) if character in "\n\t" else "remove it"
            problem = f"{_name(character)} at character {at}; {remedy}"
        raise ValueError(f"{place}: {problem}")

    def about(self, description: str) -> MappingProxyType[str, Any]:
        """Metadata for a dataclass field under this rule, as tool schemas and decoding read it."""
        shortest = {} if self.blank_is_none else {"min_length": 1}
        return MappingProxyType(
            {"description": description, **shortest, "max_length": self.limit, "check": self.problems}
        )

    def allows(self, character: str) -> bool:
        """True if text may hold a character."""
        if character.isascii():
            return character.isprintable() or (self.multiline and character in "\n\t")
        return self.is_unicode and (character.isprintable() or character in UNSEEN)

    @property
    def _blank(self) -> str:
        return f"blank; send 1 to {self.limit} characters"

    def _too_long(self, text: str) -> str:
        return f"{len(text)} characters, at most {self.limit}; cut {len(text) - self.limit}"

    def trimmed(self, value: str) -> str:
        """The text without blanks around it, and composed; empty where it shows nothing."""
        text = value.strip()
        if not self.is_unicode or text.isascii() or len(text) > _LONGEST_COMPOSED * self.limit:
            return text
        text = unicodedata.normalize("NFC", text)
        return "" if all(map(is_invisible, text)) else text

    def _find_refused(self, text: str) -> Iterator[str]:
        seen: dict[str, int] = {}
        for position, character in enumerate(text, start=1):
            if not self.allows(character):
                seen.setdefault(character, position)
        unspelled = None
        if not self.is_unicode:
            others = [each for each in seen if not _is_control(each)]
            unspelled = next((each for each in others if ascii_spelling(each) is None), None)
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

    def _remedy(self, character: str) -> str:
        if character in "\n\t":
            return 'this field is one line, write " "'
        spelling = ascii_spelling(character)
        if not spelling:
            return "remove it"
        quote = "'" if '"' in spelling else '"'
        reason = "" if self.is_unicode else "only ASCII is allowed, "
        return f"{reason}write {quote}{spelling}{quote}"


def ascii_spelling(character: str) -> str | None:
    """The ASCII spelling of a character; empty when it is invisible; None when it cannot be written."""
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
    """Fit text into a plan: in ASCII, on one line, and with ``...`` where it is cut to the limit.

    It is empty if all of it is invisible, or if a character has no ASCII spelling and needs one.
    """
    if rule.is_plain(text) or (
        len(text) <= rule.limit and text.isprintable() and rule.judge(text)[0] == text
    ):
        return text
    spelled, room = list[str](), rule.limit
    text = " ".join(text.split(maxsplit=rule.limit))
    if rule.is_unicode:
        text = unicodedata.normalize("NFC", text[: _LONGEST_COMPOSED * rule.limit])
    for character in text:
        spelling = " " if _is_control(character) else ascii_spelling(character)
        if rule.allows(character):
            spelling = character
        if spelling is None and rule.is_unicode:
            spelling = ""
        if spelling is None:
            return ""
        spelled.append(spelling)
        room -= len(spelling.strip())
        if room < 0:
            break
    text = rule.trimmed(" ".join("".join(spelled).split()))
    return text if len(text) <= rule.limit else f"{text[: rule.limit - 3].rstrip()}..."


@lru_cache(maxsize=4_096)  # a plan's titles are written again and again
def as_data(text: str) -> str:
    """Write a title, or other text on one line, for a model.

    Text that could be misread is written as a JSON string: as a line of a plan, an id, a status or a reply,
    as markup, as the words of another role, or as an instruction. Every other text stays as it is, and never
    begins with a quote.
    """
    if _is_ordinary(text):
        return text
    quoted = json.dumps(text, ensure_ascii=False)
    return re.sub(_HIDDEN, lambda hidden: json.dumps(hidden[0])[1:-1], quoted)


def _is_ordinary(text: str) -> bool:
    plain = (text if text.isascii() else unicodedata.normalize("NFKC", text)).lower()
    if text.isascii() and not _MARKS.search(plain) and _WORDS.isdisjoint(_LETTERS.findall(plain)):
        return True
    return (
        not re.search(_MISREAD, plain)
        and plain.count("(") == plain.count(")")
        and all(plain.count(each) % 2 == 0 for each in '"`')
        and not re.search(_HIDDEN, text)
    )


def is_invisible(character: str) -> bool:
    """True if a character shows nothing by itself: a blank, a joiner, a mark on another, a filler."""
    return character in _FILLERS or unicodedata.category(character) in _SHOWS_NOTHING


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
"""The most of a step's outcome that its note shows: a model may read the plan."""


@dataclass(slots=True, frozen=True)
class TextRules:
    """The rules for the strings of a plan in one alphabet."""

    objective: TextRule
    title: TextRule
    details: TextRule
    note: TextRule
    step_id: TextRule
    outcome: TextRule


_RULES = (OBJECTIVE, TITLE, DETAILS, NOTE, STEP_ID, OUTCOME)
ASCII = TextRules(*_RULES)
_UNICODE = TextRules(*[replace(rule, is_unicode=True) for rule in _RULES])
ALPHABETS = (ASCII, _UNICODE)


def rules_for(text: str) -> TextRules:
    """The rules for strings in ``"ascii"``, or in any language (``"unicode"``)."""
    return _UNICODE if text == "unicode" else ASCII
