"""Selectors read a session and a snapshot alike."""

from __future__ import annotations

import pytest
from session_records import Count, Note, note_session

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


def test_selectors_give_a_slice_of_exactly_that_type_oldest_first(source: Session | Snapshot) -> None:
    read = select_all(source, Note)
    assert read == (Note("a"), Note("bb"), Note("c"))
    assert select_latest(source, Note) == Note("c")
    assert select_where(source, Note, lambda note: len(note.text) == 1) == (Note("a"), Note("c"))
    for kind in (Count, object):
        assert select_all(source, kind) == select_where(source, kind, lambda _item: True) == ()
        assert select_latest(source, kind) is None
    if isinstance(source, Session):
        source.dispatch(Note("d"))
        assert (len(read), select_all(source, Note)) == (3, (*read, Note("d")))


def test_an_unchanged_slice_is_the_same_object_at_each_reading() -> None:
    session = filled()
    session.register_reducer(Count, append)
    before = select_all(session, Note)
    session.dispatch(Count(1))
    assert select_all(session, Note) is before
