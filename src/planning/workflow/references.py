"""References in strings, such as ``${fetch.output.items[0]}``: their grammar, for checks and for runs.

    reference = "${" ( "user_prompt" | STEP ".output" segment* ) "}"
    segment   = "." name | "[" digits "]" | "[" quote key quote "]"
    literal   = "$${", which is written out as "${"

A name is one or more characters other than ``. [ ] { }``, and not blank. A key is one or more characters
other than braces and its quotes, which are single or double: it may have dots and brackets. There are at most
100 segments: no output is nested deeper. STEP is the id of a step and may hold dots, even ``.output``: if
several ids of the plan match, the longest one is meant. A single ``$`` or ``{`` is plain text.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

MARK = "${"
_PLAIN = frozenset({int, float, bool, type(None)})
"""The beginning of a reference: a string without it has no reference."""
LITERAL_MARK = "$${"
"""The character that is written out as ``MARK``, and begins no reference."""
PROMPT = "user_prompt"
OUTPUT = ".output"

_KEY = r"\[\"[^\"{}]++\"\]|\['[^'{}]++'\]"
_PATH = r"(?P<path>(?:\.\s*[^\s.\[\]{}][^.\[\]{}]*+|\[[0-9]{1,15}\]|" + _KEY + "){0,100}+)"
_SEGMENT = re.compile(rf"\.([^.\[\]]+)|\[([0-9]+)\]|({_KEY})")
_STEP = r"(?P<step>[^.}]*+(?:\.(?!output)[^.}]*+)*+)"  # up to the first ".output"
_REFERENCE = re.compile(r"\$\{(?:user_prompt|" + _STEP + r"\.output" + _PATH + r")\}")
_REST = re.compile(r"\.output" + _PATH + r"\}")
_WORD = re.compile(r"\S*")


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
        self.paths: dict[str, tuple[str | int, ...]] = {}  # a plan has few, each of them many times


def parse_references(text: str, ids: StepIds) -> Iterator[Reference | NoReference]:
    """All references in a string, and its malformed ones, in the order of the string."""
    start = _find(text, 0)
    while start >= 0:
        found = _read(text, start, ids) or _malformed(text, start)
        yield found
        if isinstance(found, NoReference) and (found.is_nested or not found.is_closed):
            start = found.end if found.is_closed else -1
        else:
            start = _find(text, found.end) if found.end < len(text) else -1


def has_reference(text: str) -> bool:
    """True if a string has a part that begins like a reference."""
    return MARK in text and _find(text, 0) >= 0


def _find(text: str, start: int) -> int:
    """The start of the next reference; -1 for none."""
    start = text.find(MARK, start)
    while start > 0 and text[start - 1] == "$":
        start = text.find(MARK, start + len(MARK))
    return start


def _read(text: str, start: int, ids: StepIds) -> Reference | None:
    """The reference that begins at an offset; None where that is not a reference."""
    found = _longest(text, start, ids) if ids.lengths else None
    step_id = text[start + 2 : found.start()] if found else ""
    if found is None:
        found = _REFERENCE.match(text, start)
        if found is None:
            return None
        step_id = found["step"]
        if step_id is None:
            return Reference(None, (), start, found.end())
        if step_id not in ids.all and (step_id.strip() != step_id or step_id[:1] in ("", "{")):
            return None
    path = found["path"]
    names = ids.paths.get(path)
    if names is None:
        parts = [name or key[2:-2] or int(digits) for name, digits, key in _SEGMENT.findall(path)]
        names = ids.paths[path] = tuple(parts)
    return Reference(step_id, names, start, found.end())


def _longest(text: str, start: int, ids: StepIds) -> re.Match[str] | None:
    """The path behind the longest id of a step with ".output" in it, if one is meant."""
    close = text.find("}", start)
    split = text.rfind(OUTPUT, start, close + 1)
    while split >= 0:
        if split - start - 2 in ids.lengths and text[start + 2 : split] in ids.all:
            found = _REST.match(text, split)
            if found is not None:
                return found
        split = text.rfind(OUTPUT, start, split)
    return None


def _malformed(text: str, start: int) -> NoReference:
    """The text at an offset that begins like a reference, and is not one."""
    close = text.find("}", start)
    if close < 0:
        word = _WORD.match(text, start)
        return NoReference(start, word.end() if word else len(text), is_closed=False)
    nested = text.rfind(MARK, start + 2, close)
    if nested >= 0:
        return NoReference(start, nested, is_closed=True, is_nested=True)
    is_doubled = text.startswith("{", start + 2) and text.startswith("}", close + 1)  # ${{...}}
    return NoReference(start, close + 1 + is_doubled, is_closed=True)


def spelled(name: str) -> str:
    """A name as references spell it: ``.data``, or ``["a.b"]`` if it has dots or brackets."""
    quote = "'" if '"' in name else '"'
    return f".{name}" if _SEGMENT.fullmatch(f".{name}") else f"[{quote}{name}{quote}]"


def texts_in(inputs: Mapping[str, Any] | None) -> Iterator[tuple[str, Any]]:
    """The strings in a step's inputs, at any depth, each with the link to its place (see ``path_of``)."""
    # The rest of each container around, and the link to it.
    around: list[tuple[Iterator[Any], Any]] = []
    parts: Iterator[Any] = iter((inputs or {}).items())
    above: Any = None
    while True:
        for part, value in parts:
            kind = type(value)
            if kind is str or isinstance(value, str):
                yield value, (part, above)
            elif kind in _PLAIN:
                continue
            elif isinstance(value, (list, tuple)):
                around.append((parts, above))
                parts, above = enumerate(value), (part, above)
                break
            elif isinstance(value, Mapping):
                around.append((parts, above))
                parts, above = iter(value.items()), (part, above)
                break
        else:
            if not around:
                return
            parts, above = around.pop()


def references_in(inputs: Mapping[str, Any] | None, ids: StepIds) -> Iterator[Reference]:
    """The references in a step's inputs."""
    for text, _ in texts_in(inputs):
        if MARK in text:
            yield from (each for each in parse_references(text, ids) if isinstance(each, Reference))


def path_of(link: Any) -> tuple[str | int, ...]:
    """The path that a link means: a name or an index, and the link of the container around it."""
    path = list[str | int]()
    while link is not None:
        part, link = link
        path.append(part)
    return tuple(reversed(path))
