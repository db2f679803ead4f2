"""The tests that every store of sessions must pass."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise
from unittest.mock import patch
from uuid import uuid4

from attrs import evolve

from planning.plan.commands import NewPlanStep, SetupPlan
from planning.plan.model import Plan
from planning.prompt import PlanningToolsSection
from planning.tools import Toolbox
from session import Change, Session, Snapshot, ToolInvoked, TransactionError, VersionError, stored
from session.stores import (
    Checkpoint,
    MemoryStore,
    StaleVersion,
    Store,
    StoreBusy,
    StoredChange,
    StoredSession,
    StoreError,
    chain_hash,
    copy_session,
)

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import (
        RuleBasedStateMachine,
        invariant,
        precondition,
        rule,
        run_state_machine_as_test,
    )
except ImportError:
    raise ImportError("the suite needs hypothesis: pip install 'session-planning[testing]'") from None

STEPS = tuple(NewPlanStep(f"Step {number}") for number in range(3))
"""The steps of the plans."""


def new_id() -> str:
    """The id of a session that no place has."""
    return f"suite:{uuid4()}"


def opened(store: Store, name: str) -> tuple[Session, Toolbox]:
    """A session in a store, and the planning tools on it."""
    session = Session(session_id=name, store=store)
    return session, Toolbox(PlanningToolsSection(session=session).tools(), session=session)


def run_machine(open_: Callable[[], Store]) -> None:
    """Change sessions at random, and hold each version of them to the plan that it had."""

    class Machine(_Machine):
        def open(self) -> Store:
            return open_()

    run_state_machine_as_test(Machine)


class _Machine(RuleBasedStateMachine):
    """A session in a store, and the plan that it had at each version."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = patch.object(stored, "CHECKPOINT", 3)
        self.patch.start()
        self.plans: list[Plan | None] = [None]
        self.kept: list[tuple[Snapshot, Plan | None]] = []
        self.name = new_id()
        self.reopen()

    def open(self) -> Store:
        raise NotImplementedError

    def note(self) -> None:
        self.plans.append(self.session.select_latest(Plan))

    @rule()
    def reopen(self) -> None:
        self.session, self.toolbox = opened(self.open(), self.name)

    @rule()
    def set_up(self) -> None:
        self.toolbox.invoke("planning_setup_plan", SetupPlan(f"Plan {len(self.plans)}", STEPS))
        self.note()

    @rule(
        step=st.integers(1, 5),
        status=st.sampled_from(["pending", "in_progress", "blocked", "done"]),
        key=st.none() | st.integers(1, 9).map(str),
    )
    def mark(self, step: int, status: str, key: str | None) -> None:
        before = self.session.version
        arguments = {"step_id": f"S{step:03}", "status": status}
        context = {} if key is None else {"idempotency_key": f"{key} {len(self.plans)}"}
        result = self.toolbox.call("planning_mark_step", arguments, context=context)
        assert self.session.version == before + 1
        self.note()
        if result.success and context:
            again = self.toolbox.call("planning_mark_step", arguments, context=context)
            assert (again.message, self.session.version) == (result.message, before + 1)

    @rule()
    def fail(self) -> None:
        with suppress(ZeroDivisionError), self.session.transaction() as transaction:
            transaction.dispatch(SetupPlan("Never seen"))
            raise ZeroDivisionError

    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        version = data.draw(st.integers(0, len(self.plans) - 1))
        self.session.rewind(version)
        self.plans.append(self.plans[version])

    @rule()
    def snapshot(self) -> None:
        self.kept.append((Snapshot.from_json(self.session.snapshot().to_json()), self.plans[-1]))

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        snapshot, plan = data.draw(st.sampled_from(self.kept))
        self.session.rollback(snapshot)
        self.plans.append(plan)

    @rule()
    def reset(self) -> None:
        self.session.reset()
        self.plans.append(None)

    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        version = data.draw(st.integers(0, len(self.plans) - 1))
        self.name = new_id()
        self.session = self.session.fork(version, session_id=self.name)
        self.toolbox = Toolbox(PlanningToolsSection(session=self.session).tools(), session=self.session)
        self.plans = self.plans[: version + 1]

    @rule()
    def another_writer(self) -> None:
        other, toolbox = opened(self.open(), self.name)
        toolbox.call("planning_add_step", {"steps": [{"title": f"Theirs {len(self.plans)}"}]})
        assert self.session.refresh() == other.version
        self.plans.append(other.select_latest(Plan))

    @invariant()
    def is_true(self) -> None:
        assert self.session.version == len(self.plans) - 1
        assert self.session.select_latest(Plan) == self.plans[-1]

    def teardown(self) -> None:
        self.reopen()
        versions = range(len(self.plans))
        assert [self.session.at(version).select_latest(Plan) for version in versions] == self.plans
        if self.session.version:
            assert self.open().verify(self.name) == self.session.version
        self.patch.stop()


