"""Names in messages: shown so that they can be copied, listed but not all, and the nearest to a wrong one."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice

from planning.errors import nearest, show

__all__ = ["Speller", "named"]

_LISTED = 20
_MOST_COMPARED = 20_000
_LONGEST_COMPARED = 100
_NAME = re.compile(r"[!-~]{1,60}")


def named(name: str) -> str:
    """A name as it is to be written; one that could be misread is quoted, escaped and cut."""
    return name if _NAME.fullmatch(name) else show(name)


class Speller:
    """Finds the known name nearest to a wrong one, in bounded time for one plan.

    Similarity is expensive: a plan in which everything is wrong, with thousands of tools, would
    take minutes. After a number of comparisons only names that differ by case or spaces are found.
    """

    def __init__(self) -> None:
        self._left = _MOST_COMPARED
        # By id of the known names, with the names themselves: or else their id would be used again.
        self._folded: dict[int, tuple[Collection[str], dict[str, str]]] = {}
        self._lists: dict[int, tuple[Collection[str], str]] = {}

    def suggest(self, name: str, known: Collection[str], kind: str, *, but: str | None = None) -> str:
        """What to write instead of a wrong name: the nearest, or else one of the known ones.

        Args:
            name: The wrong name.
            known: See ``nearest``.
            kind: What the names are, in the plural.
            but: A name that cannot be meant.
        """
        near = self.nearest(name, known)
        if near is not None and near != but:
            return f"did you mean {named(near)}?"
        if not known:
            return f"there are no {kind}"
        kept = self._lists.get(id(known))
        if kept is None:
            kept = self._lists[id(known)] = (known, _listed(known))
        return f"the {kind} are {kept[1]}"

    def nearest(self, name: str, known: Collection[str]) -> str | None:
        """The known name that was probably meant; None where there is none.

        Args:
            name: The wrong name.
            known: The known ones; the same object for the same names.
        """
        if len(name) > _LONGEST_COMPARED:
            return None
        folded, by_folded = _fold(name), self._by_folded(known)
        if folded in by_folded:
            return by_folded[folded]
        if self._left < len(by_folded):
            return None
        self._left -= len(by_folded)
        return nearest(name, by_folded.values())

    def _by_folded(self, known: Collection[str]) -> dict[str, str]:
        """The known names without case and outer spaces; of several that are the same so, the first."""
        kept = self._folded.get(id(known))
        if kept is None:
            by_folded: dict[str, str] = {}
            for name in known:
                if 0 < len(name) <= _LONGEST_COMPARED:
                    by_folded.setdefault(_fold(name), name)
            kept = self._folded[id(known)] = (known, by_folded)
        return kept[1]


def _listed(names: Collection[str]) -> str:
    """Names as a list, the first of them when there are many."""
    shown = ", ".join(map(named, islice(names, _LISTED)))
    more = len(names) - _LISTED
    return f"{shown} and {more:,} more" if more > 0 else shown


def _fold(name: str) -> str:
    return name.strip().casefold()
