"""Snapshots: taken, compared, carried as JSON; every type of value; and text that nobody should trust."""

from __future__ import annotations

import importlib
import json
import pickle
import sys
from dataclasses import dataclass, make_dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import attrs
import pytest
from codec_records import (
    DOCUMENT,
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
    Positive,
    Private,
    Renamed,
    Sheet,
    Size,
    Tree,
    Turned,
    Unresolved,
    UserId,
    snapshot_of,
    text_of,
)
from hypothesis import given
from hypothesis import strategies as st
from session_records import Count, Note, Ping, note_session, ping

from session import (
    ReducerError,
    Session,
    SessionError,
    Snapshot,
    SnapshotError,
    append,
    append_part,
    replace_latest,
)

SLICES = {"session_records:Note": [{"text": "a"}, {"text": "b"}], "session_records:Count": [{"total": 3}]}
SNAPSHOT = snapshot_of(Note("a"), Note("b"), Count(3))


def test_a_snapshot_holds_every_slice_but_the_event_logs() -> None:
    session = Session(session_id=IDENTITY, tags={"run": "7"})
    session.register_reducer(Note, append)
    session.register_reducer(Count, replace_latest)
    session.register_reducer(Ping, lambda slice_, event: (event.number,), slice_type=int)
    session.dispatch(Note("a"))
    session.dispatch(Count(1))
    before = datetime.now(UTC)
    session.publish(ping(session, 5))
    snapshot = session.snapshot()
    session.dispatch(Note("b"))
    assert dict(snapshot.slices) == {Note: (Note("a"),), Count: (Count(1),), int: (5,)}
    assert (snapshot.session_id, dict(snapshot.tags)) == (IDENTITY, {"run": "7"})
    assert before <= snapshot.created_at <= datetime.now(UTC)
    assert (snapshot.created_at.tzinfo, session.created_at.tzinfo) == (UTC, UTC)


def test_a_snapshot_cannot_be_changed_has_no_hash_and_its_text_shows_no_content() -> None:
    slices: Any = SNAPSHOT.slices
    tags: Any = SNAPSHOT.tags
    for items in (slices, tags):
        with pytest.raises(TypeError):
            items["run"] = ()
    with pytest.raises(TypeError):
        hash(SNAPSHOT)
    assert repr(SNAPSHOT) == f"Snapshot(session_id={IDENTITY!r}, created_at={WHEN!r})"


def test_a_pickled_snapshot_comes_back_equal_and_carries_nothing_that_came_later() -> None:
    session = note_session()
    session.dispatch(Note("a"))
    snapshot = session.snapshot()
    session.dispatch(Note("a secret"))
    pickled = pickle.dumps(snapshot)
    assert pickle.loads(pickled) == snapshot  # noqa: S301 - made one line above
    assert b"secret" not in pickled


def test_what_was_written_reads_back_equal_with_its_date_identity_and_tags() -> None:
    document = {**DOCUMENT, "slices": SLICES}
    assert SNAPSHOT.to_json() == json.dumps(document)
    assert SNAPSHOT.to_json(indent=2) == json.dumps(document, indent=2)
    for text in (SNAPSHOT.to_json(), SNAPSHOT.to_json(indent=2), SNAPSHOT.to_json().encode()):
        read = Snapshot.from_json(text)
        assert read == SNAPSHOT
        assert (read.session_id, read.created_at, dict(read.tags)) == (IDENTITY, WHEN, {"run": "7"})
        assert dict(read.slices) == {Note: (Note("a"), Note("b")), Count: (Count(3),)}


def round_trip(value: Any) -> Any:
    snapshot = snapshot_of(value)
    read = Snapshot.from_json(snapshot.to_json())
    assert read == snapshot
    return read.select_latest(type(value))


@pytest.mark.parametrize(("hint", "value"), [*TYPED, (float, 1)])
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


