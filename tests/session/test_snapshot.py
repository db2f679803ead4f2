"""Snapshots: kept, compared, and carried as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from codec_records import Box, Either, Holder, Loose, Point, Tree, Twin
from hypothesis import given
from hypothesis import strategies as st
from session_records import Count, Note, Ping, note_session, ping

from session import Session, SessionError, Snapshot, SnapshotError, append, replace_latest

IDENTITY = UUID("00000000-0000-4000-8000-000000000001")
NOTE = "session_records:Note"
WHEN = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


def snapshot_of(*values: object) -> Snapshot:
    """A snapshot of these values, each appended to the slice of its type."""
    slices: dict[type, tuple[object, ...]] = {}
    for value in values:
        slices[type(value)] = (*slices.get(type(value), ()), value)
    return Snapshot(slices=slices, session_id=IDENTITY, created_at=WHEN, tags={"run": "7"})


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
SNAPSHOT = snapshot_of(Note("a"), Note("b"), Count(3))


class TestTaking:
    def test_a_snapshot_holds_every_slice_but_the_event_logs(self) -> None:
        session = Session(session_id=IDENTITY, tags={"run": "7"})
        session.register_reducer(Note, append)
        session.register_reducer(Count, replace_latest)
        session.register_reducer(Ping, lambda slice_, event: (event.number,), slice_type=int)
        session.dispatch(Note("a"))
        session.dispatch(Count(1))
        session.publish(ping(session, 5))
        snapshot = session.snapshot()
        assert dict(snapshot.slices) == {Note: (Note("a"),), Count: (Count(1),), int: (5,)}
        assert (snapshot.session_id, dict(snapshot.tags)) == (IDENTITY, {"run": "7"})

    def test_a_snapshot_is_dated_in_utc(self, session: Session) -> None:
        before = datetime.now(UTC)
        made = session.snapshot().created_at
        assert before <= made <= datetime.now(UTC)
        assert made.tzinfo is UTC

    def test_a_snapshot_does_not_change_with_its_session(self) -> None:
        session = note_session()
        session.dispatch(Note("a"))
        snapshot = session.snapshot()
        session.dispatch(Note("b"))
        assert snapshot.select_all(Note) == (Note("a"),)

    def test_snapshots_are_equal_when_their_slices_are(self) -> None:
        one, two = note_session(), note_session()
        assert one.snapshot() == two.snapshot()
        one.dispatch(Note("a"))
        assert one.snapshot() != two.snapshot()
        two.dispatch(Note("a"))
        assert one.snapshot() == two.snapshot()
        not_a_snapshot: object = "a snapshot"
        assert one.snapshot() != not_a_snapshot

    def test_the_slices_of_a_snapshot_cannot_be_changed(self) -> None:
        slices: Any = SNAPSHOT.slices
        with pytest.raises(TypeError) as caught:
            slices[Note] = ()
        assert str(caught.value) == "'mappingproxy' object does not support item assignment"

    def test_the_text_of_a_snapshot_object_shows_no_content(self) -> None:
        assert repr(SNAPSHOT) == (
            f"Snapshot(session_id={IDENTITY!r}, created_at={WHEN!r}, tags={{'run': '7'}})"
        )


class TestWriting:
    def test_a_snapshot_is_written_by_the_fields_of_its_records(self) -> None:
        assert json.loads(SNAPSHOT.to_json()) == DOCUMENT

    def test_an_indent_makes_lines_and_changes_nothing_else(self) -> None:
        assert SNAPSHOT.to_json() == json.dumps(DOCUMENT)
        assert SNAPSHOT.to_json(indent=2) == json.dumps(DOCUMENT, indent=2)

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            (Loose(b"raw"), "Loose[0].item: a bytes has no JSON form in a snapshot"),
            (Loose((1, 2)), "Loose does not read back equal: give its fields exact type hints"),
            (Loose(Point(1)), "Loose does not read back equal: give its fields exact type hints"),
            (Holder(Point(1)), "Holder does not read back equal: give its fields exact type hints"),
            (Either(Twin(1)), "Either does not read back equal: give its fields exact type hints"),
            (Note(5), "Note[0].text: expected str, got 5"),  # type: ignore[arg-type]
            (Tree("a", ("b",)), "Tree[0].children[0]: expected an object with name, children, parent"),  # type: ignore[arg-type]
            (object(), "object[0]: a object has no JSON form in a snapshot"),
        ],
    )
    def test_what_would_not_read_back_equal_is_refused(self, value: object, message: str) -> None:
        with pytest.raises(SnapshotError) as caught:
            snapshot_of(value).to_json()
        assert str(caught.value) == message

    def test_the_refusal_names_the_place_of_the_item(self) -> None:
        with pytest.raises(SnapshotError) as caught:
            snapshot_of(Loose(1), Loose(2), Loose({"a": [{1}]})).to_json()
        assert str(caught.value) == "Loose[2].item.a[0]: a set has no JSON form in a snapshot"


class TestReading:
    def test_what_was_written_reads_back_equal_with_its_date_identity_and_tags(self) -> None:
        for text in (SNAPSHOT.to_json(), SNAPSHOT.to_json(indent=2), SNAPSHOT.to_json().encode()):
            read = Snapshot.from_json(text)
            assert read == SNAPSHOT
            assert (read.session_id, read.created_at, dict(read.tags)) == (IDENTITY, WHEN, {"run": "7"})
            assert dict(read.slices) == {Note: (Note("a"), Note("b")), Count: (Count(3),)}

    @given(
        st.lists(
            st.builds(Note, st.text())
            | st.builds(Count, st.integers())
            | st.builds(Box, st.builds(Point, st.integers()), st.text()),
            max_size=8,
        )
    )
    def test_any_session_can_be_carried_as_json(self, values: list[object]) -> None:
        session = Session()
        for kind in (Note, Count, Box):
            session.register_reducer(kind, append)
        for value in values:
            session.dispatch(value)
        snapshot = session.snapshot()
        other = Session()
        other.rollback(Snapshot.from_json(snapshot.to_json()))
        assert other.snapshot() == snapshot

    def test_a_session_goes_on_from_a_snapshot_that_was_read(self) -> None:
        session = note_session()
        session.rollback(Snapshot.from_json(SNAPSHOT.to_json()))
        session.dispatch(Note("c"))
        assert session.select_all(Note) == (Note("a"), Note("b"), Note("c"))
        assert session.select_all(Count) == (Count(3),)

    def test_an_empty_session_can_be_carried(self, session: Session) -> None:
        assert Snapshot.from_json(session.snapshot().to_json()) == session.snapshot()

    def test_a_type_that_no_module_shows_is_passed_in(self) -> None:
        @dataclass(frozen=True)
        class Local:
            number: int

        snapshot = snapshot_of(Local(1))
        text = snapshot.to_json()
        with pytest.raises(SnapshotError) as caught:
            Snapshot.from_json(text)
        name = f"{__name__}:TestReading.test_a_type_that_no_module_shows_is_passed_in.<locals>.Local"
        assert (
            str(caught.value) == f"slice type {name!r} is not loaded: import it first, or pass it in types="
        )
        assert Snapshot.from_json(text, types=[Note, Local]) == snapshot

    def test_reading_does_not_import_the_module_that_it_names(self) -> None:
        before = sys.modules.pop("this", None)
        with pytest.raises(SnapshotError) as caught:
            Snapshot.from_json(json.dumps({**DOCUMENT, "slices": {"this:Zen": []}}))
        assert (
            str(caught.value) == "slice type 'this:Zen' is not loaded: import it first, or pass it in types="
        )
        assert (before, "this" in sys.modules) == (None, False)


class TestHostileText:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"version": 2}, "snapshot version 2 is not known; this release reads 1"),
            ({"version": "1"}, "snapshot version '1' is not known; this release reads 1"),
            ({"version": None}, "snapshot version None is not known; this release reads 1"),
            ({"session_id": "x"}, "session_id: expected UUID, got 'x'"),
            ({"session_id": None}, "session_id: expected UUID, got None"),
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
            ({"slices": {"os:system": []}},
             "slice type 'os:system' is not loaded: import it first, or pass it in types="),
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
            ("session_id", "session_id: expected UUID, got None"),
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
