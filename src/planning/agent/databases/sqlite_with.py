"""The tables of a WITH, counted as often as SQLite would expand them.

A chain in which each table reads the one before twice doubles with each step, and SQLite cannot be
interrupted while it expands it.
"""

from __future__ import annotations

import re
from collections import Counter
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from planning.agent.sql.failures import Failure
from planning.agent.sql.guard import tokenize

__all__ = ["check_expansion"]

_MOST: Final = 10_000
_FEWEST: Final = 2  # tables that can read each other
_ROUNDS: Final = 50
_AS: Final = re.compile(r"\bAS\b", re.IGNORECASE)


def check_expansion(sql: str) -> None:
    """Check that the tables of a WITH are not read too often.

    Raises:
        Failure: They are, through each other.
    """
    if "with" not in sql.lower() or len(_AS.findall(sql)) < _FEWEST:
        return
    bodies = _bodies(tokenize(sql, "sqlite") or [])
    sizes = dict.fromkeys(bodies, 1)
    try:
        order = list(TopologicalSorter(bodies).static_order())
    except CycleError:  # the same name stands for several tables
        order = list(bodies) * _ROUNDS
    for name in order:
        sizes[name] = 1 + sum(times * sizes[other] for other, times in bodies[name].items())
        if sizes[name] > _MOST:
            raise Failure("expanded", name)


def _bodies(tokens: list[Any]) -> dict[str, Counter[str]]:
    """How often the body of each table of a WITH reads the others."""
    words = [token.text.lower() for token in tokens]
    closing, opening = _brackets(words)
    begins: dict[int, str] = {}
    for place in range(1, len(words)):
        start = place + 1
        while words[start : start + 1] in (["not"], ["materialized"]):
            start += 1
        if words[place] == "as" and start in closing:  # behind the name, or behind its columns in brackets
            begins[start] = words[opening.get(place - 1, place) - 1]
    names = set(begins.values())
    bodies: dict[str, Counter[str]] = {name: Counter() for name in names}
    inside: list[tuple[str, int]] = []
    for place, word in enumerate(words):
        while inside and place > inside[-1][1]:
            inside.pop()
        if place in begins:
            inside.append((begins[place], closing[place]))
        elif inside and word in names and word != inside[-1][0]:
            bodies[inside[-1][0]][word] += 1
    return bodies


def _brackets(words: list[str]) -> tuple[dict[int, int], dict[int, int]]:
    """Where each bracket is closed, and where each that closes was opened."""
    closing: dict[int, int] = {}
    waiting: list[int] = []
    for place, word in enumerate(words):
        if word == "(":
            waiting.append(place)
        elif word == ")" and waiting:
            closing[waiting.pop()] = place
    return closing, {end: start for start, end in closing.items()}
