"""SQL from a file instead of a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from planning.cli.printable import printable
from planning.cli.source import SourceError, read_bytes

__all__ = ["given_in_turn", "read_statements"]

_LINE_BETWEEN: Final = re.compile(r"^[ \t]*---[ \t]*\r?$", re.MULTILINE)


def read_statements(path: str) -> tuple[str, ...]:
    """The statements of a file, which lines of three dashes separate.

    Args:
        path: The file; ``-`` for standard input.

    Raises:
        SourceError: It cannot be read, is no text, or holds none.
    """
    name = "standard input" if path == "-" else f"'{printable(path)}'"
    try:
        text = read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise SourceError(f"{name} cannot be read: it is no UTF-8 text") from None
    statements = tuple(each.strip() for each in _LINE_BETWEEN.split(text) if each.strip())
    if not statements:
        raise SourceError(f"{name} holds no SQL; write a SELECT")
    return statements


def given_in_turn(statements: Sequence[str]) -> Callable[..., str]:
    """A generator that gives one statement at each attempt, and the last one from there on."""

    def generate(attempts: Sequence[Any]) -> str:
        return statements[min(len(attempts), len(statements) - 1)]

    return generate
