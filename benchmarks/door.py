"""What every contestant shows to the clock: one way to mark one step of a plan."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import version
from typing import Literal

__all__ = ["COMPLETED", "DONE", "Door", "Prepared", "Takes", "middle", "title"]

DONE: tuple[Literal["done"], Literal["in_progress"]] = ("done", "in_progress")
"""Marks set these in turn: each is a change, and every other one finishes the step."""

COMPLETED = ("completed", "in_progress")
"""The same two for peers that call a finished step completed."""


class Takes(StrEnum):
    """What a caller hands over; only doors that take the same are compared."""

    TYPED = "typed arguments"
    JSON = "JSON text"
    NONE = "nothing"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan in memory, ready to be marked.

    Attributes:
        mark: Performs the n-th mark on the middle step; a coroutine function where the door is async.
        statuses: Reads the status of every step back the way a user of the peer reads it.
    """

    mark: Callable[[int], object]
    statuses: Callable[[], Sequence[str] | Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Door:
    """One public way into one planning tool.

    Attributes:
        name: How the tables call it.
        package: The distribution it comes from, whose version is reported; None for no distribution.
        takes: What the caller hands over.
        description: What one mark runs through, from the first call to the state read back.
        prepare: Builds a fresh plan of so many steps, all pending; may be a coroutine function.
        words: The statuses that its marks set in turn.
        is_async: Whether ``mark`` must be awaited.
    """

    name: str
    package: str | None
    takes: Takes
    description: str
    prepare: Callable[[int], Prepared | Awaitable[Prepared]]
    words: tuple[str, str] = DONE
    is_async: bool = False

    @property
    def version(self) -> str:
        """The installed version of the door's package."""
        return version(self.package) if self.package else "-"


def middle(steps: int) -> int:
    """The index of the marked step: the middle, so that a scan from either end costs its mean."""
    return steps // 2


def title(index: int) -> str:
    """The title of a step; the same text for every peer."""
    return f"Carry out part {index + 1} of the migration"
