"""The nearest names to a wrong one: by words first, then by spelling."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher
from typing import Final

_NEAR: Final = 0.75
_NEARER: Final = 0.8  # where the words are not the same number
_MOST: Final = 3
_LONGEST: Final = 100
_OF_SOME, _UNLIKE = 3, 6  # ranks: from here on only some words are the same, or nothing is
_WORD: Final = re.compile(r"[A-Z]?[^\W\d_A-Z]+|[A-Z]+(?![^\W\d_A-Z])|\d+")
_VAGUE: Final = frozenset({"code", "date", "id", "key", "name", "no", "number", "type", "value"})


def closest(
    name: str, groups: Sequence[tuple[str, Iterable[str]]], *, by_spelling: bool = True
) -> list[tuple[int, str]]:
    """The names that one probably means, each with the place of its group; none if none is close.

    ``album_id`` is ``AlbumId``, never ``ArtistId``; ``ArtistName`` is the ``Name`` of the table ``Artist``.

    Args:
        name: The wrong name.
        groups: Names that exist: those of the columns of a table, and before them its own; that is empty
            for the names of tables.
        by_spelling: Whether it may be misspelled, or have words that a name has not.
    """
    own = _words(name)
    ranks = [
        (_rank(own, _words(each), _words(table) if table else []), place, each)
        for place, (table, names) in enumerate(groups if 0 < len(name) <= _LONGEST else ())
        for each in names
    ]
    best = min(ranks, default=(_UNLIKE, 0, ""))[0]
    if best >= (_UNLIKE if by_spelling else _OF_SOME):
        return []
    return [(place, each) for rank, place, each in ranks if rank == best][:_MOST]


def _rank(own: list[str], words: list[str], table: list[str]) -> float:
    """How surely a wrong name means one that exists, by the words of both and of its table; 0 is surest."""
    behind = own[len(table) :] if table and own[: len(table)] == table else []
    is_part = set(words) < set(own) and set(words) - _VAGUE
    whole = (
        "".join(own) == "".join(words),
        bool(table) and words in (behind, table + own),
        bool(behind) and words[-len(behind) :] == behind,
        own != ["id"] and set(own) < set(words),
        bool(table) and bool(is_part),
    )
    return (
        whole.index(True) if True in whole else _UNLIKE - max(_likeness(own, words), _likeness(behind, words))
    )


def _words(name: str) -> list[str]:
    """The words of ``FirstName`` or ``first_names``, in lower case and in the singular."""
    words = [word.lower() for word in _WORD.findall(name)] or [name.lower()]
    return [word[:-3] + "y" if word.endswith("ies") else word.removesuffix("s") for word in words]


def _likeness(words: Sequence[str], others: Sequence[str]) -> float:
    """How close the spelling is, from 0 to 1: of the word that differs most, where there are as many."""
    least = _NEAR
    if not words or not any(others):
        return 0.0
    if len(words) != len(others):
        words, others, least = ["".join(words)], ["".join(others)], _NEARER
    pairs = zip(words, others, strict=True)
    likeness = min(SequenceMatcher(None, *pair, autojunk=False).ratio() for pair in pairs)
    return likeness if likeness >= least else 0.0
