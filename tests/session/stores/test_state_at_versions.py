"""Slices that are read out of a store: without their reducers, by other reducers, in older formats."""

from __future__ import annotations

import pytest
from session_records import Count, Note, Ping, Thing, texts
from store_places import Place, numbered, open_session, refused

from planning import Plan
from session import Session, VersionError, append, replace_latest, stored
from session.stores import StoreError


def test_a_slice_that_nobody_knows_here_is_carried_through_checkpoints_unharmed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "CHECKPOINT", 3)
    whole = open_session(place.open())
    for number in range(8):
        whole.dispatch(Note(str(number)))
        whole.dispatch(Count(number + 1))
    partial = Session(session_id="run-7", store=place.open())
    partial.register_reducer(Thing, append)
    for number in range(20):
        partial.dispatch(Thing(number))
        if number % 7 == 3:
            partial.rewind(partial.version - 1)
    assert partial.version == 16 + 20 + 3
    assert refused(partial.snapshot) == (
        "the session has a slice that is unknown here, session_records:Count: import its module and "
        "register its reducers first"
    )
    there = open_session(place.open())
    assert texts(there) == [str(number) for number in range(8)]
    assert there.select_all(Count) == (Count(36),)
    assert [texts(there.at(version)) for version in (0, 1, 15, 20, 39)] == [
        [],
        ["0"],
        [str(number) for number in range(8)],
        [str(number) for number in range(8)],
        [str(number) for number in range(8)],
    ]
    partial.reset()
    assert (texts(open_session(place.open())), place.open().verify("run-7")) == ([], 40)
    partial.rewind(16)
    assert texts(open_session(place.open())) == [str(number) for number in range(8)]


def test_a_clone_can_go_back_to_the_version_that_it_began_with(place: Place) -> None:
    session = open_session(place.open())
    for name in ("a", "b"):
        session.dispatch(Note(name))
    clone = session.clone()
    clone.dispatch(Note("c"))
    assert (texts(clone.at(2)), clone.at(2).version) == (["a", "b"], 2)
    assert texts(clone.fork(2)) == ["a", "b"]
    assert (clone.rewind(2), texts(clone)) == (4, ["a", "b"])
    with pytest.raises(VersionError, match="version 1 is no longer kept; ask for 2 or later"):
        clone.at(1)


def test_a_slice_without_its_reducers_is_an_error_only_when_it_is_selected(place: Place) -> None:
    open_session(place.open()).dispatch(Note("1"))
    session = Session(session_id="run-7", store=place.open())
    assert session.version == 1
    session.register_reducer(Ping, lambda slice_, ping: (Thing(ping.number),), Thing)
    session.publish(Ping(3))
    assert session.select_all(Thing) == (Thing(3),)
    message = (
        "version 1 changed Note by a reducer that is not registered here: register it, as "
        "PlanningToolsSection does for a plan"
    )
    for select in (lambda: session.select_all(Note), lambda: session.at(2).select_latest(Note)):
        assert refused(select) == message
    assert session.at(0).select_all(Note) == ()
    assert refused(session.clone).startswith("the session has a slice that is unknown here")
    session.register_reducer(Note, append)
    assert texts(session) == ["1"]


def test_reducers_that_changed_are_an_error_and_never_rebuild_in_silence(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "CHECKPOINT", 3)
    session = Session(session_id="run-7", store=place.open())
    session.register_reducer(Note, append)
    for number in range(12):
        session.dispatch(Note(f"{number}" * 30))
    there = Session(session_id="run-7", store=place.open())
    there.register_reducer(Note, replace_latest)
    message = refused(lambda: there.select_all(Note))
    assert message == (
        "the reducers of Note have changed since version 9: they compute another slice for version 12 "
        "than was written; use the release that wrote it, or accept the current reducers with "
        "store.drop_checkpoints(session_id)"
    )
    assert refused(lambda: there.at(12).select_all(Note)) == message
    before = place.open().head("run-7")
    with pytest.raises(StoreError):
        there.dispatch(Note("never"))
    assert place.open().head("run-7") == before
    assert texts(session) == [f"{number}" * 30 for number in range(12)]
    assert there.store is not None
    there.store.drop_checkpoints("run-7")
    assert there.select_all(Note) == (Note("11" * 30),)


def test_a_record_in_another_format_than_its_class_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    remedy = "use the release that wrote it, or rename the current class"
    for written, known in ((1, 2), (2, 1)):
        monkeypatch.setattr(Note, "RECORD_FORMAT", written, raising=False)
        open_session(place.open(), f"in-{written}").dispatch(Note("x"))
        monkeypatch.setattr(Note, "RECORD_FORMAT", known)
        there = open_session(place.open(), f"in-{written}")
        assert refused(lambda there=there: there.select_all(Note)) == (
            f"version 1: session_records:Note is stored in format {written}; "
            f"this program has format {known}: {remedy}"
        )
        assert there.select_latest(Plan) is None
        monkeypatch.setattr(Note, "RECORD_FORMAT", written)
        assert texts(open_session(place.open(), f"in-{written}")) == ["x"]


def test_the_logs_of_a_session_that_keeps_few_events_are_bounded_when_they_are_read(place: Place) -> None:
    for number in range(5):
        session = Session(session_id="run-7", store=place.open(), history=2)
        session.publish(Ping(number))
        assert numbered(session) == [*range(5)][max(number - 1, 0) : number + 1]
    session = Session(session_id="run-7", store=place.open())
    assert numbered(session) == [0, 1, 2, 3, 4]
    assert numbered(session.at(2)) == [0, 1]
    assert len(session.history()) == 5


def test_what_is_restored_inside_a_transaction_is_seen_there(place: Place) -> None:
    for text in "ab":
        open_session(place.open()).dispatch(Note(text))
    session = open_session(place.open())
    with session.transaction() as transaction:
        session.reset()
        assert (texts(session), session.select_latest(Note)) == ([], None)
        session.rewind(1)
        assert texts(session) == ["a"]
        transaction.dispatch(Note("c"))
        session.publish(Ping(1))
        assert (texts(session), numbered(session)) == (["a", "c"], [1])
    for each in (session, open_session(place.open())):
        assert (texts(each), numbered(each), each.version) == (["a", "c"], [1], 3)
        assert texts(each.at(2)) == ["a", "b"]
