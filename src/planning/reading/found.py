"""What is wrong with a document, or was repaired: one value for each place."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Found", "Path"]

Path = tuple[str | int, ...]


class Found(NamedTuple):
    """A finding before its place in the text is known.

    Attributes:
        code: One of ``CODES``.
        message: What is wrong, in ASCII and without a full stop.
        hint: What to do about it, in the imperative.
        path: Where in the parsed value.
        at_key: Whether the name of the last field is meant, and not its value.
        within: The part of a string that is meant, as start and end in its decoded text.
        span: The place in the text itself, as start and end, where no path leads there.
        step_index: Which step, from 0.
        step_id: The id of that step, where it has one.
    """

    code: str
    message: str
    hint: str
    path: Path = ()
    at_key: bool = False
    within: tuple[int, int] | None = None
    span: tuple[int, int] | None = None
    step_index: int | None = None
    step_id: str | None = None
