"""Values of every kind in every store: what comes back is equal, or it is refused when it is dispatched."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import partial
from ipaddress import ip_address
from itertools import count, product
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import attrs
import pytest
from codec_records import Checked, Colour, Level, TypedPoint, Unresolved
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, field_serializer
from session_records import Note, Thing, collect_from_here, texts, words_of
from store_places import SETUP, MemoryPlace, Place, open_session, refused

from planning import Plan
from planning.plan.commands import SetupPlan
from session import Session, SessionEvent, SnapshotError, StoreError, ToolInvoked, append, stored
from session.changes import DEEPEST
from session.json_form import JsonForms, JsonTooLarge, NoJsonForm, field_names, json_form
from session.stores import MemoryStore


@dataclass(frozen=True, slots=True)
class Inner:
    name: str
    when: datetime | None = None


NO_FORM = "has no JSON form: use text, numbers, lists or records"
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=-3, minutes=-30))])
# The ISO text of a time has no fold; it is no part of what is compared.
MOMENTS = st.datetimes(timezones=st.none() | ZONES).map(lambda when: when.replace(fold=0))
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(10**30, 10**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.sampled_from(["!", "tuple", "same", "\x00", "\ud800", "\u2028", "é", "e\u0301"]),
    MOMENTS,
    st.dates(),
    st.times().map(lambda when: when.replace(fold=0)),
    st.uuids(),
    st.sampled_from(Colour),
    st.just(Level.LOW),
    st.builds(Inner, st.text(), st.none() | MOMENTS),
)
KEYS = st.one_of(
    st.text(), st.sampled_from(["!", "items", "is"]), st.integers(), st.none(), st.tuples(st.text())
)
HASHABLE = st.one_of(st.text(), st.integers(), st.tuples(st.integers(), st.text()), st.sampled_from(Colour))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(KEYS, inner, max_size=4),
        st.sets(HASHABLE, max_size=4),
        st.frozensets(HASHABLE, max_size=4),
        st.builds(Thing, inner),
    ),
    max_leaves=12,
)


# Its field has no type hint.
Said: Any = attrs.make_class("Said", {"what": attrs.field(default=None)}, bases=(SessionEvent,), frozen=True)


def of_values(place: Place) -> Session:
    session = Session(session_id="values", store=place.open())
    session.register_reducer(Thing, append)
    session.register_types(Inner, Colour, Level, Said)
    return session


def strict(value: object) -> str:
    """A text that is the same for values of the same types alone."""
    if isinstance(value, (set, frozenset)):
        return f"{type(value).__name__}({sorted(map(strict, value))})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{strict(key)}: {strict(item)}' for key, item in value.items())}}}"
    if isinstance(value, (list, tuple)):
        return f"{type(value).__name__}({[strict(item) for item in value]})"
    if isinstance(value, Thing):
        return f"Thing({strict(value.value)})"
    return f"{type(value).__name__} {value!r}"


@given(values=st.lists(VALUES, min_size=1, max_size=5))
def test_what_has_a_json_form_reads_back_as_it_was(values: list[Any]) -> None:
    place = MemoryPlace(Path())
    check_that_values_come_back(place, values)


def check_that_values_come_back(place: Place, values: list[Any]) -> None:
    """Each by itself, and all in an event: equal, and of the same types."""
    session = of_values(place)
    for value in values:
        session.dispatch(Thing(value))
    session.publish(Said(values))
    there = of_values(place)
    found = [thing.value for thing in there.select_all(Thing)]
    assert (list(map(strict, found)), found) == (list(map(strict, values)), values)
    (said,) = there.select_all(Said)
    assert strict(said.what) == strict(values)
    assert [change.events for change in there.history()] == [*((Thing(value),) for value in values), (said,)]
    assert place.open().verify("values") == len(values) + 1


def test_odd_values_and_plain_ones_come_back_as_they_were(place: Place) -> None:
    odd = [
        "\ud800 alone",
        "\x00",
        "\u2028\u2029\ufeff",
        10**4000,
        -(10**400),
        {"!": "tuple", "items": []},
        {"!": "planning.model:Plan"},
        {2.5: {}},
        {"a" * 10_000: "b" * 100_000},
        1e308,
        5e-324,
        -0.0,
    ]
    check_that_values_come_back(place, odd)


@pytest.mark.parametrize(
    "value",
    [
        *(5, 0.5, True, "a", [1], (1, 2), {"a": 1}, {1: 2}, {1}, frozenset({1}), UUID(int=7)),
        *(date(2024, 5, 6), time(7, 8), datetime(2024, 5, 6, tzinfo=UTC), Decimal("1.50"), Level.LOW),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_plain_value_with_a_reducer_is_reduced_again_where_it_is_read(value: object) -> None:
    place, kind = MemoryPlace(Path()), type(value)

    def opened() -> Session:
        session = Session(session_id="a", store=place.open())
        session.register_reducer(kind, append)
        return session

    opened().dispatch(value)
    opened().publish(ToolInvoked("tool", None, None, value))
    change, _ = place.open().changes("a", 1, 2)
    assert ('[{"!":"plain","is":' in change.text) is (kind in {int, float, bool, str, list})
    (first, second) = opened().select_all(kind)
    assert (first, type(first), second, type(second)) == (value, kind, value, kind)


TOO_DEEP = "nested more than 128 levels deep"


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [DEEPEST - 3, DEEPEST - 2, 100_000])
def test_what_can_be_written_can_be_read_however_deep_it_is(place: Place, depth: int) -> None:
    session = of_values(place)
    collect_from_here()  # what earlier tests left is not finalized where the stack is at its end
    if depth > DEEPEST - 3:  # with the levels that are around it
        thing, said = Thing(nested(depth)), Said(nested(depth))
        for work in (partial(session.dispatch, thing), partial(session.publish, said)):
            assert refused(work).endswith(("nested too deep", TOO_DEEP))
        assert (session.version, session.select_all(Thing)) == (0, ())
        return
    session.dispatch(Thing(nested(depth)))
    assert place.open().verify("values") == 1
    value = of_values(place).select_all(Thing)[0].value
    for _ in range(depth):
        (value,) = value
    assert value == 1


def test_what_has_no_json_form_is_refused_by_name_and_changes_nothing(place: Place) -> None:
    session = open_session(place.open())
    session.register_reducer(Thing, append)
    session.dispatch(Note("before"))
    with pytest.raises(StoreError) as error, session.transaction() as transaction:
        transaction.dispatch(Note("lost"))
        transaction.dispatch(Thing([{"a": [1j]}]))
    assert (str(error.value), error.value.outcome) == (f"Thing.value[0].a[0]: a complex {NO_FORM}", "refused")
    assert (session.version, texts(session), session.select_all(Thing)) == (1, ["before"], ())
    session.dispatch(Note("after"))
    assert (place.open().verify("run-7"), texts(open_session(place.open()))) == (2, ["before", "after"])


class Unwritten:
    """An object that has no JSON form, but a text."""

    def __str__(self) -> str:
        return "unwritten"


class Spelled:
    """An object that has no JSON form, but a repr of its own."""

    def __repr__(self) -> str:
        return "spelled"


class SpelledToo(Spelled):
    """One whose repr is its base's."""


