"""What stores cost: statements, trips, checkpoints and items that are read, counted and never timed."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import copy
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any
from unittest.mock import Mock
from weakref import WeakSet

import pytest
from postgres_server import PostgresServer
from session_records import Note, Thing, collect_from_here, texts
from store_places import (
    PLAN,
    Counting,
    MemoryPlace,
    call,
    mark,
    open_session,
    planned,
    refused,
    state_of,
    store_of,
    traced,
)

from laws import work_of
from planning import NewPlanStep, Plan, PlanStep, SetupPlan, register_plan
from session import Session, SessionView, Snapshot, append, append_part, replay, select_latest, stored
from session.events import SessionId
from session.stores import MemoryStore, PostgresStore, SqliteStore, copy_session


def test_opening_a_session_asks_the_same_of_a_file_of_any_size(tmp_path: Path) -> None:
    asked = []
    for count in (3, 300):
        store = SqliteStore(tmp_path / f"{count}.db")
        for number in range(count):
            open_session(store, f"s{number}").dispatch(Note("x"))
        statements = traced(store)
        assert texts(open_session(store, "s2")) == ["x"]
        asked.append(len(statements))
        plans = [
            row[3]
            for statement in set(statements)
            if statement.startswith("SELECT")
            for row in store._reader.connected().execute(f"EXPLAIN QUERY PLAN {statement}")
        ]
        assert [plan for plan in plans if plan.startswith("SCAN")] == []
    assert asked[0] == asked[1] <= 12


def test_many_rewinds_are_replayed_without_checkpoints() -> None:
    store = MemoryStore()
    session = open_session(store)
    call(session, *PLAN)
    mark(session, "S001")
    for _ in range(300):
        session.rewind(session.version)
    session.rewind(0)
    session.rewind(1)
    store.drop_checkpoints("run-7")
    store.states.clear()
    there = open_session(store)
    expected = [state_of(session), *(state_of(session.at(version)) for version in (0, 2))]
    assert [state_of(there.at(version)) for version in (304, 303, 302)] == expected
    assert mark(there, "S002").success


def test_verify_reads_few_checkpoints_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    session = open_session(store)
    for _ in range(100):  # each with a checkpoint
        session.rewind(session.version)
    asked = Mock(side_effect=store.checkpoints)
    monkeypatch.setattr(store, "checkpoints", asked)
    assert store.verify("run-7") == 100
    assert max(call.args[2] for call in asked.call_args_list) <= 10


@pytest.mark.parametrize("way", ["one", "cold", "warm", "other", "later", "two"])
def test_checkpoints_are_further_apart_as_they_grow_however_the_session_is_opened(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "CHECKPOINT", 4)
    monkeypatch.setattr(stored, "_BATCH", 3)
    collect_from_here()
    place = MemoryPlace(Path())
    stores, session = [place.open(), place.open()], open_session(place.open())
    both = [*map(open_session, stores)]
    for number in range(45):
        if way == "two":
            session = both[number % 3 % 2]
        elif way != "one" and (way != "later" or number in {9, 14}):
            del session
            gc.collect()
            store = {"cold": place.open(), "later": place.open(), "other": stores[number % 3 % 2]}.get(
                way, stores[0]
            )
            session = open_session(store)
        session.dispatch(Note("x" * 100))
    found = place.open().checkpoints("run-7", 45, 99)
    assert [each.version for each in found][::-1] == [4, 8, 12, 18, 27, 40]


def test_what_was_read_is_remembered_up_to_a_limit(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, store = open_session(SqliteStore(path)), Counting(path)
    for number in range(20):
        session.dispatch(Note(str(number)))
    for name, limit, again in (
        ("_REMEMBERED", 512, 0),
        ("_REMEMBERED", 8, 20),
        ("_MOST_REMEMBERED", 999, 20),
    ):
        monkeypatch.setattr(replay, name, limit)
        store.states.clear()
        there = open_session(store)
        history, read = there.history(), store.read
        assert (there.history(), len(history), store.read) == (history, 20, read + again)
        monkeypatch.undo()


def test_a_durable_mark_is_six_statements(tmp_path: Path) -> None:
    session = open_session(SqliteStore(tmp_path / "plans.db"))
    call(session, *PLAN)
    mark(session, "S001")
    statements = traced(store_of(session))
    assert mark(session, "S002").success
    verbs = [statement.split()[0] for statement in statements]
    assert verbs == ["BEGIN", "SELECT", "SELECT", "UPDATE", "INSERT", "COMMIT"]


def test_the_steps_of_a_plan_are_written_and_read_many_at_a_time() -> None:
    def calls(count: int) -> tuple[int, int]:
        steps = [PlanStep(f"S{place:03d}", "a", None, "pending", ("b",)) for place in range(count)]
        plan = Plan("x", "active", tuple(steps))
        snapshot = Snapshot({Plan: (plan,)}, "run-7", datetime.now(UTC))
        text = snapshot.to_json()
        return work_of(snapshot.to_json), work_of(lambda: Snapshot.from_json(text))

    (wrote, read), (wrote_more, read_more) = calls(100), calls(200)
    assert wrote_more - wrote <= 100 * 72  # one at a time 81
    assert read_more - read <= 100 * 65  # one at a time 81


def test_a_slice_is_replayed_without_keeping_what_it_was_before() -> None:
    made, most, store = WeakSet[Thing](), list[int](), MemoryStore()

    def replace(_slice: tuple[Thing, ...], note: Note) -> tuple[Thing, ...]:
        made.add(item := Thing(note.text))
        most.append(len(made))
        return (item,)

    for count in (60, 0):  # it is replayed the second time
        session = Session(session_id="run-7", store=store)
        session.register_reducer(Note, replace, Thing)
        for number in range(count):
            session.dispatch(Note(str(number)))
        assert session.select_all(Thing) == (Thing("59"),)
        del session
        store.warm.clear()  # what was committed last in this process is not replayed
    assert max(most) <= 3
    assert len(most) > 100


def test_a_slice_that_append_makes_grows_without_being_read_and_is_whole_all_the_same(path: Path) -> None:
    def opened() -> Session:
        session = Session(session_id="run-7", store=Counting(path))
        session.register_reducer(Note, append_part(copy))
        return session

    session = opened()
    for number in range(300):
        session.dispatch(Note(str(number)))
    there = opened()
    there.dispatch(Note("300"))
    assert isinstance(there.store, Counting)
    assert there.store.read < 150  # those since the newest checkpoint
    assert texts(there) == [str(number) for number in range(301)]
    late = opened()
    late.dispatch(Note("301"))
    store_of(late).delete("run-7")
    other = opened()
    for _ in range(302):
        other.dispatch(Note("other"))
    assert refused(lambda: late.select_all(Note)).startswith("session 'run-7' was replaced by another")


@pytest.fixture
def store(path: Path) -> Iterator[Counting]:
    collect_from_here()
    with closing(Counting(path)) as found:
        yield found


def request(store: SqliteStore, name: str, **arguments: object) -> str:
    message = planned(store)[1].call(f"planning_{name}", arguments).message
    gc.collect()
    return message


def titles(session: Session | SessionView) -> list[str]:
    plan = session.select_latest(Plan)
    assert plan is not None
    return [step.title for step in plan.steps]


def test_a_request_reads_nothing_of_what_this_process_committed(store: Counting) -> None:
    request(store, "setup_plan", objective="o", initial_steps=["a", "b"])
    read = store.read
    assert request(store, "mark_step", step_id="S001", status="done") == "S001 done. Next: S002 b"
    assert request(store, "add_step", steps=["c"]) == "Added S003."
    assert store.read == read
    with closing(SqliteStore(store._path)) as cold:
        assert planned(cold)[0].select_latest(Plan) == planned(store)[0].select_latest(Plan)
        assert cold.verify("run-7") == 3


def test_it_opens_without_asking_and_the_first_look_says_what_is_there(store: Counting, path: Path) -> None:
    request(store, "setup_plan", objective="o", initial_steps=["a", "b"])
    asked = store.asked
    session = planned(store)[0]
    assert store.asked == asked
    with closing(SqliteStore(path)) as other:
        request(other, "mark_step", step_id="S001", status="done")
    assert (session.version, len(session.history())) == (2, 2)
    assert session.created_at == store.sessions()[0].created_at


def test_threads_that_look_at_once_see_the_same(store: Counting) -> None:
    request(store, "setup_plan", objective="o", initial_steps=["a"])
    late, others = Event(), Event()

    session, toolbox = planned(store)
    session.register_reducer(Thing, append, is_private=True)
    quick = store.head

    def slow(session_id: SessionId) -> object:
        found = quick(session_id)
        late.set()
        others.wait(10)
        return found

    with ThreadPoolExecutor() as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "head", slow)
        reader = pool.submit(lambda: session.version)
        assert late.wait(10)
        patch.setattr(store, "head", quick)
        assert toolbox.call("planning_add_step", {"steps": ["b"]}).message == "Added S002."
        session.dispatch(Thing("kept in memory"))
        others.set()
        assert reader.result() == 2
    assert session.select_all(Thing) == (Thing("kept in memory"),)
    assert toolbox.call("planning_add_step", {"steps": ["c"]}).message == "Added S003."
    assert store.verify("run-7") == 3


def test_a_session_that_was_damaged_since_is_refused_at_the_first_look(store: Counting, path: Path) -> None:
    request(store, "setup_plan", objective="o", initial_steps=["a"])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE sessions SET version = 7")
    session = Session(session_id="run-7", store=store)
    for _ in range(2):
        assert refused(lambda: session.version) == "the record of session 'run-7' is damaged"


def test_what_was_lost_by_restoring_a_copy_is_in_no_version(store: Counting, path: Path) -> None:
    request(store, "setup_plan", objective="o", initial_steps=["a"])
    with closing(SqliteStore(path.with_name("copy.db"))) as copy, closing(SqliteStore(path)) as other:
        copy_session(store, copy, "run-7")
        request(store, "add_step", steps=["lost"])
        lost = planned(store)[0]
        assert titles(lost) == ["a", "lost"]
        watch = store.watch("run-7", after=0, timeout=0)
        assert [change.version for change in watch] == [1, 2]
        other.delete("run-7")
        copy_session(copy, other, "run-7")
        request(other, "add_step", steps=["kept"])
        assert refused(lost.refresh).startswith("session 'run-7' was replaced")
        assert titles(planned(store)[0]) == ["a", "kept"]
        gc.collect()
        request(other, "add_step", steps=["last"])
    for look in (lost.refresh, watch.poll):
        assert refused(look) == "session 'run-7' was replaced by another: open it again"
    session = planned(store)[0]
    assert [titles(session.at(version)) for version in (2, 3)] == [["a", "kept"], ["a", "kept", "last"]]
    session.rewind(2)
    assert titles(planned(store)[0]) == ["a", "kept"]


def test_what_other_reducers_made_is_not_taken_for_what_these_make(store: Counting) -> None:
    def shout(_plans: tuple[Plan, ...], command: SetupPlan) -> tuple[Plan, ...]:
        return (Plan(command.objective.upper(), "active"),)

    session = planned(store)[0]
    session.dispatch(SetupPlan("o", (NewPlanStep("a"),)))
    del session
    gc.collect()
    again = Session(session_id="run-7", store=store)
    again.register_reducer(SetupPlan, shout, Plan)
    assert select_latest(again, Plan) == Plan("O", "active")


def test_so_many_sessions_stay_warm_and_no_more(store: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("session.stores.base._WARM", 3)
    for name in "abcdec":
        session = Session(session_id=name, store=store)
        register_plan(session)
        session.dispatch(SetupPlan("o"))
    assert list(store.warm) == ["d", "e", "c"]


class Trips(PostgresStore):
    trips = 0

    def _execute(self, *asked: Any) -> Any:
        self.trips += 1
        return super()._execute(*asked)


@pytest.mark.postgres
@pytest.mark.parametrize("changes", [1, 40])
def test_a_warm_request_takes_two_trips_and_any_other_few(postgres: PostgresServer, changes: int) -> None:
    schema = postgres.schema()
    store, other = (Trips(postgres.url, schema=schema) for _ in range(2))
    store.create()

    async def request(store: Trips, title: str) -> tuple[str, int]:
        store.trips = 0
        added = await planned(store)[1].acall("planning_add_step", {"steps": [title]})
        return added.message, store.trips

    async def main() -> list[tuple[str, int]]:
        session, toolbox = planned(store)
        await toolbox.acall("planning_setup_plan", {"objective": "o"})
        for _ in range(changes - 1):
            await toolbox.acall("planning_read_plan")
        del session, toolbox
        return [await request(store, "a"), await request(other, "b"), await request(store, "c")]

    cold = 3 if changes == 1 else 6
    assert asyncio.run(main()) == [("Added S001.", 2), ("Added S002.", cold), ("Added S003.", 5)]
    for each in (store, other):
        each.close()
