"""Versions, history, time travel, and slices that are read without their reducers, in every store."""

from __future__ import annotations

import gc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from typing import Any

import attrs
import pytest
from session_records import Count, Note, Ping, Thing, collect_from_here, texts, words_of
from store_places import PLAN, Place, call, lived, mark, numbered, open_session, refused, states_of

from planning import Plan
from planning.tools import ToolResult
from session import (
    Change,
    Rewound,
    RolledBack,
    Session,
    SessionEvent,
    StoreError,
    ToolFailed,
    ToolInvoked,
    TransactionError,
    VersionError,
    append,
    replace_latest,
    stored,
)
from session.stores import MemoryStore, StoredSession

evolve: Any = attrs.evolve  # of whichever class; the fields are those that all of them have


def without_chance(change: Change) -> object:
    """A change without times, ids and durations."""

    def plain(event: object) -> object:
        if not isinstance(event, (SessionEvent, RolledBack)):
            return event
        result = getattr(event, "result", None)
        # What a value was reduced to is in the states.
        chance: dict[str, Any] = {"event_id": None, "created_at": None, "value": None}
        chance["result"] = result.message if isinstance(result, ToolResult) else result
        fields = {each.alias for each in attrs.fields(type(event))}
        return evolve(event, **{name: chance[name] for name in chance.keys() & fields})

    return evolve(change, at=None, events=tuple(map(plain, change.events)))


def test_the_history_is_that_of_a_session_in_memory_and_names_who_changed_what(place: Place) -> None:
    lived(open_session(place.open()))
    session, in_memory = open_session(place.open()), lived(open_session(None))
    history = session.history()
    assert list(map(without_chance, history)) == list(map(without_chance, in_memory.history()))
    assert states_of(session) == states_of(in_memory)
    assert session.select_all(Ping) == tuple(
        event for change in history for event in change.events if isinstance(event, Ping)
    )
    rows = [
        (each.actor, each.call_id, each.changed, *(type(event).__name__ for event in each.events))
        for each in history
    ]
    assert rows == [
        ("scout", "c1", True, "ToolInvoked"),
        ("scout", None, True, "ToolInvoked"),
        (None, "c3", False, "ToolFailed"),
        (None, None, False, "ToolInvoked"),
        (None, None, True, "Note"),
        (None, None, False, "Ping"),
        ("me", None, True, "ToolInvoked"),
        (None, None, True, "Reset"),
        (None, None, True, "RolledBack"),
        (None, None, True, "ToolInvoked"),
        ("host", None, True, "Rewound"),
        ("both", "c9", True, "Note", "Count", "Ping"),
    ]
    assert [each.version for each in history] == [*range(1, 13)]
    assert [each.at for each in history] == sorted(each.at for each in history)
    assert [(each.created_at, each.changed_at) for each in place.open().sessions()] == [
        (session.created_at, history[-1].at)
    ]
    assert {each.at.utcoffset() for each in history} == {timedelta()}
    assert (session.history(after=9), session.history(after=12)) == (history[9:], ())


def test_all_sessions_are_listed_or_the_newest(place: Place) -> None:
    store, now = place.open(), datetime(2026, 1, 1, tzinfo=UTC)
    names = [f"run-{number}" for number in range(130)]
    for number, name in enumerate(names):
        at = now + timedelta(seconds=number)
        store.append(StoredSession(name, 0, b"", at, at), None, expected=0)
    newest = names[::-1]
    for limit in (None, 130, 2, 0):
        assert [each.session_id for each in store.sessions(limit)] == newest[:limit]


def test_a_version_that_does_not_exist_is_refused(place: Place) -> None:
    for session in (lived(open_session(None)), lived(open_session(place.open()))):
        for version, ask in product((-1, 13, True, 1.0, "1"), ("at", "history", "rewind", "fork")):
            assert words_of(VersionError, getattr(session, ask), version) == (
                f"the session has the versions 0 to 12, got {version!r}"
            )
        assert session.version == 12


