"""Finding the JSON object in what a planner wrote: bare, fenced, or within prose."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from planning.errors import show
from planning.tools.parameters.words import type_word

__all__ = [
    "KEYS",
    "MOST_CHARACTERS",
    "ONE_OBJECT",
    "STRAY_CALL",
    "TOO_DEEP",
    "Refused",
    "find_output",
    "is_call",
    "refuse",
    "unexpected",
    "whole_json",
]

MOST_CHARACTERS: Final = 1_000_000

KEYS: Final = ("tool_calls", "needs_user_input", "input_request", "queries", "intent")
_MARKS: Final = (*KEYS, "needs_tools")

ONE_OBJECT: Final = f"one JSON object with {', '.join(KEYS[:-1])} or {KEYS[-1]}"
_NO_OBJECT: Final = f"no plan found; send {ONE_OBJECT}"
STRAY_CALL: Final = "a call outside tool_calls; send it in tool_calls"
TOO_DEEP: Final = "nested too deep; send a flat JSON object"

# A fence with its word, and whether it starts its line; braces around words, as prose has them; where an
# object or an array of objects starts, or one ends whose start is lost. Possessive: it never backtracks.
_TOKEN: Final = re.compile(
    r"(?P<indent>^[ \t]*+)?(?P<fence>(?<!`)`{3,}+|(?<!~)~{3,}+)[ \t]*+(?P<word>[\w+.-]*+)"
    r"""|(?P<prose>\{[^{}"':]*+\}|\{\{[^{}"':]*+\}\})|[{}]|\[(?=\s*+\{\s*+["'])""",
    re.MULTILINE,
)
_TRAILING_COMMA: Final = re.compile(r",\s*+(?=[}\]])")


class Refused(Exception):
    """Something that cannot be taken; whoever knows its place catches it."""


def refuse(message: str) -> NoReturn:
    """Raise ``Refused``."""
    raise Refused(message)


def find_output(given: object) -> Mapping[str, Any]:
    """The one object in a planner's output, whatever stands around it.

    Raises:
        Refused: There is none, there are several, or it is broken.
    """
    given = given.decode() if isinstance(given, (bytes, bytearray)) else given
    if given is None or isinstance(given, str):
        return _find_in_text("" if given is None else str.__str__(given))  # a subclass may answer anything
    if not isinstance(given, (Mapping, list, tuple)):
        unexpected(ONE_OBJECT, given)
    return _output(given) or refuse(STRAY_CALL if is_call(given) else _NO_OBJECT)


def _find_in_text(text: str, *, again: bool = True) -> Mapping[str, Any]:
    if len(text) > MOST_CHARACTERS:
        refuse(f"{len(text)} characters, at most {MOST_CHARACTERS}; send less")
    text = text.removeprefix("\ufeff")
    if not text.strip():
        refuse(f"empty; send {ONE_OBJECT}")
    try:
        value = whole_json(text)
    except Refused:  # what is wrong is said of the object within
        return _find_within(text)
    if isinstance(value, str) and again:  # a JSON text within a JSON text: it was written twice
        return _find_in_text(value, again=False)
    return _output(value) or _find_within(text)


def _find_within(text: str) -> Mapping[str, Any]:
    """The object in the fences, or else the one in the prose.

    Prose may hold anything; but beside an object that is broken, what looks like the next one could be
    a part of it. From there on only fences at the start of a line are believed, because no JSON string
    can hold one. Each character is decoded twice at most.
    """
    fenced: list[Mapping[str, Any]] = []
    prose: list[Mapping[str, Any]] = []
    broken: Refused | None = None
    fence, inside, stray = "", False, False
    position = arrays_from = 0
    while token := _TOKEN.search(text, position):
        start, position = token.start(), token.end()
        if token["fence"]:
            mark, word = token["fence"][0], token["word"].casefold()
            if not fence and (broken is None or token["indent"] is not None):
                fence, inside = mark, not word or word.startswith("json")
            elif fence == mark:
                fence, inside = "", False
            continue
        is_array = text[start] == "["
        if token["prose"] or (broken is not None and not inside) or (is_array and start < arrays_from):
            continue
        try:
            value, end = _decode(text, start)
        except Refused as refused:
            if inside:
                raise
            broken = refused
            continue
        output = _output(value)
        if output is None and is_array:  # the object may stand in it
            arrays_from = end
            continue
        if output is not None:
            (fenced if inside else prose).append(output)
        stray = stray or is_call(value)
        position = end
    if broken is not None and not fenced:
        raise broken
    outputs = fenced or prose
    different = len({json.dumps(output, sort_keys=True) for output in outputs}) if len(outputs) > 1 else 1
    if different > 1:
        refuse(f"{different} different JSON objects; send one")
    return outputs[0] if outputs else refuse(STRAY_CALL if stray else _NO_OBJECT)


def _output(value: object) -> Mapping[str, Any] | None:
    """A JSON value as a planner's output; None when it is something else."""
    if isinstance(value, Mapping):
        return value if any(name in value for name in _MARKS) else None
    if isinstance(value, (list, tuple)) and any(is_call(item) for item in value):
        return {"tool_calls": value}
    return None


def is_call(value: object) -> bool:
    """Whether a value looks like one call."""
    return isinstance(value, Mapping) and "tool" in value


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names: dict[str, Any] = {}
    for name, value in pairs:
        if name in names:
            refuse(f"{show(name)} stands twice in one object; send each field once")
        names[name] = value
    return names


_JSON: Final = json.JSONDecoder(
    object_pairs_hook=_each_once,
    parse_constant=lambda _name: refuse("NaN and Infinity are not JSON; send a number or null"),
)


def _decode(text: str, start: int) -> tuple[Any, int]:
    """The value that starts there, and where it ends."""
    try:
        return _JSON.raw_decode(text, start)
    except json.JSONDecodeError as error:
        message = _what_breaks(text, start, error)
    except RecursionError:
        message = TOO_DEEP
    except ValueError:  # Python bounds the digits of an integer
        message = "a number has too many digits; send it as a string"
    refuse(message)


def whole_json(text: str) -> Any:
    """The value that a text consists of."""
    value, end = _decode(text, len(text) - len(text.lstrip()))
    return refuse(f"text behind the JSON at {_place(text, end)}; cut it") if text[end:].strip() else value


def _what_breaks(text: str, start: int, error: json.JSONDecodeError) -> str:
    """Say where JSON breaks, in the same words under each version of Python."""
    comma = _TRAILING_COMMA.match(text, error.pos)  # Python 3.13 names its place, others the one behind
    position = comma.end() if comma else error.pos
    if error.msg.startswith("Unterminated string") or not text[position:].strip():
        return f"the JSON from {_place(text, start)} on breaks off; send all of it"
    if error.msg.startswith("Invalid control character"):
        return f"a raw control character in a string at {_place(text, position)}; write a newline as \\n"
    return f"not JSON at {_place(text, position)}; send one JSON object"


def _place(text: str, position: int) -> str:
    lines = text[:position].split("\n")
    return f"line {len(lines)}, column {len(lines[-1]) + 1}"


def unexpected(expected: str, value: object) -> NoReturn:
    """Refuse a value of another type than was expected."""
    refuse(f"expected {expected}, got {ascii(type_word(value))[1:-1]}")
