"""Recovery of plans that are broken in one place: nothing is silently wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from corpus_cases import exact

from planning.reading import read_document
from planning.workflow import validate_workflow
from planning.workflow.wire.form import WORKFLOW

LAYOUTS: list[Callable[[Any], str]] = [
    lambda value: json.dumps(value, separators=(",", ":")),
    json.dumps,
    lambda value: json.dumps(value, indent=2, ensure_ascii=False),
]
ANSWERS: list[Callable[[Any], str]] = [
    *LAYOUTS,
    lambda value: f"```json\n{json.dumps(value)}\n```",
    lambda value: f"```\n{json.dumps(value, indent=2)}\n```\n",
    lambda value: f"Here [it] is:\n{json.dumps(value)}",
    lambda value: f"<think>[] or {{a}}?</think>\n{json.dumps(value)}",
    lambda value: json.dumps(json.dumps(value)),
    repr,
]
BASES: dict[str, Any] = json.loads(Path(__file__).with_name("broken_plans.json").read_text())
"""Plans whose inputs are as easily taken for something else as can be."""


class Token(NamedTuple):
    """A part of strict JSON: ``kind`` is its first character, or ``w`` for a word or number."""

    kind: str
    start: int
    end: int


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},:]|[-+.\w]+')


def tokens(text: str) -> list[Token]:
    found = ((part[0][0], *part.span()) for part in _TOKEN.finditer(text))
    return [Token(kind if kind in '"[]{},:' else "w", start, end) for kind, start, end in found]


def _swap(text: str, token: Token, new: str) -> str:
    return text[: token.start] + new + text[token.end :]


def _dropped(kinds: str) -> Callable[[str], Iterator[str]]:
    return lambda text: (_swap(text, each, "") for each in tokens(text) if each.kind in kinds)


def _inserted_behind(new: str) -> Callable[[str], Iterator[str]]:
    return lambda text: (text[: each.end] + new + text[each.end :] for each in tokens(text))


def _replaced(new: dict[str, str]) -> Callable[[str], Iterator[str]]:
    return lambda text: (_swap(text, each, new[each.kind]) for each in tokens(text) if each.kind in new)


def _strings(change: Callable[[str], str]) -> Callable[[str], Iterator[str]]:
    """Change one string, given without its quotes, for another text."""
    return lambda text: (
        _swap(text, each, change(text[each.start + 1 : each.end - 1]))
        for each in tokens(text)
        if each.kind == '"'
    )


def _words(new: dict[str, str]) -> Callable[[str], Iterator[str]]:
    return lambda text: (
        _swap(text, each, new[text[each.start : each.end]])
        for each in tokens(text)
        if each.kind == "w" and text[each.start : each.end] in new
    )


def _trailing_commas(text: str) -> Iterator[str]:
    """A comma before each closing bracket of something that is not empty."""
    for before, each in pairwise(tokens(text)):
        if each.kind in "]}" and before.kind not in "[{":
            yield text[: each.start] + "," + text[each.start :]


def _lost_quotes(text: str) -> Iterator[str]:
    for each in tokens(text):
        if each.kind == '"':
            yield text[: each.start] + text[each.start + 1 :]
            yield text[: each.end - 1] + text[each.end :]


def _at_each(pattern: str, new: str) -> Callable[[str], Iterator[str]]:
    found = re.compile(pattern)
    return lambda text: (text[: at.start()] + new + text[at.end() :] for at in found.finditer(text))


def _around(text: str) -> Iterator[str]:
    for before, behind in (
        ("```json\n", "\n```"),
        ("~~~\n", "\n~~~\n"),
        ("Here's the plan (it's [new]):\n", "\nIt isn't {final}."),
        ("<plan>", "</plan>"),
        ("```\n", ""),
        ("", "\n```"),
        ("\ufeff", "\n\n"),
        ("// the plan\n", "\n// that's all"),
    ):
        yield before + text + behind


def _copied(text: str) -> Iterator[str]:
    """One part twice, but no opening bracket."""
    for each in tokens(text):
        if each.kind not in "[{":
            yield text[: each.end] + text[each.start : each.end] + text[each.end :]


FAULTS: dict[str, Callable[[str], Iterator[str]]] = {
    "a comma is missing": _dropped(","),
    "a comma is missing and a line ends": _replaced({",": "\n"}),
    "a comma too many": _inserted_behind(","),
    "a comma trails": _trailing_commas,
    "an opening bracket is missing": _dropped("[{"),
    "a closing bracket is missing": _dropped("]}"),
    "a closing bracket too many": _inserted_behind("]"),
    "a closing brace too many": _inserted_behind("}"),
    "a bracket of the other kind closes": _replaced({"]": "}", "}": "]"}),
    "a bracket of the other kind opens": _replaced({"[": "{", "{": "["}),
    "a round bracket opens": _replaced({"[": "("}),
    "a colon is missing": _dropped(":"),
    "a colon is another sign": _replaced({":": "="}),
    "a comma is another sign": _replaced({",": ";"}),
    "a colon is a comma": _replaced({":": ","}),
    "a comma is a colon": _replaced({",": ":"}),
    "single quotes": _strings(lambda string: "'" + string.replace('\\"', '"').replace("'", "\\'") + "'"),
    "single quotes without a backslash": _strings(lambda string: f"'{string}'"),
    "no quotes": _strings(str),
    "curly quotes": _strings(lambda string: f"\u201c{string}\u201d"),
    "quotes twice": _strings(lambda string: f'""{string}""'),
    "quotes that have a backslash": _strings(lambda string: f'\\"{string}\\"'),
    "a quote is missing": _lost_quotes,
    "a quote too many": _inserted_behind('"'),
    "a quote without its backslash": _at_each(r'\\(?=")', ""),
    "a line break within a string": _at_each(r"(?<!\\)\\n", "\n"),
    "words of Python": _words({"true": "True", "false": "False", "null": "None"}),
    "words of no language": _words({"true": "yes", "false": "no", "null": "undefined"}),
    "numbers in other forms": _words({"1": "+1", "5.0": "5.", "0.5": ".5", "3": "03", "4": "0x4"}),
    "a comment": _inserted_behind(' /* , } " */ '),
    "a comment to the end of the line": _inserted_behind(" // it's ] ,\n"),
    "a comment of Python": _inserted_behind(' # "}\n'),
    "dots": _inserted_behind(" ... "),
    "a word too many": _inserted_behind(" and "),
    "a part twice": _copied,
    "something around it": _around,
}
"""By name, how a text is broken in one place: every text that this can make of one.

