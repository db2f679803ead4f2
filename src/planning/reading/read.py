"""A source -> a document: the JSON value, the problems of the text, and the place of everything."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Container, Iterator, Mapping
from heapq import merge
from itertools import islice
from typing import Any, Final

from planning.errors import show
from planning.reading import tokens
from planning.reading.found import ANYTHING, REMARKS, Found, Path, Wanted
from planning.reading.places import Edits, Places, Source
from planning.reading.python_values import kind_of, plain_value
from planning.reading.repair import MOST_WEIGHED, Reading, could_be_another
from planning.reading.values import MOST_WORK, ONCE, Notes, NotStrict, count, read_strictly

# The tag that opens the thoughts may have been a part of the prompt.
_THOUGHTS: Final = re.compile(
    r"\s*+<think(?:ing)?>.*?</think(?:ing)?>|.*?</think(?:ing)?>[ \t\r]*+$",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_TAG: Final = re.compile(r"<(/?)think(?:ing)?>", re.IGNORECASE)
# On one line, or up to the line that closes it, or to the end: a model may have been stopped at its fence.
# The end of a run of backticks is never compared by itself, so that no run is read again and again.
_BLOCK: Final = re.compile(
    r"^[ \t]*+(?P<mark>`{3,}+|~{3,}+)"
    r"(?:(?P<line>[^\n]*?)(?<![`~])(?P=mark)(?![`~])"
    r"|(?P<info>[^\n]*+)\n(?P<lines>.*?)(?:^[ \t]*+(?P=mark)[`~]*+[ \t\r]*+$|\Z))",
    re.DOTALL | re.MULTILINE,
)
_WITHIN_LINE: Final = re.compile(r"(?<![`~])(`{3,}+|~{3,}+)[ \t]*+([\w+-]++)[ \t]++([^\n`~]++)\1(?![`~])")
_ATTRIBUTE: Final = re.compile(r"[\w-]+=|\{")
_CODE: Final = re.compile(r"(`{1,2}+)([^`].*[^`])\1", re.DOTALL)


def thoughts_end(text: str) -> int:
    """The place where the answer begins, after the model's thoughts; 0 if there are none."""
    thoughts = _THOUGHTS.match(text) if _TAG.search(text) else None
    return 0 if thoughts is None else thoughts.end()


def breaks_off_in_thoughts(text: str, offset: int) -> bool:
    """True if a place is in a block of thoughts that never ends."""
    tags = list(_TAG.finditer(text))
    opening = max((tag.start() for tag in tags if not tag[1] and tag.end() <= offset), default=-1)
    return opening >= 0 and not any(tag[1] and tag.start() > opening for tag in tags)


def answers_in(text: str, labels: Container[str]) -> list[str]:
    """The answers in text that is not JSON, each once: the content of its fences, or the text itself.

    Args:
        text: What a model wrote; its thoughts are skipped.
        labels: What fences are labelled with, in lower case: where one is, those of others do not count.
    """
    text = text[thoughts_end(text) :].strip()
    blocks = [_content(block, labels) for block in _BLOCK.finditer(text)]
    within = ((match[2].lower(), match[3].strip()) for match in _WITHIN_LINE.finditer(text))
    blocks += [block for block in within if block[0] in labels]
    bodies = [body for label, body in blocks if label in labels] or [body for _, body in blocks]
    if not blocks:
        code = _CODE.fullmatch(text)
        bodies = [text if code is None else code[2].strip()]
    return list(dict.fromkeys(bodies))


def _content(block: re.Match[str], labels: Container[str]) -> tuple[str, str]:
    """The label of a block, and what is in it; the first line of it may be a part of the answer."""
    if block["line"] is not None:
        first, lines, is_label = block["line"], "", False
    else:
        first, lines = block["info"], block["lines"].strip().removesuffix(block["mark"]).rstrip()
        is_label = " " not in first.strip() or _ATTRIBUTE.search(first) is not None
    label, _, rest = first.strip().partition(" ")
    if label.lower() in labels or rest.lstrip()[:1] in ("{", "["):
        return label.lower(), rest.strip() if block["line"] is not None else lines
    return "", lines if is_label else f"{first}\n{lines}".strip()


_NEAR = 300
_MOST_READINGS = 1_000
_MOST_PASSED = 100_000
_EMPTY = re.compile(r"\[\s*+\]")
_FIELD_BEFORE = re.compile(r"""(?:^|[,{}\]\n])[ \t]*+(?:"[^"\n]*+"|'[^'\n]*+')\s*+:$""")


