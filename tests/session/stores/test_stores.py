"""What every store keeps, and how a session comes out of it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from store_cases import SETUP, Note, Noted, Opener, busy, opened, openers, plans_of

from planning import Plan, PlanningToolsSection, Toolbox
from planning.commands import AddStep, MarkStep, NewPlanStep
from planning.events import PlanChanged
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
from session.stores import MemoryStore, SqliteStore, StaleVersion

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


def test_the_history_says_what_was_done_by_whom(opener: Opener) -> None:
    with opened(opener) as (session, toolbox):
        busy(session, toolbox)
        said = [(each.version, each.actor, each.call_id, each.changed) for each in session.history(after=1)]
    assert said == [
        (2, None, "1", True),
        (3, None, None, False),
        (4, None, None, False),
        (5, None, None, True),
        (6, "host", None, True),
        (7, "host", "2", True),
        (8, None, None, True),
        (9, None, None, True),
        (10, None, None, True),
    ]


def test_a_fork_goes_its_own_way_and_outlives_its_source(opener: Opener) -> None:
    with opened(opener) as (session, toolbox):
        plans = busy(session, toolbox)
        fork = session.fork(5, session_id="fork")
        fork.dispatch(MarkStep("S003", "done"))
        second = fork.fork(3, session_id="second")
        store = session.store
        assert store is not None
        assert session.version == len(plans) - 1
        known = {each.session_id: each.forked_from for each in store.sessions()}
        assert known == {"run-7": (), "fork": (("run-7", 5),), "second": (("run-7", 3),)}
        assert store.delete("run-7")
        assert not store.delete("run-7")
    with opened(opener, "fork") as (again, _):
        assert plans_of(again)[:6] == plans[:6]
        plan = again.select_latest(Plan)
        assert plan is not None
        assert [step.status for step in plan.steps] == ["done", "pending", "done"]
        assert again.store is not None
        assert again.store.verify("fork") == 6
        assert again.select_all(ToolInvoked)[0].session_id == "run-7"
    with opened(opener, "second") as (third, _):
        assert plans_of(third) == plans[:4] == plans_of(second)
        with pytest.raises(StoreError, match="the store holds a session 'fork' already"):
            third.fork(session_id="fork")


def test_sessions_of_one_store_and_identity_share_their_state(opener: Opener) -> None:
    store = opener()
    one, two = (Session(session_id="run-7", store=store) for _ in range(2))
    heard: list[tuple[str, object]] = []
    register_plan(one)
    one.bus.subscribe(PlanChanged, lambda event: heard.append(("one", event.version)))
    one.bus.subscribe(Noted, lambda _: heard.append(("one", "noted")))
    two.bus.subscribe(PlanChanged, lambda event: heard.append(("two", event.version)))
    two.bus.subscribe(Noted, lambda _: heard.append(("two", "noted")))
    one.dispatch(SETUP)
    two.publish(Noted(Note("x")))
    assert (two.select_latest(Plan), one.version) == (one.select_latest(Plan), 2)
    assert heard == [("one", 1), ("two", 1), ("two", "noted")]
    third = Session(session_id="run-7", store=store, bus=one.bus)
    one.bus.publish(Noted(Note("y"), session_id="run-7"))
    assert (third.version, len(one.select_all(Noted))) == (3, 2)
    one.close()
    third.bus.publish(Noted(Note("z"), session_id="run-7"))
    assert two.version == 4
    third.close()
    third.bus.publish(Noted(Note("unheard"), session_id="run-7"))
    assert two.version == 4


@pytest.mark.parametrize("name", ["memory", "sqlite"])
def test_what_another_process_does_is_taken_over_and_announced_once(tmp_path: Path, name: str) -> None:
    opener = openers(tmp_path)[name]
    with opened(opener) as (mine, toolbox), opened(opener) as (theirs, other):
        heard: list[tuple[int, str, str]] = []
        mine.bus.subscribe(
            PlanChanged, lambda event: heard.append((event.version, event.origin, str(event.diff)))
        )
        other.invoke("planning_setup_plan", SETUP)
        other.call("planning_read_plan")
        assert (mine.version, mine.select_latest(Plan)) == (0, None)
        assert mine.refresh() == 2
        assert mine.select_latest(Plan) == theirs.select_latest(Plan)
        other.invoke("planning_add_step", AddStep((NewPlanStep("Ship it"),)))
        toolbox.call("planning_mark_step", {"step_id": "S003", "status": "done"})
        assert theirs.refresh() == mine.version == 4
        assert theirs.select_latest(Plan) == mine.select_latest(Plan)
        assert len(mine.select_all(ToolInvoked)) == len(theirs.select_all(ToolInvoked)) == 4
    assert heard == [
        (1, "store", "New plan: Fix the login bug. Added S001, S002."),
        (3, "store", "Added S003."),
        (4, "session", "S003 done."),
    ]


def test_a_store_without_a_lock_refuses_the_later_writer(tmp_path: Path) -> None:
    opener = openers(tmp_path)["without a lock"]
    with opened(opener) as (mine, _), opened(opener) as (theirs, _), mine.transaction() as transaction:
        theirs.dispatch(SETUP)
        transaction.dispatch(SETUP)
        with pytest.raises(StaleVersion) as caught, pytest.MonkeyPatch.context():
            transaction.__exit__(None, None, None)
        transaction.__enter__()
    assert str(caught.value) == "the session has version 1 by now, not 0: refresh it and try again"


def test_an_empty_transaction_is_no_version_and_reads_and_refusals_are(opener: Opener) -> None:
    with opened(opener) as (session, toolbox):
        with session.transaction():
            pass
        toolbox.call("planning_read_plan")
        assert (session.version, [each.changed for each in session.history()]) == (1, [False])


@pytest.mark.parametrize("name", ["memory", "sqlite"])
def test_transactions_of_two_sessions_of_one_store_are_not_nested(tmp_path: Path, name: str) -> None:
    opener = openers(tmp_path)[name]
    store = opener()
    one, two = (Session(session_id=each, store=store) for each in ("one", "two"))
    register_plan(one)
    register_plan(two)
    with one.transaction() as transaction:
        transaction.dispatch(SETUP)
        with pytest.raises(TransactionError, match="end it first"):
            two.dispatch(SETUP)
    two.dispatch(SETUP)
    assert (one.version, two.version) == (1, 1)


def test_two_stores_of_one_file_are_not_nested_either(tmp_path: Path) -> None:
    stores = [SqliteStore(tmp_path / "a.db"), SqliteStore(tmp_path / "a.db")]
    one, two = (Session(session_id=f"{store}", store=each) for store, each in zip("ab", stores, strict=True))
    register_plan(two)
    with one.transaction(), pytest.raises(TransactionError, match="end it first"):
        two.dispatch(SETUP)
    elsewhere = Session(session_id="c", store=SqliteStore(tmp_path / "b.db"))
    register_plan(elsewhere)
    with one.transaction():
        elsewhere.dispatch(SETUP)
    assert elsewhere.version == 1


def test_claims_are_for_ever(opener: Opener) -> None:
    with opened(opener) as (session, _):
        session.dispatch(SETUP)
        assert [session.claim("a"), session.claim("a"), session.claim("b")] == [True, False, True]
        session.rewind(0)
    with opened(opener) as (session, _):
        assert [session.claim("a"), session.claim("c")] == [False, True]


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


def test_watching_gives_every_change_to_a_slow_reader(opener: Opener) -> None:
    with opened(opener) as (session, toolbox):
        assert session.store is not None
        watch = session.store.watch("run-7", after=0, timeout=0.2)
        busy(session, toolbox)
        versions = [change.version for change in watch]
        assert versions == list(range(1, session.version + 1))
        watch = session.store.watch("run-7", timeout=20)
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.extend(change.version for change in watch))
        thread.start()
        session.dispatch(SETUP)
        while not found:
            thread.join(0.01)
        watch.close()
        thread.join(20)
        assert found == [session.version]

        async def awatched() -> list[int]:
            assert session.store is not None
            return [each.version async for each in session.store.awatch("run-7", after=8, timeout=0.1)]

        assert asyncio.run(awatched()) == list(range(9, session.version + 1))
        watch = session.store.watch("run-7", after=session.version, timeout=20)
        session.store.delete("run-7")
        with pytest.raises(StoreError, match="was deleted"):
            next(watch)


def test_a_session_keeps_when_it_began_and_its_tags(opener: Opener) -> None:
    store = opener()
    first = Session(session_id="run-7", store=store, tags={"user": "ann"})
    register_plan(first)
    first.dispatch(SETUP)
    again = Session(session_id="run-7", store=opener(), tags={"user": "bob"})
    assert (again.created_at, dict(again.tags)) == (first.created_at, {"user": "ann"})


def test_identities_are_uuids_or_names_in_which_case_counts(opener: Opener) -> None:
    store = opener()
    given = ["Run", "run", "1b4e28ba-2fa1-11d2-883f-0016d3cca427"]
    for session_id in given:
        session = Session(session_id=session_id, store=store)
        register_plan(session)
        session.dispatch(SETUP)
    assert sorted(str(each.session_id) for each in store.sessions()) == sorted(given)


def test_a_closed_child_is_forgotten(opener: Opener) -> None:
    parent, store = Session(), opener()
    child = Session(parent=parent, store=store, session_id="child")
    assert list(parent.children) == [child]
    child.close()
    assert list(parent.children) == []


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
