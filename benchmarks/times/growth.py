"""What sessions weigh, and whether marks without end need more memory than ``history=`` keeps."""

from __future__ import annotations

import gc
import os
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks.harness import Check, at_most, microseconds, table
from benchmarks.peers.ours import open_plan, set_up
from planning import MarkStep, PlanningToolsSection, Toolbox
from session import Session

__all__ = ["measure_growth"]

SESSIONS, STEPS, KEPT = 1_000, 10, 1_000
SESSION_MICROSECONDS, SESSION_KILOBYTES, GROWN_MEGABYTES = 1_000.0, 50.0, 4.0


def measure_growth(marks: int) -> tuple[list[str], list[Check]]:
    """Make the sessions, and marks in a process of its own: the blocks and the checks of a section.

    Args:
        marks: How many marks; the memory is compared with that after a tenth of them.
    """
    held: list[object] = []
    took = microseconds(lambda: held.append(open_plan(STEPS)), SESSIONS)
    held.clear()
    gc.collect()
    tracemalloc.start()
    held.extend(open_plan(STEPS) for _ in range(SESSIONS))
    kilobytes = tracemalloc.get_traced_memory()[0] / SESSIONS / 1_000
    tracemalloc.stop()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        early, late = fresh.submit(_marked, marks).result()
    each, grown = f"each of {SESSIONS:,} sessions with a plan of {STEPS} steps", late - early
    after = f"{marks:,} marks with history={KEPT:,}"
    rows: list[list[str | float]] = [
        [f"{each}, to make: microseconds", took],
        [f"{each}: kB", kilobytes],
        [f"a process after {marks // 10:,} marks with history={KEPT:,}: MB", early],
        [f"the same after {marks:,}", late],
    ]
    checks = [
        at_most(f"{each}, to make", took, SESSION_MICROSECONDS, "microseconds"),
        at_most(each, kilobytes, SESSION_KILOBYTES, "kB"),
        at_most(f"growth of a process up to {after}, after a tenth of them", grown, GROWN_MEGABYTES, "MB"),
    ]
    return ["Memory:", table(["what", "figure"], rows)], checks


def _marked(marks: int) -> tuple[float, float]:
    """The megabytes of this process after a tenth of the marks, and after all."""
    toolbox = Toolbox(PlanningToolsSection(session=Session(history=KEPT)).tools())
    set_up(toolbox, STEPS)
    commands = [MarkStep(step_id="S005", status=status) for status in ("done", "in_progress")]
    megabytes = []
    for number in range(marks):
        toolbox.invoke("planning_mark_step", commands[number & 1])
        if number + 1 in {marks // 10, marks}:
            gc.collect()
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
            megabytes.append(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)
    return megabytes[0], megabytes[1]
