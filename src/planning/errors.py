"""Errors of tool calls, as values with fields, and messages that say what to do next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

LONGEST_MESSAGE = 50_000
"""The most characters of anything that a model is sent."""

_SHOWN = 40
_LISTED = 60
_LONGEST = 45_000  # more is said around this
_NAMED = 60
_NEAR = 0.75
_NEAR_WORD = 0.5  # two letters that changed places
_LONGEST_NAME = 100
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BREAK = re.compile(r"[\W_]+")
# What models write for the status of a step, by the status that says it.
_SYNONYMS = {
    "pending": "todo, to do, open, new, planned, not started",
    "in_progress": "started, active, ongoing, doing, working, running",
    "blocked": "waiting, paused, on hold, cancelled, canceled, skipped, failed",
    "done": "complete, completed, finished, closed, resolved",
}
_MEANT = {synonym: status for status, words in _SYNONYMS.items() for synonym in words.split(", ")}


def writable(text: str) -> str:
    """The text with lone surrogates escaped: no client can write them."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def printable(text: str, kept: frozenset[str] = frozenset()) -> str:
    """The text on one line, with escapes for characters that cannot be shown, but for those that are kept."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in kept else ascii(each)[1:-1] for each in text)


def one_line(text: str, kept: frozenset[str] = frozenset()) -> str:
    """The lines of text beside each other, with a bar between them; tabs become spaces."""
    return " | ".join(printable(line.replace("\t", " "), kept) for line in text.split("\n"))


@attrs.frozen
class Problem:
    """One thing that is wrong with a call.

    Attributes:
        message: What is wrong, and what to send instead.
        path: Where, such as ``initial_steps[1].title``; empty for the call as a whole.
        keyword: The keyword of JSON Schema that is broken, such as ``required``; empty for another rule.
    """

    message: str = attrs.field(converter=writable)
    path: str = ""
    keyword: str = attrs.field(default="", eq=False, repr=False)

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message

    def under(self, path: str) -> Problem:
        """The same problem, seen from outside: ``title`` under ``steps[1]`` is ``steps[1].title``."""
        joined = f"{path}.{self.path}" if self.path and not self.path.startswith("[") else path + self.path
        return attrs.evolve(self, path=joined)


class ToolError(Exception):
    """The base of errors that a tool raises on purpose.

    Attributes:
        message: What went wrong.
        details: More about it, by name.
    """

    def __init__(self, message: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details or {})

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)

    def user_message(self) -> str:
        """The message for a person."""
        return self.message


class ToolValidationError(ToolError, ValueError):
    """A call was refused.

    Attributes:
        problems: Everything that was wrong, each with its place.
        nothing_changed: Whether the call certainly changed nothing: it was refused before the tool began, or
            the tool's changes were rolled back. The pipeline sets it.
    """

    nothing_changed: bool = False

    def __init__(self, problems: str | Problem | Iterable[Problem]) -> None:
        if isinstance(problems, str):
            problems = Problem(problems)
        self.problems = (problems,) if isinstance(problems, Problem) else tuple(problems)
        super().__init__(_spell(self.problems))


def _spell(problems: tuple[Problem, ...]) -> str:
    if len(problems) == 1:
        return cut(str(problems[0]), _LONGEST)
    listed = list(map(str, problems[:_LISTED]))
    if sum(map(len, listed)) + 2 * len(listed) > _LONGEST:
        listed = [cut(line, _LONGEST // _LISTED - 2) for line in listed]
    if len(problems) > _LISTED:
        listed.append(f"and {len(problems) - _LISTED} more")
    return "\n- ".join([f"{len(problems)} problems:", *listed])


def cut(text: str, limit: int) -> str:
    """The text, or its beginning with ``...`` where it is longer than ``most``."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def line_of(text: object, limit: int = LONGEST_MESSAGE, kept: frozenset[str] = frozenset()) -> str:
    """Text or an error on one line: its blanks single, what cannot be shown escaped, and cut."""
    return cut(printable(" ".join(str(text).split()), kept), limit)


