"""Whether a question is about a database at all, as far as its words tell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from planning.agent.words import ENGLISH, FUNCTION, GENERAL, RELATED

__all__ = ["clarify", "tables_of"]

_WORD: Final = re.compile(r"[^\W_]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_TABLE: Final = re.compile(r'^(?:view )?("(?:[^"]|"")+"|\w+)(?:,.*)?$')
_DOUBLED: Final = re.compile(r"([^aeiouls])\1$")

_ENDINGS: Final = ("ies", "es", "s", "ing", "ed", "er", "ers", "ly", "al")
_SHORTEST_STEM: Final = 3
_ALIKE: Final = 0.8
_FARTHEST: Final = 2
_MOST_TABLES: Final = 12
_MOST_SUBJECTS: Final = 40


def clarify(question: str, schema: str) -> str | None:
    """Ask back where a question names nothing in the schema: no table, no column, no sample value.

    It compares words, without their endings, and lets small misspellings pass, and words for the same things:
    what was sold is about orders. It does not judge a question that only asks for what any database has ("how
    many rows are there?"), or that is not in English.

    Args:
        question: What the user wants to know.
        schema: What the database holds, as ``SqlDatabase.get_schema`` tells it.

    Returns:
        What to ask the user; None where the question names something, or cannot be judged.
    """
    words = _words(question)
    subjects = [word for word in words if word not in FUNCTION | GENERAL and not word.isdigit()]
    if not 0 < len(subjects) <= _MOST_SUBJECTS or ENGLISH.isdisjoint(words):
        return None
    known = _stems(_words(schema))
    if any(_names(word, known) for word in subjects):
        return None
    tables = tables_of(schema)
    if not tables:
        return None
    listed = ", ".join(tables[:_MOST_TABLES])
    more = f" and {len(tables) - _MOST_TABLES} more" if len(tables) > _MOST_TABLES else ""
    return (
        f"The question names nothing that the database holds. It holds {listed}{more}."
        " What would you like to know of these?"
    )


def tables_of(schema: str) -> list[str]:
    """The names of the tables and views in the text of a schema, in its order."""
    lines = schema.split("\n")[1:]
    heads = [line for line in lines if line and not line[0].isspace()]
    return [match[1] for match in map(_TABLE.match, heads) if match]


def _words(text: str) -> list[str]:
    """The words of a text, each once, in order; the parts of a name with humps or underscores are some."""
    return list(dict.fromkeys(word.lower() for word in _WORD.findall(_HUMP.sub(" ", text))))


def _stems(words: Iterable[str]) -> dict[str, None]:
    """The words without endings, in order."""
    return dict.fromkeys(stem for word in words for stem in _forms(word) if stem not in FUNCTION)


def _forms(word: str) -> set[str]:
    forms = {word}
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            stem = word.removesuffix(ending)
            forms |= {stem, _DOUBLED.sub(r"\1", stem)}  # shipped, ship
    return {form.rstrip("ey") if len(form) > _SHORTEST_STEM + 1 else form for form in forms}


def _names(word: str, known: dict[str, None]) -> bool:
    forms = _forms(word)
    if not forms.isdisjoint(known):
        return True
    if any(not forms.isdisjoint(group) and not group.isdisjoint(known) for group in _RELATED):
        return True
    long = [each for each in known if len(each) > _SHORTEST_STEM]
    for form in forms:
        if len(form) <= _SHORTEST_STEM:
            continue
        # customer and customerid, ship and shipment
        if any(each.startswith(form) or form.startswith(each) for each in long):
            return True
        near = [each for each in long if each[0] == form[0] and abs(len(each) - len(form)) <= _FARTHEST]
        if get_close_matches(form, near, n=1, cutoff=_ALIKE):
            return True
    return False


_RELATED: Final = tuple(frozenset(form for word in words for form in _forms(word)) for words in RELATED)
