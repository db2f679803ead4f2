"""A target beside what was measured."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Check"]


@dataclass(frozen=True, slots=True)
class Check:
    """One target beside what was measured."""

    target: str
    figure: str
    met: bool