@dataclass(frozen=True, eq=False)
class Alone:
    """A record that equals no other."""

    count: int


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
        (Loose({"a" * 80: 1j}), f"Loose[0].item.{'a' * 80}: a complex {NO_FORM}"),
        (Loose({"a" * 81: 1j}), f"Loose[0].item['{'a' * 81}']: a complex {NO_FORM}"),
        (Loose({"a\n": 1j}), f"Loose[0].item['a\\n']: a complex {NO_FORM}"),
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
        (Alone(2), "Alone does not read back equal: give its fields exact type hints"),
    ],
)  # fmt: skip
def test_what_would_not_read_back_equal_is_refused(value: object, message: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        snapshot_of(value).to_json()
    assert str(caught.value) == message


def test_a_snapshot_of_an_earlier_format_of_a_record_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Note, "RECORD_FORMAT", 2, raising=False)
    assert refusal(NOTE_TEXT) == (
        "Note[0]: session_records:Note is stored in format 1; this program has format 2: use the release "
        "that wrote it, or rename the current class"
    )


def test_two_classes_of_one_name_are_refused() -> None:
    one, other = (make_dataclass("It", [("item", int)]) for _ in "ab")
    name = f"{one.__module__}:It"
    with pytest.raises(SnapshotError) as caught:
        Snapshot(slices={one: (one(1),), other: (other(2),)}, session_id=IDENTITY).to_json()
    assert str(caught.value) == f"two slice types are named {name}: rename one"


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
    assert refusal(text_of("codec_records:Checked", {"number": 0})) == "Checked: 0 is not positive"
    session = Session()
    session.register_reducer(Checked, append)
    with pytest.raises(ReducerError) as caught:
        session.dispatch(Checked(0))
    assert str(caught.value) == "the slice Checked is refused by its type: 0 is not positive"
    assert session.version == 0
    Session().rollback(snapshot_of(Checked(0)))


NOTE = "session_records:Note"
NOTE_TEXT = snapshot_of(Note("a")).to_json()
NOT_LOADED = "is not loaded: import its module first, or pass the class in types="
HASH = ": a set is refused by its type: unhashable type: "
UNKNOWN = (
    "is unknown here: import its module and register a reducer for it, or pass the class to "
    "session.register_types"
)
GREEN = ": a codec_records:Colour is refused by its type: 'green' is not a valid Colour"


def refusal(text: Any, **given: Any) -> str:
    with pytest.raises(SnapshotError) as caught:
        Snapshot.from_json(text, **given)
    assert isinstance(caught.value, SessionError)
    assert isinstance(caught.value, ValueError)
    return str(caught.value)


@pytest.mark.parametrize(
    ("data", "hint", "message"),
    [
        ("1", int, ": expected int, got '1'"),
        (True, int, ": expected int, got True"),
        (1.0, int, ": expected int, got 1.0"),
        (1, bool, ": expected bool, got 1"),
        (True, float, ": expected float, got True"),
        (None, str, ": expected str, got None"),
        ("up", Literal["on", "off"], ": expected Literal['on', 'off'], got 'up'"),
        (5, Literal["on"] | None, ": expected Optional[Literal['on']], got 5"),
        (1.5, int | str, ": expected int | str, got 1.5"),
        (5, UserId, ": expected codec_records.UserId, got 5"),
        ("x", Annotated[int, "a note"], ": expected Annotated[int, 'a note'], got 'x'"),
        ([1], dict, ": expected dict, got a list"),
        ("soon", datetime, ": expected datetime, got 'soon'"),
        ({}, UUID, ": expected UUID, got a dict"),
        ("one", Decimal, ": expected Decimal, got 'one'"),
        ("2024-05-06T07:08:09", date, ": expected date, got '2024-05-06T07:08:09'"),
        ({"!": "set", "items": [1, 1]}, set[int], ": the set has a duplicate"),
        ({"!": "set", "items": [[]]}, set[Any], HASH + "'list'"),
        ({"!": "set", "items": {}}, set[Any], ": a 'set' is malformed"),
        ({"!": "set", "items": [], "is": 1}, set[Any], ": a 'set' is malformed"),
        ({"!": "date", "is": 5}, Any, ": a 'date' is malformed"),
        (
            {"!": "date", "is": "soon"},
            Any,
            ": a date is refused by its type: Invalid isoformat string: 'soon'",
        ),
        ({"!": "dict", "items": [[1, 2], [1, 3]]}, dict[int, int], ": the dict has a duplicate"),
        ({"!": 5}, Any, ": 5 is not the name of a type"),
        ({"!": "subprocess:Popen", "args": ["true"]}, Any, f": 'subprocess:Popen' {UNKNOWN}"),
        ({"!": "codec_records:Point", "x": 1}, Any, f": 'codec_records:Point' {UNKNOWN}"),
        ({"!": "codec_records:Colour", "is": "green"}, Colour, GREEN),
        ({"x": 1, "y": "2"}, Point | None, ".y: expected int, got '2'"),
        ({"x": 1}, Empty, ": a codec_records:Empty has no 'x'"),
        ({"number": 0}, Positive, ": a codec_records:Positive is refused by its type: 0 is not positive"),
    ],
)
def test_data_of_another_type_is_refused_with_its_place(data: Any, hint: Any, message: str) -> None:
    kind = make_dataclass("It", [("item", hint)])
    text = text_of(f"{kind.__module__}:It", {"item": data})
    assert refusal(text, types=[kind]) == f"It[0].item{message}"


