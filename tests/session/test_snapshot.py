"""Snapshots: kept, compared, and carried as JSON."""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from types import ModuleType
from typing import Any
from uuid import UUID

import pytest
from codec_records import (
    Box,
    Colour,
    Derived,
    Either,
    Holder,
    Level,
    Loose,
    Measure,
    Point,
    Private,
    Renamed,
    Tree,
    Twin,
    Unresolved,
)
from hypothesis import given
from hypothesis import strategies as st
from session_records import Count, Note, Ping, note_session, ping

from session import Session, Snapshot, SnapshotError, append, replace_latest

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
        assert repr(SNAPSHOT) == f"Snapshot(session_id={IDENTITY!r}, created_at={WHEN!r})"

    def test_a_snapshot_has_no_hash(self) -> None:
        with pytest.raises(TypeError) as caught:
            hash(SNAPSHOT)
        assert str(caught.value) == "unhashable type: 'dict'"

    def test_a_pickled_snapshot_comes_back_equal_and_carries_nothing_that_came_later(self) -> None:
        session = note_session()
        session.dispatch(Note("a"))
        snapshot = session.snapshot()
        session.dispatch(Note("a secret"))
        pickled = pickle.dumps(snapshot)
        assert pickle.loads(pickled) == snapshot  # noqa: S301 - made one line above
        assert b"secret" not in pickled


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
            (Measure(float("nan")), "Measure[0].value: nan has no JSON form"),
            (Loose(float("inf")), "Loose[0].item: inf has no JSON form"),
            (Unresolved(1), "the snapshot cannot be written: name 'Nowhere' is not defined"),
        ],
    )
    def test_what_would_not_read_back_equal_is_refused(self, value: object, message: str) -> None:
        with pytest.raises(SnapshotError) as caught:
            snapshot_of(value).to_json()
        assert str(caught.value) == message

    def test_a_number_that_is_too_long_for_text_is_refused(self) -> None:
        with pytest.raises(SnapshotError) as caught:
            snapshot_of(Count(10**5000)).to_json()
        assert str(caught.value).startswith("the snapshot cannot be written: Exceeds the limit")
        assert isinstance(caught.value.__cause__, ValueError)

    def test_what_is_nested_too_deep_or_holds_itself_is_refused(self) -> None:
        circle: list[Any] = []
        circle.append(circle)
        tree = Tree("leaf")
        for _ in range(2000):
            tree = Tree("branch", parent=tree)
        for value in (Loose(circle), tree):
            with pytest.raises(SnapshotError) as caught:
                snapshot_of(value).to_json()
            assert str(caught.value) == "the snapshot cannot be written: it is nested too deep"

    def test_two_types_with_one_name_are_refused(self) -> None:
        def make() -> type[Any]:
            @dataclass(frozen=True)
            class Same:
                number: int

            return Same

        one, two = make(), make()
        with pytest.raises(SnapshotError) as caught:
            snapshot_of(one(1), two(2)).to_json()
        name = f"{__name__}:{one.__qualname__}"
        assert str(caught.value) == f"two slice types are named {name}: rename one"

    def test_the_refusal_names_the_place_of_the_item(self) -> None:
        with pytest.raises(SnapshotError) as caught:
            snapshot_of(Loose(1), Loose(2), Loose({"a": [b"raw"]})).to_json()
        assert str(caught.value) == "Loose[2].item.a[0]: a bytes has no JSON form in a snapshot"


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

    def test_slices_that_are_no_records_can_be_carried(self) -> None:
        snapshot = snapshot_of(3, -1, "text", Colour.RED, Level.HIGH, IDENTITY, WHEN, 0.5)
        read = Snapshot.from_json(snapshot.to_json())
        assert read == snapshot
        assert read.select_all(Colour) == (Colour.RED,)
        assert [type(item) for item in read.select_all(Level)] == [Level]
        assert json.loads(snapshot.to_json())["slices"]["builtins:int"] == [3, -1]

    def test_fields_are_passed_by_the_names_of_the_constructor(self) -> None:
        snapshot = snapshot_of(Private(1), Renamed(y=2), Derived(3))
        assert Snapshot.from_json(snapshot.to_json()) == snapshot

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
        assert str(caught.value) == f"slice type {name!r} is not loaded: pass the class in types="
        assert Snapshot.from_json(text, types=[Note, Local]) == snapshot

    def test_reading_does_not_import_the_module_that_it_names(self) -> None:
        before = sys.modules.pop("this", None)
        with pytest.raises(SnapshotError) as caught:
            Snapshot.from_json(json.dumps({**DOCUMENT, "slices": {"this:Zen": []}}))
        assert (
            str(caught.value)
            == "slice type 'this:Zen' is not loaded: import this first, or pass the class in types="
        )
        assert (before, "this" in sys.modules) == (None, False)

    def test_reading_does_not_let_a_loaded_module_import(self, monkeypatch: pytest.MonkeyPatch) -> None:
        class Lazy(ModuleType):
            def __getattr__(self, name: str) -> type:
                raise ImportError("an extra is missing")

        with monkeypatch.context() as patch:  # hypothesis looks at every module that is loaded
            patch.setitem(sys.modules, "lazy_module", Lazy("lazy_module"))
            with pytest.raises(SnapshotError) as caught:
                Snapshot.from_json(json.dumps({**DOCUMENT, "slices": {"lazy_module:Record": []}}))
        assert str(caught.value) == (
            "slice type 'lazy_module:Record' is not loaded: lazy_module has no such class; "
            "pass the class in types="
        )
