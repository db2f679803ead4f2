"""Whether a missing or extra bracket is ambiguous."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import Final

MOST_WEIGHED: Final = 2_000_000
"""The characters that are read once more to settle doubts; beyond them a doubt remains."""

_TOKEN: Final = re.compile(
    r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|(?://|\#)[^\n\r]*+|/\*(?:[^*]|\*(?!/))*+\*/|[^\s\"'/\#{}\[\],:]++|.",
    re.DOTALL,
)


class _Node:
    """A container, as far as it matters here."""

    __slots__ = ("is_object", "members", "start")

    def __init__(self, text: str, start: int) -> None:
        self.start = start
        self.is_object = text[start] == "{"
        self.members: list[tuple[int, str, _Node | None]] = []


def could_belong_outside(text: str, start: int, end: int, known: Container[str] | None) -> int | None:
    """The first member that could belong to the enclosing container instead, which lacks a bracket.

    Args:
        text: The text.
        start: Where the inner container starts: the last thing in the one around, and of its kind.
        end: Where it ends.
        known: The fields that the one around may have; None where it may have any.
    """
    for node in _last_ones(text, start, end):
        for offset, name, _ in node.members[1:]:
            if known is None or name in known:
                return offset
        known = None
    return None


def could_be_another(text: str, start: int, end: int, known: Container[str] | None) -> bool:
    """Whether, for an extra bracket after a container, an earlier one inside could be the wrong one.

    Args:
        text: The text.
        start: Where the container starts.
        end: Where it ends.
        known: The fields that it may have; None where it may have any.
    """
    for node in _last_ones(text, start, end):
        is_behind = False
        for _, name, inner in node.members:
            if is_behind and (known is None or name not in known):
                return True
            is_behind = is_behind or (inner is not None and inner.is_object == node.is_object)
        known = None
    return False


def last_object(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The offsets of the object that ends a part of an object; None where it ends with something else.

    Args:
        text: The text.
        start: Where the object around starts.
        end: Where the part of it ends.
    """
    end = len(text[start:end].rstrip()) + start
    members = _read(text, start, end).members
    last = members[-1][2] if members else None
    return (last.start, end) if last is not None and last.is_object and text[end - 1] == "}" else None


def _last_ones(text: str, start: int, end: int) -> Iterator[_Node]:
    """A container, and the last thing in each as long as that is a container of the same kind."""
    node: _Node | None = _read(text, start, end)
    while node is not None:
        yield node
        last = node.members[-1][2] if node.members else None
        node = last if last is not None and last.is_object == node.is_object else None


def _read(text: str, start: int, end: int) -> _Node:
    root = _Node(text, start)
    stack, before = [root], start
    for token in _TOKEN.finditer(text, start + 1, end):
        char, node = token[0][0], stack[-1]
        if char.isspace() or char == "," or token[0].startswith(("//", "#", "/*")):
            continue
        if char in "}]":
            del stack[max(len(stack) - 1, 1) :]
        elif node.is_object and char == ":":
            node.members.append((before, text[before : token.start()].strip(" \t\r\n\"'"), None))
        elif char in "{[":
            inner = _Node(text, token.start())
            stack.append(inner)
            if not node.is_object:
                node.members.append((token.start(), "", inner))
            elif node.members:
                node.members[-1] = (*node.members[-1][:2], inner)
        elif not node.is_object:
            node.members.append((token.start(), "", None))
        before = token.start()
    return root
