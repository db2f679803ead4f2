"""Why a worker could not answer, as plain values: the words for it are found where they are told."""

from __future__ import annotations

__all__ = ["HALF", "WORN", "Failure"]

HALF = "the SQL holds half a character (a lone surrogate)"


WORN = 75
"""With what a process ends that has heard a request and can do no more: a new one is asked instead."""


class Failure(Exception):
    """A request that ends without an answer.

    Attributes:
        kind: ``missing``, ``folder``, ``denied``, ``locked``, ``corrupt``, ``unfinished`` or ``unreadable``
            (of the file); ``timeout``, ``memory``, ``large`` or ``broken`` (of the query);
            ``refused`` or ``sql`` (of the statement); ``library`` (what reads the file is not installed).
        text: What the database says, or what it is that is refused.
    """

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(kind, text)
        self.kind = kind
        self.text = text
