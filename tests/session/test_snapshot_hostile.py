"""Snapshots from text that nobody should trust: read, or refused with the place, at a bounded cost."""

from __future__ import annotations

import importlib
import json
import sys
from dataclasses import dataclass, make_dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from codec_records import DOCUMENT, Colour, Empty, Level, Point, Positive, UserId, snapshot_of, text_of
from hypothesis import given
from hypothesis import strategies as st
from session_records import Note

from session import SessionError, Snapshot, SnapshotError

NOTE = "session_records:Note"
NOTE_TEXT = snapshot_of(Note("a")).to_json()
NOT_LOADED = "is not loaded: import its module first, or pass the class in types="
HASH = ": a set is refused by its type: unhashable type: "
UNKNOWN = (
    "is unknown here: import its module and register a reducer for it, or pass the class to "
    "session.register_types"
)
GREEN = ": a codec_records:Colour is refused by its type: 'green' is not a valid Colour"
LEVEL = ": a codec_records:Level is refused by its type: 3 is not a valid Level"


def refusal(text: Any, **given: Any) -> str:
    """What the reading of a text is refused with."""
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
        ([1], str, ": expected str, got a list"),
        (0, type(None), ": expected NoneType, got 0"),
        ("up", Literal["on", "off"], ": expected Literal['on', 'off'], got 'up'"),
        (5, Literal["on"] | None, ": expected Optional[Literal['on']], got 5"),
        (1.5, int | str, ": expected int | str, got 1.5"),
        (5, UserId, ": expected codec_records.UserId, got 5"),
        ("x", Annotated[int, "a note"], ": expected Annotated[int, 'a note'], got 'x'"),
        ([1], dict, ": expected dict, got a list"),
        ("soon", datetime, ": expected datetime, got 'soon'"),
        (5, datetime, ": expected datetime, got 5"),
        ({}, UUID, ": expected UUID, got a dict"),
        ("one", Decimal, ": expected Decimal, got 'one'"),
        ("2024-05-06T07:08:09", date, ": expected date, got '2024-05-06T07:08:09'"),
        ({"!": "set", "items": [1, 1]}, set[int], ": the set has a duplicate"),
        ({"!": "set", "items": [[]]}, set[Any], HASH + "'list'"),
        ({"!": "set", "items": {}}, set[Any], ": a 'set' is malformed"),
        ({"!": "dict", "items": [[1, 2], [1, 3]]}, dict[int, int], ": the dict has a duplicate"),
        ({"!": 5}, Any, ": 5 is not the name of a type"),
        ({"!": ["tuple"]}, Any, ": ['tuple'] is not the name of a type"),
        ({"!": "subprocess:Popen", "args": ["true"]}, Any, f": 'subprocess:Popen' {UNKNOWN}"),
        ({"!": "codec_records:Point", "x": 1}, Any, f": 'codec_records:Point' {UNKNOWN}"),
        ({"!": "codec_records:Colour", "is": "green"}, Colour, GREEN),
        ({"x": 1, "y": 2, "z": 3}, Point, ": a codec_records:Point has no 'z'"),
        ({"x": 1, "y": "2"}, Point | None, ".y: expected int, got '2'"),
        ({"x": 1}, Empty, ": a codec_records:Empty has no 'x'"),
        ({"number": 0}, Positive, ": a codec_records:Positive is refused by its type: 0 is not positive"),
        ({"!": "codec_records:Level", "is": 3}, Level, LEVEL),
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
        ({"version": "2"}, "snapshot version '2' is not known; this release reads 2"),
        ({"version": True}, "snapshot version True is not known; this release reads 2"),
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
        ({"slices": {NOTE: [{"text": "a", "b": 1}]}}, "Note[0]: a session_records:Note has no 'b'"),
        ({"slices": {NOTE: [{"text": 1}]}}, "Note[0].text: expected str, got 1"),
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


BAD_TEXT = "a snapshot must be JSON text: "


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "a snapshot must be a JSON object"),
        ("null", "a snapshot must be a JSON object"),
        ('"text"', "a snapshot must be a JSON object"),
        ("[" * 100_000, BAD_TEXT + "it is nested too deep"),
        ('{"a":' * 100_000, BAD_TEXT + "it is nested too deep"),
    ],
    ids=lambda text: text[:20],
)
def test_text_that_is_no_json_object_is_refused(text: str, message: str) -> None:
    assert refusal(text) == message


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