def test_a_fork_is_whole_where_its_session_was_open_already_and_empty(place: Place) -> None:
    store = place.open()
    early = open_session(store, "other")
    assert early.version == 0
    session = lived(open_session(store))
    fork = session.fork(session_id="other", tags={"why": "trial"})
    assert states_of(fork) == states_of(session)
    for each in (fork, early, open_session(store, "other")):
        assert (each.version, each.history(), dict(each.tags)) == (
            session.version, session.history(), {"why": "trial"}
        )  # fmt: skip


def test_deleting_a_source_leaves_its_forks_whole(place: Place) -> None:
    collect_from_here()
    store = place.open()
    first = lived(open_session(store)).fork(9, session_id="first")
    first.publish(Ping(70))
    mark(first, "S003")
    second = first.fork(session_id="second")
    second.publish(Ping(80))
    forks = [
        *(second, second.fork(4, session_id="early"), second.fork(10, session_id="middle")),
        second.fork(9, session_id="before"),
    ]
    expected = {str(each.session_id): (states_of(each), each.history()) for each in forks}
    assert store.delete("run-7")
    assert store.delete("first")
    del first, second, forks
    gc.collect()
    for name, (states, history) in expected.items():
        again = open_session(place.open(), name)
        assert (states_of(again), again.history(), store.verify(name)) == (states, history, len(history))
    origins = {each.session_id: each.forked_from for each in store.sessions()}
    assert origins == {
        "second": (("run-7", 9), ("first", 11)),
        "early": (("run-7", 4),),
        "middle": (("run-7", 9), ("first", 10)),
        "before": (("run-7", 9),),
    }
    pings = open_session(place.open(), "second").select_all(Ping)
    by = [(event.number, str(event.session_id)) for event in pings]
    assert by == [(5, "run-7"), (70, "first"), (80, "second")]


def test_a_fork_without_changes_is_a_session_at_once(place: Place) -> None:
    store = place.open()
    open_session(store, "taken").dispatch(Note("theirs"))
    new = open_session(store, "new")
    assert refused(lambda: new.fork(session_id="taken")) == (
        "the store holds a session 'taken' already: give the fork another id"
    )
    early = lived(open_session(store)).fork(0, session_id="early")
    unchanged = [each.session_id for each in store.sessions() if not each.version]
    assert (unchanged, store.head("new")) == (["early"], None)
    assert (early.version, early.history(), early.select_latest(Plan)) == (0, (), None)
    for fork in (early, new.fork(session_id="other")):
        fork.dispatch(Note("own"))
        assert texts(open_session(place.open(), str(fork.session_id))) == ["own"]
        assert store.verify(fork.session_id) == 1


def test_a_private_slice_is_in_no_store_and_stays_at_a_rewind(place: Place) -> None:
    store = place.open()
    session = open_session(store)
    session.register_reducer(Secret, lambda slice_, secret: (*slice_, secret), is_private=True)
    session.dispatch(Secret(12345678))
    assert session.version == 0
    with session.transaction() as transaction:
        transaction.dispatch(Note("open"))
        transaction.dispatch(Secret(123456789))
    session.rewind(0)
    secrets = (Secret(12345678), Secret(123456789))
    assert session.select_all(Secret) == session.at(1).select_all(Secret) == secrets
    assert [change.events[:1] for change in session.history()] == [(Note("open"),), (Rewound({}, version=0),)]
    kept = [change.text for change in store.changes("run-7", 1, 9)]
    kept += [checkpoint.text for checkpoint in store.checkpoints("run-7", 9, 9)]
    assert [text for text in kept if "12345678" in text or "Secret" in text] == []
    assert Secret not in session.snapshot().slices
    there = open_session(place.open())
    there.register_reducer(Secret, append, is_private=True)
    assert there.select_all(Secret) == ()
    files = [each for each in place.path.parent.rglob("*") if each.is_file()]
    assert b"12345678" not in b"".join(each.read_bytes() for each in files)
    template = Session()
    template.register_like(session)
    del session, transaction
    gc.collect()
    again = Session(session_id="run-7", store=store)
    again.register_like(template)
    assert again.select_all(Secret) == ()


