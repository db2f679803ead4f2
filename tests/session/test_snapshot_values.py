"""Every type of value that a snapshot carries, and what reading costs."""

from __future__ import annotations

import json
import sys
import tracemalloc
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Annotated, Any, NewType, Required, TypedDict, get_type_hints
from uuid import UUID

import pytest
import typing_extensions
from hypothesis import given
from hypothesis import strategies as st
from session_records import Note, note_session

from session import Session, Snapshot, SnapshotError, append, replace_latest

IDENTITY = UUID("00000000-0000-4000-8000-000000000001")
UserId = NewType("UserId", str)
Amount = typing_extensions.TypeAliasType("Amount", Decimal | None)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1


class Point(TypedDict):
    x: int
    y: typing_extensions.NotRequired[Decimal]


class Loose(TypedDict, total=False):
    name: Required[str]
    days: set[date]


@dataclass(frozen=True)
class Everything:
    days: frozenset[date] = frozenset()
    words: set[str] = field(default_factory=set)
    any_set: AbstractSet[int] = frozenset()
    bare_set: frozenset = frozenset()  # type: ignore[type-arg]
    at: time = time()
    price: Decimal = Decimal()
    amount: Amount = None
    user: UserId = UserId("")
    point: Point = field(default_factory=lambda: Point(x=0))
    loose: Loose = field(default_factory=lambda: Loose(name=""))
    by_number: dict[int, str] = field(default_factory=dict)
    by_float: dict[float, str] = field(default_factory=dict)
    by_flag: dict[bool, str] = field(default_factory=dict)
    by_day: Mapping[date, Point] = field(default_factory=dict)
    by_id: dict[UUID, int] = field(default_factory=dict)
    by_colour: dict[Colour, int] = field(default_factory=dict)
    by_level: dict[Level, int] = field(default_factory=dict)
    by_user: dict[UserId, int] = field(default_factory=dict)
    by_number_or_none: dict[int | None, int] = field(default_factory=dict)
    by_price: dict[Decimal, set[int]] = field(default_factory=dict)


EVERYTHING = Everything(
    days=frozenset({date(2024, 5, 6), date(1, 1, 1)}),
    words={"b", "a", "\u00e9"},
    any_set=frozenset({3, -1, 20}),
    bare_set=frozenset({1, "a"}),
    at=time(7, 8, 9, 10, tzinfo=UTC),
    price=Decimal("1.50"),
    amount=Decimal("-0.1e-7"),
    user=UserId("u1"),
    point=Point(x=1, y=Decimal("2.0")),
    loose=Loose(name="n", days={date(2024, 5, 6)}),
    by_number={1: "a", -20: "b", 10**30: "c"},
    by_float={1.5: "a", -0.25: "b", 1e300: "c"},
    by_flag={True: "yes", False: "no"},
    by_day={date(2024, 5, 6): Point(x=1)},
    by_id={IDENTITY: 1},
    by_colour={Colour.RED: 1, Colour.BLUE: 2},
    by_level={Level.LOW: 1},
    by_user={UserId("u1"): 1},
    by_number_or_none={1: 1, None: 2},
    by_price={Decimal("1.50"): {1, 2}},
)


def snapshot_of(value: object) -> Snapshot:
    return Snapshot(slices={type(value): (value,)}, session_id=IDENTITY)


def round_trip(value: Any) -> Any:
    snapshot = snapshot_of(value)
    read = Snapshot.from_json(snapshot.to_json(), types=[type(value)])
    assert read == snapshot
    return read.select_latest(type(value))


def test_every_type_of_value_comes_back_equal_and_of_its_type() -> None:
    back = round_trip(EVERYTHING)
    for name in get_type_hints(Everything):
        assert type(getattr(back, name)) is type(getattr(EVERYTHING, name)), name
    assert str(back.price) == "1.50"
    assert [type(key) for key in back.by_colour] == [Colour, Colour]
    assert round_trip(Everything()) == Everything()


def test_a_set_is_written_alike_in_every_process() -> None:
    words = frozenset(map(str, range(100)))
    written = json.loads(snapshot_of(Everything(bare_set=words)).to_json())
    (row,) = written["slices"][f"{__name__}:Everything"]
    assert row["bare_set"] == sorted(words, key=json.dumps)
    assert row["by_number_or_none"] == {}


@given(
    st.builds(
        Everything,
        days=st.frozensets(st.dates()),
        words=st.sets(st.text()),
        any_set=st.frozensets(st.integers()),
        at=st.times(),
        price=st.decimals(allow_nan=False),
        by_number=st.dictionaries(st.integers(), st.text()),
        by_float=st.dictionaries(st.floats(allow_nan=False, allow_infinity=False), st.text()),
        by_day=st.dictionaries(st.dates(), st.fixed_dictionaries({"x": st.integers()})),
        by_price=st.dictionaries(st.decimals(allow_nan=False, allow_infinity=False), st.sets(st.integers())),
    )
)
def test_any_such_value_comes_back_equal(value: Everything) -> None:
    assert round_trip(value) == value


