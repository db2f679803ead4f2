"""References in strings, such as ``${fetch.output.items[0]}``: their grammar, for checks and for runs.

    reference = "${" ( "user_prompt" | STEP ".output" segment* ) "}"
    segment   = "." name | "[" digits "]" | "[" quote key quote "]"
    literal   = "$${", which is written out as "${"

A name is one or more characters other than ``. [ ] { }``, and not blank. A key is one or more characters
other than braces and its quotes, which are single or double: it may have dots and brackets. There are at most
100 segments: no output is nested deeper. STEP is the id of a step and may hold dots, even ``.output``: if
several ids of the plan match, the longest one is meant. A ``$`` or ``{`` alone is plain text.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

MARK = "${"
"""What a reference begins with: a string without it has no reference."""
LITERAL_MARK = "$${"
"""What is written out as ``MARK``, and begins no reference."""
PROMPT = "user_prompt"
OUTPUT = ".output"

_PART = r"\.\s*[^\s.\[\]{}][^.\[\]{}]*+|\[[0-9]{1,15}\]"
_KEY = r"\[\"[^\"{}]++\"\]|\['[^'{}]++'\]"
_PATH = re.compile(f"(?:{_PART}|{_KEY}){{0,100}}+")
_SEGMENT = re.compile(rf"\.([^.\[\]]+)|\[([0-9]+)\]|({_KEY})")
_PLAIN = re.compile(r"(?<!\$)\$\{(?:user_prompt|([^.\[\]{}]+)\.output((?:" + _PART + r"){0,100}+))\}")
_WORD = re.compile(r"\S*")

find_plain = _PLAIN.findall
"""The step id, empty for ``${user_prompt}``, and the path as text, of each reference in a string whose step
id has no dot or bracket and whose path has no key: a fast check of a whole plan. Its result is complete where
it finds as many references as there are marks in the string, and no step id contains ``.output``."""


class Reference(NamedTuple):
    """A reference in a string.

    Attributes:
        step_id: The step whose output is meant, whether or not there is one; None for ``${user_prompt}``.
        path: Where in the output: names and indexes.
        start: Where it begins in the string.
        end: Where it ends; a reference from 0 to the length of the string is a whole value.
    """

    step_id: str | None
    path: tuple[str | int, ...]
    start: int
    end: int


class NoReference(NamedTuple):
    """A part of a string that begins like a reference but is not one.

    Attributes:
        start: Where it begins in the string.
        end: Where it ends.
        is_closed: Whether there is a closing brace behind it.
        is_nested: Whether another reference begins before that brace.
    """

    start: int
    end: int
    is_closed: bool
    is_nested: bool = False


class StepIds:
    """The ids that references may name."""

    def __init__(self, ids: Iterable[str]) -> None:
        """Keep the ids of a plan; a set, or a dict by id, is used without a copy."""
        self.all: Container[str] = ids if isinstance(ids, (dict, set, frozenset)) else set(ids)
        # Only such an id can be a longer one than the text before the first ".output". Their lengths tell
        # where to look, so that a string with very many ".output" is not cut and hashed at each.
        self.lengths = {len(each) for each in ids if OUTPUT in each}


def parse_references(text: str, ids: StepIds) -> list[Reference | NoReference]:
    """All references in a string, and its malformed ones; see ``iter_references``."""
    return list(iter_references(text, ids))


def iter_references(text: str, ids: StepIds) -> Iterator[Reference | NoReference]:
    """All references in a string, and its malformed ones, in the order of the string.

    Args:
        text: Any string.
        ids: The ids of the plan, which tell where a step id with dots ends.
    """
    start = _find(text, 0)
    while start >= 0:
        close = text.find("}", start)
        if close < 0:
            word = _WORD.match(text, start)
            yield NoReference(start, word.end() if word else len(text), is_closed=False)
            return
        reference = _read(text[start + 2 : close], start, close + 1, ids)
        if reference is not None:
            yield reference
            start = _find(text, close)
            continue
        nested = text.rfind(MARK, start + 2, close)
        if nested < 0:
            is_doubled = text.startswith("{", start + 2) and text.startswith("}", close + 1)  # ${{...}}
            yield NoReference(start, close + 1 + is_doubled, is_closed=True)
            start = _find(text, close)
        else:
            yield NoReference(start, nested, is_closed=True, is_nested=True)
            start = nested


def has_reference(text: str) -> bool:
    """Whether a string has a part that begins like a reference."""
    return MARK in text and _find(text, 0) >= 0


def _find(text: str, start: int) -> int:
    """Where the next reference begins; -1 for none."""
    start = text.find(MARK, start)
    while start > 0 and text[start - 1] == "$":
        start = text.find(MARK, start + len(MARK))
    return start


def _read(inner: str, start: int, end: int, ids: StepIds) -> Reference | None:
    """The reference with this text between its braces; None where that is not a reference."""
    if inner == PROMPT:
        return Reference(None, (), start, end)
    split = _split(inner, ids)
    if split is None:
        return None
    found = _SEGMENT.findall(inner, split + len(OUTPUT))
    path = tuple(name or key[2:-2] or int(digits) for name, digits, key in found)
    return Reference(inner[:split], path, start, end)


def spelled(name: str) -> str:
    """A name as references spell it: ``.data``, or ``["a.b"]`` where it has dots or brackets."""
    quote = "'" if '"' in name else '"'
    return f".{name}" if _SEGMENT.fullmatch(f".{name}") else f"[{quote}{name}{quote}]"


def _split(inner: str, ids: StepIds) -> int | None:
    """Where the step id ends."""
    if ids.lengths:
        split = inner.rfind(OUTPUT)
        while split >= 0:
            if split in ids.lengths and inner[:split] in ids.all and _is_path(inner, split):
                return split
            split = inner.rfind(OUTPUT, 0, split)
    split = inner.find(OUTPUT)
    if split < 0 or not _is_path(inner, split):
        return None
    step_id = inner[:split]
    is_odd = not step_id or step_id[0].isspace() or step_id[-1].isspace() or step_id[0] == "{"
    return None if is_odd and step_id not in ids.all else split


def _is_path(inner: str, split: int) -> bool:
    return _PATH.fullmatch(inner, split + len(OUTPUT)) is not None


def texts_in(inputs: Mapping[str, Any] | None) -> Iterator[tuple[str, Any]]:
    """The strings in a step's inputs, at any depth, each with the link to its place (see ``path_of``)."""
    around: list[tuple[Iterator[Any], Any]] = [
        (_parts(inputs or {}), None)
    ]  # an iterator and a link for each container that is open
    while around:
        parts, above = around[-1]
        for part, value in parts:
            if isinstance(value, str):
                yield value, (part, above)
            elif isinstance(value, (dict, list, tuple, Mapping)):
                around.append((_parts(value), (part, above)))
                break
        else:
            around.pop()


def _parts(container: Any) -> Iterator[tuple[Any, Any]]:
    return iter(enumerate(container) if isinstance(container, (list, tuple)) else container.items())


def references_in(inputs: Mapping[str, Any] | None, ids: StepIds) -> Iterator[Reference]:
    """The references in a step's inputs."""
    for text, _ in texts_in(inputs):
        if MARK in text:
            yield from (each for each in iter_references(text, ids) if isinstance(each, Reference))


def path_of(link: Any) -> tuple[str | int, ...]:
    """The path that a link means: a name or an index, and the link of the container around it."""
    path = list[str | int]()
    while link is not None:
        part, link = link
        path.append(part)
    return tuple(reversed(path))