class _Locator:
    """Finds the one document in the text."""

    def __init__(self, text: str, wanted: Wanted, *, is_finished: bool) -> None:
        self.text = text
        self.wanted = wanted
        self.is_finished = is_finished
        # Text that starts as JSON does has no thoughts before it: the tag is in one of its strings.
        self.begin = 0 if text.lstrip()[:1] in "[{\"'`~" else thoughts_end(text)
        self.errors: list[Found] = []
        self.notes: Notes = {}

    def locate(self) -> tuple[Reading | None, list[Found]]:
        """Its reading or None, and the errors and repairs."""
        text, noun = self.text, self.wanted.noun
        readings = self._readings()
        documents = [reading for reading in readings if self._is_wanted(reading)] or readings[:1]
        if not documents:
            return None, [self._nothing()]
        chosen = documents[0]
        self.errors, self.notes = list(chosen.errors), dict(chosen.notes)
        others = [reading for reading in documents[1:] if self._write(reading) != self._write(chosen)]
        last = readings[-1]
        if last is not chosen:  # a complete draft is not the document that was cut after it
            self.errors += [error for error in last.errors if error.code in {"truncated", "too_long"}]
        if others:
            message = f"the text contains {len(others) + 1} different {noun}s"
            self._error("several_documents", message, "send one", others[0].start)
        self._look_ahead(chosen)
        self._look_behind(chosen, {reading.start: reading for reading in readings})
        if "surrounding_text" in self.notes and _EMPTY.fullmatch(text, chosen.start, chosen.pos):
            return None, [self._nothing()]
        return chosen, self.errors + self._remarks()

    def _error(self, code: str, message: str, hint: str, start: int, end: int | None = None) -> None:
        self.errors.append(Found(code, message, hint, span=(start, start + 1 if end is None else end)))

    def _remarks(self) -> list[Found]:
        """One warning for each kind of repair, at its first place."""
        found = []
        for code, (start, end, times) in self.notes.items():
            one, many, hint = (words.format(noun=self.wanted.noun, count=times) for words in REMARKS[code])
            found.append(Found(code, many if times > 1 and many else one, hint, span=(start, end)))
        return found

    def _write(self, reading: Reading) -> str:
        return self.text[reading.start : reading.pos]

    def _is_wanted(self, reading: Reading) -> bool:
        end = reading.pos if reading.fault is None else reading.fault
        return self.wanted.marks.search(self.text, reading.start, max(end, reading.start)) is not None

    def _readings(self) -> list[Reading]:
        """Every value that may be the document, in order; none overlaps another."""
        start = self._pass_comments(self.begin, {})
        prose = tokens.PROSE.match(self.text, start)
        is_prose = prose is not None and any(character.isalpha() for character in prose[0])
        if self.text[start : start + 1] in ("[", "{") and not is_prose:
            first = Reading(self.text, start, self.wanted, is_finished=self.is_finished)
            return [first, *self._candidates(first.pos)]
        if self.wanted.is_fenced_first:
            fenced = self._candidates(self.begin, is_fenced=True)
            if any(map(self._is_wanted, fenced)):
                return fenced
        return self._candidates(self.begin)

    def _candidates(self, pos: int, *, is_fenced: bool = False) -> list[Reading]:
        """The possible documents, in a fence or within prose; the last is an error if they are too many."""
        text, readings = self.text, list[Reading]()
        work = 0
        fences = merge(*(self._find_in_fence(mark * 3, pos) for mark in "`~" if mark in text))
        # The end of the fence that a reading is in; of the text, where those in prose count, too.
        end = pos if is_fenced else len(text)
        fenced, bare = next(fences, len(text)), self._bare(pos, end)
        while (start := min(fenced, bare)) < len(text):
            reading = Reading(text, start, self.wanted, is_prose=True, is_finished=self.is_finished)
            readings.append(reading)
            work += reading.work
            if len(readings) > _MOST_READINGS or work > MOST_WORK:
                message = "the text has too many lists and objects; it was read up to here"
                hint = f"send only the {self.wanted.noun}"
                stopped = Found("too_long", message, hint, span=(start, start + 1))
                reading.errors = [stopped]
                break
            is_lost = reading.fault is not None and not self._is_wanted(reading)
            pos = max(start + 1, (reading.fault or 0) if is_lost else reading.pos)
            while fenced < pos:
                fenced = next(fences, len(text))
            if is_fenced and end < pos:
                mark = tokens.FENCE.search(text, pos)
                end, bare = len(text) if mark is None else mark.start(), 0
            if bare < pos:  # otherwise it is not looked for again: it may be far away
                bare = self._bare(pos, end)
        return readings

    def _bare(self, pos: int, end: int) -> int:
        """The start of the next candidate before an end; the end of the text for none."""
        found = tokens.CANDIDATE.search(self.text, pos, end)
        return len(self.text) if found is None else found.start()

    def _find_in_fence(self, fence: str, pos: int) -> Iterator[int]:
        """The starts of fences of a kind whose text begins with a bracket."""
        while (start := self.text.find(fence, pos)) >= 0:
            if fenced := tokens.FENCED.match(self.text, start):
                yield fenced.end()
            mark = tokens.FENCE.match(self.text, start)
            pos = start + len(fence) if mark is None else mark.end()

    def _nothing(self) -> Found:
        noun = self.wanted.noun
        hint = f"send the {noun} as a JSON array or object"
        if not self.text.strip():
            return Found("no_json", "the text is empty", hint, span=(0, 1))
        try:
            if isinstance(json.loads(self.text), str):
                hint = f"send the {noun} itself, not a string that contains it"
        except (ValueError, RecursionError):
            pass
        return Found("no_json", f"the text contains no {noun}", hint, span=(0, 1))

    def _look_ahead(self, chosen: Reading) -> None:
        """Note the text before the document."""
        before = self._before(chosen.start)
        ahead = self.text[:before].rstrip()
        if not ahead:
            return
        noun = self.wanted.noun
        if not self.is_finished and breaks_off_in_thoughts(self.text, chosen.start):
            end = len(self.text.rstrip())
            self._error("truncated", "the text ends inside its thoughts", f"send the {noun}", end, end)
        is_open = any(ahead.count(opening) > ahead.count(closing) for opening, closing in ("[]", "{}"))
        if ahead[-1] in "[{" or (ahead[-1] == "," and is_open) or _FIELD_BEFORE.search(ahead[-_NEAR:]):
            message, hint = f"the {noun}'s beginning cannot be read", f"send one {noun}, as plain JSON"
            self._error("syntax_error", message, hint, len(ahead) - 1)
        first = before - len(self.text[:before].lstrip())
        self._note_text(first, self.text[self.begin : before])

    def _before(self, start: int) -> int:
        """Pass over the comments and the fence before the document, backwards; gives where prose ends."""
        text = self.text
        if self._pass_comments(0, {}) >= start:
            self._pass_comments(0, self.notes)
            return 0
        fence = next(iter(deque(tokens.FENCE.finditer(text, self.begin, start), maxlen=1)), None)
        if fence is None:
            return start
        line_end = text.find("\n", fence.end(), start)
        inside = fence.end() if line_end < 0 else line_end
        if self._pass_comments(inside, {}) < start:
            return start
        self.notes["fenced"] = (fence.start(), fence.end(), 1)
        self._pass_comments(inside, self.notes)
        return fence.start()

    def _pass_comments(self, pos: int, notes: Notes) -> int:
        """Pass over spaces and comments, but not over a heading of prose."""
        for _ in range(_MOST_PASSED):
            piece = tokens.SKIPPED.match(self.text, pos)
            if piece is None:
                break
            if piece["comment"]:
                if piece["comment"].startswith("#") and piece["comment"][1:2] in " #":
                    break
                count(notes, "comment", pos, piece.end())
            pos = piece.end()
        return pos

    def _look_behind(self, chosen: Reading, readings: dict[int, Reading]) -> None:
        """Note the text after the document: its end, then other text."""
        text, pos, extra = self.text, chosen.pos, list[int]()
        while (pos := self._pass_comments(pos, self.notes)) < len(text):
            char = text[pos]
            if char in "`~" and (fence := tokens.FENCE.match(text, pos)):
                pos = fence.end() + len(text[fence.end() :]) - len(text[fence.end() :].lstrip())
                break
            if char == "," and not text[pos + 1 :].strip("` \t\r\n"):
                count(self.notes, "trailing_comma", pos, pos + 1)
            elif char in "]}" and len(extra) < _MOST_READINGS:
                extra.append(pos)
            else:
                break
            pos += 1
        if extra:
            self._drop(extra, chosen)
        if pos >= len(text) or any(error.code == "several_documents" for error in self.errors):
            return
        following = readings.get(pos)
        is_json = following is not None and self._write(following) != self._write(chosen)
        if text[pos] in ',:"' or is_json:
            noun = self.wanted.noun
            message = f"there is more text after the {noun}'s last bracket"
            self._error("syntax_error", message, f"send one {noun}, as plain JSON", pos)
        elif "surrounding_text" not in self.notes:
            self._note_text(pos, text[pos:])

    def _note_text(self, pos: int, text: str) -> None:
        """Note other text, or keep an error if it is not allowed; thoughts and backticks do not count."""
        if self.wanted.is_within_text:
            self.notes["surrounding_text"] = (pos, pos + 1, 1)
        elif text.strip("` \t\r\n"):
            noun = self.wanted.noun
            self._error(
                "syntax_error", f"there is extra text around the {noun}", f"send only the {noun}", pos
            )

    def _drop(self, extra: list[int], chosen: Reading) -> None:
        """Ignore closing brackets after the document; an error if one may be meant for another place."""
        if any(error.code == "ambiguous_bracket" for error in self.errors):
            return
        text, known = self.text, self.wanted.fields or None
        alike = [pos for pos in extra if text[pos] == text[chosen.pos - 1]]
        if chosen.forced is not None:
            message, start = "some brackets are missing and some are extra", chosen.forced
        elif alike and (
            chosen.pos - chosen.start > MOST_WEIGHED
            or could_be_another(text, chosen.start, chosen.pos, known)
        ):
            message, start = "there is an extra closing bracket, and it is unclear which", alike[0]
        else:
            for pos in extra:
                count(self.notes, "extra_bracket", pos, pos + 1)
            return
        self._error("ambiguous_bracket", message, "close every bracket once", start)
        self.notes.pop("missing_bracket", None)
        self.notes.pop("extra_bracket", None)


