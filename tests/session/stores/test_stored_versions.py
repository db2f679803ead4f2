"""Versions, history, and time travel, in every store."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import attrs
import pytest
from session_records import Count, Note, Ping, texts
from store_places import (
    PLAN,
    MemoryPlace,
    Place,
    call,
    every_store,
    mark,
    numbered,
    open_session,
    refused,
    states_of,
)

from planning import Plan
from planning.tools import ToolResult
from session import (
    Change,
    Reset,
    Rewound,
    RolledBack,
    Session,
    ToolFailed,
    ToolInvoked,
    VersionError,
    append,
    select_all,
    select_latest,
)
from session.stores.chain import chain_hash

pytestmark = every_store

evolve: Any = attrs.evolve  # of whichever class; the fields are those that all of them have


def lived(session: Session) -> Session:
    """A session with a change of every kind."""
    call(session, *PLAN, call_id="c1", actor="scout")
    mark(session, "S001", actor="scout")
    mark(session, "S009", call_id="c3")
    call(session, "planning_read_plan", {})
    session.dispatch(Note("one"))
    session.publish(Ping(5))
    session.publish(ToolInvoked("tool", {"a": (1, 2)}, {"b": [3]}, Count(3), actor="me"))
    taken = session.snapshot()
    session.reset()
    session.rollback(taken)
    mark(session, "S002")
    session.rewind(5, actor="host")
    with session.transaction(actor="both", call_id="c9") as transaction:
        transaction.dispatch(Note("two"))
        transaction.dispatch(Count(2))
        transaction.publish(Ping(6))
    return session


def without_chance(change: Change) -> object:
    """A change without its time, and its events without theirs, ids and durations."""
    return evolve(change, at=None, events=tuple(timeless(event) for event in change.events))


def logs_of(session: Session) -> list[object]:
    """The events of a session; of a result, the store keeps no Python value."""
    events: list[Any] = [
        event for kind in (ToolInvoked, ToolFailed, Ping) for event in session.select_all(kind)
    ]
    return [
        evolve(event, result=evolve(event.result, value=None))
        if isinstance(getattr(event, "result", None), ToolResult)
        else event
        for event in events
    ]


def timeless(event: object) -> object:
    if isinstance(event, RolledBack):
        return evolve(event, created_at=None)
    if not isinstance(event, (ToolInvoked, ToolFailed, Ping)):
        return event
    event = evolve(event, event_id=None, created_at=None)
    result = getattr(event, "result", None)
    return evolve(event, result=unmeasured(result)) if isinstance(result, ToolResult) else event


def unmeasured(result: ToolResult) -> object:
    """A result as the store keeps it: its value is the event's, its time is chance."""
    return result.success, result.message, result.error, result.code


def test_what_was_opened_and_never_changed_is_not_in_the_store(
    place_type: type[Place], tmp_path: Path
) -> None:
    place = place_type(tmp_path)
    store = place.open()
    open_session(store)
    assert store.sessions() == []
    assert store.head("run-7") is None


def test_a_stored_session_has_the_history_of_one_in_memory(place_type: type[Place], tmp_path: Path) -> None:
    stored, in_memory = lived(open_session(place_type(tmp_path).open())), lived(open_session(None))
    assert [without_chance(each) for each in stored.history()] == [
        without_chance(each) for each in in_memory.history()
    ]
    assert states_of(stored) == states_of(in_memory)
    assert stored.version == in_memory.version == 12
    assert stored.select_all(Ping) == tuple(
        event for change in stored.history() for event in change.events if isinstance(event, Ping)
    )


