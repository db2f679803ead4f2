"""Why a worker could not answer, as plain values; the parent process writes the message."""

from __future__ import annotations

__all__ = ["HALF", "WORN", "Failure"]

HALF = "the SQL holds half a character (a lone surrogate)"


WORN = 75
"""The exit status of a process that got a request but cannot serve it: a new process is asked instead."""


class Failure(Exception):
    """A request that ends without an answer.

    Attributes:
        kind: ``missing``, ``folder``, ``denied``, ``locked``, ``corrupt``, ``unfinished`` or ``unreadable``
            (of the file); ``timeout``, ``memory``, ``large`` or ``broken`` (of the query);
            ``refused`` or ``sql`` (of the statement); ``library`` (what reads the file is not installed).
        text: The error of the database, or the name of the refused action.
    """

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(kind, text)
        self.kind = kind
        self.text = text
