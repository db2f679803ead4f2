"""One session for several objects, processes, buses, readers and watches, in every store."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from session_records import Count, Note, Ping, Thing, elsewhere, texts, words_of
from store_places import (
    BUSY,
    PLAN,
    FolderPlace,
    Place,
    PostgresPlace,
    SqlitePlace,
    call,
    mark,
    numbered,
    open_session,
    refused,
    registered,
    state_of,
)

from planning import Plan
from planning.suite.events import PlanChanged
from session import InProcessEventBus, Session, TransactionError, VersionError, append, stored, transaction
from session.records import Unread
from session.stores import SqliteStore, StaleVersion, StoreBusy, StoreError


def listening(bus: InProcessEventBus) -> list[PlanChanged]:
    heard: list[PlanChanged] = []
    bus.subscribe(PlanChanged, heard.append)
    return heard


def test_objects_of_one_store_and_id_share_a_state(place: Place) -> None:
    store, buses = place.open(), [InProcessEventBus(), InProcessEventBus()]
    first, same, other = (open_session(store, bus=bus) for bus in (buses[0], *buses))
    heard, pings = [listening(bus) for bus in buses], list[Ping]()
    buses[0].subscribe(Ping, pings.append)
    call(first, *PLAN)
    mark(same, "S001", actor="two")
    other.rewind(1)
    first.publish(Ping(1))
    for number, bus in enumerate(buses, 2):
        bus.publish(Ping(number, session_id="run-7"))
    assert [(each.version, state_of(each)) for each in (first, same, other)] == [(6, state_of(first))] * 3
    assert first.history() == same.history() == other.history()
    assert [ping.number for ping in pings] == [1, 2]
    changes = [(1, None, "session"), (2, "two", "session"), (3, None, "session")]
    assert [[(each.version, each.actor, each.origin) for each in found] for found in heard] == [changes] * 2
    for number, session in ((4, first), (5, same)):
        session.close()
        buses[0].publish(Ping(number, session_id="run-7"))
    assert numbered(first) == numbered(same) == numbered(other) == [1, 2, 3, 4]


def test_refresh_takes_over_what_another_process_did_and_announces_each_commit_once(place: Place) -> None:
    bus = InProcessEventBus()
    here, there = open_session(place.open(), bus=bus), open_session(place.open())
    heard = listening(bus)

    def news() -> list[tuple[int, str | None, str, str]]:
        found = [(each.version, each.actor, each.origin, str(each.diff)) for each in heard[len(told) :]]
        told.extend(heard[len(told) :])
        return found

    told = list[PlanChanged]()
    call(there, *PLAN, actor="scout")
    mark(there, "S001", actor="scout")
    mark(there, "S009")
    call(there, "planning_read_plan", {})
    there.dispatch(Note("one"))
    there.rewind(1, actor="host")
    assert (here.version, state_of(here)) == (0, (None, (), ()))
    assert here.refresh() == here.refresh() == 6
    assert state_of(here) == state_of(there)
    assert news() == [
        (1, "scout", "store", "New plan: Ship it. Added S001, S002, S003."),
        (2, "scout", "store", "S001 done."),
        (6, "host", "store", "S001 pending."),
    ]
    mark(there, "S003")
    here.dispatch(Note("mine"))  # it takes over what is new first
    assert news() == [(7, None, "store", "S003 done.")]
    mark(here, "S002", actor="here")
    assert there.refresh() == 9
    assert state_of(here) == state_of(there)
    assert news() == [(9, "here", "session", "S002 done.")]
    mark(there, "S003", "blocked")
    assert here.find_call("nobody's") is None
    assert news() == [(10, None, "store", "S003 blocked.")]
    assert [each.after for each in told[:-1]] == [each.before for each in told[1:]]


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
    assert refused(lambda: here.select_latest(Plan)) == (
        "version 2 changed Plan by a reducer that is not registered here: register it, as "
        "PlanningToolsSection does for a plan"
    )


def test_what_a_reducer_here_refuses_is_never_what_it_was_before(place: Place) -> None:
    here, there = Session(session_id="run-7", store=place.open()), open_session(place.open())
    here.register_reducer(Count, lambda _, count: (Count(7 // (count.total - 1)),))
    assert here.select_all(Count) == ()
    there.dispatch(Count(1))
    here.refresh()
    assert (
        refused(lambda: here.select_all(Count))
        == "version 1 cannot be read: integer division or modulo by zero"
    )


def test_a_second_writer_waits_for_the_first_or_is_refused(place: Place) -> None:
    place.timeout = 0.2
    here, there = open_session(place.open()), open_session(place.open())
    if isinstance(place, FolderPlace):  # it has no lock

        def late() -> None:
            with here.transaction() as opened:
                opened.dispatch(Note("lost"))
                there.dispatch(Note("1"))

        message = "the session has version 1, not 0: refresh it and try again"
        assert words_of(StaleVersion, late) == message
        assert (here.version, texts(here)) == (0, [])
    else:
        with here.transaction() as opened:
            opened.dispatch(Note("1"))
            works: list[Callable[[], object]] = [
                lambda: there.dispatch(Note("lost")),
                there.transaction(timeout=0).__enter__,
                lambda: here.refresh(timeout=0),
                lambda: here.publish(Ping(1), timeout=0),
            ]
            refusals = [each for work in works for each in elsewhere(work)]
        assert [(type(each), str(each)) for each in refusals] == [
            (StoreBusy, BUSY.format(seconds)) for seconds in (place.timeout, 0, 0, 0)
        ]
    for number, session in ((2, there), (3, here)):
        session.dispatch(Note(str(number)))
        assert (session.version, texts(session)) == (number, [*"123"][:number])


def test_two_that_begin_one_session_at_once_have_the_same(place: Place) -> None:
    here, there = (open_session(place.open(), tags={"by": name}) for name in "ab")
    assert here.store
    assert there.store
    assert here.store.place is not None
    assert (here.store.place == there.store.place) is isinstance(place, (SqlitePlace, PostgresPlace))
    there.dispatch(Note("theirs"))
    assert here.refresh() == 1
    assert (here.created_at, here.tags) == (there.created_at, {"by": "b"})


def test_transactions_of_two_sessions_of_one_place_are_not_nested(place: Place) -> None:
    if isinstance(place, FolderPlace):
        pytest.skip("it has no lock")
    store = place.open()
    outer, inner, elsewhere = (open_session(store, name) for name in ("outer", "inner", "elsewhere"))
    for session in (inner, elsewhere):
        session.dispatch(Note("begun"))
    others = [inner]
    uses: list[Callable[[], object]] = [
        lambda: store.claim("x", "y"),
        lambda: store.delete("elsewhere"),
        elsewhere.fork,
    ]
    if isinstance(store, SqliteStore):
        others += [open_session(place.open(), "inner"), open_session(place.open(), "outer")]
        link = place.path.with_name("folder")
        link.symlink_to(place.path.parent)
        others += [open_session(SqliteStore(link / place.path.name), "inner")]
        uses.append(store.compact)
    for other in others:
        with outer.transaction() as opened:
            opened.dispatch(Note("kept"))
            writes: list[Callable[[], object]] = [*uses, partial(other.dispatch, Note("never"))]
            for use in writes:
                assert words_of(TransactionError, use) == (
                    "a transaction of another session of this store is open in this thread, and they would "
                    "wait for each other: end it first"
                )
        other.dispatch(Note("after"))
    assert texts(elsewhere) == ["begun"]
    for session in (inner, outer):
        session.refresh()
        assert set(texts(session)) == ({"begun", "after"} if session is inner else {"kept", *texts(outer)})


WRITER = """
import signal, sys
signal.alarm(60)
from planning import PlanningToolsSection, SetupPlan
from session import Session

