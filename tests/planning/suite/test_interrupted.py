"""A fault at every bytecode of a call: it is done or not done, as it says, and nothing stays locked."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from cutting_proxy import cutting
from interrupting import (
    AGAIN,
    CONNECTION,
    CTRL_C,
    DISK,
    NO_MEMORY,
    SHARE,
    Fault,
    Struck,
    drawn,
    interrupt,
    points,
    shown,
)
from postgres_server import schema_for, shared_server
from run_cases import called, capable, flow, thought
from session_records import Count, Note, Thing
from store_places import MemoryPlace, Place, PostgresPlace, SqlitePlace

from planning import Plan, PlanningToolsSection, Toolbox
from planning.tools import CircuitBreaker, Tool, ToolResult, tool
from planning.workflow import WorkflowError, run_workflow
from planning.workflow.run.records import Clock, WorkflowRun, register_workflow
from session import Session, StoreError, ToolFailed, ToolInvoked, TransactionError, append
from session.pool import Pool
from session.stored import StoredState
from session.stores import MemoryStore, PostgresStore, Store, copy_session

pytestmark = [
    pytest.mark.interrupting,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

MARK = ("planning_mark_step", {"step_id": "S001", "status": "done"})
WORK = ("work", {"a": 1})
KEY = {"idempotency_key": "k"}
FLOW = flow(called("a", tool="once"), thought("b", "a"))
State = tuple[int, Plan | None, list[str], list[int | None], list[str]]
"""The changes but for failed calls, the plan, the notes, the versions of the other sessions, the claims."""


class World:
    """A session with a plan and a tool, and another session of the store."""

    def __init__(self, store: Store | None, number: int) -> None:
        self.store, self.number, self.now, self.is_broken, self.ran = store, number, 0.0, False, 0
        self.breaker = CircuitBreaker(failures=1, reset_after=5, clock=lambda: self.now)

        @tool(breaker=self.breaker, idempotent=False, blocking=False)
        def work(a: int) -> str:
            """Work."""
            self.ran += 1
            if self.is_broken:
                raise ValueError(a)
            return "done"

        async def once() -> str:
            self.ran += 1
            return "done"

        self.capabilities = capable(Tool("once", "", once, idempotent=False))
        self.session = opened(store, f"s{number}")
        tools = [*PlanningToolsSection(session=self.session).tools(), work]
        self.box = Toolbox(tools, session=self.session)
        self.box.call("planning_setup_plan", {"objective": "o", "initial_steps": ["x", "y"]})
        self.other = opened(store, f"o{number}")
        self.other.dispatch(Note("a"))

    def react(self) -> None:
        """Let a subscriber answer each call with a change."""

        def on(event: ToolInvoked) -> None:
            if event.name != "again":
                self.session.publish(ToolInvoked("again", {}, None))

        self.session.bus.subscribe(ToolInvoked, on)

    def open_breaker(self) -> None:
        """Let the next call be the probe."""
        self.is_broken = True
        self.box.call(*WORK)
        self.is_broken, self.now, self.ran = False, 10.0, 0

    def abandon(self) -> None:
        """Leave the plan to a workflow."""
        self.box.call("planning_clear_plan", {})

    def state(self, session: Session) -> State:
        """What there is, as a session sees it."""
        store, number = session.store, self.number
        changes = [
            each
            for each in session.history()
            if not each.events or not all(isinstance(event, ToolFailed) for event in each.events)
        ]
        heads: list[int | None] = []
        claims: list[str] = []
        if store is not None:
            found = [store.head(f"{kind}{number}") for kind in "ofr"]
            heads = [None if head is None else head.version for head in found]
            claims = sorted(name for name, _ in store.claims(f"s{number}"))
        notes = [note.text for note in session.select_all(Note)]
        return len(changes), session.select_latest(Plan), notes, heads, claims


def opened(store: Store | None, name: str) -> Session:
    session = Session(session_id=name, store=store)
    session.register_reducer(Note, append)
    return session


def nest(world: World) -> None:
    with world.session.transaction() as outer:
        outer.dispatch(Note("1"))
        with world.session.transaction() as inner:
            inner.dispatch(Note("2"))
        outer.publish(ToolInvoked("host", {}, None))


def catch(world: World) -> None:
    """The host goes on after an interrupted block inside its own."""
    with world.session.transaction() as outer:
        outer.dispatch(Note("1"))
        with suppress(KeyboardInterrupt, MemoryError), world.session.transaction() as inner:
            inner.dispatch(Note("2"))
        outer.dispatch(Note("3"))


def stored(act: Callable[[World, Store], object]) -> Callable[[World], object]:
    """An act that needs a store."""
    return lambda world: None if world.store is None else act(world, world.store)


def verify(world: World, store: Store) -> None:
    with store.reading():
        store.head(f"s{world.number}")
    store.verify(f"s{world.number}")


def restore(world: World, store: Store) -> int:
    source = MemoryStore()
    opened(source, f"r{world.number}").dispatch(Note("first"))
    return copy_session(source, store, f"r{world.number}").version


def run_flow(world: World) -> object:
    return run_workflow(FLOW, world.capabilities, session=world.session)


ACTS: dict[str, tuple[Callable[[World], object], Callable[[World], object] | None]] = {
    "mark": (lambda world: world.box.call(*MARK), None),
    "setup": (lambda world: world.box.call("planning_setup_plan", {"objective": "p"}), None),
    "read": (lambda world: world.box.call("planning_read_plan", {}), None),
    "keyed mark": (lambda world: world.box.call(*MARK, context=KEY), None),
    "keyed tool": (lambda world: world.box.call(*WORK, context=KEY), None),
    "async mark": (lambda world: asyncio.run(world.box.acall(*MARK)), None),
    "async keyed tool": (lambda world: asyncio.run(world.box.acall(*WORK, context=KEY)), None),
    "workflow": (run_flow, World.abandon),
    "probe": (lambda world: world.box.call(*WORK), World.open_breaker),
    "reaction": (lambda world: world.box.call(*MARK), World.react),
    "rewind": (lambda world: world.session.rewind(0), None),
    "fork": (lambda world: world.session.fork(session_id=f"f{world.number}"), None),
    "claim": (lambda world: world.session.claim("x"), None),
    "delete": (stored(lambda world, store: store.delete(f"o{world.number}")), None),
    "restore": (stored(restore), None),
    "nested": (nest, None),
    "caught": (catch, None),
    "refresh": (lambda world: world.session.refresh(), None),
    "history": (lambda world: world.session.history(), None),
    "verify": (stored(verify), None),
}
OF_MANY = {"read", "reaction", "keyed tool", "async keyed tool", "workflow", "caught"}
"""The acts that are more than one change, or done without one: each change is there or not."""


def said(struck: Struck, fault: Fault) -> str:
    """What the caller is told: done, refused, or neither."""
    error, value = struck.error, struck.value
    if isinstance(error, StoreError):
        return error.outcome
    if isinstance(error, TransactionError):  # the host's own block goes on after the fault
        return "refused"
    if error is not None:
        assert isinstance(error, (type(fault.make()), WorkflowError)), repr(error)
        return "unknown"
    if isinstance(value, ToolResult) and not value.success:
        is_open = re.search("not known whether|may have taken effect|ran, but", value.message)
        return "unknown" if is_open else "refused"
    return "done" if getattr(value, "status", "completed") == "completed" else "unknown"


def check(world: World, act: str, told: str, before: State, after: State, place: Place | None) -> None:
    """The laws after a fault: it is done or not done, everywhere and as it was said, and everything works."""
    session, store, number, ran = world.session, world.store, world.number, world.ran
    if isinstance(session._state, StoredState) and session._state.past.is_unsettled:
        session.refresh()
    state = world.state(session)
    if act not in OF_MANY:
        allowed = {"done": [after], "refused": [before]}.get(told, [before, after])
        assert state in allowed, f"{told}, and there is {state}"
    elif act != "workflow":
        assert before[0] <= state[0] <= after[0]
        assert state[1] in (before[1], after[1])
        assert set(state[2]) <= set(after[2])
        assert state[4] in (before[4], after[4])
    twin = None if place is None else opened(place.open(), f"s{number}")
    if twin is not None:
        for each in (session, twin):
            PlanningToolsSection(session=each)
            register_workflow(each)
        assert world.state(twin) == state, "the store has what memory has"
        assert world.state(opened(store, f"s{number}")) == state
    world.now += 100
    repeat(world, act, told, session if twin is None else twin)
    assert world.ran <= max(ran, 1), "the tool ran twice"
    version = session.version
    again = world.box.call(
        "planning_setup_plan", {"objective": "q", "initial_steps": ["z"]}, context={"idempotency_key": "own"}
    )
    assert again.success, again
    assert twin is not None or act == "reaction" or session.version == version + 1
    assert world.box.call(*WORK).success, world.breaker.state
    others_can_write(world, place)
    if twin is not None:
        twin.dispatch(Note("p"))
        session.refresh()
        assert world.state(session) == world.state(twin)
    assert [change.version for change in session.history()] == list(range(1, session.version + 1))


def repeat(world: World, act: str, told: str, session: Session) -> None:
    """The same again: a tool never runs twice, and what was not done can be done."""
    ran, call = world.ran, ACTS[act][0]
    if act in {"keyed mark", "keyed tool", "async keyed tool"}:
        result = world.box.call(*(MARK if act == "keyed mark" else WORK), context=KEY)
        assert result.success or (world.ran == ran and "may have taken effect" in result.message), result
        calls = [each for each in world.session.select_all(ToolInvoked) if each.idempotency_key == "k"]
        assert len(calls) == result.success
    elif act == "workflow":
        run = session.select_latest(WorkflowRun)
        if run is None or run.status != "completed":  # else it is begun anew
            outcome = run_workflow(FLOW, world.capabilities, session=session)
            assert world.ran == 1 or outcome.status == "failed"
    elif act == "claim":
        is_ours = world.session.claim("x")
        assert is_ours is {"done": False, "refused": True}.get(told, is_ours)
        assert [world.session.claim("x"), session.claim("x")] == [False, False]
    elif act != "probe":
        with suppress(StoreError) if act in {"fork", "restore"} else nullcontext():  # it is there
            call(world)
        store = world.store
        for name in [] if store is None else [f"r{world.number}", f"f{world.number}"]:
            if store is not None and store.head(name) is not None:
                store.verify(name)


def others_can_write(world: World, place: Place | None) -> None:
    """Another thread, another connection; and connections of a pool are back."""
    fresh = opened(world.store, f"n{world.number}")
    fresh.dispatch(Note("b"))
    failed: list[BaseException] = []

    def elsewhere() -> None:
        try:
            world.session.dispatch(Note("t"))
            fresh.dispatch(Note("c"))
            if world.store is not None:
                world.store.verify(f"n{world.number}")
        except BaseException as error:  # noqa: BLE001 - it is shown where the thread was started
            failed.append(error)

    thread = threading.Thread(target=elsewhere, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive(), "another thread hangs"
    assert not failed
    if isinstance(place, SqlitePlace):
        with sqlite3.connect(place.path, timeout=0.2, isolation_level=None) as connection:
            connection.execute("BEGIN IMMEDIATE")
        connection.close()
    if isinstance(place, PostgresPlace):
        store: Any = world.store
        assert not store._connections.holders
        assert in_transactions() == [], "a transaction is open"


def in_transactions() -> list[Any]:
    """What the open transactions of the server run; one whose connection is closed ends soon."""
    import psycopg

    asked = "SELECT query FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid()"
    found: list[Any] = []
    with psycopg.connect(shared_server().conninfo, autocommit=True) as connection:
        for _ in range(50):
            found = connection.execute(f"{asked} AND application_name = 'session-planning'").fetchall()
            if not found:
                break
            sleep(0.02)
    return found


class Worlds:
    """Worlds of one place, and what each act leads to there."""

    def __init__(self, place: Place | None, store: Store | None) -> None:
        self.place, self.store, self.number, self.wrong = place, store, 0, list[str]()

    def make(self, act: str) -> tuple[World, State]:
        self.number += 1
        world, prepare = World(self.store, self.number), ACTS[act][1]
        if prepare is not None:
            prepare(world)
        return world, world.state(world.session)

    def done(self, act: str) -> State:
        """The state after an act; the second time it has what it looks up once."""
        ACTS[act][0](self.make(act)[0])
        world, _before = self.make(act)
        ACTS[act][0](world)
        return world.state(world.session)

    def judge(
        self, act: str, strike: Callable[[World], Struck], fault: Fault, after: State, where: str
    ) -> bool:
        """Hold the laws for a world that is struck; whether it was."""
        world, before = self.make(act)
        struck = Struck(is_raised=True)

        def hold() -> None:
            nonlocal struck
            try:
                struck = strike(world)
                if struck.is_raised:
                    check(world, act, said(struck, fault), before, after, self.place)
            except Exception as error:  # noqa: BLE001 - all are shown together
                self.wrong.append(f"{act}, {where}: {error!r}")

        thread = threading.Thread(target=hold, daemon=True)
        thread.start()
        thread.join(60)
        if thread.is_alive():  # it holds what the next ones need
            stack = "".join(traceback.format_stack(sys._current_frames()[thread.ident or 0]))
            self.wrong.append(f"{act}, {where}: it hangs:\n{stack}")
            self.assert_right()
        return struck.is_raised

    def assert_right(self) -> None:
        """Show all that was wrong."""
        assert not self.wrong, "\n".join([f"{AGAIN}:", *self.wrong])


@pytest.fixture
def _in_this_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """What async code does in a worker is done where the tracer sees it."""

    async def run(_pool: Pool, _lane: object, function: Callable[[], object]) -> object:
        return function()

    monkeypatch.setattr(Pool, "run", run)


postgres = pytest.mark.postgres
CASES = [
    *((place, fault) for place in (None, MemoryPlace, SqlitePlace) for fault in ("Ctrl-C", "memory")),
    (SqlitePlace, "disk"),
    *(pytest.param(PostgresPlace, fault, marks=postgres) for fault in ("Ctrl-C", "memory", "connection")),
]
FAULTS = {"Ctrl-C": CTRL_C, "memory": NO_MEMORY, "disk": DISK, "connection": CONNECTION}


@pytest.mark.parametrize(("place_type", "kind"), CASES)
@pytest.mark.usefixtures("_in_this_thread")
def test_a_fault_at_any_bytecode_leaves_nothing_locked_and_a_call_whole(
    place_type: type[Place] | None, kind: str, tmp_path: Path
) -> None:
    place, fault = None if place_type is None else place_type(tmp_path), FAULTS[kind]
    worlds = Worlds(place, None if place is None else place.open())
    share, counts = SHARE / 4 if place_type is PostgresPlace else SHARE, Counter[bool]()
    share *= 40 if fault.driver else 1  # there are few of these
    for name, (act, _) in ACTS.items():
        after = worlds.done(name)
        found = points(partial(act, worlds.make(name)[0]), fault)
        if place is not None and not fault.driver:
            assert found, name
        for point, time in drawn(found, share, name):
            strike = partial(strike_at, act, point, time, fault)
            counts[worlds.judge(name, strike, fault, after, shown(point, time))] += 1
    worlds.assert_right()
    if counts or place_type is not PostgresPlace:  # whose sample is small
        assert counts[True] > counts[False], counts


def test_a_clock_that_a_fault_stopped_tells_the_time() -> None:
    found = points(lambda: Clock().now())
    assert len(found) > 20
    for point, time in found:
        clock = Clock()
        interrupt(clock.now, point, time)
        assert clock.now() == clock.moment.isoformat(), shown(point, time)


@pytest.mark.usefixtures("_in_this_thread")
def test_a_run_whose_engine_has_no_memory_ends(tmp_path: Path) -> None:
    place, act = MemoryPlace(tmp_path), ACTS["workflow"][0]
    worlds = Worlds(place, place.open())
    after = worlds.done("workflow")
    found = [
        (point, time)
        for point, time in points(partial(act, worlds.make("workflow")[0]), NO_MEMORY)
        if time == 1 and point[0].co_qualname.startswith(("_Workers.", "Writer._write", "to_the_end"))
    ]
    assert len(found) > 200
    for point, time in drawn(found, max(0.2, SHARE), "workflow"):
        strike = partial(strike_at, act, point, time, NO_MEMORY)
        worlds.judge("workflow", strike, NO_MEMORY, after, shown(point, time))
    worlds.assert_right()


def strike_at(act: Callable[[World], object], point: Any, time: int, fault: Fault, world: World) -> Struck:
    return interrupt(partial(act, world), point, time, fault)


@pytest.mark.parametrize("fault", [CTRL_C, NO_MEMORY], ids=["Ctrl-C", "memory"])
def test_registering_that_a_fault_cut_short_is_done_by_registering_again(fault: Fault) -> None:
    store, other = MemoryStore(), Session(store=MemoryStore())
    other.register_reducer(Count, append, is_private=True)
    other.register_reducer(Note, append)

    def begun(number: object) -> Session:
        """A session that has looked up how to reduce what has no reducer yet."""
        session = Session(session_id=f"s{number}", store=store)
        session.dispatch(Count(1))
        return session

    def register(session: Session) -> None:
        session.register_like(other)
        session.register_reducer(Thing, append)

    def use(session: Session) -> tuple[object, ...]:
        for value in (Count(2), Thing(Note("n"))):
            session.dispatch(value)
        again = Session(session_id=session.session_id, store=store)
        found = store.changes(session.session_id, 1, 9)
        return session.select_all(Count), session.select_all(Thing), again.version, len(found)

    whole = begun("whole")
    register(whole)
    expected = use(whole)
    found = points(partial(register, begun("first")), fault)
    assert len(found) > 100
    for number, (point, time) in enumerate(found):
        session = begun(number)
        interrupt(partial(register, session), point, time, fault)
        register(session)
        assert use(session) == expected, shown(point, time)


@postgres
def test_a_connection_cut_at_any_message_leaves_nothing_locked_and_a_call_whole(tmp_path: Path) -> None:
    place, cut = PostgresPlace(tmp_path), 0
    with cutting(shared_server().port) as proxy:
        url, schema = shared_server().url_at(proxy.port), schema_for(place.path)
        worlds = Worlds(place, PostgresStore(url, schema=schema, timeout=2))

        def strike(act: Callable[[World], object], last: int, world: World) -> Struck:
            struck, cuts, proxy.messages = Struck(), proxy.cuts, last
            try:
                struck.value = act(world)
            except StoreError as error:
                struck.error = error
            proxy.messages, struck.is_raised = None, proxy.cuts > cuts
            return struck

        for name, (act, _) in ACTS.items():
            after, passed = worlds.done(name), proxy.passed
            act(worlds.make(name)[0])
            for last in drawn(range(1, proxy.passed - passed), max(0.1, SHARE), name):
                cut += worlds.judge(name, partial(strike, act, last), CONNECTION, after, f"message {last}")
        worlds.assert_right()
        assert cut > 0
