"""Every value of a document is found where it stands in the text, however that is written."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from workflow_strategies import Written, odd_texts, plain_values, written

from planning.reading import Document, read_document
from planning.reading.found import Found
from planning.workflow.wire.form import WORKFLOW

CONTAINERS = st.lists(plain_values(), max_size=4) | st.dictionaries(odd_texts, plain_values(), max_size=4)


def read(text: str, value: Any) -> Document:
    document = read_document(text, WORKFLOW)
    assert repr(document.value) == repr(value)
    return document


def check_places(document: Document, made: Written) -> None:
    for path, span in made.values.items():
        assert document.span(Found("c", "m", "h", path)) == span
        assert document.path_at(span[0]) == path
        assert document.path_at(span[1] - 1) == path
    for path, span in made.keys.items():
        assert document.span(Found("c", "m", "h", path, at_key=True)) == span
        assert document.path_at(span[0]) == path
    for path, offsets in made.characters.items():
        last = len(offsets) - 1
        for part in {(0, last), (0, min(1, last)), (max(last - 1, 0), last), (last // 2, last // 2)}:
            found = Found("c", "m", "h", path, within=part)
            assert document.span(found) == (offsets[part[0]], offsets[part[1]])


@given(st.data())
def test_places_are_those_where_each_value_was_written_even_in_a_text_that_was_repaired(
    data: st.DataObject,
) -> None:
    value = data.draw(CONTAINERS)
    made = data.draw(written(value))
    check_places(read(made.text, value), made)