def test_the_history_has_versions_without_a_gap_actors_ids_and_what_changed(
    place_type: type[Place], tmp_path: Path
) -> None:
    place = place_type(tmp_path)
    lived(open_session(place.open()))
    session = open_session(place.open())
    history = session.history()
    kinds = [[type(event).__name__ for event in change.events] for change in history]
    assert [(each.version, each.actor, each.call_id, each.changed) for each in history] == [
        (1, "scout", "c1", True),
        (2, "scout", None, True),
        (3, None, "c3", False),
        (4, None, None, False),
        (5, None, None, True),
        (6, None, None, False),
        (7, "me", None, True),
        (8, None, None, True),
        (9, None, None, True),
        (10, None, None, True),
        (11, "host", None, True),
        (12, "both", "c9", True),
    ]
    assert kinds == [
        ["ToolInvoked"],
        ["ToolInvoked"],
        ["ToolFailed"],
        ["ToolInvoked"],
        ["Note"],
        ["Ping"],
        ["ToolInvoked"],
        ["Reset"],
        ["RolledBack"],
        ["ToolInvoked"],
        ["Rewound"],
        ["Note", "Count", "Ping"],
    ]
    assert all(each.at.utcoffset() is not None and not each.at.utcoffset() for each in history)
    assert [each.at for each in history] == sorted(each.at for each in history)
    assert session.history(after=9) == history[9:]
    assert session.history(after=12) == ()
    assert [type(event) for change in history for event in change.events if not hasattr(event, "event_id")][
        1:4
    ] == [Reset, RolledBack, Rewound]


@pytest.mark.parametrize("version", [-1, 13, True, 1.0, "1", None])
def test_versions_that_are_none_are_refused(place_type: type[Place], tmp_path: Path, version: int) -> None:
    session = lived(open_session(place_type(tmp_path).open()))
    said = f"the session has the versions 0 to 12, got {version!r}"
    for ask in (session.at, session.history, session.rewind):
        with pytest.raises(VersionError) as error:
            ask(version)
        assert str(error.value) == said
    if version is not None:
        with pytest.raises(VersionError) as error:
            session.fork(version)
        assert str(error.value) == said
    assert session.version == 12


def test_a_rewind_is_a_change_and_leaves_facts_as_they_are(place_type: type[Place], tmp_path: Path) -> None:
    place = place_type(tmp_path)
    session = lived(open_session(place.open()))
    before = states_of(session)
    events = logs_of(session)
    assert session.rewind(2, actor="host") == session.version == 13
    assert session.rewind(0) == 14
    assert session.rewind(13) == 15
    for each in (session, open_session(place.open())):
        assert states_of(each) == [*before, before[2], before[0], before[2]]
        assert logs_of(each) == events
        assert [change.actor for change in each.history(12)] == ["host", None, None]


def test_a_fork_has_the_history_and_claims_up_to_its_version(place_type: type[Place], tmp_path: Path) -> None:
    place = place_type(tmp_path)
    store = place.open()
    session = open_session(store)
    session.dispatch(Note("1"))
    session.claim("early")
    session.dispatch(Note("2"))
    session.claim("late")
    fork = session.fork(1, session_id="other", tags={"why": "trial"})
    assert (fork.session_id, fork.version, dict(fork.tags), texts(fork)) == (
        "other",
        1,
        {"why": "trial"},
        ["1"],
    )
    assert (fork.claim("early"), fork.claim("late")) == (False, True)
    fork.dispatch(Note("b"))
    assert (texts(session), texts(fork)) == (["1", "2"], ["1", "b"])
    again = open_session(place.open(), "other")
    assert texts(again) == ["1", "b"]
    assert again.history() == fork.history()
    assert again.history()[0] == session.history()[0]


def test_a_forks_chain_starts_from_the_hash_of_its_source(place_type: type[Place], tmp_path: Path) -> None:
    store = place_type(tmp_path).open()
    session = lived(open_session(store))
    fork = session.fork(7, session_id="other")
    fork.dispatch(Note("own"))
    source, own = store.changes("run-7", 7, 7)[0], store.changes("other", 8, 8)[0]
    assert own.hash == chain_hash(source.hash, own.text)
    assert store.verify("other") == 8
    head = store.head("other")
    assert head is not None
    assert (head.version, head.hash, head.forked_from) == (8, own.hash, (("run-7", 7),))


