"""Small rules of sessions and snapshots that a slip in one character would break."""

from __future__ import annotations

from dataclasses import make_dataclass
from typing import Any

import attrs
import pytest
from codec_records import snapshot_of, text_of
from session_records import Note, Ping, note_session

from session import Snapshot, SnapshotError

Unannotated = attrs.make_class("Unannotated", ["item"], frozen=True)
LONG = "n" * 81


def test_a_field_without_a_type_holds_anything() -> None:
    kind: Any = Unannotated
    snapshot = snapshot_of(kind({"a": [1, None]}))
    assert Snapshot.from_json(snapshot.to_json(), types=[kind]) == snapshot


@pytest.mark.parametrize(
    ("key", "place"), [("n" * 80, f".{'n' * 80}"), (LONG, f"['{LONG}']"), ("\n", "['\\n']")]
)
def test_the_place_of_wrong_data_is_spelled_whole_and_on_one_line(key: str, place: str) -> None:
    kind: Any = Unannotated
    with pytest.raises(SnapshotError) as refused:
        snapshot_of(kind({key: 1j})).to_json()
    assert str(refused.value).partition(":")[0] == f"Unannotated[0].item{place}"


def test_a_slice_that_was_emptied_in_a_transaction_has_no_newest_item_there() -> None:
    session = note_session()
    session.register_reducer(Ping, lambda _slice, _event: (), Note)
    session.dispatch(Note("committed"))
    with session.transaction() as transaction:
        transaction.publish(Ping())
        assert transaction.latest(Note) is None
        assert session.select_latest(Note) is None


@pytest.mark.parametrize("hint", [None, type(None)])
def test_a_field_that_is_always_none_is_read(hint: Any) -> None:
    kind = make_dataclass("It", [("item", hint)], frozen=True)
    read = Snapshot.from_json(text_of(f"{kind.__module__}:It", {"item": None}), types=[kind])
    assert read.select_all(kind) == (kind(None),)
