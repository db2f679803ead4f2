"""Whether a bracket that is missing, or one too many, can be meant in two ways."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MOST_WEIGHED", "could_be_another", "could_belong_outside", "last_object"]

MOST_WEIGHED: Final = 2_000_000
"""The characters that are read once more to settle doubts; beyond them a doubt remains."""

_TOKEN: Final = re.compile(
    r"\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|(?://|\#)[^\n\r]*+|/\*(?:[^*]|\*(?!/))*+\*/|[^\s\"'/\#{}\[\],:]++|.",
    re.DOTALL,
)
# Spelled as one text: a list would take a page.
_FIELDS: Final = (
    "step_id description type name agent tool inputs parameters outputs depends_on dependencies expected_key "
    "output_path done_check status completed_at skipped schema_version goal steps created_at owner can_modify"
)
_STRUCTURE: Final = frozenset(_FIELDS.split())
"""The fields of steps and of documents: they belong nowhere else."""


class _Node:
    """A container, as far as it matters here.

    Attributes:
        is_object: Whether it is an object.
        offsets: Where each member or item starts.
        names: The name of each member.
        inner: The container that each member or item is; None for any other value.
    """

    __slots__ = ("inner", "is_object", "names", "offsets")

    def __init__(self, *, is_object: bool) -> None:
        self.is_object = is_object
        self.offsets: list[int] = []
        self.names: list[str] = []
        self.inner: list[_Node | None] = []

    def add(self, offset: int, name: str) -> None:
        """Begin a member or an item."""
        self.offsets.append(offset)
        self.names.append(name)
        self.inner.append(None)


def could_belong_outside(text: str, start: int, end: int, *, is_known: bool) -> int | None:
    """The first member that could stand in the container around instead, which lacks a bracket.

    Args:
        text: The text.
        start: Where the inner container starts: the last thing in the one around, and of its kind.
        end: Where it ends.
        is_known: Whether the one around is a step or a document, whose fields are known.
    """
    node: _Node | None = _read(text, start, end)
    while node is not None:
        for offset, name in list(zip(node.offsets, node.names, strict=True))[1:]:
            if not is_known or name in _STRUCTURE:
                return offset
        last = node.inner[-1] if node.inner else None
        node = last if last is not None and last.is_object == node.is_object else None
        is_known = False
    return None


def last_object(text: str, start: int, end: int) -> tuple[int, int] | None:
    """The offsets of the object that ends a part of an object; None where it ends with something else.

    Args:
        text: The text.
        start: Where the object around starts.
        end: Where the part of it ends.
    """
    end = len(text[start:end].rstrip()) + start
    opened: list[int] = []
    begun = start
    for token in _TOKEN.finditer(text, start + 1, end):
        if token[0] == "{":
            opened.append(token.start())
        elif token[0] == "}" and opened:
            begun = opened.pop()
    return (begun, end) if text[end - 1] == "}" and begun > start else None


def could_be_another(text: str, start: int, end: int, *, is_known: bool) -> bool:
    """Whether, of one bracket too many behind a container, an earlier one within could be the wrong one.

    Args:
        text: The text.
        start: Where the container starts.
        end: Where it ends.
        is_known: Whether it is a step or a document, whose fields are known.
    """
    node: _Node | None = _read(text, start, end)
    while node is not None:
        seen = False
        for name, inner in zip(node.names, node.inner, strict=True):
            if seen and not (is_known and name in _STRUCTURE):
                return True
            seen = seen or (inner is not None and inner.is_object == node.is_object)
        last = node.inner[-1] if node.inner else None
        node = last if last is not None and last.is_object == node.is_object else None
        is_known = False
    return False


def _read(text: str, start: int, end: int) -> _Node:
    root = _Node(is_object=text[start] == "{")
    stack, before = [root], start
    for token in _TOKEN.finditer(text, start + 1, end):
        char, node = token[0][0], stack[-1]
        if char.isspace() or char == "," or token[0].startswith(("//", "#", "/*")):
            continue
        if char in "}]":
            del stack[max(len(stack) - 1, 1) :]
        elif node.is_object and char == ":":
            node.add(before, text[before : token.start()].strip(" \t\r\n\"'"))
        elif char in "{[":
            if not node.is_object:
                node.add(token.start(), "")
            inner = _Node(is_object=char == "{")
            if node.inner:
                node.inner[-1] = inner
            stack.append(inner)
        elif not node.is_object:
            node.add(token.start(), "")
        before = token.start()
    return root
