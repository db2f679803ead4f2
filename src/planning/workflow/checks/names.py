"""Names in messages: quoted, listed up to a limit, and the nearest to a wrong one."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice

from planning.errors import nearest, show

_LISTED = 20
_MOST_COMPARED = 20_000
_NAME = re.compile(r"[!-~]{1,60}")


def named(name: str) -> str:
    """A name as it is to be written; one that could be misread is quoted, escaped and cut."""
    return name if _NAME.fullmatch(name) else show(name)


class Speller:
    """Finds the known name nearest to a wrong one, in bounded time for one plan.

    Similarity is expensive: a plan in which everything is wrong, with thousands of tools, would take minutes.
    After a number of comparisons none is found.
    """

    def __init__(self) -> None:
        self._left = _MOST_COMPARED

    def suggest(self, name: str, known: Collection[str], kind: str, *, but: str | None = None) -> str:
        """What to write instead of a wrong name: the nearest, or else one of the known ones.

        Args:
            name: The wrong name.
            known: The known ones.
            kind: What the names are, in the plural.
            but: A name that cannot be meant.
        """
        near = self.nearest(name, known)
        if near is not None and near != but:
            return f"did you mean {named(near)}?"
        if not known:
            return f"there are no {kind}"
        more = len(known) - _LISTED
        listed = ", ".join(map(named, islice(known, _LISTED))) + (f" and {more:,} more" if more > 0 else "")
        return f"the {kind} are {listed}"

    def nearest(self, name: str, known: Collection[str]) -> str | None:
        """The known name that was probably meant; None where there is none."""
        if self._left < len(known):
            return None
        self._left -= len(known)
        return nearest(name, known)
