"""What a session costs as it grows: the late event against the early one, a read, and kept plans."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from timeit import repeat
from typing import Any

from benchmarks.peers.ours import current, open_plan
from planning import MarkStep, Plan
from session import InProcessEventBus, Session, ToolInvoked, append, select_latest

__all__ = ["EventFigure", "MemoryFigure", "measure_events", "measure_memory", "measure_select_latest"]

EARLY = 100
LATE = 100_000
HALF_WINDOW = 100
READS = 20_000


@dataclass(frozen=True, slots=True)
class Reading:
    """A small value for a slice that is registered with ``append``."""

    number: int


@dataclass(frozen=True, slots=True)
class EventFigure:
    """What an event costs early and late in one session.

    Attributes:
        what: What was sent.
        early: Microseconds of an event around the 100th.
        late: Microseconds of an event around the 100,000th.
    """

    what: str
    early: float
    late: float

    @property
    def ratio(self) -> float:
        """How many times the late event costs the early one."""
        return self.late / self.early


@dataclass(frozen=True, slots=True)
class MemoryFigure:
    """What kept plans weigh, in bytes as tracemalloc counts them.

    Attributes:
        plans: How many plans were kept.
        steps: The steps of each.
        plans_bytes: The plans alone, after the session that made them is gone.
        session_bytes: The plans together with the session and its log of one event per mark.
    """

    plans: int
    steps: int
    plans_bytes: int
    session_bytes: int


def measure_events(*, sessions: int) -> list[EventFigure]:
    """Time single events around the 100th and the 100,000th of a session.

    Args:
        sessions: How many fresh sessions are filled; the figure is the median over all their windows.
    """
    return [
        _measure("publish of a ToolInvoked, kept in the log", _publisher, sessions),
        _measure("dispatch of a value to an append slice", _dispatcher, sessions),
    ]


@dataclass(frozen=True, slots=True)
class _Sender:
    """A fresh session and how one kind of event is made, sent and counted."""

    make: Callable[[int], object]
    send: Callable[[Any], object]
    count: Callable[[], int]


def _publisher() -> _Sender:
    session = Session(bus=InProcessEventBus())
    identity = session.session_id
    return _Sender(
        make=lambda n: ToolInvoked(session_id=identity, name="look_up", params=n, result="found"),
        send=session.publish,
        count=lambda: len(session.select_all(ToolInvoked)),
    )


def _dispatcher() -> _Sender:
    session = Session(bus=InProcessEventBus())
    session.register_reducer(Reading, append)
    return _Sender(make=Reading, send=session.dispatch, count=lambda: len(session.select_all(Reading)))


def _measure(what: str, open_sender: Callable[[], _Sender], sessions: int) -> EventFigure:
    early: list[int] = []
    late: list[int] = []
    # The first session warms the code up: its early window would be slow for a reason of its own.
    for visit in range(sessions + 1):
        sender = open_sender()
        send = sender.send
        for n in range(1, LATE + HALF_WINDOW + 1):
            event = sender.make(n)
            begun = perf_counter_ns()
            send(event)
            took = perf_counter_ns() - begun
            if visit and abs(n - EARLY) <= HALF_WINDOW:
                early.append(took)
            elif visit and abs(n - LATE) <= HALF_WINDOW:
                late.append(took)
        if sender.count() != LATE + HALF_WINDOW:
            raise RuntimeError(f"{what}: {sender.count():,} of {LATE + HALF_WINDOW:,} were kept")
    return EventFigure(what, median(early) / 1_000, median(late) / 1_000)


def measure_select_latest(*, repeats: int) -> float:
    """The microseconds of reading a plan of 1,000 steps; the median of the repeats."""
    session, _ = open_plan(1_000)
    if select_latest(session, Plan) is None:
        raise RuntimeError("there is no plan to read")
    seconds = repeat(lambda: select_latest(session, Plan), number=READS, repeat=repeats)
    return median(seconds) / READS * 1e6


def measure_memory(*, plans: int = 1_000, steps: int = 1_000) -> MemoryFigure:
    """Weigh the plans of a session, one kept after each mark of another step."""
    session, toolbox = open_plan(steps)
    step_ids = [step.step_id for step in current(session).steps]
    # A first mark loads whatever is imported late, which is no part of what a plan weighs.
    toolbox.invoke("planning_mark_step", MarkStep(step_id=step_ids[-1], status="in_progress"))
    kept: list[Plan] = []
    gc.collect()
    tracemalloc.start()
    try:
        for n in range(plans):
            toolbox.invoke("planning_mark_step", MarkStep(step_id=step_ids[n % steps], status="done"))
            kept.append(current(session))
        gc.collect()
        together = tracemalloc.get_traced_memory()[0]
        if len({id(plan.steps) for plan in kept}) != plans:
            raise RuntimeError("the kept plans are not so many different snapshots")
        del session, toolbox
        gc.collect()
        alone = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    return MemoryFigure(plans, steps, alone, together)