session = Session(session_id="run-7", store=sys.argv[1])
PlanningToolsSection(session=session)
while session.version < 2_000:
    if session.refresh() != 1 or session.history()[0].actor != sys.argv[2]:  # the other one is there
        with session.transaction(actor=sys.argv[2]) as transaction:
            transaction.dispatch(SetupPlan("Ship it"))
"""


@pytest.mark.slow
def test_two_processes_that_write_without_a_pause_both_get_on(path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", WRITER, str(path)]
    writers = [subprocess.Popen([*words, name], env=env) for name in "ab"]
    assert [each.wait() for each in writers] == [0, 0]
    with closing(SqliteStore(path)) as store:
        shares = Counter(change.actor for change in open_session(store).history())
    assert min(shares["a"], shares["b"]) > 400


def test_a_subscriber_may_write_to_another_session_of_the_store(place: Place) -> None:
    bus = InProcessEventBus()
    store = place.open()
    first, second = open_session(store, "first", bus=bus), open_session(store, "second")
    bus.subscribe(Ping, lambda event: second.dispatch(Note(str(event.number))))
    for number in range(3):
        assert first.publish(Ping(number)).ok
    assert texts(second) == ["0", "1", "2"]


def test_a_child_in_a_store_names_its_parent(place: Place) -> None:
    store = place.open()
    child = registered(Session(session_id="child", store=store, parent=open_session(store)))
    child.dispatch(Note("a"))
    head = store.head("child")
    assert head is not None
    assert head.parent == "run-7"


def test_the_changes_of_others_go_on_where_ctrl_c_stopped_them(place: Place) -> None:
    here, there = Session(session_id="run-7", store=place.open()), open_session(place.open())
    stops = [KeyboardInterrupt()]

    def stop(notes: tuple[Note, ...], note: Note) -> tuple[Note, ...]:
        if note.text == "2" and stops:
            raise stops.pop()
        return (*notes, note)

    here.register_reducer(Note, stop)
    here.dispatch(Note("0"))
    for text in "123":
        there.dispatch(Note(text))
    with pytest.raises(KeyboardInterrupt):
        here.refresh()
    here.dispatch(Note("4"))
    assert (texts(here), here.version) == ([*"01234"], 5)


@pytest.mark.parametrize("versions", [0, 1, 2, 5])
def test_a_session_that_was_deleted_is_lost_to_those_that_have_it_and_is_not_taken_for_the_next(
    place: Place, versions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "CHECKPOINT", 2)
    store, beside = place.open(), place.open()
    old = open_session(store)
    old.dispatch(Note("old"))
    old.dispatch(Count(1))
    reader = open_session(beside)
    watch = beside.watch("run-7", after=2, timeout=0)
    place.open().delete("run-7")
    fresh = open_session(place.open())
    for number in range(versions):
        fresh.dispatch(Count(9) if number == 1 else Note("new"))
    lost = "was replaced by another: open it again" if versions else "was deleted from the store"
    for use in (
        lambda: old.dispatch(Note("never")),
        old.refresh,
        reader.history,
        lambda: texts(reader),
        lambda: reader.select_latest(Count),
        lambda: reader.at(1).select_latest(Count),
        *(partial(of, reader.at(1)) for of in (texts, numbered)),
        lambda: reader.at(2).select_latest(Count),
        lambda: texts(reader.at(2)),
        lambda: reader.fork(1),
        reader.refresh,
    ):
        assert refused(use) == f"session 'run-7' {lost}"
    assert refused(partial(next, watch)).startswith(
        f"session 'run-7' {lost.partition(' from')[0].partition(':')[0]}"
    )
    assert state_of(old) == (None, (Note("old"),), (Count(1),))
    fresh.dispatch(Note("last"))
    again = open_session(store)
    new = (["new"] * versions)[versions > 1 :]
    for each in (fresh, again):
        assert texts(each) == [*new, "last"]
    again.dispatch(Note("again"))
    assert refused(old.refresh) == "session 'run-7' was replaced by another: open it again"
    assert store.verify("run-7") == versions + 2


def test_who_opens_a_deleted_session_begins_anew_while_the_old_one_is_open(place: Place) -> None:
    store = place.open()
    old = open_session(store)
    old.dispatch(Note("old"))
    assert store.delete("run-7")
    again = open_session(store)
    assert (texts(again), again.version) == ([], 0)
    again.dispatch(Note("new"))
    assert texts(again) == ["new"]
    assert refused(partial(old.dispatch, Note("never"))) == (
        "session 'run-7' was replaced by another: open it again"
    )


def test_another_session_is_read_by_own_reducers(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "CHECKPOINT", 2)
    store = place.open()
    for name in ("one", "two"):
        session = open_session(store, name)
        call(session, *PLAN)
        for text in "abc":
            session.dispatch(Note(f"{name} {text}"))
            session.publish(Ping(5))
        session.rewind(3)
    reader = Session(session_id="reader", store=store, history=2)
    registered(reader)
    for head in store.sessions():
        past = reader.read_other(head)
        assert (past.session_id, past.version, len(past.select_all(Ping))) == (head.session_id, 8, 2)
        assert texts(past) == [f"{head.session_id} a"]
        assert past.select_latest(Plan) == open_session(store, str(head.session_id)).select_latest(Plan)
    assert (reader.version, texts(reader), len(store.sessions())) == (0, [], 2)
    call(open_session(store, "late"), *PLAN)
    stranger = Session(session_id="stranger", store=store).read_other(store.sessions()[0])
    assert "by a reducer that is not registered here" in refused(lambda: stranger.select_latest(Plan))
    assert words_of(TransactionError, Session().read_other, store.sessions()[0]) == (
        "only a session in a store can read others: give it a store"
    )


def test_the_time_of_a_change_decides_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = open_session(place.open()), open_session(place.open())
    for number, (session, clock) in enumerate([(here, 2e9), (there, 1e9), (here, 1.5e9), (there, 3e9)]):
        monkeypatch.setattr(transaction, "time", lambda clock=clock: clock)
        session.dispatch(Note(str(number)))
    assert texts(there) == ["0", "1", "2", "3"]
    assert [change.at.year for change in there.history()] == [2033, 2001, 2017, 2065]
    assert place.open().verify("run-7") == 4


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("session.stores.watch._BATCH", 8)


def test_a_slow_watcher_loses_nothing_and_sees_what_the_history_has(place: Place) -> None:
    session = open_session(place.open())
    store = place.open()
    watch = store.watch("run-7", after=0, timeout=0)
    assert list(watch) == []
    for number in range(30):
        session.dispatch(Note(str(number)))
        if number % 5 == 0:
            assert next(watch).version == number // 5 + 1
    found = list(watch)
    assert [change.version for change in found] == list(range(7, 31))
    assert found[0].events == (Unread("session_records:Note", {"text": "6"}),)
    assert watch.version == 30
    reader = registered(Session(session_id="run-7", store=store))
    assert list(store.watch("run-7", after=0, timeout=0)) == list(reader.history())
    assert [change.version for change in store.watch("run-7", timeout=0)] == []
    assert [change.version for change in store.watch("run-7", after=28, timeout=0)] == [29, 30]


def test_a_watch_reads_what_is_not_registered_as_its_fields(place: Place) -> None:
    session = open_session(place.open())
    session.register_reducer(Thing, append)
    session.dispatch(Thing((Note("x"), {"of": [Note("y")]})))
    (change,) = place.open().watch("run-7", after=0, timeout=0)
    fields = {"value": ({"text": "x"}, {"of": [{"text": "y"}]})}
    assert change.events == (Unread("session_records:Thing", fields),)
    call(session, *PLAN, idempotency_key="k")
    there = Session(session_id="run-7", store=place.open())
    assert type(getattr(there.find_call("k"), "value", None)) is Unread
    there.register_reducer(Thing, append)
    assert refused(partial(there.select_latest, Thing)) == (
        "version 1: .value[0]: 'session_records:Note' is unknown here: import its module and register a "
        "reducer for it, or pass the class to session.register_types"
    )


def test_a_watch_ends_by_close_from_another_thread(place: Place) -> None:
    watch = place.open().watch("run-7")
    closer = threading.Timer(0.05, watch.close)
    closer.start()
    with watch:
        assert list(watch) == []
    closer.join()
    assert list(watch) == []


def test_watching_in_async_code_ends_by_time_and_by_leaving(place: Place) -> None:
    session, store = open_session(place.open()), place.open()
    for number in range(20):
        session.dispatch(Note(str(number)))

    async def some(after: int, limit: int) -> list[int]:
        found = list[int]()
        async for change in store.awatch("run-7", after=after, timeout=0.1):
            found.append(change.version)
            if len(found) == limit:
                break
        return found

    assert asyncio.run(some(0, 1000)) == list(range(1, 21))
    assert asyncio.run(some(15, 2)) == [16, 17]


def test_work_inside_a_transaction_of_its_task_is_done_at_once_and_sees_it(place: Place) -> None:
    session = open_session(place.open())

    async def main() -> list[str]:
        with session.transaction() as transaction:
            transaction.dispatch(Note("open"))
            return await session.run_in_worker(lambda: texts(session))

    assert asyncio.run(main()) == ["open"]


def test_work_of_one_session_does_not_wait_for_that_of_another(place: Place) -> None:
    store, begun = place.open(), threading.Event()
    one, other = open_session(store), open_session(store, "other")

    async def main() -> bool:
        waits, _ = await asyncio.gather(
            one.run_in_worker(partial(begun.wait, 5)), other.run_in_worker(begun.set)
        )
        return waits

    assert asyncio.run(main())


def test_what_was_not_read_before_is_read_while_another_thread_changes_the_session(place: Place) -> None:
    session, inside, is_read = open_session(place.open()), threading.Event(), threading.Event()

    def change() -> bool:
        with session.transaction():
            inside.set()
            return is_read.wait(5)

    with ThreadPoolExecutor() as pool:
        changed = pool.submit(change)
        assert inside.wait(5)
        assert session.select_all(Thing) == ()
        is_read.set()
        assert changed.result()


def test_a_version_that_the_session_does_not_have_is_refused(place: Place) -> None:
    store = place.open()
    session = open_session(store)
    session.dispatch(Note("1"))

    async def begun(after: int) -> None:
        async for _ in store.awatch("run-7", after=after):
            pass

    for after in (2, -1, "1", True):
        for watch in (partial(store.watch, "run-7"), lambda after: asyncio.run(begun(after))):
            assert words_of(VersionError, watch, after=after) == (
                f"the session has the versions 0 to 1, got {after!r}"
            )


@pytest.mark.parametrize("text", ["replace(text, '6', '7')", "CAST(x'7bff7d' AS TEXT)", "12"])
def test_what_is_before_a_damaged_change_is_given_out_first(path: Path, text: str) -> None:
    session = open_session(SqliteStore(path))
    for number in range(9):
        session.dispatch(Note(str(number)))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE changes SET text = {text} WHERE version = 7")  # noqa: S608 - above
    watch = SqliteStore(path).watch("run-7", after=0, timeout=0)
    assert [next(watch).version for _ in range(6)] == [1, 2, 3, 4, 5, 6]
    for _ in range(2):
        with pytest.raises(StoreError) as caught:
            next(watch)
        assert caught.value.version == 7
