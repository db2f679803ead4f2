"""How a target of the fuzzer says that the library did not keep a promise."""

from __future__ import annotations

__all__ = ["BrokenPromise", "demand", "demand_readable"]

MOST_FOR_A_MODEL = 50_000


class BrokenPromise(Exception):
    """An answer is not what the library promises."""


def demand(is_kept: bool, promise: str) -> None:  # noqa: FBT001 - it reads as an assertion does
    """Raise unless a promise is kept, also where assertions are switched off.

    Raises:
        BrokenPromise: It is not.
    """
    if not is_kept:
        raise BrokenPromise(promise)


def demand_readable(message: str) -> None:
    """Check a message that a model reads: short enough, and text that every client can encode.

    Raises:
        BrokenPromise: It is too long, or holds half of a surrogate pair.
    """
    demand(len(message) <= MOST_FOR_A_MODEL, "a message to a model has at most 50,000 characters")
    demand(not any("\ud800" <= each <= "\udfff" for each in message), "a message can be encoded as UTF-8")