@dataclass(frozen=True)
class Odd:
    item: Any = None
    keys: dict[str | int, int] = field(default_factory=dict)
    point: Point | None = None
    user: Annotated[set[int] | list[int], "either"] = field(default_factory=list)
    day: date | None = None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Odd(item={1}), "Odd does not read back equal: give its fields exact type hints"),
        (Odd(item=Decimal(1)), "Odd does not read back equal: give its fields exact type hints"),
        (Odd(keys={1: 1}), "Odd does not read back equal: give its fields exact type hints"),
        (Odd(user=[1]), "Odd does not read back equal: give its fields exact type hints"),
        (Odd(day=datetime(2024, 5, 6, 7, tzinfo=UTC)),
         "Odd[0].day: expected date, got '2024-05-06T07:00:00+00:00'"),
        (Odd(point={"x": 1, "z": 2}), "Odd[0].point: expected an object with x, y"),  # type: ignore[arg-type]
        (Odd(point={"y": Decimal(1)}), "Odd[0].point: expected an object with x, y"),  # type: ignore[arg-type]
        (Odd(item=float("nan")), "Odd[0].item: nan has no JSON form"),
        (Odd(keys={1: 1, "1": 2}), "Odd[0].keys: two keys are written as '1'"),
    ],
)  # fmt: skip
def test_a_value_that_would_come_back_as_another_is_refused(value: object, message: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        snapshot_of(value).to_json()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"created_at": datetime(2024, 5, 6)}, "created_at: expected a time with a time zone"),
        ({"tags": {"run": 7}}, "tags.run: expected str, got 7"),
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


