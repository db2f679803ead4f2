"""Versions: what a session's history lists, what it was at each of them, rewinding and forking."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from session_records import Count, Note, Ping, called, note_session, ping, texts

from session import Change, Rewound, Session, ToolFailed, ToolInvoked, VersionError, append, replace_latest


def told(session: Session, after: int = 0) -> list[tuple[int, tuple[object, ...], bool]]:
    return [(change.version, change.events, change.changed) for change in session.history(after)]


def test_every_commit_that_publishes_or_changes_is_a_version() -> None:
    session = note_session()
    assert (session.version, session.history()) == (0, ())
    session.dispatch(Note("a"))
    call = called(session, Note("b"))
    session.publish(call)
    refused = ToolFailed("search", "refused", session_id=session.session_id)
    session.publish(refused)
    session.dispatch(Count(1))  # no reducer answers it
    with session.transaction():
        pass
    heard = ping(session)
    session.bus.publish(heard)
    assert told(session) == [
        (1, (Note("a"),), True),
        (2, (call,), True),
        (3, (refused,), False),
        (4, (heard,), False),
    ]
    assert told(session, after=3) == [(4, (heard,), False)]
    assert session.version == 4


def test_a_change_knows_its_time_its_actor_and_its_call() -> None:
    session = note_session()
    before = datetime.now(UTC)
    with session.transaction(actor="host", call_id="call-1") as transaction:
        transaction.dispatch(Note("a"))
    session.publish(Ping(session_id=session.session_id, actor="planner", call_id="call-2"))
    with session.transaction() as transaction, session.transaction(actor="inner") as inner:
        inner.dispatch(Note("b"))
    changes = session.history()
    assert [(change.actor, change.call_id) for change in changes] == [
        ("host", "call-1"),
        ("planner", "call-2"),
        ("inner", None),
    ]
    assert all(before <= change.at <= datetime.now(UTC) + timedelta(seconds=1) for change in changes)
    assert changes[0] == Change(1, changes[0].at, (Note("a"),), "host", "call-1")


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


def test_a_rewind_inside_a_transaction_is_part_of_it() -> None:
    session = note_session()
    session.dispatch(Note("a"))
    with session.transaction() as transaction:
        transaction.dispatch(Note("b"))
        session.rewind(1)
        assert texts(session) == ["a"]
        transaction.dispatch(Note("c"))
    assert (texts(session), session.version) == (["a", "c"], 2)
    assert [type(event) for event in session.history(1)[0].events] == [Note, Rewound, Note]
    assert texts(session.at(2)) == ["a", "c"]


def test_a_session_that_keeps_few_changes_says_which() -> None:
    session = note_session(history=3)
    for number in range(100):
        session.dispatch(Note(str(number)))
    assert [change.version for change in session.history(97)] == [98, 99, 100]
    assert session.at(97).select_latest(Note) == Note("96")
    for call in (session.at, session.history, session.rewind, session.fork):
        with pytest.raises(VersionError) as caught:
            call(96)
        assert str(caught.value) == (
            "version 96 is no longer kept: the session keeps its last 3 changes; ask for 97 or later"
        )


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
