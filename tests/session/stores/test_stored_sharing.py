"""One session for several objects, processes, buses and readers, in every store."""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial

import pytest
from session_records import Note, Ping, texts
from store_places import (
    PLAN,
    FolderPlace,
    Place,
    SqlitePlace,
    call,
    mark,
    numbered,
    open_session,
    refused,
    state_of,
)

from planning import Plan
from planning.suite.events import PlanChanged
from session import InProcessEventBus, Session, TransactionError, stored
from session.stores import SqliteStore, StaleVersion, StoreError


def listening(bus: InProcessEventBus) -> list[PlanChanged]:
    """The changes of plans that a bus publishes."""
    heard: list[PlanChanged] = []
    bus.subscribe(PlanChanged, heard.append)
    return heard


def test_objects_of_one_store_and_id_share_a_state(place: Place) -> None:
    store, bus = place.open(), InProcessEventBus()
    first = open_session(store, bus=bus)
    second = Session(session_id="run-7", store=store, bus=bus)
    heard, pings = listening(bus), list[Ping]()
    bus.subscribe(Ping, pings.append)
    call(first, *PLAN)
    mark(second, "S001", actor="two")
    first.publish(Ping(1))
    bus.publish(Ping(2, session_id="run-7"))
    assert first.version == second.version == 4
    assert first.history() == second.history()
    assert state_of(first) == state_of(second)
    assert [ping.number for ping in pings] == numbered(first) == numbered(second) == [1, 2]
    assert [(each.version, each.actor, each.origin) for each in heard] == [
        (1, None, "session"),
        (2, "two", "session"),
    ]
    first.close()
    bus.publish(Ping(3, session_id="run-7"))
    assert numbered(second) == [1, 2, 3]
    second.close()
    bus.publish(Ping(4, session_id="run-7"))
    assert numbered(second) == [1, 2, 3]


def test_objects_on_different_buses_share_a_state_and_each_bus_hears_of_the_plan_once(place: Place) -> None:
    store = place.open()
    buses = [InProcessEventBus(), InProcessEventBus()]
    first, second = (open_session(store, bus=bus) for bus in buses)
    heard = [listening(bus) for bus in buses]
    call(first, *PLAN)
    mark(second, "S001")
    second.rewind(1)
    buses[0].publish(Ping(1, session_id="run-7"))
    buses[1].publish(Ping(2, session_id="run-7"))
    assert numbered(first) == numbered(second) == [1, 2]
    assert first.version == second.version == 5
    assert [[(each.version, each.origin) for each in found] for found in heard] == [
        [(1, "session"), (2, "session"), (3, "session")]
    ] * 2


def test_refresh_takes_over_what_another_process_did_and_announces_each_commit_once(place: Place) -> None:
    bus = InProcessEventBus()
    here, there = open_session(place.open(), bus=bus), open_session(place.open())
    heard = listening(bus)
    call(there, *PLAN, actor="scout")
    mark(there, "S001", actor="scout")
    mark(there, "S009")
    call(there, "planning_read_plan", {})
    there.dispatch(Note("one"))
    there.rewind(1, actor="host")
    assert (here.version, state_of(here)) == (0, (None, (), ()))
    assert here.refresh() == 6
    assert state_of(here) == state_of(there)
    assert [(each.version, each.actor, each.origin, str(each.diff)) for each in heard] == [
        (1, "scout", "store", "New plan: Ship it. Added S001, S002, S003."),
        (2, "scout", "store", "S001 done."),
        (6, "host", "store", "S001 pending."),
    ]
    assert here.refresh() == 6
    assert len(heard) == 3
    mark(here, "S002", actor="here")
    assert there.refresh() == 7
    assert state_of(here) == state_of(there)
    assert [(each.version, each.origin) for each in heard[3:]] == [(7, "session")]
    before_and_after = [(each.before, each.after) for each in heard]
    assert [after for _, after in before_and_after[:-1]] == [before for before, _ in before_and_after[1:]]


def test_a_transaction_takes_over_what_is_new_before_its_body_runs(place: Place) -> None:
    bus = InProcessEventBus()
    here, there = open_session(place.open(), bus=bus), open_session(place.open())
    heard = listening(bus)
    call(there, *PLAN)
    there.dispatch(Note("theirs"))
    with here.transaction() as transaction:
        assert (texts(here), here.version) == (["theirs"], 2)
        transaction.dispatch(Note("mine"))
    assert (texts(here), here.version) == (["theirs", "mine"], 3)
    assert [(each.version, each.origin) for each in heard] == [(1, "store")]
    there.refresh()
    assert texts(there) == ["theirs", "mine"]


def test_what_cannot_be_reduced_here_is_no_plan_that_is_gone(place: Place) -> None:
    bus = InProcessEventBus()
    here, there = open_session(place.open(), bus=bus), open_session(place.open())
    there.register_reducer(Note, lambda slice_, note: (Plan(note.text, "active"),), Plan)
    heard = listening(bus)
    call(there, *PLAN)
    here.refresh()
    there.dispatch(Note("another plan"))
    here.refresh()
    assert [(each.version, each.before is None, each.after is None) for each in heard] == [(1, True, False)]


def test_a_later_writer_without_a_lock_is_refused_and_tries_again(place: Place) -> None:
    here, there = open_session(place.open()), open_session(place.open())
    if not isinstance(place, FolderPlace):
        pytest.skip("it has a lock")
    with pytest.raises(StaleVersion) as error, here.transaction() as transaction:
        transaction.dispatch(Note("mine"))
        there.dispatch(Note("theirs"))
    assert str(error.value) == "the session has version 1 by now, not 0: refresh it and try again"
    assert (here.version, texts(here)) == (0, [])
    here.dispatch(Note("mine"))
    assert texts(here) == ["theirs", "mine"]