def _rebuild(kind: type[ToolError], args: tuple[Any, ...], state: dict[str, Any]) -> ToolError:
    """Restore a pickled error without its own constructor, whose arguments are not ``args``."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(state)
    return error


def show(value: object) -> str:
    """A wrong value as a message shows it: short and ASCII; large values are never written out."""
    if not isinstance(value, str):
        return f"a value of type {type(value).__name__}"
    return ascii(str(value) if len(value) <= _SHOWN else value[: _SHOWN - 3] + "...")


def unknown_option(value: object, options: Iterable[object]) -> str:
    """The message for a value that is not one of the options, with the option that means the same."""
    known = list(map(str, options))
    meant = _MEANT.get(" ".join(_words(value[:_LONGEST_NAME]))) if isinstance(value, str) else None
    hint = f"did you mean {meant}? " if meant in known else ""
    return f"{show(value)} is unknown; {hint}send one of {listed(known)}"


def listed(names: Iterable[str], limit: int = _NAMED) -> str:
    """Names as a list: the first of them, and how many more there are."""
    known = list(names)
    more = len(known) - limit
    return ", ".join(known[:limit]) + (f" and {more} more" if more > 0 else "")


def nearest(name: object, known: Iterable[str], at_least: float = _NEAR) -> str | None:
    """The known name that was probably meant; None when none is close, or the name is very long.

    Case and separators do not count. A name that has all the words of the other is closer than only its
    letters make it: ``calculate_tip_amount`` means ``calculate_tip``, and not ``calculate_discount``. A word
    that differs is not a slip: ``customer_name`` does not mean ``customer_id``.
    """
    if not isinstance(name, str) or not 0 < len(name) <= _LONGEST_NAME:
        return None
    import difflib  # noqa: PLC0415 - only a wrong name needs it

    words = _words(name)
    if not words:
        return None
    own, spelled = set(words), " ".join(words)
    letters, matcher = set(spelled), None
    closest, most = None, 0.0
    for each in known:
        others = _words(each[: _LONGEST_NAME + 1])
        other = " ".join(others)
        shares_words = bool(others) and (own.issubset(others) or own.issuperset(others))
        common = min(len(spelled), sum(map(letters.__contains__, other)))  # an upper bound
        if not shares_words and 2 * common < at_least * (len(spelled) + len(other)):
            continue
        matcher = matcher or difflib.SequenceMatcher(b=spelled, autojunk=False)
        matcher.set_seq1(other)
        if closest is not None and not shares_words and matcher.quick_ratio() <= most:  # an upper bound, too
            continue
        closeness = (1 + matcher.ratio()) / 2 if shares_words else matcher.ratio()
        if closeness >= at_least and closeness > most and (shares_words or _are_alike(words, others)):
            closest, most = each, closeness
    return closest


def _are_alike(words: list[str], others: list[str]) -> bool:
    """True if no word differs; if there are more or fewer words, they cannot be compared."""
    import difflib  # noqa: PLC0415 - as in ``nearest``

    pairs = zip(words, others, strict=True) if len(words) == len(others) > 1 else ()
    return all(difflib.SequenceMatcher(None, *pair).ratio() >= _NEAR_WORD for pair in pairs)


def suggestion(name: object, known: Iterable[str], kind: str) -> str:
    """A hint for a wrong name: the nearest known one, or else any of them."""
    names = list(known)
    near = nearest(name, names)
    return f"the {kind} are {listed(names) or 'none'}" if near is None else f"did you mean {near}?"


def _words(name: str) -> list[str]:
    if name.isalpha() and name.islower():  # as most are: one word
        return [name.casefold()]
    return _BREAK.sub(" ", name if name.islower() else _HUMP.sub(" ", name)).casefold().split()