NAMES = (
    "codec_records codec_records:Nothing codec_records:Point.x codec_records:IDENTITY no_such.module:Point "
    "this:Zen codec_records:\ud800 os:system :__class__"
)


@pytest.mark.parametrize("name", ["", *NAMES.split()])
def test_a_name_of_no_loaded_type_is_refused_with_what_to_do(name: str) -> None:
    assert refusal(text_of(name)) == f"slice type {name!r} {NOT_LOADED}"
    assert "this" not in sys.modules


@pytest.mark.parametrize(
    "name", ["subprocess:Popen", "threading:Thread", "builtins:object", "codec_records:Handmade"]
)
def test_a_class_whose_values_no_snapshot_builds_is_refused(name: str) -> None:
    importlib.import_module(name.partition(":")[0])
    for rows in ((), ({"args": ["true"]},)):
        assert refusal(text_of(name, *rows)) == (
            f"slice type {name!r} is not a record: "
            "a snapshot holds dataclasses, attrs classes and plain values"
        )


def test_a_type_that_no_module_shows_is_passed_in() -> None:
    @dataclass(frozen=True)
    class Local:
        number: int

    snapshot = snapshot_of(Local(1))
    text = snapshot.to_json()
    name = f"{__name__}:test_a_type_that_no_module_shows_is_passed_in.<locals>.Local"
    assert refusal(text) == f"slice type {name!r} {NOT_LOADED}"
    assert Snapshot.from_json(text, types=[Note, Local]) == snapshot
    assert refusal(text, types=[5]) == "types= takes classes, got 5"


def test_a_snapshot_that_another_program_wrote_is_found_by_types() -> None:
    text = NOTE_TEXT.replace("session_records:Note", "__main__:Note")
    assert refusal(text) == f"slice type '__main__:Note' {NOT_LOADED}"
    assert Snapshot.from_json(text, types=[Note]).select_all(Note) == (Note("a"),)
    twice = text.replace('"slices": {', '"slices": {"session_records:Note": [], ')
    assert refusal(twice, types=[Note]) == "session_records:Note appears twice, under two names"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 1}, "snapshot version 1 is not known; this release reads 2"),
        ({"version": 2.0}, "snapshot version 2.0 is not known; this release reads 2"),
        ({"version": None}, "snapshot version None is not known; this release reads 2"),
        ({"session_id": "x y"},
         "session_id: a session id must be a UUID or 1 to 128 ASCII letters, digits and the characters "
         ". _ - :, got 'x y'"),
        ({"session_id": None}, "session_id: expected str, got None"),
        ({"created_at": "soon"}, "created_at: Invalid isoformat string: 'soon'"),
        ({"created_at": 5}, "created_at: expected str, got 5"),
        ({"created_at": None}, "created_at: expected str, got None"),
        ({"created_at": "2024-05-06T07:08:09"}, "created_at: expected a time with a time zone"),
        ({"tags": []}, "tags: expected dict, got a list"),
        ({"tags": None}, "tags: expected dict, got None"),
        ({"tags": {"run": 7}}, "tags: expected an object whose values are text"),
        ({"slices": []}, "slices: expected dict, got a list"),
        ({"slices": None}, "slices: expected dict, got None"),
        ({"slices": {NOTE: {}}}, "Note: expected a list of items, got {}"),
        ({"slices": {NOTE: ["a"]}}, "Note[0]: expected an object with text, got 'a'"),
        ({"slices": {NOTE: [{"text": "a"}, {}]}},
         "Note[1]: a session_records:Note is refused by its type: "
         "Note.__init__() missing 1 required positional argument: 'text'"),
        ({"slices": {"builtins:int": ["1"]}}, "int[0]: expected int, got '1'"),
        ({"slices": {"session_records:Ping": []}},
         "session_records:Ping is an event: event logs are not part of a snapshot"),
        ({"slices": {"session.events:SessionEvent": []}},
         "session.events:SessionEvent is an event: event logs are not part of a snapshot"),
        ({"slices": {"codec_records:Unresolved": [{"item": 1}]}},
         "the snapshot cannot be read: name 'Nowhere' is not defined"),
    ],
)  # fmt: skip
def test_a_document_that_is_wrong_is_refused(change: dict[str, Any], message: str) -> None:
    document = {**DOCUMENT, **change}
    assert refusal(json.dumps(document)) == message
    if None in change.values():  # to lack a part is the same
        assert (
            refusal(json.dumps({key: item for key, item in document.items() if item is not None})) == message
        )