_BEGAN = datetime(2026, 1, 2, 3, 4, 5, 678_901, UTC)
_SLICES = '{"slices":{}}'  # as session.stored writes a checkpoint without slices
_TEXTS = (
    "{}",
    'a "b"\n\t\\',
    "\x7f é 漢 \U0001f600",
    "%s ? $1 :name ''",
    "x" * 300_000,
)  # as a store may get them


class StoreSuite:
    """The tests of a store, for pytest: write ``open`` in a subclass whose name begins with ``Test``.

    Each test begins with a new instance, and uses sessions that no other test uses: the place may hold
    others. A store that inherits ``lock`` is tested as one without a lock, and one that inherits ``restore``
    as one whose sessions cannot be copied.
    """

    def open(self) -> Store:
        """Open the place where sessions are kept, as another process would.

        Each call returns another object. They see what any of them has written, and share no ``states``. A
        writer waits for another for a second at most.
        """
        raise NotImplementedError

    # Text and hashes

    def test_a_store_has_what_was_appended_and_nothing_else(self) -> None:
        store, name = self.open(), new_id()
        assert store.head(name) is None
        nothing = (store.changes(name, 1, 9), store.checkpoints(name, 9, 9), store.with_key(name, "k"))
        assert [len(found) for found in (*nothing, store.rewinds(name))] == [0, 0, 0, 0]
        assert store.delete(name) is False
        store.drop_checkpoints(name)
        head, changes, checkpoints = _written(store, name)
        for each in (store, self.open()):
            assert each.head(name) == head
            assert list(each.changes(name, 1, 9)) == changes
            assert list(each.changes(name, 2, 3)) == changes[1:3]
            assert list(each.changes(name, 6, 9)) == list(each.changes(name, 3, 2)) == []
            assert list(each.checkpoints(name, 9, 9)) == checkpoints[::-1]
            assert list(each.checkpoints(name, 4, 1)) == [checkpoints[1]]
            assert list(each.checkpoints(name, 1, 9)) == []
            assert list(each.with_key(name, "k")) == [4, 2]
            assert [tuple(rewind) for rewind in each.rewinds(name)] == [(3, 1), (5, 0)]
        store.drop_checkpoints(name)
        assert list(self.open().checkpoints(name, 9, 9)) == []
        assert list(store.changes(name, 1, 9)) == changes
        store.close()
        assert store.head(name) == head, "a closed store opens again when it is used"

    def test_a_change_for_another_version_is_refused_whole(self) -> None:
        store, name = self.open(), new_id()
        head, changes, checkpoints = _written(store, name)
        late = evolve(changes[-1], version=6, idempotency_key="late")
        for expected in (0, 4, 6):
            refused = partial(
                store.append, head, late, expected=expected, checkpoint=evolve(checkpoints[-1], version=6)
            )
            assert _refusal(StaleVersion, refused) == (
                f"the session has version 5, not {expected}: refresh it and try again"
            )
        assert _refusal(
            StaleVersion, lambda: store.append(evolve(head, session_id=new_id()), None, expected=1)
        )
        assert self.open().head(name) == head
        assert list(store.changes(name, 1, 9)) == changes
        assert list(store.checkpoints(name, 9, 9)) == checkpoints[::-1]
        assert list(store.with_key(name, "late")) == []

    def test_a_head_alone_can_be_written(self) -> None:
        store, name = self.open(), new_id()
        head, changes, _ = _written(store, name)
        now = evolve(head, tags={"user": "bob"})
        store.append(now, None, expected=5)
        assert (self.open().head(name), list(store.changes(name, 1, 9))) == (now, changes)

    def test_claims_are_recorded_once_whichever_process_asks(self) -> None:
        store, other, name = self.open(), self.open(), new_id()
        assert [each.claim(name, "mail") for each in (store, other, store)] == [True, False, False]
        assert other.claim(new_id(), "mail")
        assert other.claim(name, "Mail")
        store.delete(name)
        assert other.claim(name, "mail")

    def test_a_copy_has_what_was_there_up_to_its_version_and_outlives_its_source(self) -> None:
        store, name, fork_name = self.open(), new_id(), new_id()
        store.claim(name, "early")
        head, changes, checkpoints = _written(store, name)
        store.claim(name, "late")
        store.claim(fork_name, "own")
        fork = evolve(head, session_id=fork_name, version=4, hash=changes[3].hash, forked_from=((name, 4),))
        whole = evolve(head, session_id=new_id(), forked_from=((name, 5),))
        for copy in (fork, whole):
            store.copy(name, copy)
        store.delete(name)
        other = self.open()
        assert other.head(name) is None
        assert other.head(fork_name) == fork
        assert list(other.changes(fork_name, 1, 9)) == changes[:4]
        assert list(other.checkpoints(fork_name, 9, 9)) == checkpoints[1::-1]
        assert [other.claim(fork_name, each) for each in ("early", "own", "late")] == [False, False, True]
        assert other.claim(whole.session_id, "late") is False
        assert list(other.with_key(fork_name, "k")) == [4, 2]

    def test_a_copy_of_what_is_not_there_or_to_where_something_is_is_refused(self) -> None:
        store, name = self.open(), new_id()
        head, _, _ = _written(store, name)
        gone, fork = new_id(), evolve(head, session_id=new_id())
        assert _refusal(StoreError, lambda: store.copy(gone, fork)) == f"the store holds no session '{gone}'"
        taken = f"the store holds a session '{name}' already: give the fork another id"
        assert _refusal(StoreError, lambda: store.copy(name, head)) == taken
        assert _refusal(StaleVersion, lambda: store.copy(name, evolve(fork, version=6))) == (
            "the session has version 5, not 6: refresh it and try again"
        )
        assert store.head(fork.session_id) is None

    def test_sessions_are_listed_newest_first(self) -> None:
        store, names = self.open(), [new_id() for _ in range(3)]
        heads = [_written(store, name, day)[0] for name, day in zip(names, (2, 9, 4), strict=True)]
        expected = [heads[1], heads[2], heads[0]]
        assert [each for each in self.open().sessions() if each.session_id in names] == expected
        assert list(store.sessions(0)) == []
        assert list(store.sessions(1)) == list(store.sessions())[:1]
        assert [store.delete(names[1]), store.delete(names[1])] == [True, False]
        left = (store.changes(names[1], 1, 9), store.checkpoints(names[1], 9, 9), store.rewinds(names[1]))
        assert [len(found) for found in left] == [0, 0, 0]
        assert [each for each in store.sessions() if each.session_id in names] == expected[1:]

    def test_a_session_is_copied_to_another_store_and_back_with_its_hashes(self) -> None:
        store, elsewhere, name = self.open(), MemoryStore(), new_id()
        if type(store).restore is Store.restore:
            return
        store.claim(name, "early")
        head, _, _ = _written(store, name, texts=tuple(map(str, range(5))))
        store.claim(name, "late")
        before = _all_of(store, name)
        copy_session(store, elsewhere, name)
        taken = f"the store holds a session '{name}' already: give the fork another id"
        assert _refusal(StoreError, lambda: copy_session(elsewhere, store, name)) == taken
        store.delete(name)

        def torn() -> Iterator[StoredChange]:
            yield from elsewhere.changes(name, 1, 3)
            raise StoreError("the source was lost")

        assert _refusal(StoreError, lambda: store.restore(head, torn(), (), [("early", 0)])) == (
            "the source was lost"
        )
        assert self.open().head(name) is None
        assert (list(store.changes(name, 1, 9)), store.claims(name)) == ([], [])
        copy_session(elsewhere, store, name)
        assert _all_of(self.open(), name) == before == _all_of(elsewhere, name)

    # Sessions

    def test_a_session_comes_back_as_it_was_at_every_version(self) -> None:
        for checkpoint in (1, 3, 128):
            with patch.object(stored, "CHECKPOINT", checkpoint):
                self._live_and_return()

    def _live_and_return(self) -> None:
        name = new_id()
        session, toolbox = opened(self.open(), name)
        plans: list[Plan | None] = [None]
        snapshot: Snapshot | None = None

        def done(call_id: str) -> None:
            mark = {"step_id": "S001", "status": "done"}
            toolbox.call("planning_mark_step", mark, context={"call_id": call_id, "idempotency_key": call_id})

        def taken() -> None:
            nonlocal snapshot
            snapshot = session.snapshot()
            session.rewind(2, actor="host")

        acts: list[Callable[[], object]] = [
            lambda: toolbox.invoke("planning_setup_plan", SetupPlan("Fix it", STEPS)),
            lambda: done("1"),
            lambda: done("1" * 300),
            lambda: toolbox.call("planning_mark_step", {"step_id": "S009", "status": "done"}),
            lambda: toolbox.call("planning_read_plan", {}),
            taken,
            lambda: session.rollback(snapshot) if snapshot else None,
            session.reset,
            lambda: session.rewind(7),
        ]
        for act in acts:
            act()
            plans.append(session.select_latest(Plan))
        again, _ = opened(self.open(), name)
        assert again.version == len(acts)
        assert [again.at(version).select_latest(Plan) for version in range(len(plans))] == plans
        assert again.select_latest(Plan) == plans[-1]
        assert [each.version for each in again.history()] == [*range(1, len(plans))]
        assert list(map(_without_results, again.history())) == list(map(_without_results, session.history()))
        assert self.open().verify(name) == len(acts)

    def test_a_key_finds_its_call_on_the_present_branch(self) -> None:
        name = new_id()
        session, _ = opened(self.open(), name)
        for number, key in enumerate("121", 1):
            session.publish(ToolInvoked(f"tool {number}", {}, None, idempotency_key=key))

        def found(source: Session) -> list[str | None]:
            calls = [source.find_call(key) for key in "123"]
            return [None if call is None else call.name for call in calls]

        last, first = ["tool 3", "tool 2", None], ["tool 1", "tool 2", None]
        assert found(session) == found(opened(self.open(), name)[0]) == last
        assert found(session.fork(1, session_id=new_id())) == ["tool 1", None, None]
        session.rewind(0)
        assert found(session) == [None, None, None]
        session.rewind(2)
        assert found(session) == found(opened(self.open(), name)[0]) == first

    def test_a_session_that_is_deleted_is_an_error_for_those_that_have_it(self) -> None:
        store, name = self.open(), new_id()
        session, toolbox = opened(store, name)
        toolbox.invoke("planning_setup_plan", SetupPlan("Fix it", STEPS))
        watch = store.watch(name, timeout=20)
        self.open().delete(name)
        gone = f"session '{name}' was deleted from the store"
        assert _refusal(StoreError, session.refresh) == gone
        assert _refusal(StoreError, session.reset) == gone
        assert _refusal(StoreError, lambda: next(watch)) == f"session '{name}' was deleted"
        assert _refusal(StoreError, lambda: store.verify(name)) == f"the store holds no session '{name}'"

    def test_a_watch_has_the_changes_of_another_process_in_order(self) -> None:
        name, found = new_id(), list[int]()
        assert _refusal(VersionError, lambda: self.open().watch(name, after=1)) == (
            "the session has the versions 0 to 0, got 1"
        )
        watch = self.open().watch(name, timeout=20)

        def follow() -> None:
            found.extend(change.version for _, change in zip(range(9), watch, strict=False))

        thread = threading.Thread(target=follow)
        thread.start()
        session, _ = opened(self.open(), name)
        for number in range(9):
            session.publish(ToolInvoked(f"tool {number}", {}, None))
        thread.join(20)
        assert found == [*range(1, 10)]
        assert list(self.open().watch(name, after=9, timeout=0)) == []

    # Several writers

    def test_writers_at_once_lose_nothing_and_readers_beside_them_see_no_damage(self) -> None:
        name, writers, each = new_id(), 4, 12
        errors, ended = list[BaseException](), threading.Event()

        def write(number: int) -> None:
            session, _ = opened(self.open(), name)
            for count in range(each):
                while True:
                    try:
                        session.publish(ToolInvoked("tool", {}, None, idempotency_key=f"{number} {count}"))
                        break
                    except (StaleVersion, StoreBusy):
                        session.refresh()

        def read() -> None:
            store = self.open()
            while not ended.is_set():
                if store.head(name) is not None:
                    store.verify(name)
                    if type(store).restore is not Store.restore:
                        copy_session(store, copied := MemoryStore(), name)
                        copied.verify(name)

        def caught(function: Callable[[], None]) -> None:
            try:
                function()
            except BaseException as error:  # noqa: BLE001 - it is shown below, in the thread of the test
                errors.append(error)

        works = [partial(write, number) for number in range(writers)]
        threads = [threading.Thread(target=caught, args=(work,)) for work in works]
        reader = threading.Thread(target=caught, args=(read,))
        for thread in (*threads, reader):
            thread.start()
        for thread in threads:
            thread.join()
        ended.set()
        reader.join()
        assert errors == []
        session, _ = opened(self.open(), name)
        keys = [event.idempotency_key for event in session.select_all(ToolInvoked)]
        assert sorted(map(str, keys)) == sorted(
            f"{one} {two}" for one in range(writers) for two in range(each)
        )
        assert self.open().verify(name) == writers * each

    def test_a_lock_keeps_other_writers_away_and_is_not_taken_twice(self) -> None:
        store, other, name = self.open(), self.open(), new_id()
        if type(store).lock is Store.lock:
            return
        session, _ = opened(store, name)
        busy = list[str]()

        def wait() -> None:
            def locked() -> None:
                with other.lock(name, 0.05):
                    pass

            busy.append(_refusal(StoreBusy, locked))

        with session.transaction() as transaction:
            transaction.publish(ToolInvoked("tool", {}, None))
            thread = threading.Thread(target=wait)
            thread.start()
            thread.join()
            inner = (
                "a transaction of another session of this store is open in this thread, and they would wait"
            )
            nested = _refusal(TransactionError, lambda: store.lock(name).__enter__())
            assert nested == f"{inner} for each other: end it first"
        assert busy == [
            "another worker or program has been writing to the store for more than 0.05 s: try again"
        ]
        with suppress(ZeroDivisionError), other.lock(name):
            raise ZeroDivisionError
        with other.lock(name):
            assert other.head(name) == store.head(name)
        assert session.refresh() == 1

    # Anything, in any order

    def test_random_changes_give_the_plan_of_each_version(self) -> None:
        run_machine(self.open)