def test_deleting_a_source_leaves_its_forks_whole(place_type: type[Place], tmp_path: Path) -> None:
    place = place_type(tmp_path)
    store = place.open()
    session = lived(open_session(store))
    first = session.fork(9, session_id="first")
    first.publish(Ping(70))
    mark(first, "S003")
    second = first.fork(session_id="second")
    second.publish(Ping(80))
    early = second.fork(4, session_id="early")
    middle = second.fork(10, session_id="middle")
    expected = {
        str(each.session_id): (states_of(each), each.history()) for each in (first, second, early, middle)
    }
    assert store.delete("run-7")
    assert store.delete("first")
    del session, first, second, early, middle
    gc.collect()
    for name, (states, history) in expected.items():
        if name == "first":
            assert store.head(name) is None
            continue
        again = open_session(place.open(), name)
        assert (states_of(again), again.history()) == (states, history)
        assert store.verify(name) == len(history)
    second = open_session(place.open(), "second")
    assert numbered(second) == [5, 70, 80]
    assert [str(event.session_id) for event in second.select_all(Ping)] == ["run-7", "first", "second"]
    head = store.head("middle")
    assert head is not None
    assert head.forked_from == (("run-7", 9), ("first", 10))
    head = store.head("early")
    assert head is not None
    assert head.forked_from == (("run-7", 4),)


def test_a_fork_of_version_0_is_empty_and_begins_at_once(place_type: type[Place], tmp_path: Path) -> None:
    place = place_type(tmp_path)
    store = place.open()
    fork = lived(open_session(store)).fork(0, session_id="other")
    assert (fork.version, fork.history(), fork.select_latest(Plan)) == (0, (), None)
    head = store.head("other")
    assert head is not None
    assert head.version == 0
    fork.dispatch(Note("own"))
    assert texts(open_session(place.open(), "other")) == ["own"]
    assert store.verify("other") == 1


def test_a_fork_of_a_session_that_was_never_changed_is_a_session(
    place_type: type[Place], tmp_path: Path
) -> None:
    store = place_type(tmp_path).open()
    session = open_session(store)
    open_session(store, "taken").dispatch(Note("theirs"))
    assert refused(lambda: session.fork(session_id="taken")) == (
        "the store holds a session 'taken' already: give the fork another id"
    )
    fork = session.fork(session_id="other", tags={"why": "trial"})
    fork.dispatch(Note("own"))
    assert (fork.version, texts(fork), dict(fork.tags)) == (1, ["own"], {"why": "trial"})


def test_a_private_slice_is_in_no_store_and_stays_at_a_rewind(
    place_type: type[Place], tmp_path: Path
) -> None:
    place = place_type(tmp_path)
    store = place.open()
    session = open_session(store)
    session.register_reducer(
        Ping, lambda slice_, event: (*slice_, Secret(event.number)), Secret, is_private=True
    )
    session.register_reducer(Secret, append, is_private=True)
    session.dispatch(Secret(12345678))
    assert session.version == 0
    session.dispatch(Note("open"))
    session.rewind(0)
    assert session.select_all(Secret) == session.at(1).select_all(Secret) == (Secret(12345678),)
    assert session.version == 2
    kept = [change.text for change in store.changes("run-7", 1, 9)]
    kept += [checkpoint.text for checkpoint in store.checkpoints("run-7", 9, 9)]
    assert [text for text in kept if "12345678" in text or "Secret" in text] == []
    assert Secret not in session.snapshot().slices
    there = open_session(place.open())
    there.register_reducer(Secret, append, is_private=True)
    assert there.select_all(Secret) == ()
    if place_type is not MemoryPlace and place.path.exists():
        assert b"12345678" not in b"".join(each.read_bytes() for each in tmp_path.iterdir())


@attrs.frozen
class Secret:
    """A value that no store may have."""

    number: int


def test_past_versions_stay_what_they_are_while_the_session_goes_on(
    place_type: type[Place], tmp_path: Path
) -> None:
    session = lived(open_session(place_type(tmp_path).open()))
    past, unread = session.at(10), session.at(10)
    plan = select_latest(past, Plan)
    call(session, "planning_clear_plan", {})
    session.rewind(0)
    assert select_latest(past, Plan) == select_latest(unread, Plan) == plan
    assert select_all(unread, Ping)[0].number == 5