def test_text_that_is_no_json_object_is_refused() -> None:
    assert refusal("[]") == "a snapshot must be a JSON object"
    assert refusal("") == "a snapshot must be JSON text: Expecting value: line 1 column 1 (char 0)"
    for text in ("[", '{"a":'):
        assert refusal(text * 100_000) == "a snapshot must be JSON text: it is nested too deep"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["text", "total", "item", "a"]) | st.text(), inner, max_size=3)
        ),
        max_leaves=10,
    ),
    st.sampled_from(["session_id", "created_at", "tags", "slices", "rows", "whole"]),
)
def test_whatever_json_comes_it_is_read_or_refused(data: Any, place: str) -> None:
    document = {**DOCUMENT, place: data}
    if place == "rows":
        document = {**DOCUMENT, "slices": {NOTE: data, "codec_records:Tree": [data]}}
    try:
        read = Snapshot.from_json(json.dumps(data if place == "whole" else document))
    except SnapshotError:
        return
    assert Snapshot.from_json(read.to_json()) == read


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("session_records:Note", "LONG"),
        ('"version": 2', '"version": [["LONG"]]'),
        ('"session_id": "00000000-0000-4000-8000-000000000001"', '"session_id": "LONG "'),
        ('"created_at": "', '"created_at": "LONG'),
        ('"text": "a"', '"LONG": "a"'),
        ('"text": "a"', '"text": {"LONG": 1}'),
        ('{"text": "a"}', '"LONG"'),
    ],
)
def test_a_message_never_repeats_what_is_long(old: str, new: str) -> None:
    assert old in NOTE_TEXT
    assert len(refusal(NOTE_TEXT.replace(old, new.replace("LONG", "x" * 1_000_000)))) < 2_100


@dataclass(frozen=True)
class Part:
    name: str


@dataclass(frozen=True)
class Whole:
    part: Part


def as_text(value: Any) -> str:
    return str(value)


@attrs.frozen
class Told:
    value: Any = attrs.field(eq=as_text, metadata={"snapshot": as_text})


@attrs.frozen
class Partly:
    text: str
    found: Any = attrs.field(default=None, eq=False, metadata={"stored": False})


def test_a_field_that_is_not_stored_is_not_written_and_has_its_default_when_it_is_read() -> None:
    text = snapshot_of(Partly("a", object())).to_json()
    assert json.loads(text)["slices"] == {f"{__name__}:Partly": [{"text": "a"}]}
    back = Snapshot.from_json(text).select_latest(Partly)
    assert (back, back and back.found) == (Partly("a"), None)


def test_a_field_is_written_as_its_metadata_says_and_compares_so() -> None:
    session = Session()
    session.register_reducer(Whole, append_part(Told), Told)
    session.dispatch(Whole(Part("a")))
    snapshot = session.snapshot()
    back = Snapshot.from_json(snapshot.to_json())
    assert back == snapshot
    assert back.select_latest(Told) == Told("Whole(part=Part(name='a'))")