@given(
    st.text("abcXYZ019._-:", min_size=1, max_size=128) | st.uuids(),
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


def test_an_empty_slice_of_a_type_that_no_snapshot_builds_is_refused() -> None:
    session = Session()
    session.register_reducer(Note, lambda _slice, _event: (), object)
    session.dispatch(Note("a"))
    with pytest.raises(SnapshotError) as caught:
        session.snapshot().to_json()
    assert str(caught.value) == (
        "slice type 'builtins:object' is not a record: "
        "a snapshot holds dataclasses, attrs classes and plain values"
    )


def test_a_snapshot_that_another_program_wrote_is_found_by_types() -> None:
    text = snapshot_of(Note("a")).to_json().replace("session_records:Note", "__main__:Note")
    with pytest.raises(SnapshotError) as caught:
        Snapshot.from_json(text)
    assert str(caught.value) == (
        "slice type '__main__:Note' is not loaded: __main__ has no such class; pass the class in types="
    )
    assert Snapshot.from_json(text, types=[Note]).select_all(Note) == (Note("a"),)
    twice = text.replace('"slices": {', '"slices": {"session_records:Note": [], ')
    with pytest.raises(SnapshotError) as caught:
        Snapshot.from_json(twice, types=[Note])
    assert str(caught.value) == "session_records:Note is there twice, under two names"


class TestBounds:
    def test_a_key_that_is_there_twice_is_refused(self) -> None:
        text = snapshot_of(Note("a")).to_json()
        for old, new, key in (
            ('"version": 1', '"version": 2, "version": 1', "version"),
            ('"text": "a"', '"text": "b", "text": "a"', "text"),
            ('"slices": {', '"slices": {"session_records:Note": [], ', "session_records:Note"),
            ('"tags": {', '"tags": {"a": "1", "a": "2"', "a"),
        ):
            with pytest.raises(SnapshotError) as caught:
                Snapshot.from_json(text.replace(old, new))
            assert str(caught.value) == f"a snapshot must be JSON text: the key '{key}' is in an object twice"

    @pytest.mark.parametrize("number", ["1e999", "-1e999"])
    def test_a_number_too_large_for_a_float_is_refused(self, number: str) -> None:
        text = Session().snapshot().to_json().replace('"tags": {}', f'"tags": {{"a": {number}}}')
        with pytest.raises(SnapshotError) as caught:
            Snapshot.from_json(text)
        assert str(caught.value) == f"a snapshot must be JSON text: {number} is too large"

    @pytest.mark.parametrize(
        ("old", "new"),
        [
            ("session_records:Note", "LONG"),
            ("session_records:Note", "LONG:LONG"),
            ("session_records:Note", "session_records:LONG"),
            ('"version": 1', '"version": "LONG"'),
            ('"version": 1', '"version": [["LONG"]]'),
            ('"version": 1', '"version": 1, "LONG": 1, "LONG": 1'),
            ('"session_id": "00000000-0000-4000-8000-000000000001"', '"session_id": "LONG "'),
            ('"created_at": "', '"created_at": "LONG'),
            ('"tags": {}', '"tags": {"LONG": 1}'),
            ('"text": "a"', '"LONG": "a"'),
            ('"text": "a"', '"text": {"LONG": 1}'),
            ('{"text": "a"}', '"LONG"'),
            ('"tags": {}', '"tags": {"a": 0.LONG}'),
            ('"tags": {}', '"tags": {"a": 1LONGe999}'),
        ],
    )
    def test_a_message_never_repeats_what_is_long(self, old: str, new: str) -> None:
        long = ("7" if ('"a": ' in new and "LONG}" in new) or "1LONG" in new else "x") * 1_000_000
        text = snapshot_of(Note("a")).to_json()
        assert old in text
        with pytest.raises(SnapshotError) as caught:
            Snapshot.from_json(text.replace(old, new.replace("LONG", long)))
        assert len(str(caught.value)) < 2_100

    def test_what_a_record_says_of_a_long_value_is_cut(self) -> None:
        @dataclass(frozen=True)
        class Loud:
            text: str

            def __post_init__(self) -> None:
                if len(self.text) > 5:
                    raise ValueError(self.text)

        text = snapshot_of(Loud("a")).to_json().replace('"a"', f'"{"x" * 1_000_000}"')
        with pytest.raises(SnapshotError) as caught:
            Snapshot.from_json(text, types=[Loud])
        assert str(caught.value)[-10:] == "xxxxxxx..."
        assert len(str(caught.value)) == 2_003

    def test_arguments_that_are_quoted_are_cut(self) -> None:
        long: Any = "x" * 1_000_000
        for make in (
            lambda: Session(tags={"a": 1, "b": long}),  # type: ignore[dict-item]
            lambda: Session(history=long),
            lambda: Session(parent=long),
            lambda: Session(session_id=long),
            lambda: Session().register_reducer(long, append),
            lambda: Session().register_reducer(Note, long),
            lambda: Session().register_view(Note, long),
            lambda: Session().bus.subscribe(Note, long),
            lambda: Session().bus.subscribe(long, print),
        ):
            with pytest.raises((TypeError, ValueError)) as caught:
                make()
            assert len(str(caught.value)) < 400

    @pytest.mark.parametrize("innermost", [1, "text", None], ids=["one member", "the other", "neither"])
    def test_unions_inside_unions_are_tried_once_each(self, innermost: object) -> None:
        row: Any = {"left": None, "right": innermost}
        for _ in range(60):
            row = {"left": row, "right": 1}
        text = document_of("Second", row)
        calls = 0

        def count(_frame: object, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event == "call"

        sys.setprofile(count)
        try:
            if innermost is None:
                with pytest.raises(SnapshotError):
                    Snapshot.from_json(text)
            else:
                Snapshot.from_json(text)
        finally:
            sys.setprofile(None)
        assert calls < 10_000

    def test_the_place_of_an_item_costs_nothing_until_a_message_names_it(self) -> None:
        text = document_of("Nested", {"items": {"y" * 1_000_000: [1] * 3_000}})
        tracemalloc.start()
        try:
            Snapshot.from_json(text)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 10_000_000


def document_of(kind: str, row: object) -> str:
    """A snapshot's text with one item of a type of this module."""
    document = json.loads(snapshot_of(Note("a")).to_json())
    return json.dumps({**document, "slices": {f"{__name__}:{kind}": [row]}})


@dataclass(frozen=True)
class First:
    left: First | Second | None
    right: str


@dataclass(frozen=True)
class Second:
    left: First | Second | None
    right: int


@dataclass(frozen=True)
class Nested:
    items: dict[str, list[int]]


def test_snapshots_that_differ_in_their_tags_alone_are_equal() -> None:
    one, two = Session(tags={"run": "7"}).snapshot(), Session(tags={"run": "8"}).snapshot()
    assert one == two
    assert Snapshot.from_json(one.to_json()).tags == {"run": "7"}


def test_a_type_can_refuse_items_that_no_session_holds() -> None:
    session = note_session()
    session.register_reducer(Positive, replace_latest)
    session.dispatch(Positive(1))
    text = session.snapshot().to_json()
    assert Snapshot.from_json(text) == session.snapshot()
    with pytest.raises(SnapshotError) as caught:
        Snapshot.from_json(text.replace('{"number": 1}', '{"number": 0}'))
    assert str(caught.value) == "Positive: 0 is not positive"
    session.dispatch(Positive(0))
    with pytest.raises(SnapshotError) as caught:
        session.snapshot().to_json()
    assert str(caught.value) == "Positive: 0 is not positive"
    session.rollback(session.snapshot())


@dataclass(frozen=True)
class Positive:
    number: int

    @staticmethod
    def check_slice(items: tuple[Positive, ...]) -> None:
        for item in items:
            if item.number < 1:
                raise ValueError(f"{item.number} is not positive")
