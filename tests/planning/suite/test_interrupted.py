"""Ctrl-C at every bytecode of a call: nothing stays locked, and the call is done or not done."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from interrupting import interrupt, points, shown
from session_records import Note
from store_places import MemoryPlace, Place, PostgresPlace, SqlitePlace

from planning import Plan, PlanningToolsSection, Toolbox
from planning.tools import CircuitBreaker, tool
from session import Session, ToolInvoked, append
from session.stores import Store

pytestmark = [
    pytest.mark.interrupting,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

# Of the places; a quarter of that on a server. `make soak` tries all of them.
SHARE = float(os.environ.get("INTERRUPTS", "0.02" if "CI" in os.environ else "0.01"))
MARK = ("planning_mark_step", {"step_id": "S001", "status": "done"})
Look = tuple[int, list[str], list[str]]


class World:
    """A session with a plan and a tool, and another session of the store."""

    def __init__(self, store: Store | None, number: int) -> None:
        self.store, self.number, self.now, self.is_broken = store, number, 0.0, False
        self.breaker = CircuitBreaker(failures=1, reset_after=5, clock=lambda: self.now)

        @tool(breaker=self.breaker, idempotent=False)
        def work(a: int) -> str:
            """Work."""
            if self.is_broken:
                raise ValueError(a)
            return "done"

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
        self.box.call("work", {"a": 1})
        self.is_broken, self.now = False, 10.0


def opened(store: Store | None, name: str) -> Session:
    session = Session(session_id=name, store=store)
    session.register_reducer(Note, append)
    return session


def look(session: Session) -> Look:
    plan = session.select_latest(Plan)
    steps = [] if plan is None else [f"{step.title} {step.status}" for step in plan.steps]
    return session.version, steps, [note.text for note in session.select_all(Note)]


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
        with suppress(KeyboardInterrupt), world.session.transaction() as inner:
            inner.dispatch(Note("2"))
        outer.dispatch(Note("3"))


def delete(world: World) -> None:
    if world.store is not None:
        world.store.delete(f"o{world.number}")


def verify(world: World) -> None:
    if world.store is not None:
        with world.store.reading():
            world.store.head(f"s{world.number}")
        world.store.verify(f"s{world.number}")


def key(name: str) -> dict[str, str]:
    return {"idempotency_key": name}


ACTS: dict[str, tuple[Callable[[World], object], Callable[[World], object] | None]] = {
    "mark": (lambda world: world.box.call(*MARK), None),
    "setup": (lambda world: world.box.call("planning_setup_plan", {"objective": "p"}), None),
    "read": (lambda world: world.box.call("planning_read_plan", {}), None),
    "keyed mark": (lambda world: world.box.call(*MARK, context=key("k")), None),
    "keyed tool": (lambda world: world.box.call("work", {"a": 1}, context=key("k")), None),
    "probe": (lambda world: world.box.call("work", {"a": 1}), World.open_breaker),
    "reaction": (lambda world: world.box.call(*MARK), World.react),
    "rewind": (lambda world: world.session.rewind(0), None),
    "fork": (lambda world: world.session.fork(session_id=f"f{world.number}"), None),
    "claim": (lambda world: world.session.claim("x"), None),
    "delete": (delete, None),
    "nested": (nest, None),
    "caught": (catch, None),
    "refresh": (lambda world: world.session.refresh(), None),
    "history": (lambda world: world.session.history(), None),
    "verify": (verify, None),
}
# What each may leave in the notes; a call of a model makes one change or none.
NOTES: dict[str, list[list[str]]] = {"nested": [[], ["1", "2"]], "caught": [[], ["1", "3"], ["1", "2", "3"]]}


def check(world: World, act: str, before: Look, place: Place | None) -> None:
    """Everything works at once, and the store has what memory has."""
    session, found = world.session, look(world.session)
    assert found[2] in NOTES.get(act, [[]])
    if act not in {"reaction", "keyed tool", "probe"}:
        assert found[0] - before[0] in {0, 1}
    if act in {"mark", "keyed mark"}:
        assert found in (before, (before[0] + 1, ["x done", "y pending"], []))
    twin = None
    if place is not None:
        twin = opened(place.open(), f"s{world.number}")
        PlanningToolsSection(session=twin)
        assert look(twin) == found, "the store has what memory has"
    again = world.box.call(
        "planning_setup_plan", {"objective": "q", "initial_steps": ["z"]}, context=key("own")
    )
    assert again.success, again
    if act.startswith("keyed"):
        call = MARK if act == "keyed mark" else ("work", {"a": 1})
        assert "is running" not in world.box.call(*call, context=key("k")).message
    world.now += 100
    assert world.box.call("work", {"a": 1}).success, world.breaker.state
    fresh = opened(world.store, f"n{world.number}")
    fresh.dispatch(Note("b"))
    failed: list[BaseException] = []

    def elsewhere() -> None:
        try:
            session.dispatch(Note("t"))
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
    if twin is not None:
        twin.dispatch(Note("p"))
        session.refresh()
        assert look(session) == look(twin)
    assert [change.version for change in session.history()] == list(range(1, session.version + 1))


@pytest.mark.parametrize(
    "place_type", [None, MemoryPlace, SqlitePlace, pytest.param(PostgresPlace, marks=pytest.mark.postgres)]
)
def test_ctrl_c_at_any_bytecode_leaves_nothing_locked_and_a_call_whole(
    place_type: type[Place] | None, tmp_path: Path
) -> None:
    place = None if place_type is None else place_type(tmp_path)
    store = None if place is None else place.open()
    share = SHARE / 4 if place_type is PostgresPlace else SHARE
    number, wrong, tried, chance = 0, [], set[Any](), random.Random(str(place_type))  # noqa: S311

    def world(prepare: Callable[[World], object] | None) -> World:
        nonlocal number
        number += 1
        made = World(store, number)
        if prepare is not None:
            prepare(made)
        return made

    for name, (act, prepare) in ACTS.items():
        points(partial(act, world(prepare)))  # the second time it has what it looks up once
        known = points(partial(act, world(prepare)))
        new = [each for each in known if each not in tried]
        tried |= set(new)
        for point, time in new:
            if chance.random() >= share:
                continue
            made = world(prepare)
            before = look(made.session)
            try:
                interrupt(partial(act, made), point, time)
                if name != "caught":
                    continue  # it came by another way
                check(made, name, before, place)
            except KeyboardInterrupt:
                try:
                    check(made, name, before, place)
                except Exception as error:  # noqa: BLE001 - all are shown together
                    wrong.append(f"{name}, {shown(point, time)}: {error!r}")
            except Exception as error:  # noqa: BLE001 - likewise
                wrong.append(f"{name}, {shown(point, time)}: {error!r}")
    assert wrong == []


@pytest.mark.parametrize(
    "place_type", [None, SqlitePlace, pytest.param(PostgresPlace, marks=pytest.mark.postgres)]
)
def test_ctrl_c_as_a_signal_at_random_moments(place_type: type[Place] | None, tmp_path: Path) -> None:
    place = None if place_type is None else place_type(tmp_path)
    store = None if place is None else place.open()

    def on_alarm(_number: int, frame: FrameType | None) -> None:
        if frame is not None and frame.f_code.co_filename != __file__:  # the call is over, or has not begun
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, on_alarm)
    acts, chance = list(ACTS), random.Random(1)  # noqa: S311
    try:
        for number in range(400 if "CI" in os.environ else 30):
            name = acts[number % len(acts)]
            act, prepare = ACTS[name]
            made = World(store, number)
            if prepare is not None:
                prepare(made)
            was = look(made.session)
            try:
                signal.setitimer(signal.ITIMER_REAL, chance.uniform(1e-5, 1e-3 if place is None else 5e-3))
                act(made)
            except KeyboardInterrupt:
                pass
            signal.setitimer(signal.ITIMER_REAL, 0)
            if name not in NOTES or look(made.session)[2]:
                check(made, name, was, place)
    finally:
        signal.signal(signal.SIGALRM, before)
