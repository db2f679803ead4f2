"""Values of every kind in every store: what comes back is equal, or it is refused by name."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum, IntEnum
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from session_records import Note, Thing, texts
from store_places import MemoryPlace, Place, open_session, refused

from session import Session, SessionEvent, append
from session.changes import DEEPEST
from session.stores import StoreError


class Colour(Enum):
    RED = "red"
    BLUE = ("b", 2)


class Level(IntEnum):
    LOW = 1


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


@attrs.frozen
class Said(SessionEvent):
    what: Any = None


def of_values(place: Place) -> Session:
    session = Session(session_id="values", store=place.open())
    for kind in (Thing, int):
        session.register_reducer(kind, append)
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
        {1: "one", "1": "text", None: 0, (1, 2): [3], 2.5: {}},
        [[[[[[[]]]]]]],
        {"a" * 10_000: "b" * 100_000},
        (1, [2, {3, 4}, frozenset({(5, 6)})]),
        1e308,
        5e-324,
        -0.0,
        Colour.BLUE,
        Level.LOW,
        datetime(2026, 3, 29, 2, 30, tzinfo=UTC),
        datetime(2026, 3, 29, 2, 30),
    ]
    check_that_values_come_back(place, odd)
    session = of_values(place)
    session.dispatch(5)
    assert of_values(place).select_all(int) == (5,)


def nested(depth: int) -> object:
    value: object = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [DEEPEST - 3, DEEPEST - 2, 100_000])
def test_what_can_be_written_can_be_read_however_deep_it_is(place: Place, depth: int) -> None:
    session = of_values(place)
    gc.collect()  # what earlier tests left is finalized here, and not where the stack is at its end
    if depth > DEEPEST - 3:  # with the levels that are around it
        for work in (
            lambda: session.dispatch(Thing(nested(depth))),
            lambda: session.publish(Said(nested(depth))),
        ):
            assert refused(work).endswith(("nested too deep", "nested more than 128 levels deep"))
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
    loop: list[object] = []
    loop.append(loop)
    cases: list[tuple[object, str]] = [
        (object(), f": a object {NO_FORM}"),
        (b"x", f": a bytes {NO_FORM}"),
        (..., f": a ellipsis {NO_FORM}"),
        (float("nan"), f": nan {NO_FORM}"),
        ({"a": [1j]}, f".a[0]: a complex {NO_FORM}"),
        (
            Inner("x"),
            ": a test_stored_values:Inner cannot be written here: give its field an exact type hint, or pass "
            "the class to session.register_types",
        ),
    ]
    for value, message in cases:
        assert refused(lambda value=value: session.dispatch(Thing(value))) == f"Thing.value{message}"
        with pytest.raises(StoreError) as error, session.transaction() as transaction:
            transaction.dispatch(Note("lost"))
            transaction.dispatch(Thing([value]))
        assert (str(error.value), error.value.outcome) == (f"Thing.value[0]{message}", "refused")
    with pytest.raises(StoreError):
        session.dispatch(Thing(loop))
    assert (session.version, texts(session), session.select_all(Thing)) == (1, ["before"], ())
    session.dispatch(Note("after"))
    assert (place.open().verify("run-7"), texts(open_session(place.open()))) == (2, ["before", "after"])


class Unwritten:
    """An object that has no JSON form, but a text."""

    def __str__(self) -> str:
        return "unwritten"


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (Path("a/b"), "a/b"),
        ([timedelta(hours=1), b"x", 1j, float("inf")], ["1:00:00", "x", "1j", "inf"]),
        ({"given": Unwritten()}, {"given": "unwritten"}),
        ({Path("a"), "a"}, ["a", "a"]),
        (frozenset({Inner("x")}), [{"name": "x", "when": None}]),
        ({Path("a"): 1, "a": 2}, [["a", 1], ["a", 2]]),
        ({(Path("a"),): 1}, [[("a",), 1]]),
        ({Colour.RED}, ["red"]),
    ],
    ids=["path", "list", "dict", "set", "frozenset", "keys", "tuple key", "enum"],
)
def test_what_an_event_tells_is_kept_as_text_where_it_has_no_json_form(
    place: Place, value: object, kept: object
) -> None:
    session = open_session(place.open())
    session.publish(Said(value))
    there = open_session(place.open())
    there.register_types(Said)
    (said,) = there.select_all(Said)
    assert strict(said.what) == strict(kept)
    assert there.history()[0].events == (said,)


def test_an_event_with_what_has_no_text_of_its_own_is_refused_by_name(place: Place) -> None:
    session = open_session(place.open())
    for value, name in ((object(), "object"), ({"at": [print]}, "builtin_function_or_method")):
        where = ".what" + (".at[0]" if isinstance(value, dict) else "")
        assert refused(lambda value=value: session.publish(Said(value))) == f"Said{where}: a {name} {NO_FORM}"
    assert session.version == 0


def test_an_event_with_a_set_of_a_type_that_is_not_registered_there_can_be_read(place: Place) -> None:
    of_values(place).publish(Said({Colour.RED}))
    there = open_session(place.open(), "values")
    there.register_types(Said)
    assert there.select_all(Said)[0].what == [{"is": "red"}]


def test_the_values_of_one_change_are_those_that_were_reduced(place: Place) -> None:
    session = of_values(place)
    held = {"a": [1]}
    session.dispatch(Thing(held))
    held["a"].append(2)
    session.dispatch(Thing("next"))
    assert of_values(place).select_all(Thing) == (Thing({"a": [1]}), Thing("next"))
