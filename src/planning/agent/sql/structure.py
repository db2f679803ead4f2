"""The tokens of a statement, nested by its brackets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import attrs

from planning.agent.sql.guard import tokenize

__all__ = [
    "COMPARING",
    "Group",
    "Item",
    "Word",
    "behind_name",
    "groups",
    "is_word",
    "name_of",
    "operand_before",
    "split",
    "structure",
]

_DEEPEST: Final = 100  # SQLite's parser itself gives up at about a hundred

_BEFORE_BRACKETS_TEXT: Final = "AND BETWEEN BY ELSE HAVING IN LIKE NOT ON OR SELECT THEN WHEN WHERE"
_BEFORE_BRACKETS: Final = frozenset(_BEFORE_BRACKETS_TEXT.split())
COMPARING: Final = frozenset({"=", "==", "<>", "!=", "<", "<=", ">", ">="})
"""The signs that compare two values."""

_OPENING: Final = {"(": ")", "[": "]", "{": "}"}
_QUOTES: Final = {'"': '"', "`": "`", "[": "]"}


@attrs.frozen
class Word:
    """A token.

    Attributes:
        kind: ``word``, ``name`` (in quotes), ``text``, ``number`` or ``sign``.
        text: The token as written; a name without its quotes, a word in capitals.
        start: Where it begins in the statement.
        end: Where it ends.
    """

    kind: str
    text: str
    start: int
    end: int

    @property
    def is_name(self) -> bool:
        """Whether it may be a name."""
        return self.kind in {"word", "name"}


@attrs.frozen(eq=False)
class Group:
    """A pair of brackets.

    Attributes:
        items: The tokens and brackets between them.
        start: The place of the first bracket.
        end: The place behind the last one.
    """

    items: list[Word | Group] = attrs.field(factory=list)
    start: int = 0
    end: int = 0

    kind = "group"
    text = "("
    is_name = False

    @property
    def is_query(self) -> bool:
        """Whether it holds a SELECT."""
        return bool(self.items) and self.items[0].kind == "word" and self.items[0].text in _QUERIES


Item = Word | Group
_QUERIES: Final = frozenset({"SELECT", "WITH", "VALUES"})


def structure(sql: str, dialect: str) -> Group | None:
    """The tokens of a statement, those in brackets as groups.

    Returns:
        None if it cannot be tokenized, or the brackets do not match or are too deep.
    """
    tokens = tokenize(sql, dialect)
    if tokens is None:
        return None
    open_groups: list[tuple[list[Item], int]] = [([], 0)]
    for token in tokens:
        for word in _words(token, sql):
            items = open_groups[-1][0]
            if word.kind == "sign" and word.text in _OPENING:
                if len(open_groups) > _DEEPEST:
                    return None
                open_groups.append(([], word.start))
            elif word.kind == "sign" and word.text in _OPENING.values():
                if len(open_groups) == 1:
                    return None
                _, start = open_groups.pop()
                open_groups[-1][0].append(Group(items, start, word.end))
            else:
                items.append(word)
    return Group(open_groups[0][0], 0, len(sql)) if len(open_groups) == 1 else None


def _words(token: Any, sql: str) -> Iterator[Word]:
    """The words of a token: for sqlglot, ``GROUP BY`` is one."""
    start, end = token.start, token.end + 1
    raw, kind = sql[start:end], token.token_type.name
    if kind == "IDENTIFIER":
        close = _QUOTES[raw[0]]
        yield Word("name", raw[1:-1].replace(close * 2, close), start, end)
    elif "STRING" in kind:
        yield Word("text", raw, start, end)
    elif kind == "NUMBER":
        yield Word("number", raw, start, end)
    elif raw[:1].isalpha() or raw[:1] == "_":
        for part in raw.split():
            place = sql.index(part, start)
            start = place + len(part)
            yield Word("word", part.upper(), place, start)
    else:
        yield Word("sign", raw, start, end)


def groups(top: Group) -> Iterator[tuple[Group, Group | None, Item | None]]:
    """A group and all groups within it, each with the group around it and the item before it."""
    waiting: list[tuple[Group, Group | None, Item | None]] = [(top, None, None)]
    while waiting:
        group, outer, before = waiting.pop()
        yield group, outer, before
        previous: Item | None = None
        for item in group.items:
            if isinstance(item, Group):
                waiting.append((item, group, previous))
            previous = item


def split(items: Sequence[Item], *by: str) -> list[list[Item]]:
    """The items between words or signs, such as ``,``."""
    found: list[list[Item]] = [[]]
    for item in items:
        if item.kind in {"word", "sign"} and item.text in by:
            found.append([])
        else:
            found[-1].append(item)
    return found


def is_word(item: Item, *words: str) -> bool:
    """Whether it is one of these words, without quotes."""
    return item.kind == "word" and item.text in words


def behind_name(items: Sequence[Item], place: int) -> int:
    """The place behind a name that begins here, such as ``main.customers.name``."""
    place += 1
    while place + 1 < len(items) and items[place].text == "." and not isinstance(items[place + 1], Group):
        place += 2
    return place


def name_of(items: Sequence[Item]) -> list[Word]:
    """The parts of a name; empty if there is anything else."""
    if not items or not items[0].is_name or behind_name(items, 0) != len(items):
        return []
    return [item for item in items if isinstance(item, Word) and item.text != "."]


def operand_before(items: Sequence[Item], place: int) -> int:
    """The place where the operand before a place begins: a name, a call, a literal, or brackets."""
    begin = place - 1
    if isinstance(items[begin], Group) and begin and items[begin - 1].is_name:
        begin -= not is_word(items[begin - 1], *_BEFORE_BRACKETS)
    if items[begin].kind == "text" and begin and is_word(items[begin - 1], "DATE", "TIMESTAMP"):
        begin -= 1
    while begin > 1 and items[begin - 1].text == "." and items[begin - 1].kind == "sign":
        begin -= 2
    return begin