def test_transactions_of_two_sessions_of_one_place_are_not_nested(place: Place) -> None:
    if isinstance(place, FolderPlace):
        pytest.skip("it has no lock")
    store = place.open()
    outer, inner, elsewhere = (open_session(store, name) for name in ("outer", "inner", "elsewhere"))
    for session in (inner, elsewhere):
        session.dispatch(Note("begun"))
    others = [inner]
    if isinstance(place, SqlitePlace):
        others += [open_session(place.open(), "inner"), open_session(place.open(), "outer")]
        link = place.path.with_name("folder")
        link.symlink_to(place.path.parent)
        others += [open_session(SqliteStore(link / place.path.name), "inner")]
    writes: list[Callable[[], object]] = [
        lambda: store.claim("x", "y"),
        lambda: store.delete("elsewhere"),
        elsewhere.fork,
    ]
    for other in others:
        with outer.transaction() as transaction:
            transaction.dispatch(Note("kept"))
            refused: list[Callable[[], object]] = [partial(other.dispatch, Note("never")), *writes]
            for write in refused:
                with pytest.raises(TransactionError) as error:
                    write()
                assert str(error.value) == (
                    "a transaction of another session of this store is open in this thread, and they would "
                    "wait for each other: end it first"
                )
        other.dispatch(Note("after"))
    assert texts(elsewhere) == ["begun"]
    for session in (inner, outer):
        session.refresh()
        assert set(texts(session)) == ({"begun", "after"} if session is inner else {"kept", *texts(outer)})


def test_a_subscriber_may_write_to_another_session_of_the_store(place: Place) -> None:
    bus = InProcessEventBus()
    store = place.open()
    first, second = open_session(store, "first", bus=bus), open_session(store, "second")
    bus.subscribe(Ping, lambda event: second.dispatch(Note(str(event.number))))
    for number in range(3):
        assert first.publish(Ping(number)).ok
    assert texts(second) == ["0", "1", "2"]


def test_the_store_lists_its_sessions_with_tags_and_times(place: Place) -> None:
    store = place.open()
    first = open_session(store, "first", tags={"user": "ann", "a b": ""})
    second = open_session(store, "second")
    first.dispatch(Note("1"))
    second.dispatch(Note("1"))
    second.dispatch(Note("2"))
    listed = {each.session_id: each for each in place.open().sessions()}
    assert listed.keys() == {"first", "second"}
    assert [listed[name].version for name in ("first", "second")] == [1, 2]
    assert dict(listed["first"].tags) == {"user": "ann", "a b": ""}
    for session in (first, second):
        head = listed[session.session_id]
        assert head.created_at == session.created_at
        assert head.changed_at == session.history()[-1].at
    again = Session(session_id="first", store=place.open(), tags={"user": "bob"})
    assert (again.created_at, again.tags) == (first.created_at, {"user": "ann", "a b": ""})


def test_a_session_that_is_deleted_is_gone_and_its_id_is_free(place: Place) -> None:
    store = place.open()
    session, there = open_session(store), open_session(place.open())
    session.dispatch(Note("1"))
    session.claim("once")
    there.refresh()
    assert (store.delete("run-7"), store.delete("run-7")) == (True, False)
    for each in (session, there):
        message = "session 'run-7' was deleted from the store"
        assert refused(lambda each=each: each.dispatch(Note("2"))) == message
        assert refused(each.refresh) == message
        assert texts(each) == ["1"]
    assert refused(lambda: store.verify("run-7")) == "the store holds no session 'run-7'"
    del session, there, each
    gc.collect()
    fresh = open_session(place.open())
    assert (fresh.version, texts(fresh), fresh.claim("once")) == (0, [], True)
    fresh.dispatch(Note("anew"))
    assert store.verify("run-7") == 1


def test_a_session_that_was_deleted_and_begun_anew_is_not_taken_for_the_old(place: Place) -> None:
    store = place.open()
    for versions in (1, 2, 5):
        old = open_session(store)
        old.dispatch(Note("old"))
        old.dispatch(Note("old"))
        place.open().delete("run-7")
        fresh = open_session(place.open())
        for _ in range(versions):
            fresh.dispatch(Note("new"))
        with pytest.raises(StoreError):
            old.dispatch(Note("never"))
        with pytest.raises(StoreError):
            old.refresh()
        assert texts(old) == ["old", "old"]
        fresh.dispatch(Note("last"))
        assert texts(fresh) == ["new"] * versions + ["last"]
        assert store.verify("run-7") == versions + 1
        place.open().delete("run-7")
        del old, fresh
        gc.collect()


def test_another_session_is_read_by_the_reducers_of_this_one(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "CHECKPOINT", 2)
    store = place.open()
    for name in ("one", "two"):
        session = open_session(store, name)
        call(session, *PLAN)
        for text in "abc":
            session.dispatch(Note(f"{name} {text}"))
        session.rewind(3)
    reader = open_session(store, "reader")
    for head in store.sessions():
        past = reader.peek(head)
        assert (past.session_id, past.version) == (head.session_id, 5)
        assert texts(past) == [f"{head.session_id} a", f"{head.session_id} b"]
        assert past.select_latest(Plan) == open_session(store, str(head.session_id)).select_latest(Plan)
    assert (reader.version, texts(reader), len(store.sessions())) == (0, [], 2)
    call(open_session(store, "late"), *PLAN)
    with pytest.raises(StoreError, match="by a reducer that is not registered here"):
        Session(session_id="stranger", store=store).peek(store.sessions()[0]).select_latest(Plan)
    with pytest.raises(TransactionError, match="only a session in a store can read others: give it a store"):
        Session().peek(store.sessions()[0])