A bracket that was opened for nothing is not among them. Such a text is, character for character, one
whose closing bracket is missing, and is read as that.
"""


def laid_out(value: Any, change: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """What a change makes of a value in each layout, in turns: every place is changed, in one of them."""
    for turn, layout in enumerate(LAYOUTS):
        yield from islice(change(layout(value)), turn, None, len(LAYOUTS))


def is_json(text: str) -> bool:
    """Whether a text is strict JSON, so that what it means is beyond doubt."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def read(text: str, *, is_finished: bool = False) -> Any:
    """A document, or the plan of one step that a single step is read as."""
    value = read_document(text, WORKFLOW, is_finished=is_finished).value
    return [value] if isinstance(value, dict) and "step_id" in value else value


def steps_of(value: Any) -> Any:
    return value["steps"] if isinstance(value, dict) and "steps" in value else value


@pytest.mark.parametrize("fault", FAULTS)
def test_a_plan_that_is_broken_in_one_place_is_never_taken_for_another(fault: str) -> None:
    for value in BASES.values():
        broken = [text for text in laid_out(value, FAULTS[fault]) if not is_json(text)]
        taken = [text for text in broken if validate_workflow(text).ok]
        assert [text for text in taken if exact(read(text)) != exact(value)] == []


@pytest.mark.parametrize("base", BASES)
def test_a_plan_that_breaks_off_is_an_error_and_else_its_first_steps_are_whole(base: str) -> None:
    """Else: where the model ended the text by itself."""
    value = BASES[base]
    answers = enumerate(answer(value) for answer in ANSWERS)
    beginnings = [text[:end] for at, text in answers for end in range(at % 3, len(text.rstrip("`\n")), 3)]
    assert [text for text in beginnings if validate_workflow(text).ok] == []
    steps, wrong, taken = steps_of(value), [], 0
    for text in beginnings:
        if validate_workflow(text, finished=True).ok:
            taken += 1
            kept = steps_of(read(text, is_finished=True))
            if exact(kept[:-1]) != exact(steps[: len(kept) - 1]):
                wrong.append(text)
    assert wrong == []
    assert taken > 0