def _written(
    store: Store, name: str, day: int = 3, texts: tuple[str, ...] = _TEXTS
) -> tuple[StoredSession, list[StoredChange], list[Checkpoint]]:
    """Write five changes, with a key, rewinds and checkpoints; returns what the store must have."""
    head = StoredSession(name, 0, b"", _BEGAN, _BEGAN, {"user": "ann", "é": ""}, (), "above")
    changes, checkpoints = list[StoredChange](), list[Checkpoint]()
    for version, text in enumerate(texts, 1):
        change = StoredChange(
            version,
            text,
            chain_hash(head.hash, text),
            {2: "k", 4: "k"}.get(version),
            {3: 1, 5: 0}.get(version),
        )
        checkpoint = None
        if version in {2, 4, 5}:
            checkpoint = Checkpoint(version, _SLICES, chain_hash(change.hash, _SLICES))
            checkpoints.append(checkpoint)
        head = head.grown(version, change.hash, _BEGAN.replace(day=day, microsecond=version))
        store.append(head, change, expected=version - 1, checkpoint=checkpoint)
        changes.append(change)
    assert all(one.hash != two.hash for one, two in pairwise(changes))
    return head, changes, checkpoints


def _all_of(store: Store, name: str) -> tuple[object, ...]:
    """The record of a session in a store."""
    changes, checkpoints = store.changes(name, 1, 99), store.checkpoints(name, 99, 99)
    return store.head(name), list(changes), list(checkpoints), sorted(store.claims(name))


def _without_results(change: Change) -> tuple[object, ...]:
    """A change as it is compared: no store keeps the Python value of a result."""
    events = [getattr(event, "event_id", event) for event in change.events]
    return change.version, change.at, events, change.actor, change.call_id, change.changed


def _refusal(kind: type[Exception], function: Callable[[], object]) -> str:
    """The message of the error that a function raises."""
    try:
        function()
    except kind as error:
        return str(error)
    raise AssertionError(f"{kind.__name__} was not raised")
