"""A source -> a document: the JSON value, the problems of the text, and the place of everything."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from planning.errors import show
from planning.reading.found import REMARKS, Found, Path
from planning.reading.locate import locate
from planning.reading.places import Edits, Places, Source
from planning.reading.python_values import kind_of, plain_value
from planning.reading.repair import Reading
from planning.reading.strict import ONCE, NotStrict, read_strictly
from planning.reading.values import MOST_WORK
from planning.reading.wanted import ANYTHING, Wanted

MOST_CHARACTERS: Final = 8_000_000
_STRING: Final = re.compile(r'\s*+"((?:[^"\\]|\\.)*+)"\s*+', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|\\(?:u.{4}|.)", re.DOTALL)
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_MOST_SURROGATES: Final = 50
_WITHOUT_VALUE: Final = {"unquoted_text": "text without quotes", "bad_number": "a number that cannot be read"}


class Document:
    """What could be read of a source.

    Attributes:
        value: The JSON value; None where nothing could be read.
        source: The text; None where the source was no text.
        found: What was wrong with the text, or repaired.
        outer: For a document within a JSON string, the place of each of its characters in the text.
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

    @property
    def errors(self) -> list[Found]:
        """What was wrong; the rest of what was found was repaired."""
        return [found for found in self.found if found.code not in REMARKS]

    def describe(self, found: Found) -> str:
        """A finding with its place and its hint, as one line that quotes no value: it may be private."""
        message = _WITHOUT_VALUE.get(found.code, found.message)
        span = self.span(found)
        if span is None or self.source is None:
            return f"{message}; {found.hint}"
        line, column = self.source.place(span[0])
        return f"{message} at line {line}, column {column}; {found.hint}"

    def span(self, found: Found) -> tuple[int, int] | None:
        """The place of a finding in the text, as start and end; None without text."""
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

    def within_string(self, outer: Edits, source: Source, found: list[Found], noun: str) -> Document:
        """This document, with its places in the text that has it as a JSON string.

        Args:
            outer: The string's content, and the place of each part of it in the text.
            source: The text.
            found: What was wrong with the text.
            noun: What messages call the document.
        """
        start = outer.original(0) - 1
        message, _, hint = (words.format(noun=noun) for words in REMARKS["encoded_plan"])
        note = Found("encoded_plan", message, hint, span=(start, start + 1))
        document = Document(self.value, source, [*found, note], self._edits, self._broken, outer)
        document.found += [
            found._replace(span=found.span and document._outwards(found.span)) for found in self.found
        ]
        return document

    def is_broken(self, path: Path) -> bool:
        """Whether a container lacks something that could not be read."""
        if not self._broken or self._places is None or self._edits is None:
            return False
        return self._edits.original(self._places.span(path)[0]) in self._broken


class Unreadable(ValueError):
    """A text is not the JSON that it should be; the message says where, why, and what to send instead."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def read_json(text: str) -> Any:
    """Read a text that consists of one list or object of JSON, or almost JSON.

    Args:
        text: What a model wrote; thoughts, a fence and backticks may be around the JSON.

    Raises:
        Unreadable: It is something else, or can be meant in two ways, or was cut.
    """
    document = read_document(text, ANYTHING)
    for error in document.errors:
        raise Unreadable(document.describe(error), error.code)
    return document.value


def read_document(given: object, wanted: Wanted, *, is_finished: bool = False) -> Document:
    """Read a document; never raises.

    Args:
        given: Text or bytes of JSON or almost JSON, or parsed JSON.
        wanted: What it is expected to hold.
        is_finished: Whether its author ended the text, so that it was not cut.
    """
    kind = type(given)  # and not its __class__, which may be anything
    reader = _Reader(wanted, is_finished=is_finished)
    if issubclass(kind, str):
        return reader.read_text(str.__str__(given), [])
    if issubclass(kind, (dict, list, tuple, Mapping)):
        value, found = plain_value(given, wanted)
        return Document(value, None, found)
    noun = wanted.noun
    message = f"there is no {noun}" if given is None else f"expected a {noun} as text, got {kind_of(given)}"
    if issubclass(kind, (bytes, bytearray, memoryview)):
        try:
            return reader.read_bytes(memoryview(given).tobytes())  # type: ignore[arg-type] # they are bytes
        except ValueError:
            message = "the bytes cannot be read any more"  # of a view that was released
    return Document(None, None, [Found("not_text", message, f"send the {noun} as JSON")])


class _Reader:
    def __init__(self, wanted: Wanted, *, is_finished: bool) -> None:
        self.wanted = wanted
        self.is_finished = is_finished

    def read_bytes(self, given: bytes) -> Document:
        try:
            return self.read_text(given.decode("utf-8"), [])
        except UnicodeDecodeError as error:
            start = len(given[: error.start].decode("utf-8"))
        text = given.decode("utf-8", errors="replace")
        start -= text.startswith("\ufeff")
        found = Found("bad_encoding", "the bytes are not UTF-8", "send UTF-8", span=(start, start + 1))
        document = self.read_text(text, [found])
        document.found = [each for each in document.found if each.code != "no_json"]  # it only follows
        return document

    def read_text(self, text: str, found: list[Found]) -> Document:
        text = text.removeprefix("\ufeff")
        source, noun = Source(text), self.wanted.noun
        if len(text) > MOST_CHARACTERS:
            message = f"the text has {len(text)} characters, at most {MOST_CHARACTERS} are read"
            too_long = Found("too_long", message, f"send a shorter {noun}", span=(0, 1))
            return Document(None, source, [*found, too_long])
        string = _STRING.fullmatch(text)
        outer = None if string is None else _decoded(text, string)
        if outer is not None:
            inner = self._read(Source(outer.text), [])
            if inner.value is not None:
                return inner.within_string(outer, source, found, noun)
        return self._read(source, found)

    def _read(self, source: Source, found: list[Found]) -> Document:
        """The document in a text: the whole text, or a part of it."""
        text = source.text
        strict = read_strictly(text, self.wanted.most_levels)
        if strict is not None:
            return Document(strict, source, found, Edits(text, 0, len(text), ()))
        if not text.isascii() and (halves := list(islice(_SURROGATE.finditer(text), _MOST_SURROGATES))):
            message, hint = "half of a surrogate pair", "send the whole character"
            found += [Found("lone_surrogate", message, hint, span=half.span()) for half in halves]
            source = Source(_SURROGATE.sub("\ufffd", text))
        reading, further = locate(source.text, self.wanted, is_finished=self.is_finished)
        if reading is None:
            return Document(None, source, found + further)
        return _made(source, found + further, reading)


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


def _made(source: Source, found: list[Found], reading: Reading) -> Document:
    edits = Edits(source.text, reading.start, reading.pos, reading.edits)
    if reading.value is not None and not reading.edits:
        return Document(reading.value, source, found, edits)
    broken = frozenset(reading.broken | reading.spoilt)
    try:
        return Document(ONCE.decode(edits.text), source, found, edits, broken)
    except NotStrict:
        repeated = [_repeated(path, key, edits) for path, key in Places(edits.text).repeated()]
        if not repeated:  # it comes after very many others
            message = "a field occurs twice in one object"
            span = (reading.start, reading.start + 1)
            repeated = [Found("duplicate_key", message, "send each field once", span=span)]
    return Document(json.loads(edits.text), source, found + repeated, edits, broken)


def _repeated(path: Path, key: tuple[int, int], edits: Edits) -> Found:
    message = f"{show(path[-1])} occurs twice in one object"
    span = edits.original(key[0]), edits.original(key[1], is_end=True)
    return Found("duplicate_key", message, "send each field once", path, span=span)
