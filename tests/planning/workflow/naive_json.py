"""A reader of strict JSON that keeps the place of everything, in the plainest way."""

from __future__ import annotations

import json
import re

__all__ = ["spans_of"]

Path = tuple[str | int, ...]
Span = tuple[int, int]

_SCALAR = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s,\]}]+')


def spans_of(text: str) -> tuple[dict[Path, Span], dict[Path, Span]]:
    """By path, where each value stands, and where each field's name does."""
    values: dict[Path, Span] = {}
    keys: dict[Path, Span] = {}

    def blank(pos: int) -> int:
        while text[pos : pos + 1].isspace():
            pos += 1
        return pos

    def scalar(pos: int) -> int:
        found = _SCALAR.match(text, pos)
        assert found is not None
        return found.end()

    def read(pos: int, path: Path) -> int:
        start = pos
        if text[pos] not in "[{":
            pos = scalar(pos)
        else:
            closer = "]" if text[pos] == "[" else "}"
            pos, number = blank(pos + 1), 0
            while text[pos] != closer:
                name: str | int = number
                if closer == "}":
                    end = scalar(pos)
                    name = json.loads(text[pos:end])
                    keys[(*path, name)] = pos, end
                    pos = blank(blank(end) + 1)  # behind the colon
                end = read(pos, (*path, name))
                pos, number = blank(end), number + 1
                if text[pos] == ",":
                    pos = blank(pos + 1)
            pos += 1
        values[path] = start, pos
        return pos

    read(blank(0), ())
    return values, keys
