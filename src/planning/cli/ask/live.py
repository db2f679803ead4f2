"""A question in a terminal: the plan redrawn as it changes, what went wrong scrolling by above it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table as Grid
from rich.text import Text

from planning.cli.ask.outcome import Outcome, outcome_of, row_notes
from planning.cli.ask.table import Cell, laid_out
from planning.cli.ask.views import lines_of
from planning.cli.replay import Tally
from planning.cli.view_live import frame
from planning.model import Plan

__all__ = ["LiveView", "answer", "timed"]

_TICK: Final = 0.2  # seconds between two drawings
_SOON: Final = 1.0  # seconds; what takes no longer needs no clock
_MINUTE: Final = 60
_STYLES: Final = {"name": "bold", "rule": "dim", "null": "dim italic"}


class LiveView:
    """Draws the plan some five times a second, from a thread: a model may take its time."""

    def __init__(
        self, console: Console, clock: Callable[[], float] = time.monotonic, tick: float = _TICK
    ) -> None:
        """Prepare.

        Args:
            console: A terminal.
            clock: The time in seconds.
            tick: Seconds between two drawings.
        """
        self._console = console
        self._clock = clock
        self._seconds = tick
        self._live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="live view", daemon=True)
        self._plan: Plan | None = None
        self._since = clock()
        self._tried = 0

    def __enter__(self) -> Self:
        self._live.__enter__()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop()
        self._live.__exit__(None, None, None)

    def changed(self, plan: Plan | None, state: Mapping[str, Any]) -> None:
        """Draw the plan, and what was tried and did not do above it."""
        attempts = state.get("attempts") or ()
        with self._lock:
            for attempt in attempts[self._tried :]:
                self._console.print(_tried(attempt))
            self._tried = len(attempts)
            if plan is not self._plan:
                self._plan, self._since = plan, self._clock()
            self._draw()

    def end(self, state: Mapping[str, Any]) -> None:
        """Leave the plan standing, and print what came of it below."""
        self._stop()
        if self._plan is not None:
            self._live.update(frame(self._console, self._plan, Tally()), refresh=True)
        self._live.__exit__(None, None, None)
        self._console.print(answer(self._console, outcome_of(state)))

    def _stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _tick(self) -> None:
        while not self._over.wait(self._seconds):
            try:
                with self._lock:
                    self._draw()
            except OSError:
                return  # the terminal is gone; whoever prints next is told so

    def _draw(self) -> None:
        if self._plan is None:
            return
        plan = timed(self._plan, self._clock() - self._since)
        at = next((place for place, step in enumerate(plan.steps) if step.status == "in_progress"), 0)
        self._live.update(frame(self._console, plan, Tally(), at), refresh=True)


def timed(plan: Plan, seconds: float) -> Plan:
    """The plan with how long the step in progress takes already as its last note."""
    if seconds < _SOON:
        return plan
    whole = int(seconds)
    told = f"{whole} s" if whole < _MINUTE else f"{whole // _MINUTE}:{whole % _MINUTE:02} min"
    steps = [
        replace(step, notes=(*step.notes, told)) if step.status == "in_progress" else step
        for step in plan.steps
    ]
    return replace(plan, steps=tuple(steps))


def answer(console: Console, outcome: Outcome) -> RenderableType:
    """What came of a question: the SQL, and the rows, or why there are none.

    Args:
        console: Where it will be drawn; its width decides what fits.
        outcome: What came of it.
    """
    told: list[RenderableType] = []
    if outcome.sql is not None:
        told += [*(Text(line, style="cyan", overflow="fold") for line in lines_of(outcome.sql)), ""]
    if outcome.rows is not None:
        told += _rows(console, outcome)
    elif outcome.kind == "asks":
        told += [_labelled("asks back", "bold yellow", outcome.told)]
    else:
        told += [_labelled("no answer", "bold red", outcome.told)]
    return Group(*told)


def _rows(console: Console, outcome: Outcome) -> list[RenderableType]:
    ellipsis = "..." if console.options.ascii_only else "\N{HORIZONTAL ELLIPSIS}"
    table = laid_out(outcome.columns, outcome.rows or (), console.width, ellipsis)
    lines = table.lines if outcome.rows else table.lines[:1]
    notes = [Text(note, style="dim") for note in row_notes(outcome, table)]
    return [*map(_line, lines), "", *notes]


def _line(cells: tuple[Cell, ...]) -> Text:
    line = Text(no_wrap=True, overflow="crop")
    for place, cell in enumerate(cells):
        line.append(("  " if place else "") + cell.text, style=_STYLES.get(cell.kind, ""))
    line.rstrip()
    return line


def _tried(attempt: Mapping[str, Any]) -> RenderableType:
    return _labelled("tried", "red", str(attempt.get("error") or ""))


def _labelled(label: str, style: str, text: str) -> RenderableType:
    line = Grid.grid(padding=(0, 1))
    line.add_column(no_wrap=True)
    line.add_column(overflow="fold")
    line.add_row(Text(label, style=style), Text("\n".join(lines_of(text))))
    return line