@dataclass
class Stranger:
    name: str
    inner: Any = None


class Shade(Enum):
    DARK = "dark"


class Pair(NamedTuple):
    one: int
    two: int


class Model(BaseModel):
    name: str

    @field_serializer("name", when_used="json")
    def _shout(self, name: str) -> str:
        return name.upper()


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ([Spelled(), SpelledToo()], ["spelled", "spelled"]),
        (Path("a/b"), "a/b"),
        ([timedelta(hours=1), b"x", 1j, float("inf")], ["1:00:00", "x", "1j", "inf"]),
        ({"given": Unwritten()}, {"given": "unwritten"}),
        ({Path("a"), "a"}, ["a", "a"]),
        (frozenset({Inner("x")}), [{"name": "x", "when": None}]),
        ({Path("a"): 1, "a": 2}, [["a", 1], ["a", 2]]),
        ({(Path("a"),): 1}, [[("a",), 1]]),
        ({Colour.RED}, ["red"]),
        (MappingProxyType({"a": 1, "b": [2]}), {"a": 1, "b": [2]}),
        (MappingProxyType({"!": 1, 2: "x"}), {"!": 1, 2: "x"}),
        (Stranger("x", Stranger("y")), {"name": "x", "inner": {"name": "y", "inner": None}}),
        (Model(name="x"), {"name": "X"}),
        (OrderedDict(a=(1,)), {"a": (1,)}),
        (Shade.DARK, "dark"),
        ({"deep": [Stranger("x", MappingProxyType({"a": Model(name="z")}))]},
         {"deep": [{"name": "x", "inner": {"a": {"name": "Z"}}}]}),
    ],
)  # fmt: skip
def test_what_an_event_tells_keeps_its_fields_or_its_text_where_its_type_is_not_registered(
    value: object, kept: object
) -> None:
    place = MemoryPlace(Path())
    session, there = (Session(session_id="a", store=place.open()) for _ in "ab")
    session.publish(Said(value))
    session.publish(ToolInvoked("search", value, {"found": value}))
    there.register_types(Said)
    there.refresh()
    (said,), (event,) = there.select_all(Said), there.select_all(ToolInvoked)
    assert strict([said.what, event.params, event.result]) == strict([kept, kept, {"found": kept}])
    assert [change.events for change in there.history()] == [(said,), (event,)]