@attrs.frozen
class Secret:
    """A value that no store may have."""

    number: int


def test_a_claim_inside_a_transaction_is_refused_and_a_fork_has_those_before_it(place: Place) -> None:
    for session in (open_session(None, "a"), open_session(place.open())):
        session.dispatch(Note("first"))
        with session.transaction():
            assert words_of(TransactionError, session.claim, "send a mail") == (
                "claim outside of transactions: a rollback does not undo a claim"
            )
        assert (session.claim("send a mail"), session.fork().claim("send a mail")) == (True, False)


def test_a_rollback_frees_no_key(place: Place) -> None:
    session = open_session(place.open())
    call(session, *PLAN)
    snapshot = session.snapshot()
    first = mark(session, "S001", idempotency_key="1")
    session.rollback(snapshot)
    repeat = mark(session, "S001", idempotency_key="1")
    assert (repeat.message, session.version) == (first.message, 3)
    found = session.find_call("1")
    assert found is not None
    assert (found.name, found.result.message) == ("planning_mark_step", first.message)


def test_a_transaction_takes_one_key_and_finds_its_call(place: Place) -> None:
    def call_of(key: str) -> ToolInvoked:
        return ToolInvoked(f"call {key}", {}, None, idempotency_key=key)

    other_key = "the open transaction has a call with another idempotency key: end it first"
    for session in (Session(), open_session(place.open())):
        session.publish(call_of("1"))
        publish, find = session.publish, session.find_call
        for act in (partial(publish, call_of("4")), partial(find, "1")):
            with pytest.raises(TransactionError) as caught, session.transaction():
                publish(call_of("3"))
                assert getattr(find("3"), "name", None) == "call 3"
                act()
            assert str(caught.value) == other_key
        with session.transaction():
            assert words_of(TransactionError, session.refresh) == (
                "refresh outside of transactions: inside, you have the newest version"
            )
        assert find("3") is None
        publish(ToolFailed("call 8", None, idempotency_key="8"))
        assert session.history()[-1].idempotency_key == "8"
        with session.transaction():
            publish(ToolFailed("call 8", None, idempotency_key="8"))
            publish(call_of("9"))
        assert session.history()[-1].idempotency_key == "9"
        with session.transaction():
            for key in "56":
                publish(call_of(key))
                session.rewind(1)
                assert find(key) is None
            publish(call_of("7"))
        assert getattr(find("7"), "name", None) == "call 7"


@pytest.mark.parametrize("first", [3, 99])
def test_a_slice_that_nobody_knows_here_is_carried_through_checkpoints_unharmed(
    place: Place, first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "CHECKPOINT", first)
    whole = open_session(place.open())
    for number in range(8):
        whole.dispatch(Note(str(number)))
        whole.dispatch(Count(number + 1))
    monkeypatch.setattr(stored, "CHECKPOINT", 3)
    other = Session(session_id="run-7", store=place.open())
    other.register_reducer(Thing, append)
    for number in range(20):
        other.dispatch(Thing(number))
        if number % 7 == 3:
            other.rewind(other.version - 1)
    assert other.version == 16 + 20 + 3
    assert refused(other.snapshot) == (
        "the session has a slice that is unknown here, session_records:Count: import its module and "
        "register its reducers first"
    )
    there = open_session(place.open())
    assert texts(there) == [*"01234567"]
    assert there.select_all(Count) == (Count(36),)
    for version, count in {0: 0, 1: 1, 15: 8, 20: 8, 39: 8}.items():
        assert texts(there.at(version)) == [*"01234567"][:count]
    other.reset()
    assert (texts(open_session(place.open())), place.open().verify("run-7")) == ([], 40)
    other.rewind(16)
    assert texts(open_session(place.open())) == [*"01234567"]


