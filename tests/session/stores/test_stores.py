"""What every store keeps, and how a session comes out of it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from store_cases import SETUP, Opener, busy, opened, openers, plans_of

from planning import Plan, PlanningToolsSection, Toolbox
from planning.commands import MarkStep
from planning.suite import register_plan
from session import (
    Change,
    Session,
    StoreError,
    ToolFailed,
    ToolInvoked,
    TransactionError,
    stored,
)
from session.stores import MemoryStore, SqliteStore

NAMES = ["memory", "sqlite", "without a lock"]


@pytest.fixture(params=NAMES)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    return openers(tmp_path)[request.param]


@pytest.fixture(params=[1, 3, 128], ids=lambda count: f"a checkpoint every {count}")
def _checkpoints(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "CHECKPOINT", request.param)


@pytest.mark.usefixtures("_checkpoints")
def test_a_session_comes_back_as_it_was_at_every_version(opener: Opener) -> None:
    with opened(opener) as (session, toolbox):
        plans = busy(session, toolbox)
        assert plans_of(session) == plans
        history, version = session.history(), session.version
    with opened(opener) as (again, _):
        assert again.version == version == len(plans) - 1
        assert again.select_latest(Plan) == plans[-1]
        assert plans_of(again) == plans
        assert [without_values(change) for change in again.history()] == [
            without_values(change) for change in history
        ]
        assert again.store is not None
        assert again.store.verify("run-7") == version


def without_values(change: Change) -> tuple[object, ...]:
    """A change as it is compared: no store keeps the Python value of a result."""
    events = [
        (event.event_id, event.name, getattr(event, "value", None), event.result.message)
        if isinstance(event, (ToolInvoked, ToolFailed))
        else event
        for event in change.events
    ]
    return (change.version, change.at, events, change.actor, change.call_id, change.changed)


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_claim_inside_a_transaction_is_refused(opener: Opener, is_stored: bool) -> None:
    session = Session(session_id="run-7", store=opener()) if is_stored else Session()
    for _ in range(2):
        with session.transaction(), pytest.raises(TransactionError) as caught:
            session.claim("send a mail")
        assert str(caught.value) == "claim outside of transactions: a claim stays when one is taken back"
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


def test_a_memory_store_waits_for_another_writer_and_gives_up() -> None:
    store = MemoryStore(timeout=0.05)
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
    with pytest.raises(StoreError) as caught:
        two.dispatch(SETUP)
    go.set()
    thread.join(20)
    assert str(caught.value) == ("another program is writing to the store, for more than 0.05 s: try again")
    two.dispatch(SETUP)
