"""What stores cost: statements, checkpoints and items that are read, counted and never timed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import WeakSet

from session_records import Note, Ping, texts
from store_places import (
    PLAN,
    Counting,
    call,
    mark,
    numbered,
    open_session,
    refused,
    registered,
    state_of,
    store_of,
    traced,
)

from session import InProcessEventBus, Session, SessionEvent, append
from session.events import SessionId
from session.stores import Checkpoint, MemoryStore, SqliteStore


def test_a_call_costs_the_same_among_a_thousand_sessions_on_a_bus(tmp_path: Path) -> None:
    bus, store = InProcessEventBus(), SqliteStore(tmp_path / "plans.db")
    sessions = [Session(session_id=f"s{number}", bus=bus, store=store) for number in range(1_000)]
    heard = list[SessionEvent]()
    bus.subscribe(Ping, heard.append)
    session = registered(sessions[500])
    result = session.publish(Ping(1))
    assert len(result.subscribers) <= 2
    assert numbered(session) == [1]
    assert [each.session_id for each in heard] == ["s500"]
    assert store.sessions()[0].session_id == "s500"


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


def test_many_rewinds_are_replayed_in_a_moment_without_checkpoints() -> None:
    store = MemoryStore()
    session = open_session(store)
    call(session, *PLAN)
    mark(session, "S001")
    for _ in range(300):
        session.rewind(session.version)
    session.rewind(1)
    store.drop_checkpoints("run-7")
    store.states.clear()
    there = open_session(store)
    assert state_of(there) == state_of(session)
    assert state_of(there.at(300)) == state_of(session.at(2))
    assert mark(there, "S002").success


def test_verify_reads_few_checkpoints_at_a_time() -> None:
    class Asked(MemoryStore):
        most = 0

        def checkpoints(self, session_id: SessionId, last: int, limit: int) -> Sequence[Checkpoint]:
            found = super().checkpoints(session_id, last, limit)
            self.most = max(self.most, len(found))
            return found

    store = Asked()
    session = open_session(store)
    call(session, *PLAN)
    for _ in range(100):  # each with a checkpoint
        session.rewind(session.version)
    assert store.verify("run-7") == 101
    assert 0 < store.most <= 10


def test_a_durable_mark_is_six_statements(tmp_path: Path) -> None:
    session = open_session(SqliteStore(tmp_path / "plans.db"))
    call(session, *PLAN)
    mark(session, "S001")
    statements = traced(store_of(session))
    assert mark(session, "S002").success
    verbs = [statement.split()[0] for statement in statements]
    assert verbs == ["BEGIN", "SELECT", "SELECT", "UPDATE", "INSERT", "COMMIT"]


@dataclass(frozen=True)
class Held:
    """An item of which the test sees whether it is still there."""

    text: str


def test_a_slice_is_replayed_without_keeping_what_it_was_before() -> None:
    made, most = WeakSet[Held](), [0]

    def replace(_slice: tuple[Held, ...], note: Note) -> tuple[Held, ...]:
        item = Held(note.text)
        made.add(item)
        most.append(len(made))
        return (item,)

    store = MemoryStore()
    for is_again in (False, True):
        session = Session(session_id="run-7", store=store)
        session.register_reducer(Note, replace, Held)
        for number in range(0 if is_again else 60):
            session.dispatch(Note(str(number)))
        assert session.select_all(Held) == (Held("59"),)
        assert max(most) <= 3
        del session
        store.warm.clear()  # what was committed last in this process is not replayed
    assert len(most) > 100  # it was replayed


def test_a_slice_that_append_makes_grows_without_being_read_and_is_whole_all_the_same(path: Path) -> None:
    def opened() -> Session:
        session = Session(session_id="run-7", store=Counting(path))
        session.register_reducer(Note, append)
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