def test_who_made_a_change_is_text(place: Place) -> None:
    session = open_session(place.open())
    for name in ("actor", "call_id"):
        given: Any = {name: 5}
        with pytest.raises(StoreError) as error, session.transaction(**given) as transaction:
            transaction.dispatch(Note("never"))
        assert str(error.value) == f"the change cannot be stored: its {name} must be text, got 5"
    assert (session.version, texts(session)) == (0, [])


def test_an_event_with_what_has_no_text_of_its_own_is_refused_by_name(place: Place) -> None:
    session = open_session(place.open())
    for value, name in ((object(), "object"), ({"at": [print]}, "builtin_function_or_method")):
        where = ".what" + (".at[0]" if isinstance(value, dict) else "")
        assert refused(partial(session.publish, Said(value))) == f"Said{where}: a {name} {NO_FORM}"
    assert session.version == 0


def test_an_event_with_a_set_of_a_type_that_is_not_registered_there_can_be_read(place: Place) -> None:
    of_values(place).publish(Said({Colour.RED}))
    there = open_session(place.open(), "values")
    there.register_types(Said)
    assert there.select_all(Said)[0].what == [{"is": "red"}]


def test_an_event_with_a_record_that_its_type_refuses_by_now_has_its_fields(place: Place) -> None:
    _registered(of_values(place)).publish(Said(Even(2)))
    assert _registered(of_values(place)).select_all(Said)[0].what == {"number": 3}


def test_a_class_whose_hints_cannot_be_read_can_be_registered_and_its_values_are_refused() -> None:
    session = of_values(MemoryPlace(Path()))
    session.register_types(Unresolved)
    assert refused(lambda: session.dispatch(Thing(Unresolved(1)))) == (
        "Thing.value: a codec_records:Unresolved cannot be written here: give its field an exact type hint, "
        "or pass the class to session.register_types"
    )


# Values of a program's own


@dataclass(frozen=True)
class Make:
    what: str


@dataclass(frozen=True)
class Even:
    """A record that is another each time that it is built, and refused then."""

    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError(f"{self.number} is odd")
        object.__setattr__(self, "number", self.number + 1)


def increased(count: int) -> int:
    return count + 1


@attrs.frozen
class Raised:
    """A record that is another each time that it is built."""

    count: int = attrs.field(converter=increased)


@attrs.frozen
class Counted:
    """A record with a field that its constructor does not take."""

    count: int = attrs.field(factory=count().__next__, init=False)


@dataclass(frozen=True)
class Uncompared:
    """A record with a field that its constructor does not take, and that is not compared."""

    count: int = field(default_factory=count().__next__, init=False, compare=False)


@dataclass(frozen=True)
class Due:
    at: datetime | None = None
    by: datetime | Inner | None = None