MOST_CHARACTERS: Final = 8_000_000
_STRING: Final = re.compile(r'\s*+"((?:[^"\\]|\\.)*+)"\s*+', re.DOTALL)
_ESCAPE: Final = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[0-9a-fA-F]{4}|\\(?:u.{4}|.)", re.DOTALL)
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
_MOST_SURROGATES: Final = 50
_WITHOUT_VALUE: Final = {"unquoted_text": "text without quotes", "bad_number": "a number that cannot be read"}


class Document:
    """The document that could be read of a source.

    Attributes:
        value: The JSON value; None if nothing could be read.
        source: The text; None if the source was not text.
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
        """The errors; the rest of what was found was repaired."""
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
        """This document, with its places in the text that has it as a JSON string."""
        start = outer.original(0) - 1
        message, _, hint = (words.format(noun=noun) for words in REMARKS["encoded_plan"])
        note = Found("encoded_plan", message, hint, span=(start, start + 1))
        document = Document(self.value, source, [*found, note], self._edits, self._broken, outer)
        document.found += [
            found._replace(span=found.span and document._outwards(found.span)) for found in self.found
        ]
        return document

    def is_broken(self, path: Path) -> bool:
        """True if a container lacks something that could not be read."""
        if not self._broken or self._places is None or self._edits is None:
            return False
        return self._edits.original(self._places.span(path)[0]) in self._broken


class Unreadable(ValueError):
    """The text is not the JSON that it should be; the message says where, why, and what to send instead."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


