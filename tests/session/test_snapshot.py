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
    TypedPoint,
    Unresolved,
    UserId,
    snapshot_of,
    text_of,
)
from hypothesis import given
from hypothesis import strategies as st
from session_records import Count, Note, Ping, note_session, ping, words_of
from syrupy.assertion import SnapshotAssertion

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


WORDS: Any = {"text": "a", "mood": "sad", "words": ()}


@pytest.mark.parametrize(
    "value",
    [
        Point(1, 2),
        Box(Point(1), "secret", (Point(2), Point(3))),
        Tree("a", (Tree("b", (Tree("c"),)), Tree("d")), Tree("e")),
        Tree("a", parent={"name": "b"}),  # type: ignore[arg-type]  # what is refused
        Empty(),
        Private(1),
        Renamed(y=1),
        Derived(2),
        Outer.Inner(1),
        7,
        Colour.RED,
        Sheet(Size(3), Paper.WIDE),
        WHEN,
        Page((Line("a", "glad"), Line("b", "sad", ("x", "y")))),
        Page(sizes=(Turned(1, 2), Turned(3, 4)), gaps=(Empty(), Empty())),
        Page((WORDS, WORDS)),
        Page((Line("a", "glad"), WORDS)),
        Page((Line("a", "glad", "b"), Line("b", "sad", ("b",)))),  # type: ignore[arg-type]  # as above
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_of_a_slice_come_back_equal_and_of_their_types(value: Any) -> None:
    snapshot = snapshot_of(value)
    read = Snapshot.from_json(snapshot.to_json())
    back = read.select_latest(type(value))
    assert (read, type(back), repr(back)) == (snapshot, type(value), repr(value))


def test_a_slice_may_be_of_a_typed_dictionary() -> None:
    snapshot = Snapshot(slices={TypedPoint: (TypedPoint(x=1),)}, session_id=IDENTITY)
    assert Snapshot.from_json(snapshot.to_json()) == snapshot


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
def test_any_identity_comes_back(session_id: UUID | str, created_at: datetime, tags: dict[str, str]) -> None:
    session = Session(session_id=session_id, created_at=created_at, tags=tags)
    assert session.created_at == created_at
    snapshot = Snapshot(slices={}, session_id=session_id, created_at=created_at, tags=session.tags)
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


@attrs.frozen
class Halved:
    """A record that is another when it is built again."""

    number: int

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "number", self.number // 2)


@attrs.frozen
class Valid:
    number: int = attrs.field(validator=attrs.validators.ge(0))


with attrs.validators.disabled():
    INVALID = Valid(-1)

HERE = {"__module__": __name__}  # Python 3.11 says "types"
ONE, OTHER = (make_dataclass("It", [("item", int)], namespace=HERE) for _ in "ab")
Halves = make_dataclass("Halves", [("items", tuple[Halved, ...])], namespace=HERE)
UNWRITTEN: list[object] = [
    *(Loose(timedelta(1)), Loose([1, {"a": 1j}]), Loose({b"a": "a"}), Loose({1j})),
    *(Loose({name: 1j}) for name in ("a" * 80, "a" * 81, "a\n")),
    *(Loose(Point), Loose(...), Loose([1.0, float("-inf")])),
    Box(Point(1), points=(Point(2), Loose(object()))),  # type: ignore[arg-type]  # which a program may do
    *(Holder(Point(1)), object(), Note(5), Tree("a", ["b"])),  # type: ignore[arg-type]  # as above
    *(Checked(0), Unresolved(1), Alone(2), Halved(8), Halves((Halved(8),)), INVALID),
]
UNWRITTEN_PARTS: list[dict[str, Any]] = [
    {"created_at": datetime(2024, 5, 6)},
    *({"tags": tags} for tags in ({"run": 7}, {7: "run"}, {"run": b"7"})),
    {"slices": {ONE: (ONE(1),), OTHER: (OTHER(2),)}},
]


def test_what_would_not_read_back_equal_is_refused(snapshot: SnapshotAssertion) -> None:
    parts = [Snapshot(**{"slices": {}, "session_id": IDENTITY, **each}) for each in UNWRITTEN_PARTS]
    taken = [*map(snapshot_of, UNWRITTEN), *parts]
    assert "\n".join(words_of(SnapshotError, each.to_json) for each in taken) == snapshot


def test_a_snapshot_of_an_earlier_format_of_a_record_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Note, "RECORD_FORMAT", 2, raising=False)
    assert refusal(NOTE_TEXT) == (
        "Note[0]: session_records:Note is stored in format 1; this program has format 2: use the release "
        "that wrote it, or rename the current class"
    )


def test_a_type_can_refuse_items_that_no_session_holds() -> None:
    assert refusal(text_of("codec_records:Checked", {"number": 0})) == "Checked: 0 is not positive"
    session = Session()
    session.register_reducer(Checked, append)
    message = "the slice Checked is refused by its type: 0 is not positive"
    assert words_of(ReducerError, session.dispatch, Checked(0)) == message
    assert session.version == 0
    Session().rollback(snapshot_of(Checked(0)))


NOTE = "session_records:Note"
NOTE_TEXT = snapshot_of(Note("a")).to_json()
NOT_LOADED = "is not loaded: import its module first, or pass the class in types="


def refusal(text: Any, **given: Any) -> str:
    assert issubclass(SnapshotError, SessionError) and issubclass(SnapshotError, ValueError)
    return words_of(SnapshotError, Snapshot.from_json, text, **given)


RIGHT = {"text": "a", "mood": "glad", "words": ["w"]}
WRONG: list[tuple[Any, ...]] = [  # data for a type hint
    (int, "1", True, 1.0),
    (bool, 1),
    (float, True),
    (str, None),
    (Literal["on", "off"], "up"),
    (Literal["on"] | None, 5),
    (int | str, 1.5),
    (UserId, 5),
    (Annotated[int, "a note"], "x"),
    (dict, [1]),
    (datetime, "soon"),
    (UUID, {}),
    (Decimal, "one"),
    (date, "2024-05-06T07:08:09"),
    (set[int], {"!": "set", "items": [1, 1]}),
    (set[Any], {"!": "set", "items": [[]]}, {"!": "set", "items": {}}, {"!": "set", "items": [], "is": 1}),
    (dict[int, int], {"!": "dict", "items": [[1, 2], [1, 3]]}),
    (Any, {"!": "date", "is": 5}, {"!": "date", "is": "soon"}, {"!": 5}),
    (Any, {"!": "subprocess:Popen", "args": ["true"]}, {"!": "codec_records:Point", "x": 1}),
    (Colour, {"!": "codec_records:Colour", "is": "green"}),
    (Point | None, {"x": 1, "y": "2"}),
    (Empty, {"x": 1}),
    (Positive, {"number": 0}),
    (
        tuple[Line, ...],
        *([RIGHT, RIGHT | line, RIGHT] for line in ({"mood": "mad"}, {"text": 1}, {"more": 1})),
    ),
    (tuple[Line, ...], [RIGHT, {"mood": "sad", "words": []}, RIGHT]),
]


def test_data_of_another_type_is_refused_with_its_place(snapshot: SnapshotAssertion) -> None:
    lines = list[str]()
    for hint, *wrong in WRONG:
        kind = make_dataclass("It", [("item", hint)])
        texts = [text_of(f"{kind.__module__}:It", {"item": data}) for data in wrong]
        lines += [refusal(text, types=[kind]) for text in texts]
    assert "\n".join(lines) == snapshot


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


PARTS: dict[str, list[Any]] = {
    "version": [1, 2.0, None],
    "session_id": ["x y", None],
    "created_at": ["soon", 5, None, "2024-05-06T07:08:09"],
    "tags": [[], None, {"run": 7}],
    "slices": [
        *([], None, {NOTE: {}}, {NOTE: ["a"]}, {NOTE: [{"text": "a"}, {}]}, {"builtins:int": ["1"]}),
        *({"session_records:Ping": []}, {"session.events:SessionEvent": []}),
        {"codec_records:Unresolved": [{"item": 1}]},
    ],
}


def test_a_document_that_is_wrong_is_refused(snapshot: SnapshotAssertion) -> None:
    lines = list[str]()
    for name, items in PARTS.items():
        for item in items:
            lines.append(refusal(json.dumps({**DOCUMENT, name: item})))
            if item is None:  # to lack a part is the same
                lacking = {key: part for key, part in DOCUMENT.items() if key != name}
                assert refusal(json.dumps(lacking)) == lines[-1]
    assert "\n".join(lines) == snapshot


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


def as_text(value: Any) -> str:
    return str(value)


@attrs.frozen
class Told:
    value: Any = attrs.field(eq=as_text, metadata={"snapshot": as_text})


@attrs.frozen
class Partly:
    text: str
    found: Any = attrs.field(default=None, eq=False, metadata={"stored": False})
    more: str | None = None
    is_new: bool = False
    is_known: bool = True


def test_a_field_that_is_not_stored_or_has_its_default_is_not_written() -> None:
    text = snapshot_of(Partly("a", object())).to_json()
    assert json.loads(text)["slices"] == {f"{__name__}:Partly": [{"text": "a"}]}
    back = Snapshot.from_json(text).select_latest(Partly)
    assert (back, back and back.found) == (Partly("a"), None)


def test_a_field_is_written_as_its_metadata_says_and_compares_so() -> None:
    session = Session()
    session.register_reducer(Note, append_part(Told), Told)
    session.dispatch(Note("a"))
    snapshot = session.snapshot()
    back = Snapshot.from_json(snapshot.to_json())
    assert back == snapshot
    assert back.select_latest(Told) == Told("Note(text='a')")
