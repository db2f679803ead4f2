"""Arguments that are text are read as plans are: what can be meant in one way only is repaired."""

from __future__ import annotations

import pytest

from planning.tools import Toolbox, tool


@tool
def save(title: str, tags: list[str] | None = None) -> dict[str, object]:
    """Save it."""
    return {"title": title, "tags": tags}


MEANT = {"title": "it's", "tags": ["a"]}


@pytest.mark.parametrize(
    "text",
    [
        '```json\n{"title": "it\'s", "tags": ["a"]}\n```',
        '<think>a title</think>\n{"title": "it\'s", "tags": ["a"]}',
        '`{"title": "it\'s", "tags": ["a"]}`',
        '{"title": "it\'s", "tags": ["a",],}',
        '{title: "it\'s", tags: ["a"]}',
        "{\"title\": \"it's\", 'tags': ['a']} // saved",
    ],
    ids=["fence", "thoughts", "backticks", "trailing commas", "bare keys", "single quotes and a comment"],
)
@pytest.mark.parametrize("kind", [str, str.encode])
def test_what_is_repaired_in_a_plan_is_repaired_in_arguments(text: str, kind: type) -> None:
    assert Toolbox([save]).call("save", kind(text)).value == MEANT


@pytest.mark.parametrize(
    ("text", "column"),
    [('{"title": "a", "tags": ["a"', 28), ('Saved: {"title": "a"} as asked', 1), ('{"title": "a" "b"}', 15)],
    ids=["cut", "prose", "two values"],
)
def test_what_may_mean_several_things_or_was_cut_is_refused_at_its_place(text: str, column: int) -> None:
    told = Toolbox([save]).call("save", text).message
    place, words = told.split(": ", maxsplit=1)  # the words are of each Python
    assert place == f"Refused, nothing changed. arguments are not JSON at line 1, column {column}"
    assert words.endswith("; send one JSON object")