def read_json(text: str) -> Any:
    """Read text that consists of one list or object of JSON, or almost JSON.

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
        text = given.decode(errors="replace")
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
        outer = None if string is None else _decode(text, string)
        if outer is not None:
            inner = self._read(Source(outer.text), [])
            if inner.value is not None:
                return inner.within_string(outer, source, found, noun)
        return self._read(source, found)

    def _read(self, source: Source, found: list[Found]) -> Document:
        """The document in the text: all of it, or a part."""
        text = source.text
        strict = read_strictly(text, self.wanted.most_levels)
        if strict is not None:
            return Document(strict, source, found, Edits(text, 0, len(text), ()))
        if not text.isascii() and (halves := list(islice(_SURROGATE.finditer(text), _MOST_SURROGATES))):
            message, hint = "half of a surrogate pair", "send the whole character"
            found += [Found("lone_surrogate", message, hint, span=half.span()) for half in halves]
            source = Source(_SURROGATE.sub("\ufffd", text))
        reading, further = _Locator(source.text, self.wanted, is_finished=self.is_finished).locate()
        if reading is None:
            return Document(None, source, found + further)
        return _make(source, found + further, reading)


def _decode(text: str, string: re.Match[str]) -> Edits | None:
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


def _make(source: Source, found: list[Found], reading: Reading) -> Document:
    edits = Edits(source.text, reading.start, reading.pos, reading.edits)
    if reading.value is not None and not reading.edits:
        return Document(reading.value, source, found, edits)
    broken = frozenset(reading.broken | reading.spoilt)
    try:
        return Document(ONCE.decode(edits.text), source, found, edits, broken)
    except NotStrict:
        repeated = [_report_repeated(path, key, edits) for path, key in Places(edits.text).repeated()]
        if not repeated:  # it comes after very many others
            message = "a field occurs twice in one object"
            span = (reading.start, reading.start + 1)
            repeated = [Found("duplicate_key", message, "send each field once", span=span)]
    return Document(json.loads(edits.text), source, found + repeated, edits, broken)


def _report_repeated(path: Path, key: tuple[int, int], edits: Edits) -> Found:
    message = f"{show(path[-1])} occurs twice in one object"
    span = edits.original(key[0]), edits.original(key[1], is_end=True)
    return Found("duplicate_key", message, "send each field once", path, span=span)