TOO_LONG = (
    "Exceeds the limit (4300 digits) for integer string conversion; use sys.set_int_max_str_digits() to "
    "increase the limit"
)
NOT_A_TIME = "Due.at: expected datetime.datetime | None, got "
MADE: dict[str, tuple[Callable[[], object], str]] = {
    "nan": (lambda: Thing(float("nan")), f"Thing.value: nan {NO_FORM}"),
    "another type": (lambda: Make("x"), "the slice Thing contains Make(what='x'), which is not one"),
    "a number": (lambda: 5, "the slice Thing contains 5, which is not one"),
    "a long number": (lambda: Thing(10**5_000), f"the change cannot be stored: {TOO_LONG}"),
    "deep": (lambda: Thing(nested(200)), f"the change cannot be stored: it is {TOO_DEEP}"),
    "very deep": (lambda: Thing(nested(50_000)), "an item of the slice Thing is nested too deep"),
    "a time as text": (lambda: Due("soon"), f"{NOT_A_TIME}'soon'"),  # type: ignore[arg-type]
    "a time or a record as text": (
        lambda: Due(by="soon"),  # type: ignore[arg-type]  # what is refused
        f"Due.by: expected datetime.datetime | {__name__}.Inner | None, got 'soon'",
    ),
    "a time as a number": (lambda: Due(5), f"{NOT_A_TIME}5"),  # type: ignore[arg-type]
}


def _registered(session: Session) -> Session:
    for kind in (Thing, Counted, Raised, Even, Due):
        session.register_reducer(kind, append)
    return session


@pytest.mark.parametrize("what", MADE)
def test_an_item_that_could_not_be_read_back_is_refused_before_a_checkpoint_holds_it(
    monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(stored, "CHECKPOINT", 2)
    place, (make, message) = MemoryPlace(Path()), MADE[what]
    session = _registered(Session(session_id="a", store=place.open()))
    kind = Due if what.startswith("a time") else Thing
    session.register_reducer(Make, lambda items, _: (*items, make()), kind)
    session.dispatch(Thing("1"))
    for _ in range(4):
        with pytest.raises(StoreError) as caught:
            session.dispatch(Make(what))
        assert (str(caught.value), caught.value.outcome) == (message, "refused")
    assert (session.version, session.select_all(Thing), session.select_all(Due)) == (1, (Thing("1"),), ())
    for number in range(4):
        session.dispatch(Thing(number))
    there = _registered(Session(session_id="a", store=place.open()))
    assert there.select_all(Thing) == session.select_all(Thing)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Counted(), "its count would differ when it is read back"),
        (Raised(2), "its count would differ when it is read back"),
        (Even(2), "its type refuses it: 3 is odd"),
    ],
    ids=["a field that is not given", "another each time", "refused"],
)
def test_a_record_that_is_not_built_again_as_it_is_is_refused(value: object, message: str) -> None:
    session = _registered(Session(session_id="a", store=MemoryStore()))
    name = f"{type(value).__module__}:{type(value).__qualname__}"
    assert refused(lambda: session.dispatch(value)) == (
        f"{type(value).__qualname__}: a {name} cannot be stored: {message}"
    )
    assert session.version == 0


def test_a_field_that_is_not_compared_may_differ_when_it_is_read_back() -> None:
    store = MemoryStore()
    session = Session(session_id="a", store=store)
    session.register_reducer(Uncompared, append)
    session.dispatch(Uncompared())
    assert session.select_all(Uncompared) == (Uncompared(),)
    assert store.verify("a") == 1


# JSON forms


