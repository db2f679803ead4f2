"""The codec: values to plain JSON values and back, by the type hints of their classes."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType, ModuleType
from typing import Any, Literal
from uuid import UUID

import pytest
from codec_records import (
    Box,
    Colour,
    Derived,
    Empty,
    Everything,
    Holder,
    Level,
    Loose,
    Mood,
    Point,
    Positive,
    Private,
    Renamed,
    Tree,
)
from hypothesis import given
from hypothesis import strategies as st

from session import SnapshotError
from session.codec import Reader, encode, type_name

IDENTITY = UUID("00000000-0000-4000-8000-000000000001")
WHEN = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=timezone(timedelta(hours=2)))

EVERYTHING = Everything(
    text="t\n\u00e9\ud800",
    whole=-(10**30),
    real=0.1,
    flag=True,
    nothing=None,
    when=WHEN,
    identity=IDENTITY,
    colour=Colour.BLUE,
    level=Level.HIGH,
    mood=Mood.CALM,
    word=1,
    maybe=None,
    old_maybe="m",
    old_either="5",
    record_or_text=Point(1),
    pair=(1, "a"),
    many=(1, 2),
    bare=(1, "a", None),
    items=[Point(1)],
    sequence=[1, 2],
    table={"a": (1,)},
    mapping=MappingProxyType({"p": Point(3)}),
    bare_table={"a": [1, {"b": None}]},
    anything={"free": [1.5, True]},
    thing="thing",
    typing_tuple=(1,),
    nested=({"a": (None, Point(7))},),
)


def decode(data: Any, hint: Any, place: str) -> Any:
    return Reader().decode(data, hint, place)


def round_trip(value: Any, kind: type) -> Any:
    return decode(json.loads(json.dumps(encode(value, "it"))), kind, "it")


@pytest.mark.parametrize(
    "value",
    [
        EVERYTHING,
        Point(1, 2),
        Box(Point(1), "secret", (Point(2), Point(3))),
        Tree("a", (Tree("b", (Tree("c"),)), Tree("d")), Tree("e")),
        Empty(),
        Private(1),
        Renamed(y=1),
        Derived(2),
        7,
        "text",
        Colour.RED,
        Level.LOW,
        IDENTITY,
        WHEN,
    ],
    ids=lambda value: type(value).__name__,
)
def test_values_come_back_equal(value: Any) -> None:
    assert round_trip(value, type(value)) == value


def test_records_are_written_as_objects_with_plain_values() -> None:
    assert encode(Box(Point(1), "s", (Point(2, 3),)), "it") == {
        "corner": {"x": 1, "y": 0},
        "_hidden": "s",
        "points": [{"x": 2, "y": 3}],
    }
    assert encode([Colour.RED, Level.LOW, Mood.CALM, IDENTITY, WHEN, None, 1.5], "it") == [
        "red",
        1,
        "calm",
        "00000000-0000-4000-8000-000000000001",
        "2024-05-06T07:08:09.123456+02:00",
        None,
        1.5,
    ]


def test_values_come_back_with_their_own_types() -> None:
    back = round_trip(EVERYTHING, Everything)
    for name in ("whole", "real", "flag", "when", "identity", "colour", "level", "mood", "pair", "items"):
        assert type(getattr(back, name)) is type(getattr(EVERYTHING, name))
    assert back.when.utcoffset() == timedelta(hours=2)


@given(
    st.recursive(
        st.builds(Tree, st.text()),
        lambda trees: st.builds(Tree, st.text(), st.lists(trees, max_size=3).map(tuple), st.none() | trees),
        max_leaves=12,
    )
)
def test_any_tree_of_records_comes_back_equal(tree: Tree) -> None:
    assert round_trip(tree, Tree) == tree


@given(st.datetimes(timezones=st.just(UTC)) | st.datetimes())
def test_any_date_comes_back_equal(when: datetime) -> None:
    assert round_trip(when, datetime) == when


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_finite_number_comes_back_equal(number: float) -> None:
    assert round_trip(number, float) == number


def test_a_whole_number_is_taken_where_a_real_one_is_wanted() -> None:
    got = decode(3, float, "it")
    assert (got, type(got)) == (3.0, float)


def test_a_type_variable_takes_what_comes() -> None:
    assert decode({"item": 3}, Holder, "it") == Holder(3)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (b"raw", "it: a bytes has no JSON form in a snapshot"),
        (timedelta(1), "it: a timedelta has no JSON form in a snapshot"),
        ({(1, 2): "a"}, "it: a tuple cannot be a key in a snapshot"),
        ({b"a": "a"}, "it: a bytes has no JSON form in a snapshot"),
        ({1: "a", "1": "b"}, "it: two keys are written as '1'"),
        ({1j}, "it: a complex has no JSON form in a snapshot"),
        (Loose([1, {"a": 1j}]), "it.item[1].a: a complex has no JSON form in a snapshot"),
        (Box(Point(1), points=(Point(2), Loose(object()))),  # type: ignore[arg-type]
         "it.points[1].item: a object has no JSON form in a snapshot"),
        (Point, "it: a type has no JSON form in a snapshot"),
        (print, "it: a builtin_function_or_method has no JSON form in a snapshot"),
        (float("nan"), "it: nan has no JSON form"),
        (Loose([1.0, float("-inf")]), "it.item[1]: -inf has no JSON form"),
    ],
)  # fmt: skip
def test_a_value_without_a_json_form_is_refused_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        encode(value, "it")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("data", "hint", "message"),
    [
        ("1", int, "it: expected int, got '1'"),
        (True, int, "it: expected int, got True"),
        (1.0, int, "it: expected int, got 1.0"),
        (1, bool, "it: expected bool, got 1"),
        (1, str, "it: expected str, got 1"),
        (True, float, "it: expected float, got True"),
        (None, str, "it: expected str, got None"),
        ([1], str, "it: expected str, got list"),
        (0, None, "it: expected None, got 0"),
        (0, type(None), "it: expected NoneType, got 0"),
        ("green", Colour, "it: expected Colour, got 'green'"),
        ([], Colour, "it: expected Colour, got list"),
        (3, Level, "it: expected Level, got 3"),
        ("soon", datetime, "it: expected datetime, got 'soon'"),
        (5, datetime, "it: expected datetime, got 5"),
        ("x", UUID, "it: expected UUID, got 'x'"),
        (5, UUID, "it: expected UUID, got 5"),
        (None, UUID, "it: expected UUID, got None"),
        ({}, UUID, "it: expected UUID, got dict"),
        ("up", Literal["on", "off"], "it: expected Literal['on', 'off'], got 'up'"),
        (True, Literal[1], "it: expected Literal[1], got True"),
        ({}, tuple[int, ...], "it: expected tuple[int, ...], got dict"),
        ([], dict[str, int], "it: expected dict[str, int], got list"),
        ("ab", list[str], "it: expected list[str], got 'ab'"),
        ({}, set, "it: expected set, got dict"),
        ([[]], set[Any], "it: an item cannot be in a set"),
        ([1, 1], set[int], "it: an item is in the set twice"),
        (["1"], frozenset[int], "it[0]: expected int, got '1'"),
        ([1, "a"], tuple[int, ...], "it[1]: expected int, got 'a'"),
        ([1], tuple[int, str], "it: expected 2 items, got 1"),
        ([1, "a", 2], tuple[int, str], "it: expected 2 items, got 3"),
        ({"a": [0, "b"]}, dict[str, list[int]], "it.a[1]: expected int, got 'b'"),
        ({"a": "b"}, Mapping[str, int], "it.a: expected int, got 'b'"),
        ([], Point, "it: expected an object with x, y"),
        ({"x": 1}, Point, "it: expected an object with x, y"),
        ({"x": 1, "y": 2, "z": 3}, Point, "it: expected an object with x, y"),
        ({"x": 1}, Empty, "it: expected an object with no fields"),
        ({"x": 1, "y": "2"}, Point, "it.y: expected int, got '2'"),
        ({"number": 0}, Positive, "it: Positive refuses it: 0 is not positive"),
        ({"x": 1, "y": None}, Point | str, "it: expected codec_records.Point | str, got dict"),
        ({"x": 1, "y": "2"}, Point | None, "it.y: expected int, got '2'"),
        ("1", int | None, "it: expected int, got '1'"),
        (1.5, int | str | None, "it: expected int | str | None, got 1.5"),
        (None, int | str, "it: expected int | str, got None"),
        ({"a": "a"}, dict[int, str], "it: expected int, got 'a'"),
        ({"1": "a", " 1": "b"}, dict[int, str], "it: two keys mean the same int"),
        ({"true": "a"}, dict[int, str], "it: expected int, got 'true'"),
        ({"NaN": "a"}, dict[float, str], "it: expected float, got 'NaN'"),
        ([0, [1], 0], Decimal, "it: expected Decimal, got list"),
        ("one", Decimal, "it: expected Decimal, got 'one'"),
        ("2024-05-06T07:08:09", date, "it: expected date, got '2024-05-06T07:08:09'"),
        (20240506, date, "it: expected date, got 20240506"),
        (10**400, float, "it: expected float, got 1" + 119 * "0" + "..."),
    ],
)
def test_data_of_another_type_is_refused_with_its_place(data: Any, hint: Any, message: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        decode(data, hint, "it")
    assert str(caught.value) == message


def test_what_a_record_raised_is_the_cause_of_the_refusal() -> None:
    with pytest.raises(SnapshotError) as caught:
        decode({"number": 0}, Positive, "it")
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_type_is_found_by_its_written_name() -> None:
    assert type_name(Point) == "codec_records:Point"
    assert Reader().find_type("codec_records:Point") is Point
    assert Reader().find_type("codec_records:Box") is Box


class Outer:
    class Inner(Point):
        """A record inside a class."""


def test_a_type_inside_a_class_is_found_by_its_written_name() -> None:
    assert Reader().find_type(type_name(Outer.Inner)) is Outer.Inner


def test_a_type_need_not_be_a_record() -> None:
    assert Reader().find_type("builtins:int") is int
    assert Reader().find_type("codec_records:Colour") is Colour


def test_a_module_that_makes_its_names_on_demand_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lazy(ModuleType):
        def __getattr__(self, name: str) -> type:
            raise AssertionError(f"asked for {name}")

    lazy = Lazy("lazy_module")
    vars(lazy)["Point"] = Point
    with monkeypatch.context() as patch:  # hypothesis looks at every module that is loaded
        patch.setitem(sys.modules, "lazy_module", lazy)
        assert Reader().find_type("lazy_module:Point") is Point
        with pytest.raises(SnapshotError) as caught:
            Reader().find_type("lazy_module:Box")
    assert str(caught.value) == (
        "slice type 'lazy_module:Box' is not loaded: lazy_module has no such class; pass the class in types="
    )


IN_TYPES = "pass the class in types="
NO_CLASS = f"codec_records has no such class; {IN_TYPES}"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("", IN_TYPES),
        (":", IN_TYPES),
        ("Point", IN_TYPES),
        ("codec_records", IN_TYPES),
        ("codec_records:", IN_TYPES),
        ("codec_records:Nothing", NO_CLASS),
        ("codec_records:Point.x.y", NO_CLASS),
        ("codec_records:Point.x", NO_CLASS),
        ("codec_records:IDENTITY", NO_CLASS),
        ("no_such.module:Point", f"import no_such.module first, or {IN_TYPES}"),
        ("builtins:print", f"builtins has no such class; {IN_TYPES}"),
        ("codec_records:\ud800", IN_TYPES),
        ("codec_records:\0", IN_TYPES),
        ("os:system", f"os has no such class; {IN_TYPES}"),
        (":__class__", IN_TYPES),
    ],
)
def test_a_name_of_no_type_is_refused_with_what_to_do(name: str, remedy: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        Reader().find_type(name)
    assert str(caught.value) == f"slice type {name!r} is not loaded: {remedy}"


@pytest.mark.parametrize(
    "name", ["subprocess:Popen", "threading:Thread", "builtins:object", "codec_records:Handmade"]
)
def test_a_class_whose_values_no_snapshot_builds_is_refused(name: str) -> None:
    importlib.import_module(name.partition(":")[0])
    with pytest.raises(SnapshotError) as caught:
        Reader().find_type(name)
    assert str(caught.value) == (
        f"slice type {name!r} is not a record: a snapshot holds dataclasses, attrs classes and plain values"
    )