def test_a_record_that_is_not_of_its_newest_change_is_damage_of_that(monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_session(store := MemoryStore())
    session.dispatch(Note("1"))
    monkeypatch.setattr(store, "head", lambda _id: attrs.evolve(store.sessions()[0], hash=b"another"))
    with pytest.raises(StoreError) as caught:
        store.verify("run-7")
    assert (str(caught.value).partition(";")[0], caught.value.version) == (
        "version 1 is damaged in the store",
        1,
    )


def test_a_clone_can_go_back_to_the_version_that_it_began_with(place: Place) -> None:
    session = open_session(place.open())
    for name in ("a", "b"):
        session.dispatch(Note(name))
    clone = session.clone()
    assert words_of(VersionError, clone.at, 1) == "version 1 is no longer kept; ask for 2 or later"
    clone.dispatch(Note("c"))
    assert (texts(clone.at(2)), clone.at(2).version) == (["a", "b"], 2)
    fork = clone.fork(2)
    assert texts(fork) == ["a", "b"]
    assert words_of(VersionError, fork.at, 1) == "version 1 is no longer kept; ask for 2 or later"
    assert (clone.rewind(2), texts(clone)) == (4, ["a", "b"])
    assert words_of(VersionError, clone.at, 1) == "version 1 is no longer kept; ask for 2 or later"
    few = Session(session_id="run-7", store=place.open(), history=9)
    few.register_reducer(Note, append)
    clone = few.clone()
    clone.dispatch(Note("c"))
    for ask in (clone.at, clone.history, clone.rewind, clone.fork):
        assert words_of(VersionError, ask, 1) == (
            "version 1 is no longer kept: the session keeps its last 9 changes; ask for 2 or later"
        )


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
        with pytest.raises(StoreError) as caught:
            select()
        assert (str(caught.value), caught.value.version) == (message, 1)
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
    with pytest.raises(StoreError) as caught:
        there.at(12).select_all(Note)
    assert (str(caught.value), caught.value.version) == (message, 12)
    assert refused(lambda: there.dispatch(Note("never"))) == message
    assert (session.refresh(), texts(session)) == (12, [f"{number}" * 30 for number in range(12)])
    assert there.store is not None
    there.store.drop_checkpoints("run-7")
    assert there.select_all(Note) == (Note("11" * 30),)


def test_a_record_in_another_format_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    remedy = "use the release that wrote it, or rename the current class"
    for written, known in ((1, 2), (2, 1)):
        monkeypatch.setattr(Note, "RECORD_FORMAT", written, raising=False)
        open_session(place.open(), f"in-{written}").dispatch(Note("x"))
        monkeypatch.setattr(Note, "RECORD_FORMAT", known)
        there = open_session(place.open(), f"in-{written}")
        assert refused(partial(there.select_all, Note)) == (
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
    assert numbered(Session(session_id="run-7", store=place.open(), history=2)) == [3, 4]
    session = Session(session_id="run-7", store=place.open())
    assert numbered(session) == [0, 1, 2, 3, 4]
    assert numbered(session.at(2)) == [0, 1]
    assert len(session.history()) == 5


def test_what_is_restored_inside_a_transaction_is_seen_there(place: Place) -> None:
    in_memory = open_session(None)
    openers: list[Callable[[], Session]] = [lambda: in_memory, lambda: open_session(place.open())]
    for opener in openers:
        for text in "ab":
            opener().dispatch(Note(text))
        session = opener()
        with session.transaction() as transaction:
            session.reset()
            assert (texts(session), session.select_latest(Note)) == ([], None)
            session.rewind(1)
            assert (texts(session), session.select_all(Thing)) == (["a"], ())
            transaction.dispatch(Note("c"))
            session.publish(Ping(1))
            assert (texts(session), numbered(session)) == (["a", "c"], [1])
        for each in (session, opener()):
            assert (texts(each), numbered(each), each.version) == (["a", "c"], [1], 3)
            assert (texts(each.at(2)), texts(each.snapshot())) == (["a", "b"], ["a", "c"])
