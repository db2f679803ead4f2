"""Selectors read a session and a snapshot alike."""

from __future__ import annotations

import pytest
from session_records import Count, Note, Ping, note_session, ping

from session import Session, Snapshot, append, select_all, select_latest, select_where


def filled() -> Session:
    session = note_session()
    for text in ("a", "bb", "c"):
        session.dispatch(Note(text))
    return session


@pytest.fixture(params=["session", "snapshot"])
def source(request: pytest.FixtureRequest) -> Session | Snapshot:
    session = filled()
    return session if request.param == "session" else session.snapshot()


def test_select_all_gives_every_item_oldest_first(source: Session | Snapshot) -> None:
    assert select_all(source, Note) == (Note("a"), Note("bb"), Note("c"))


def test_select_latest_gives_the_newest_item(source: Session | Snapshot) -> None:
    assert select_latest(source, Note) == Note("c")


def test_select_where_gives_the_accepted_items_in_order(source: Session | Snapshot) -> None:
    assert select_where(source, Note, lambda note: len(note.text) == 1) == (Note("a"), Note("c"))


def test_a_slice_that_does_not_exist_is_empty(source: Session | Snapshot) -> None:
    assert select_all(source, Count) == ()
    assert select_latest(source, Count) is None
    assert select_where(source, Count, lambda count: True) == ()


def test_a_slice_that_became_empty_has_no_latest_item() -> None:
    session = note_session()
    session.register_reducer(Count, lambda slice_, event: (), slice_type=Note)
    session.dispatch(Note("a"))
    session.dispatch(Count(0))
    assert select_all(session, Note) == ()
    assert select_latest(session, Note) is None
    assert select_latest(session.snapshot(), Note) is None


def test_a_slice_is_found_by_its_exact_type(session: Session) -> None:
    session.publish(ping(session))
    assert len(select_all(session, Ping)) == 1
    assert select_all(session, object) == ()


def test_a_slice_that_was_read_does_not_change_when_the_session_does() -> None:
    session = filled()
    before = select_all(session, Note)
    session.dispatch(Note("d"))
    assert before == (Note("a"), Note("bb"), Note("c"))
    assert select_all(session, Note) == (*before, Note("d"))


def test_an_unchanged_slice_is_the_same_object_at_each_reading() -> None:
    session = filled()
    session.register_reducer(Count, append)
    before = select_all(session, Note)
    session.dispatch(Count(1))
    assert select_all(session, Note) is before
