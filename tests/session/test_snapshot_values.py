"""Every type of value that a snapshot carries: what is written, and that it comes back."""

from __future__ import annotations

import json
from dataclasses import make_dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from codec_records import (
    IDENTITY,
    TYPED,
    WHEN,
    Box,
    Checked,
    Colour,
    Derived,
    Empty,
    Holder,
    Level,
    Line,
    Loose,
    Outer,
    Page,
    Paper,
    Point,
    Private,
    Renamed,
    Sheet,
    Size,
    Tree,
    Turned,
    Unresolved,
    snapshot_of,
    text_of,
)
from hypothesis import given
from hypothesis import strategies as st
from session_records import Note

from session import Session, Snapshot, SnapshotError


def round_trip(value: Any) -> Any:
    snapshot = snapshot_of(value)
    read = Snapshot.from_json(snapshot.to_json())
    assert read == snapshot
    return read.select_latest(type(value))


@pytest.mark.parametrize(("hint", "value"), TYPED)
def test_every_type_of_value_comes_back_equal_and_of_its_type(hint: Any, value: Any) -> None:
    kind = make_dataclass("It", [("item", hint)], frozen=True)
    snapshot = snapshot_of(kind(value))
    back: Any = Snapshot.from_json(snapshot.to_json(), types=[kind]).select_latest(kind)
    assert (back.item, type(back.item)) == (value, type(value))
    if isinstance(value, (Decimal, datetime)):  # which are equal in other spellings, too
        assert str(back.item) == str(value)
    if isinstance(value, dict):
        assert list(map(type, back.item)) == list(map(type, value))


