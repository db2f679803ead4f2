"""Snapshots from text that nobody should trust: read, or refused with the place."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from codec_records import (
    Loose,
)
from hypothesis import given
from hypothesis import strategies as st

from session import Session, SessionError, Snapshot, SnapshotError

IDENTITY = UUID("00000000-0000-4000-8000-000000000001")
NOTE = "session_records:Note"
WHEN = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)

DOCUMENT: dict[str, Any] = {
    "version": 1,
    "session_id": "00000000-0000-4000-8000-000000000001",
    "created_at": "2024-05-06T07:08:09+00:00",
    "tags": {"run": "7"},
    "slices": {
        "session_records:Note": [{"text": "a"}, {"text": "b"}],
        "session_records:Count": [{"total": 3}],
    },
}


class TestHostileText:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"version": 2}, "snapshot version 2 is not known; this release reads 1"),
            ({"version": "1"}, "snapshot version '1' is not known; this release reads 1"),
            ({"version": None}, "snapshot version None is not known; this release reads 1"),
            ({"session_id": "x y"},
             "session_id: a session id must be a UUID or 1 to 128 ASCII letters, digits and the characters "
             ". _ - :, got 'x y'"),
            ({"session_id": None}, "session_id: expected str, got None"),
            ({"created_at": "soon"}, "created_at: expected datetime, got 'soon'"),
            ({"created_at": 5}, "created_at: expected datetime, got 5"),
            ({"tags": []}, "tags: expected dict[str, str], got list"),
            ({"tags": {"run": 7}}, "tags.run: expected str, got 7"),
            ({"slices": []}, "slices: expected dict[str, list[Any]], got list"),
            ({"slices": {NOTE: {}}}, f"slices.{NOTE}: expected list[Any], got dict"),
            ({"slices": {NOTE: ["a"]}}, "Note[0]: expected an object with text"),
            ({"slices": {NOTE: [{"text": "a"}, {}]}}, "Note[1]: expected an object with text"),
            ({"slices": {NOTE: [{"text": "a", "b": 1}]}}, "Note[0]: expected an object with text"),
            ({"slices": {NOTE: [{"text": 1}]}}, "Note[0].text: expected str, got 1"),
            ({"version": True}, "snapshot version True is not known; this release reads 1"),
            ({"version": 1.0}, "snapshot version 1.0 is not known; this release reads 1"),
            ({"created_at": "2024-05-06T07:08:09"}, "created_at: expected a time with a time zone"),
            ({"slices": {"session_records:Ping": []}},
             "session_records:Ping is an event: event logs are no part of a snapshot"),
            ({"slices": {"session.events:SessionEvent": []}},
             "session.events:SessionEvent is an event: event logs are no part of a snapshot"),
            ({"slices": {"codec_records:Unresolved": [{"item": 1}]}},
             "the snapshot cannot be read: name 'Nowhere' is not defined"),
            ({"slices": {"json:\ud800": []}},
             "slice type 'json:\\ud800' is not loaded: pass the class in types="),
            ({"slices": {"json:\0": []}},
             "slice type 'json:\\x00' is not loaded: pass the class in types="),
            ({"slices": {"os:system": []}},
             "slice type 'os:system' is not loaded: os has no such class; pass the class in types="),
            ({"slices": {"subprocess:Popen": []}},
             "slice type 'subprocess:Popen' is not a record: a snapshot holds dataclasses, attrs classes and "
             "plain values"),
            ({"slices": {"subprocess:Popen": [{"args": ["true"]}]}},
             "slice type 'subprocess:Popen' is not a record: a snapshot holds dataclasses, attrs classes and "
             "plain values"),
        ],
    )  # fmt: skip
    def test_a_document_that_is_wrong_is_refused(self, change: dict[str, Any], message: str) -> None:
        with pytest.raises(SnapshotError) as caught:
            Snapshot.from_json(json.dumps({**DOCUMENT, **change}))
        assert str(caught.value) == message

    @pytest.mark.parametrize(
        ("missing", "message"),
        [
            ("version", "snapshot version None is not known; this release reads 1"),
            ("session_id", "session_id: expected str, got None"),
            ("created_at", "created_at: expected datetime, got None"),
            ("tags", "tags: expected dict[str, str], got None"),
            ("slices", "slices: expected dict[str, list[Any]], got None"),
        ],
    )
    def test_a_document_that_lacks_a_part_is_refused(self, missing: str, message: str) -> None:
        document = {key: value for key, value in DOCUMENT.items() if key != missing}
        with pytest.raises(SnapshotError) as caught:
            Snapshot.from_json(json.dumps(document))
        assert str(caught.value) == message

    @pytest.mark.parametrize("text", ["[]", "null", '"text"', "1", "[[[1]]]"])
    def test_text_that_is_no_object_is_refused(self, text: str) -> None:
        with pytest.raises(SnapshotError) as caught:
            Snapshot.from_json(text)
        assert str(caught.value) == "a snapshot must be a JSON object"

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
    def test_a_number_that_json_does_not_know_is_refused(self, number: str) -> None:
        text = json.dumps({**DOCUMENT, "slices": {"codec_records:Measure": [{"value": 5}]}})
        with pytest.raises(SnapshotError) as caught:
            Snapshot.from_json(text.replace('"value": 5', f'"value": {number}'))
        assert str(caught.value) == f"a snapshot must be JSON text: {number} is no JSON value"

    @pytest.mark.parametrize("text", [None, 5, {}], ids=["None", "number", "dict"])
    def test_what_is_no_text_is_refused(self, text: Any) -> None:
        with pytest.raises(SnapshotError) as caught:
            Snapshot.from_json(text)
        assert str(caught.value) == (
            "a snapshot must be JSON text: "
            f"the JSON object must be str, bytes or bytearray, not {type(text).__name__}"
        )

    def test_a_type_that_is_passed_in_and_is_no_class_is_refused(self) -> None:
        wrong: Any = [5]
        with pytest.raises(SnapshotError) as caught:
            Snapshot.from_json(json.dumps(DOCUMENT), types=wrong)
        assert str(caught.value) == "types= takes classes, got 5"

    def test_records_that_are_nested_too_deep_are_refused(self) -> None:
        row: Any = None
        for _ in range(300):
            row = {"name": "a", "children": [], "parent": row}
        text = json.dumps({**DOCUMENT, "slices": {"codec_records:Tree": [row]}})

        def read(depth: int) -> Snapshot:
            return read(depth - 1) if depth else Snapshot.from_json(text)

        with pytest.raises(SnapshotError) as caught:
            read(sys.getrecursionlimit() - 500)
        assert str(caught.value).endswith(": it is nested too deep")

    def test_text_that_is_no_json_is_refused_with_the_place(self) -> None:
        with pytest.raises(SnapshotError) as caught:
            Snapshot.from_json("{'version': 1}")
        assert str(caught.value) == (
            "a snapshot must be JSON text: "
            "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
        )

    @pytest.mark.parametrize(
        "text",
        ["", "{", b"\xff\xfe\xff", "[" * 100_000, '{"a":' * 100_000, "1" * 5000, "\x00"],
        ids=["empty", "open", "no text", "deep list", "deep object", "long number", "null character"],
    )
    def test_text_that_cannot_be_read_at_all_is_refused(self, text: str | bytes) -> None:
        with pytest.raises(SnapshotError) as caught:
            Snapshot.from_json(text)
        assert str(caught.value).startswith("a snapshot must be JSON text: ")

    def test_deep_content_where_anything_goes_is_kept_as_it_is(self) -> None:
        deep: Any = None
        for _ in range(200):
            deep = [deep]
        document = {**DOCUMENT, "slices": {"codec_records:Loose": [{"item": deep}]}}
        assert Snapshot.from_json(json.dumps(document)).select_all(Loose) == (Loose(deep),)

    def test_a_refusal_is_a_session_error_and_a_value_error(self) -> None:
        with pytest.raises(SessionError) as caught:
            Snapshot.from_json("")
        assert isinstance(caught.value, ValueError)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["text", "total", "item", "a"]) | st.text(), inner, max_size=3
                )
            ),
            max_leaves=10,
        ),
        st.sampled_from(["session_id", "created_at", "tags", "slices", "rows", "whole"]),
    )
    def test_whatever_json_comes_it_is_read_or_refused(self, data: Any, place: str) -> None:
        document = {**DOCUMENT, place: data}
        if place == "rows":
            document = {**DOCUMENT, "slices": {"session_records:Note": data, "codec_records:Tree": [data]}}
        try:
            read = Snapshot.from_json(json.dumps(data if place == "whole" else document))
        except SnapshotError:
            return
        assert Snapshot.from_json(read.to_json()) == read


def test_a_number_too_large_for_a_float_is_refused() -> None:
    text = Session().snapshot().to_json().replace('"tags": {}', '"tags": {"a": 1e999}')
    with pytest.raises(SnapshotError) as caught:
        Snapshot.from_json(text)
    assert str(caught.value) == "a snapshot must be JSON text: 1e999 is too large"
