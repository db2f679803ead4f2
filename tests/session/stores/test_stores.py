"""What every store keeps, and how a session comes out of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from store_cases import NAMES, SETUP, Opener, opened, openers

from planning import PlanningToolsSection, Toolbox
from planning.plan.commands import MarkStep
from planning.suite.tools import register_plan
from session import Session, StoreError, ToolInvoked, TransactionError, append
from session.stores import MemoryStore, SqliteStore, StaleVersion


@pytest.fixture(params=NAMES)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    return openers(tmp_path)[request.param]


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_claim_inside_a_transaction_is_refused(opener: Opener, is_stored: bool) -> None:
    session = Session(session_id="run-7", store=opener()) if is_stored else Session()
    for _ in range(2):
        with session.transaction(), pytest.raises(TransactionError) as caught:
            session.claim("send a mail")
        assert str(caught.value) == "claim outside of transactions: a rollback does not undo a claim"
    assert session.claim("send a mail")


def test_a_rollback_frees_no_key_and_a_rewind_does(opener: Opener) -> None:
    by = {"idempotency_key": "1"}
    with opened(opener) as (session, toolbox):
        toolbox.invoke("planning_setup_plan", SETUP)
        snapshot, done = session.snapshot(), {"step_id": "S001", "status": "done"}
        first = toolbox.call("planning_mark_step", done, context=by)
        session.rollback(snapshot)
        repeat = toolbox.call("planning_mark_step", done, context=by)
        assert (repeat.message, session.version) == (first.message, 3)
        call = session.find_call("1")
        assert call is not None
        assert (call.name, call.result.message) == ("planning_mark_step", first.message)
        session.rewind(1)
        assert session.find_call("1") is None
        again = toolbox.call("planning_mark_step", done, context=by)
        assert (again.message, session.version) == (first.message, 5)


def test_an_unknown_outcome_stops_writing_until_it_is_settled(tmp_path: Path) -> None:
    class Lossy(SqliteStore):
        lost = ""

        def append(self, *args: object, **options: object) -> None:
            if self.lost != "before":
                super().append(*args, **options)  # type: ignore[arg-type]  # handed over
            if self.lost:
                raise StoreError("the answer was lost", outcome="unknown")

    for lost, version in (("before", 1), ("after", 2)):
        store = Lossy(tmp_path / f"{lost}.db")
        session = Session(session_id="a", store=store)
        section = PlanningToolsSection(session=session)
        toolbox = Toolbox(section.tools(), session=session)
        toolbox.invoke("planning_setup_plan", SETUP)
        store.lost = lost
        result = toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done"})
        assert (result.success, result.code, result.message) == (
            False,
            "storage",
            "It is not known whether planning_mark_step took effect. Check before you call it again.",
        )
        store.lost = ""
        with pytest.raises(StoreError) as caught:
            session.dispatch(MarkStep("S002", "done"))
        assert (caught.value.outcome, session.version) == ("unknown", 1)
        assert session.refresh() == version
        session.dispatch(MarkStep("S002", "done"))
        assert session.version == version + 1


def test_two_processes_that_begin_one_session_at_once_have_the_same(tmp_path: Path) -> None:
    here, elsewhere = (
        Session(session_id="run-7", store=SqliteStore(tmp_path / "plans.db"), tags={"by": each})
        for each in "ab"
    )  # each with a store of its own, as two processes have
    for session in (here, elsewhere):
        register_plan(session)
    elsewhere.dispatch(SETUP)
    assert here.refresh() == 1
    assert (here.created_at, here.tags) == (elsewhere.created_at, {"by": "b"})
    here.dispatch(MarkStep("S001", "done"))
    assert elsewhere.refresh() == 2


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_writer_waits_for_another_thread_and_gives_up(kind: str, tmp_path: Path) -> None:
    store = MemoryStore(timeout=0.05) if kind == "memory" else SqliteStore(tmp_path / "a.db", timeout=0.05)
    one, two = (Session(session_id=each, store=store) for each in ("one", "two"))
    register_plan(two)
    go, begun = threading.Event(), threading.Event()

    def hold() -> None:
        with one.transaction():
            begun.set()
            go.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait(20)
    message = "another worker or program is writing to the store, for more than {} s: try again"
    with pytest.raises(StoreError) as caught:
        two.dispatch(SETUP)
    assert str(caught.value) == message.format(0.05)
    with pytest.raises(StoreError) as caught, two.transaction(timeout=0.02):
        pass
    assert str(caught.value) == message.format(0.02)
    go.set()
    thread.join(20)
    two.dispatch(SETUP)


def test_a_direct_writer_takes_a_version_at_a_time_and_copies_what_there_is(tmp_path: Path) -> None:
    for store in (MemoryStore(), SqliteStore(tmp_path / "a.db")):
        session = Session(session_id="a", store=store, parent=Session(session_id="above"))
        register_plan(session)
        session.dispatch(SETUP)
        head = store.head("a")
        assert head is not None
        assert head.parent == "above"
        fork = attrs.evolve(head, session_id="fork")
        with pytest.raises(StoreError, match="the store holds no session 'nowhere'"):
            store.copy("nowhere", fork)
        with pytest.raises(StaleVersion, match="the session has version 1 by now, not 2: refresh it"):
            store.copy("a", attrs.evolve(fork, version=2))
        store.append(attrs.evolve(head, version=1), None, expected=1)
        assert (store.delete("a"), store.delete("a")) == (True, False)
        if isinstance(store, SqliteStore):
            with store.lock("a"):
                store.append(head, None, expected=0)
                with pytest.raises(
                    TransactionError, match="a lock allows one change: release it and take it"
                ):
                    store.append(head, None, expected=1)


def test_a_store_says_where_it_is_and_refuses_words_that_it_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    assert repr(SqliteStore(path, synchronous="full")) == f"SqliteStore({str(path)!r})"
    with pytest.raises(ValueError, match="synchronous must be 'normal' or 'full', got 'off'"):
        SqliteStore(path, synchronous="off")  # type: ignore[arg-type]
    makers: tuple[Callable[[Any], object], ...] = (
        lambda timeout: SqliteStore(path, timeout=timeout),
        lambda timeout: MemoryStore(timeout=timeout),
    )
    for make in makers:
        for timeout in (-1, float("nan"), "5", None):
            with pytest.raises(ValueError, match="timeout must be seconds of 0 or more, got "):
                make(timeout)
        for timeout in (float("inf"), 10**400):
            with pytest.raises(ValueError, match="timeout must be seconds of at most 1,000,000, got "):
                make(timeout)


@pytest.mark.parametrize("name", [*NAMES, None])
def test_a_key_finds_its_call_on_the_present_branch(name: str | None, tmp_path: Path) -> None:
    store = None if name is None else openers(tmp_path)[name]()
    session = Session(session_id="a", store=store)
    register_plan(session)
    assert session.find_call("1") is None
    for key in ("1", "2", "1"):
        session.publish(ToolInvoked(f"tool {key}", {}, None, idempotency_key=key))
    found = session.find_call("2")
    assert found is not None
    assert found.name == "tool 2"
    with pytest.raises(TransactionError), session.transaction() as transaction:
        transaction.publish(ToolInvoked("tool", {}, None, idempotency_key="3"))
        assert session.find_call("3") is not None
        transaction.publish(ToolInvoked("tool", {}, None, idempotency_key="4"))
    with pytest.raises(TransactionError, match="refresh outside of transactions"), session.transaction():
        session.refresh()
    early = session.fork(1, session_id="early")
    assert (early.find_call("1") is None, early.find_call("2")) == (False, None)
    session.rewind(2)
    assert [session.find_call(key) is None for key in ("1", "2", "3")] == [False, False, True]
    session.rewind(1)
    session.rewind(0)
    assert [session.find_call(key) for key in ("1", "2")] == [None, None]
    session.rewind(2)
    assert [session.find_call(key) is None for key in ("1", "2")] == [False, False]


def test_a_session_in_memory_that_keeps_few_changes_forgets_their_keys() -> None:
    session = Session(history=2)
    for number in range(100):
        session.publish(ToolInvoked("tool", {}, None, idempotency_key=f"{number % 50}"))
    assert [session.find_call(key) is None for key in ("49", "48", "0")] == [False, False, True]
    for _ in range(80):
        session.publish(ToolInvoked("tool", {}, None))
    assert [session.find_call(key) for key in ("49", "48", "0")] == [None, None, None]


def test_plain_values_are_in_a_store_as_they_are(opener: Opener) -> None:
    session = Session(session_id="a", store=opener())
    session.register_reducer(int, append)
    for value in (5, 6):
        session.dispatch(value)
    there = Session(session_id="a", store=opener())
    there.register_reducer(int, append)
    assert there.select_all(int) == (5, 6)
    assert [change.events for change in there.history()] == [(5,), (6,)]
