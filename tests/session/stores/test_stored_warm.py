"""A session that is opened again by the process that committed to it last."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest
from store_places import Counting, planned, statuses

from planning import NewPlanStep, Plan, SetupPlan, register_plan
from session import Session, StoreError, select_latest
from session.events import SessionId
from session.stores import SqliteStore, copy_session
from session.stores.chain import StoredSession


@pytest.fixture
def store(path: Path) -> Iterator[Counting]:
    with closing(Counting(path)) as found:
        yield found


def call(store: SqliteStore, name: str, **arguments: object) -> str:
    """One request: the session is opened, changed and let go."""
    message = planned(store)[1].call(f"planning_{name}", arguments).message
    gc.collect()
    return message


def titles(session: Session, version: int | None = None) -> list[str]:
    plan = (session if version is None else session.at(version)).select_latest(Plan)
    assert plan is not None
    return [step.title for step in plan.steps]


def opened(store: SqliteStore) -> Session:
    return planned(store)[0]


def test_a_request_reads_nothing_of_what_this_process_committed(store: Counting) -> None:
    call(store, "setup_plan", objective="o", initial_steps=["a", "b"])
    read = store.read
    assert call(store, "mark_step", step_id="S001", status="done") == "S001 done. Next: S002 b"
    assert call(store, "add_step", steps=["c"]) == "Added S003."
    assert store.read == read
    with closing(SqliteStore(store._path)) as cold:
        assert opened(cold).select_latest(Plan) == opened(store).select_latest(Plan)
        assert cold.verify("run-7") == 3


def test_it_opens_without_asking_the_store_and_the_first_look_says_what_is_there(
    store: Counting, path: Path
) -> None:
    call(store, "setup_plan", objective="o", initial_steps=["a", "b"])
    asked = store.asked
    session = opened(store)
    assert store.asked == asked
    with closing(SqliteStore(path)) as other:
        call(other, "mark_step", step_id="S001", status="done")
    assert (session.version, len(session.history())) == (2, 2)
    assert session.created_at == store.sessions()[0].created_at


def test_threads_that_look_at_once_see_the_same(store: Counting) -> None:
    call(store, "setup_plan", objective="o", initial_steps=["a"])
    late, others = Event(), Event()

    def slow(session_id: SessionId, head: Callable[[SessionId], StoredSession | None]) -> object:
        found = head(session_id)
        late.set()
        others.wait(10)
        return found

    session, toolbox = planned(store)
    quick = store.head
    with ThreadPoolExecutor() as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "head", lambda session_id: slow(session_id, quick))
        reader = pool.submit(lambda: session.version)
        assert late.wait(10)
        patch.setattr(store, "head", quick)
        assert toolbox.call("planning_add_step", {"steps": ["b"]}).message == "Added S002."
        others.set()
        assert reader.result() == 2
    assert toolbox.call("planning_add_step", {"steps": ["c"]}).message == "Added S003."
    assert store.verify("run-7") == 3


def test_a_session_whose_record_was_damaged_since_is_refused_at_the_first_look(
    store: Counting, path: Path
) -> None:
    call(store, "setup_plan", objective="o", initial_steps=["a"])
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE sessions SET version = 7")
    session = Session(session_id="run-7", store=store)
    for _ in range(2):
        with pytest.raises(StoreError) as refused:
            session.version  # noqa: B018 - a look
        assert str(refused.value) == "the record of session 'run-7' is damaged"


def test_changes_of_others_are_seen(store: Counting, path: Path) -> None:
    call(store, "setup_plan", objective="o", initial_steps=["a", "b"])
    with closing(SqliteStore(path)) as other:
        call(other, "mark_step", step_id="S001", status="done")
        assert statuses(opened(store)) == ["done", "pending"]
        call(other, "setup_plan", objective="p")
        assert call(store, "add_step", steps=["c"]) == "Added S001."
        opened(other).rewind(2)
    assert statuses(opened(store)) == ["done", "pending"]


def test_a_session_that_was_deleted_and_begun_again_is_another_one(store: Counting, path: Path) -> None:
    call(store, "setup_plan", objective="o", initial_steps=["a", "b"])
    with closing(SqliteStore(path)) as other:
        other.delete("run-7")
        call(other, "setup_plan", objective="p")
    assert opened(store).select_latest(Plan) == Plan("p", "active")


def test_what_was_lost_by_restoring_a_copy_is_in_no_version(store: Counting, path: Path) -> None:
    call(store, "setup_plan", objective="o", initial_steps=["a"])
    with closing(SqliteStore(path.with_name("copy.db"))) as copy, closing(SqliteStore(path)) as other:
        copy_session(store, copy, "run-7")
        call(store, "add_step", steps=["lost"])
        other.delete("run-7")
        copy_session(copy, other, "run-7")
        for title in ("kept", "last"):
            call(other, "add_step", steps=[title])
    session = opened(store)
    assert [titles(session, version) for version in (2, 3)] == [["a", "kept"], ["a", "kept", "last"]]
    session.rewind(2)
    assert titles(opened(store)) == ["a", "kept"]


def test_what_other_reducers_made_is_not_taken_for_what_these_make(store: Counting) -> None:
    def shout(_plans: tuple[Plan, ...], command: SetupPlan) -> tuple[Plan, ...]:
        return (Plan(command.objective.upper(), "active"),)

    session = opened(store)
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


def test_in_an_event_loop_any_session_opens_without_asking_the_store(store: Counting, path: Path) -> None:
    with closing(SqliteStore(path)) as other:
        call(other, "setup_plan", objective="o", initial_steps=["a"])

    async def main() -> tuple[str, str]:
        asked = store.asked
        _, toolbox = planned(store)
        assert store.asked == asked
        added = await toolbox.acall("planning_add_step", {"steps": ["b"]})
        _, toolbox = planned(store, "bob")
        return added.message, (await toolbox.acall("planning_add_step", {"steps": ["b"]})).message

    assert asyncio.run(main()) == (
        "Added S002.",
        "Refused, nothing changed. no plan yet; call planning_setup_plan first",
    )
