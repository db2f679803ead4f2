"""Versions: the reducers of their time; what forks, clones and short histories keep."""

from __future__ import annotations

import pytest
from session_records import Count, Note, called, note_session

from session import Session, ToolInvoked, append, replace_latest


def test_a_version_is_reduced_by_the_reducers_of_its_time() -> None:
    session = Session()
    session.publish(called(session, Note("nobody keeps it")))
    session.register_reducer(Note, append)
    session.dispatch(Note("a"))
    session.register_reducer(Note, lambda slice_, note: (*slice_, Count(len(note.text))), Count)
    session.dispatch(Note("bc"))
    assert [(session.at(v).select_all(Note), session.at(v).select_all(Count)) for v in range(4)] == [
        ((), ()),
        ((), ()),
        ((Note("a"),), ()),
        ((Note("a"), Note("bc")), (Count(2),)),
    ]


@pytest.mark.parametrize("version", [0, 1, 40, 42])
def test_a_fork_and_a_clone_have_private_slices_as_they_are_now_and_keep_them_private(version: int) -> None:
    session = note_session()
    session.register_reducer(Count, replace_latest, is_private=True)
    session.dispatch(Count(1))
    for number in range(41):
        session.dispatch(Note(str(number)))
    session.dispatch(Count(2))
    session.dispatch(Note("last"))
    for copy in (session.fork(version), session.clone()):
        assert copy.select_all(Count) == session.at(version).select_all(Count) == (Count(2),)
        before = copy.version
        copy.dispatch(Count(3))
        assert (copy.version, Count in copy.snapshot().slices) == (before, False)
    assert session.select_all(Count) == (Count(2),)


def test_a_session_that_keeps_few_changes_forgets_their_keys() -> None:
    session = Session(history=2)
    for number in range(100):
        session.publish(ToolInvoked("tool", {}, None, idempotency_key=f"{number % 50}"))
    assert [session.find_call(key) is None for key in ("49", "48", "0")] == [False, False, True]
    for _ in range(80):
        session.publish(ToolInvoked("tool", {}, None))
    assert [session.find_call(key) for key in ("49", "48", "0")] == [None, None, None]
