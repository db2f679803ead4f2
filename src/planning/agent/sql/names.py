"""The names that a wrong name probably means: by its words first, then by its spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Final

__all__ = ["closest"]

_NEAR: Final = 0.75
_NEARER: Final = 0.8  # where the words are not the same number
_MOST: Final = 3
_LONGEST: Final = 100
_WORD: Final = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])|\d+")
_VAGUE: Final = frozenset({"code", "date", "id", "key", "name", "no", "number", "type", "value"})


def closest(
    name: str, groups: Sequence[tuple[str, Iterable[str]]], *, by_spelling: bool = True
) -> tuple[int, list[str]]:
    """The names that one probably means, and the place of their group; none if none is close.

    ``album_id`` is ``AlbumId``, never ``ArtistId``; ``ArtistName`` is the ``Name`` of the table ``Artist``.

    Args:
        name: The wrong name.
        groups: Names that exist: those of the columns of a table, and before them its own; that is empty
            for the names of tables.
        by_spelling: Whether it may be misspelled, or have words that a name has not.
    """
    if not 0 < len(name) <= _LONGEST:
        return 0, []
    own = _words(name)
    known = [
        (_words(table) if table else [], {each: _words(each) for each in names}) for table, names in groups
    ]
    for fits in _SAME if by_spelling else _SAME[:3]:
        for place, (table, names) in enumerate(known):
            same = [each for each, words in names.items() if fits(own, words, table)]
            if same:
                return place, same[:_MOST]
    near = [
        (max(_likeness(own, words), _likeness(_behind(own, table), words)), -place, each)
        for place, (table, names) in enumerate(known)
        for each, words in names.items()
    ]
    likeness, place, each = max(near, default=(0.0, 0, ""))
    return -place, [each] if by_spelling and likeness else []


_SAME: Final = (
    lambda own, words, _: "".join(own) == "".join(words),
    lambda own, words, table: bool(table) and words in (_behind(own, table), table + own),
    lambda own, words, table: (
        words[-len(_behind(own, table)) or len(words) :] == (_behind(own, table) or None)
    ),
    lambda own, words, _: own != ["id"] and set(own) < set(words),
    lambda own, words, table: bool(table) and set(words) - _VAGUE and set(words) < set(own),
)
"""How the words of a wrong name, of one that exists and of its table go together, the surest first."""


def _words(name: str) -> list[str]:
    """The words of ``FirstName`` or ``first_names``, in lower case and in the singular."""
    words = [word.lower() for word in _WORD.findall(name)] or [name.lower()]
    return [word[:-3] + "y" if word.endswith("ies") else word.removesuffix("s") for word in words]


def _behind(words: list[str], table: list[str]) -> list[str]:
    """The words behind those of the table; none if they do not begin with them."""
    return words[len(table) :] if table and words[: len(table)] == table else []


def _likeness(words: Sequence[str], others: Sequence[str]) -> float:
    """How close the spelling is, from 0 to 1: of the word that differs most, where there are as many."""
    least = _NEAR
    if not words or not any(others):
        return 0.0
    if len(words) != len(others):
        words, others, least = ["".join(words)], ["".join(others)], _NEARER
    pairs = zip(words, others, strict=True)
    likeness = min((SequenceMatcher(None, *pair, autojunk=False).ratio() for pair in pairs), default=0.0)
    return likeness if likeness >= least else 0.0