@pytest.mark.parametrize(
    "value",
    [
        Point(1, 2),
        Box(Point(1), "secret", (Point(2), Point(3))),
        Tree("a", (Tree("b", (Tree("c"),)), Tree("d")), Tree("e")),
        Tree("a", parent={"name": "b"}),  # type: ignore[arg-type]
        Empty(),
        Private(1),
        Renamed(y=1),
        Derived(2),
        Outer.Inner(1),
        7,
        0.5,
        "text",
        Colour.RED,
        Level.LOW,
        Sheet(Size(3), Paper.WIDE),
        IDENTITY,
        WHEN,
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_a_slice_come_back_equal_and_of_their_type(value: Any) -> None:
    back = round_trip(value)
    assert (back, type(back)) == (value, type(value))


def test_records_are_written_as_objects_and_other_values_with_their_type() -> None:
    values = [Box(Point(1), "s", (Point(2, 3),)), Colour.RED, IDENTITY, 3, Loose((Decimal(1), {2: {1}}))]
    assert json.loads(snapshot_of(*values).to_json())["slices"] == {
        "codec_records:Box": [{"corner": {"x": 1, "y": 0}, "hidden": "s", "points": [{"x": 2, "y": 3}]}],
        "codec_records:Colour": [{"!": "codec_records:Colour", "is": "red"}],
        "uuid:UUID": [{"!": "UUID", "is": "00000000-0000-4000-8000-000000000001"}],
        "builtins:int": [3],
        "codec_records:Loose": [
            {
                "item": {
                    "!": "tuple",
                    "items": [
                        {"!": "Decimal", "is": "1"},
                        {"!": "dict", "items": [[2, {"!": "set", "items": [1]}]]},
                    ],
                }
            }
        ],
    }


def test_a_set_is_written_alike_in_every_process() -> None:
    words = frozenset(map(str, range(100)))
    written = json.loads(snapshot_of(Loose(words)).to_json())
    (row,) = written["slices"]["codec_records:Loose"]
    assert row["item"] == {"!": "frozenset", "items": sorted(words, key=json.dumps)}


@given(
    st.text("abcXYZ019._-:", min_size=1, max_size=128).filter(lambda name: name.strip(".")) | st.uuids(),
    st.datetimes(timezones=st.timezones()),
    st.dictionaries(st.text(), st.text()),
)
def test_any_identity_time_and_tags_come_back(
    session_id: UUID | str, created_at: datetime, tags: dict[str, str]
) -> None:
    snapshot = Session(session_id=session_id, created_at=created_at, tags=tags).snapshot()
    snapshot = Snapshot(slices={}, session_id=session_id, created_at=created_at, tags=snapshot.tags)
    try:
        text = snapshot.to_json()
    except SnapshotError as error:  # a moment that was there twice, when the clocks went back
        assert str(error) == "created_at does not read back equal"
        return
    read = Snapshot.from_json(text)
    assert (read.session_id, read.created_at, read.tags) == (snapshot.session_id, created_at, tags)


NO_FORM = "has no JSON form: use text, numbers, lists or records"
UNNAMED = (
    "cannot be written here: give its field an exact type hint, or pass the class to session.register_types"
)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Loose(timedelta(1)), f"Loose[0].item: a datetime:timedelta {NO_FORM}"),
        (Loose([1, {"a": 1j}]), f"Loose[0].item[1].a: a complex {NO_FORM}"),
        (Loose({b"a": "a"}), f"Loose[0].item: a bytes {NO_FORM}"),
        (Loose(Point), f"Loose[0].item: a type {NO_FORM}"),
        (Loose(...), f"Loose[0].item: a ellipsis {NO_FORM}"),
        (Loose([1.0, float("-inf")]), f"Loose[0].item[1]: -inf {NO_FORM}"),
        (Box(Point(1), points=(Point(2), Loose(object()))),  # type: ignore[arg-type]
         f"Box[0].points[1]: a codec_records:Loose {UNNAMED}"),
        (Holder(Point(1)), f"Holder[0].item: a codec_records:Point {UNNAMED}"),
        (object(), "slice type 'builtins:object' is not a record: "
         "a snapshot holds dataclasses, attrs classes and plain values"),
        (Note(5), "Note[0].text: expected str, got 5"),  # type: ignore[arg-type]
        (Tree("a", ["b"]), "Tree[0].children: expected tuple[codec_records.Tree, ...], got a list"),  # type: ignore[arg-type]
        (Checked(0), "Checked: 0 is not positive"),
        (Unresolved(1), "the snapshot cannot be written: name 'Nowhere' is not defined"),
    ],
)  # fmt: skip
def test_what_would_not_read_back_equal_is_refused(value: object, message: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        snapshot_of(value).to_json()
    assert str(caught.value) == message


def test_each_of_several_records_comes_back_as_what_it_is() -> None:
    words: Any = {"text": "a", "mood": "sad", "words": ()}
    for page in (
        Page((Line("a", "glad"), Line("b", "sad", ("x", "y")))),
        Page(sizes=(Turned(1, 2), Turned(3, 4)), gaps=(Empty(), Empty())),
        Page((words, words)),
        Page((Line("a", "glad"), words)),
    ):
        assert repr(round_trip(page)) == repr(page)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            {"mood": "sad", "words": []},
            ": a codec_records:Line is refused by its type: "
            "Line.__init__() missing 1 required positional argument: 'text'",
        ),
        ({"text": "b", "mood": "mad", "words": []}, ".mood: expected Literal['glad', 'sad'], got 'mad'"),
        ({"text": 1, "mood": "sad", "words": []}, ".text: expected str, got 1"),
        ({"text": "b", "mood": "sad", "words": [], "more": 1}, ": a codec_records:Line has no 'more'"),
        ({"text": "b", "more": "sad", "words": []}, ": a codec_records:Line has no 'more'"),
    ],
)
def test_the_one_of_several_records_that_is_wrong_is_named(line: Any, message: str) -> None:
    right = {"text": "a", "mood": "glad", "words": ["w"]}
    with pytest.raises(SnapshotError) as caught:
        Snapshot.from_json(text_of("codec_records:Page", {"lines": [right, line, right], "sizes": []}))
    assert str(caught.value) == f"Page[0].lines[1]{message}"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"created_at": datetime(2024, 5, 6)}, "created_at: expected a time with a time zone"),
        ({"tags": {"run": 7}}, "tags: expected an object whose values are text"),
        ({"tags": {7: "run"}}, "tags does not read back equal"),
        (
            {"tags": {"run": b"7"}},
            "the snapshot cannot be written: Object of type bytes is not JSON serializable",
        ),
    ],
)
def test_whatever_cannot_be_read_back_is_not_written(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        Snapshot(**{"slices": {}, "session_id": IDENTITY, **changes}).to_json()
    assert str(caught.value) == message


def test_a_type_can_refuse_items_that_no_session_holds() -> None:
    assert round_trip(Checked(1)) == Checked(1)
    with pytest.raises(SnapshotError) as caught:
        Snapshot.from_json(text_of("codec_records:Checked", {"number": 0}))
    assert str(caught.value) == "Checked: 0 is not positive"
    Session().rollback(snapshot_of(Checked(0)))