def test_the_json_form_of_keys_and_the_bytes_that_forms_may_take() -> None:
    assert json_form({Shade.DARK: 1, (1, 2): 2, 5: 3}) == {"dark": 1, "(1, 2)": 2, "5": 3}
    records: list[object] = [Model(name="x"), Stranger("x"), Raised(1), Pair(1, 2), 5, []]
    assert [field_names(each) for each in records] == [
        *(("name",), ("name", "inner"), ("count",), ("one", "two"), None, None)
    ]
    texts = [date(2024, 5, 6), time(7, 8), UTC, UUID(int=7), Decimal("1.50"), Fraction(1, 3)]
    assert json_form([*texts, ip_address("10.0.0.1"), ip_address("::1")], strict=True) == [
        *("2024-05-06", "07:08:00", "UTC", "00000000-0000-0000-0000-000000000007", "1.50", "1/3"),
        *("10.0.0.1", "::1"),
    ]
    assert json_form([10**3_000 - 1, 10**3_000]) == [10**3_000 - 1, hex(10**3_000)]
    assert json_form([{10, 9}, {float("nan"), 1e300}, {"b", 5}]) == [[9, 10], ["nan", 1e300], ["b", 5]]
    measured = JsonForms(strict=False, limit=1_000)
    assert measured.of(bytearray(b"a\xff")) == r"a\xff"
    assert JsonForms(strict=False, limit=measured.spent).of(bytearray(b"a\xff")) == r"a\xff"
    forms = JsonForms(strict=True, limit=1_000)
    assert (forms.of(["x"]), 0 < forms.spent < 1_000) == (["x"], True)
    with pytest.raises(JsonTooLarge, match=r"^is too large$"):
        forms.of(["x" * 1_000])
    for numbers in (range(1_000), [None, 0.5, True] * 400):
        forms = JsonForms(strict=True, limit=100_000)
        assert (forms.of([*numbers]), 16_000 <= forms.spent < 20_000) == ([*numbers], True)
    with pytest.raises(NoJsonForm, match=r"^has a key of type tuple$") as refused:
        forms.of({(1, 2): 3})
    assert refused.value.part == (1, 2)


@dataclass(frozen=True)
class Row:
    at: int


class OtherRow(Row):
    """The same fields, and another type."""


@dataclass(frozen=True)
class Rows:
    rows: tuple[Row, ...]


def test_rows_of_two_types_keep_their_types() -> None:
    place = MemoryPlace(Path())
    rows = [Rows((one(1), two(2))) for one, two in product((Row, OtherRow), repeat=2)]
    for written in (rows, []):
        session = Session(session_id="a", store=place.open())
        session.register_types(OtherRow)
        session.register_reducer(Rows, append)
        for each in written:
            session.dispatch(each)
        read = session.select_all(Rows)
        assert [(each, *map(type, each.rows)) for each in read] == [
            (each, *map(type, each.rows)) for each in rows
        ]


# Snapshots


def test_a_slice_of_typed_dicts_is_one_of_dicts(place: Place) -> None:
    def opened() -> Session:
        session = Session(session_id="run-7", store=place.open())
        session.register_reducer(Note, lambda kept, note: (*kept, TypedPoint(x=len(note.text))), TypedPoint)
        return session

    session = opened()
    for text in ("one", "three"):
        session.dispatch(Note(text))
    session.rewind(1)  # with a checkpoint
    assert session.select_all(TypedPoint) == opened().select_all(TypedPoint) == ({"x": 3},)


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_rollback_names_a_slice_that_is_not_registered(is_stored: bool) -> None:
    source = _registered(open_session(None))
    source.dispatch(Thing("x"))
    source.dispatch(SETUP)
    session = open_session(MemoryStore() if is_stored else None)
    session.dispatch(SetupPlan("mine"))
    assert words_of(SnapshotError, session.rollback, source.snapshot()) == (
        "the snapshot has a slice that is not registered here, session_records:Thing: register its reducers "
        "first, as PlanningToolsSection does for a plan"
    )
    assert (session.version, session.select_latest(Plan)) == (1, Plan("mine", "active"))
    _registered(session).rollback(source.snapshot())
    assert session.select_all(Thing) == (Thing("x"),)


def test_a_checkpoint_that_its_type_refuses_by_now_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "CHECKPOINT", 1)
    place = MemoryPlace(Path())

    def opened() -> Session:
        session = Session(session_id="a", store=place.open())
        session.register_reducer(Checked, append)
        return session

    def refuse(_items: object) -> None:
        raise ValueError("no longer")

    opened().dispatch(Checked(1))
    monkeypatch.setattr(Checked, "check_slice", staticmethod(refuse))
    assert refused(lambda: opened().select_all(Checked)) == "the checkpoint of version 1: Checked: no longer"
