"""Snapshots: taken, compared, and carried as JSON."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from codec_records import DOCUMENT, IDENTITY, WHEN, snapshot_of
from session_records import Count, Note, Ping, note_session, ping

from session import Session, Snapshot, append, replace_latest

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
    assert snapshot.created_at.tzinfo is UTC


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
