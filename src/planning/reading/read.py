"""A source -> a document: the JSON value, what was wrong with the text, and the place of everything."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final, NoReturn

from planning.errors import show
from planning.reading.found import Found, Path
from planning.reading.locate import locate
from planning.reading.places import Edits, Places
from planning.reading.python_values import kind_of, plain_value
from planning.reading.repair import MOST_DEPTH, Repaired
from planning.reading.source import Source
from planning.reading.values import MOST_WORK

__all__ = ["MOST_CHARACTERS", "Document", "read_document"]

MOST_CHARACTERS: Final = 8_000_000
_ESCAPED_SURROGATES: Final = ("\\ud", "\\uD")
_OPENING: Final = re.compile(r"[ \t\n\r]*+[\[{]")
_STRING: Final = re.compile(r'\s*+"((?:[^"\\]|\\.)*+)"\s*+', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|\\(?:u.{4}|.)", re.DOTALL)
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_MOST_SURROGATES: Final = 50


class Document:
    """What could be read of a source.

    Attributes:
        value: The JSON value; None where nothing could be read.
        source: The text; None where the source was no text.
        found: What was wrong with the text, or repaired.
        outer: Where in the text each character of the plan stands, for a plan within a JSON string.
    """

    def __init__(
        self,
        value: Any,
        source: Source | None,
        found: list[Found],
        edits: Edits | None = None,
        broken: frozenset[int] = frozenset(),
        outer: Edits | None = None,
    ) -> None:
        self.value = value
        self.source = source
        self.found = found
        self._edits = edits
        self._places = None if edits is None else Places(edits.text)
        self._broken = broken
        self._outer = outer

    def span(self, found: Found) -> tuple[int, int] | None:
        """Where a finding stands in the text, as start and end; None where there is no text."""
        if found.span is not None or self._places is None or self._edits is None:
            return found.span
        start, end = self._places.span(found.path, at_key=found.at_key)
        if found.within is not None:
            start, end = self._places.within(start, found.within)
        return self._outwards((self._edits.original(start), self._edits.original(end, is_end=True)))

    def _outwards(self, span: tuple[int, int]) -> tuple[int, int]:
        """The place in the source of a place in the text that was read."""
        if self._outer is None:
            return span
        return self._outer.original(span[0]), self._outer.original(span[1], is_end=True)

    def path_at(self, offset: int) -> Path:
        """The path of the innermost value at an offset of the text."""
        if self._places is None or self._edits is None:
            return ()
        if self._outer is not None:
            offset = self._outer.edited(offset)
        return self._places.path(self._edits.edited(offset))

    def within_string(self, outer: Edits, source: Source, found: list[Found]) -> Document:
        """This document, with its places in the text that has it as a JSON string.

        Args:
            outer: The string's content, and where in the text each part of it stands.
            source: The text.
            found: What was wrong with the text.
        """
        start = outer.original(0) - 1
        told = "the plan was a JSON string, which was read once more"
        note = Found("encoded_plan", told, "send the plan itself, not a string", span=(start, start + 1))
        document = Document(self.value, source, [*found, note], self._edits, self._broken, outer)
        document.found += [
            each._replace(span=each.span and document._outwards(each.span)) for each in self.found
        ]
        return document

    def is_broken(self, path: Path) -> bool:
        """Whether a container lacks something that could not be read."""
        if not self._broken or self._places is None or self._edits is None:
            return False
        return self._edits.original(self._places.span(path)[0]) in self._broken


def read_document(given: object, *, is_finished: bool = False) -> Document:
    """Read a plan document; never raises.

    Args:
        given: Text or bytes of JSON or almost JSON, or the value that such a text would have.
        is_finished: Whether its author ended the text, so that it was not cut.
    """
    kind = type(given)  # and not its __class__, which may be anything
    if issubclass(kind, str):
        return _read_text(str.__str__(given), [], is_finished=is_finished)
    if issubclass(kind, (dict, list, tuple, Mapping)):
        value, found = plain_value(given)
        return Document(value, None, found)
    told = "there is no plan" if given is None else f"expected a plan as text, got {kind_of(given)}"
    if issubclass(kind, (bytes, bytearray, memoryview)):
        try:
            read = memoryview(given).tobytes()  # type: ignore[arg-type] # they are bytes
            return _read_bytes(read, is_finished=is_finished)
        except ValueError:
            told = "the bytes cannot be read any more"  # of a view that was released
    return Document(None, None, [Found("not_text", told, "send the plan as JSON")])


def _read_bytes(given: bytes, *, is_finished: bool) -> Document:
    try:
        return _read_text(given.decode("utf-8"), [], is_finished=is_finished)
    except UnicodeDecodeError as error:
        start = len(given[: error.start].decode("utf-8"))
    text = given.decode("utf-8", errors="replace")
    start -= text.startswith("\ufeff")
    found = Found("bad_encoding", "the bytes are not UTF-8", "send UTF-8", span=(start, start + 1))
    return _read_text(text, [found], is_finished=is_finished)


def _read_text(text: str, found: list[Found], *, is_finished: bool) -> Document:
    text = text.removeprefix("\ufeff")
    source = Source(text)
    if len(text) > MOST_CHARACTERS:
        told = f"the text has {len(text)} characters, at most {MOST_CHARACTERS} are read"
        return Document(None, source, [*found, Found("too_long", told, "send a shorter plan", span=(0, 1))])
    string = _STRING.fullmatch(text)
    outer = None if string is None else _decoded(text, string)
    if outer is not None:
        inner = _read_plan(Source(outer.text), [], is_finished=is_finished)
        if inner.value is not None:
            return inner.within_string(outer, source, found)
    return _read_plan(source, found, is_finished=is_finished)


def _read_plan(source: Source, found: list[Found], *, is_finished: bool) -> Document:
    """The document in a text: the whole text, or a part of it."""
    text = source.text
    strict = _read_strictly(text)
    if strict is not None:
        return Document(strict, source, found, Edits(text, 0, len(text), ()))
    if not text.isascii() and (halves := list(islice(_SURROGATE.finditer(text), _MOST_SURROGATES))):
        found += [
            Found("lone_surrogate", "half of a surrogate pair", "send the whole character", span=half.span())
            for half in halves
        ]
        source = Source(_SURROGATE.sub("\ufffd", text))
    located = locate(source.text, is_finished=is_finished)
    if located.repaired is None:
        return Document(None, source, found + located.found)
    return _made(source, found, located.repaired, located.found)


def _decoded(text: str, string: re.Match[str]) -> Edits | None:
    """The text in a JSON string; None where it is not JSON, or has too many escapes."""
    edits = list[tuple[int, int, str]]()
    for escape in _ESCAPE.finditer(text, *string.span(1)):
        try:
            edits.append((*escape.span(), json.loads(f'"{escape[0]}"')))
        except ValueError:
            return None
        if len(edits) > MOST_WORK:
            return None
    return Edits(text, *string.span(1), edits)


def _made(source: Source, found: list[Found], repaired: Repaired, further: list[Found]) -> Document:
    edits = Edits(source.text, repaired.start, repaired.end, repaired.edits)
    broken = frozenset(repaired.broken)
    try:
        return Document(_ONCE.decode(edits.text), source, found + further, edits, broken)
    except _NotStrict:
        repeated = [_repeated(path, key, edits) for path, key in Places(edits.text).repeated()]
        if not repeated:  # it is behind very many others
            told = "a field stands twice in one object"
            span = (repaired.start, repaired.start + 1)
            repeated = [Found("duplicate_key", told, "send each field once", span=span)]
    return Document(json.loads(edits.text), source, found + further + repeated, edits, broken)


def _repeated(path: Path, key: tuple[int, int], edits: Edits) -> Found:
    told = f"{show(path[-1])} stands twice in one object"
    span = edits.original(key[0]), edits.original(key[1], is_end=True)
    return Found("duplicate_key", told, "send each field once", path, span=span)


class _NotStrict(Exception):
    """The text is JSON that Python reads, but holds something that must be looked at."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _NotStrict
    return made


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _NotStrict
    return number


def _no_constant(_name: str) -> NoReturn:
    raise _NotStrict


_ONCE: Final = json.JSONDecoder(object_pairs_hook=_once)
_STRICT: Final = json.JSONDecoder(object_pairs_hook=_once, parse_float=_finite, parse_constant=_no_constant)


def _read_strictly(text: str) -> Any:
    """The value of a text that is JSON and nothing else; None where it must be read with care."""
    if _OPENING.match(text) is None or any(each in text for each in _ESCAPED_SURROGATES):
        return None
    try:
        value = _STRICT.decode(text)
        if not text.isascii():
            text.encode()
    except (_NotStrict, ValueError, RecursionError):  # of text that cannot be encoded, too
        return None
    return value if isinstance(value, (dict, list)) and _is_shallow(value) else None


def _is_shallow(value: Any) -> bool:
    """Whether nothing in it is nested too deep."""
    level = [value]
    for _ in range(MOST_DEPTH):
        inner = [each.values() if type(each) is dict else each for each in level]
        level = [each for values in inner for each in values if type(each) is dict or type(each) is list]
        if not level:
            return True
    return False
