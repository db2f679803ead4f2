"""The grammar of references."""

from __future__ import annotations

import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.workflow.references import NoReference, Reference, StepIds, parse_references

CASES: dict[str, list[Any]] = json.loads(Path(__file__).with_name("references.json").read_text())
IDS = StepIds(["fetch", "a.b", "a", "a.output", "a.output.b", "get.outputs", "", " ", "${", "}"])


def whole(step_id: str | None, *path: str | int, text: str) -> list[Reference | NoReference]:
    return [Reference(step_id, path, 0, len(text))]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        *((text, whole(step_id, *path, text=text)) for text, step_id, path in CASES["references"]),
        *((text, [NoReference(0, len(text), is_closed=True)]) for text in CASES["no references"]),
        *((text, []) for text in CASES["other text"]),
    ],
)
def test_a_reference_is_read_and_what_begins_as_one_is_told(text: str, found: list[Any]) -> None:
    assert [*parse_references(text, IDS)] == found


def test_ten_thousand_references_in_one_text_are_read() -> None:
    read = list(parse_references("${fetch.output.x}" * 10_000, IDS))
    assert read == [Reference("fetch", ("x",), at, at + 17) for at in range(0, 170_000, 17)]


@pytest.mark.parametrize(
    ("text", "count"),
    [("${" * 100_000, 1), ("${" * 100_000 + "}", 2), ("${" + ".output" * 100_000 + "!!}", 1)],
)
def test_a_hostile_text_has_no_more_references_than_it_closes(text: str, count: int) -> None:
    assert len(list(parse_references(text, IDS))) == count


@pytest.mark.parametrize("segment", [".x", "[0]"])
def test_a_path_is_no_deeper_than_an_output(segment: str) -> None:
    path = (segment.strip(".") if segment == ".x" else 0,) * 100
    text = "${fetch.output" + segment * 100 + "}"
    assert [*parse_references(text, IDS)] == whole("fetch", *path, text=text)

    deeper = "${fetch.output" + segment * 101 + "}"
    assert [*parse_references(deeper, IDS)] == [NoReference(0, len(deeper), is_closed=True)]


def test_a_path_of_millions_of_names_costs_little_memory() -> None:
    text = "${fetch.output" + ".x" * 2_000_000 + "}"
    tracemalloc.start()
    try:
        assert len(list(parse_references(text, IDS))) == 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 * len(text)


TOKENS = "${ } a b .output . [0] [ ] [1 { user_prompt ${a.output x $"
PIECES = st.sampled_from([*TOKENS.split(), " "])
TEXTS = st.lists(PIECES, max_size=12).map("".join)
NAMES = st.lists(st.sampled_from(["a", "b", ".output", ".", "x"]), min_size=1, max_size=4).map("".join)
_PATH = re.compile(r"(\.[^.\[\]{}]+|\[[0-9]{1,15}\])*")


def closed_at(text: str, start: int, ids: set[str]) -> str | None:
    """By the letter of the grammar: the step id of the reference that begins here, if one does."""
    inner, closed, _ = text[start + 2 :].partition("}")
    if not closed:
        return None
    if inner == "user_prompt":
        return ""
    splits = [at for at in range(len(inner)) if inner.startswith(".output", at)]
    valid = []
    for at in splits:
        path = inner[at + 7 :]
        names = re.findall(r"\.([^.\[\]{}]+)", path)
        if _PATH.fullmatch(path) and all(name.strip() for name in names):
            valid.append(inner[:at])
    known = [step_id for step_id in valid if step_id in ids]
    if known:
        return max(known, key=len)
    first = inner[: splits[0]] if splits else ""
    return first if first in valid and first.strip() == first != "" else None


@given(TEXTS, st.frozensets(NAMES, max_size=4))
def test_what_is_read_is_what_the_grammar_says_to_the_letter(text: str, ids: frozenset[str]) -> None:
    found = [*parse_references(text, StepIds(ids))]
    read = [each.step_id or "" if isinstance(each, Reference) else None for each in found]
    assert read == [closed_at(text, each.start, set(ids)) for each in found]
    ends = [text[each.start :][:2] + text[each.end - 1] for each in found if isinstance(each, Reference)]
    assert ends == ["${}"] * len(ends)
