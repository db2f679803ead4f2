"""A run in a terminal: its steps redrawn as they change, what tools print scrolling by above them."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from types import MappingProxyType
from typing import Final, Literal, Self, TextIO, TypedDict

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from planning.cli.printable import one_line, printable
from planning.cli.run.output import telling_lines
from planning.cli.run.plain import seconds_text, stopping_text
from planning.cli.run.progress import Progress, StepView, StepViewState
from planning.workflow.run.result import WorkflowResult

__all__ = ["LiveView", "final_frame", "frame"]

# state -> (mark, mark where only ASCII prints, style)
_MARKS: Final = MappingProxyType[StepViewState, tuple[str, str, str]]({
    "waiting": ("○", ".", "dim"),
    "running": ("▶", ">", "bold yellow"),
    "done": ("✓", "x", "green"),
    "skipped": ("-", "-", "dim green"),
    "failed": ("✗", "!", "bold red"),
    "blocked": ("■", "#", "red"),
    "stopped": ("□", "=", "yellow"),
})  # fmt: skip
_TICK: Final = 0.1  # seconds between two drawings
_BESIDE: Final = 72  # columns from which a note has a column of its own
_TIMED: Final = 30  # columns from which there is room for times
_WIDEST_ID: Final = 20
_WIDEST_ID_NARROW: Final = 12
_WIDEST_BAR: Final = 30
_NARROWEST_BAR: Final = 6
_ROUND_STEPS: Final = 5  # lines of a frame that are not steps: three blank ones, the goal, the counts
_LINES_OF_A_STEP: Final = 2  # with a note below it
_MOST_WHOLE: Final = 200  # more steps than these are summed up at the end
_MOST_LISTED: Final = 20


class _Column(TypedDict, total=False):
    overflow: Literal["fold", "ellipsis"]
    no_wrap: bool


class LiveView:
    """Draws a run about ten times a second, from a thread: a tool may keep the event loop busy."""

    def __init__(
        self,
        console: Console,
        progress: Progress,
        *,
        fd: int | None = None,
        streams: Sequence[TextIO] = (),
    ) -> None:
        """Prepare.

        Args:
            console: A terminal.
            progress: The run's steps.
            fd: The terminal's descriptor, of which its size is read; None where the console knows it.
            streams: What is printed there meanwhile stands above the steps.
        """
        self._console = console
        self._progress = progress
        self._fd = fd
        self._streams = streams
        self._printed = ExitStack()
        self._is_stopping = False
        self._live = Live(
            console=console,
            auto_refresh=False,
            vertical_overflow="crop",
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="live view", daemon=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        self._thread.start()
        if self._streams:
            self._printed.enter_context(telling_lines(self._streams, self.say))
        return self

    def __exit__(self, *exc: object) -> None:
        self._printed.close()
        self._over.set()
        self._thread.join()
        self._live.__exit__(None, None, None)

    def say(self, line: str) -> None:
        """Print a line above the steps."""
        self._console.print(Text(printable(line.replace("\t", "    ")), style="dim"))

    def changed(self, step: StepView) -> None:
        """A step changed: the next drawing shows it."""

    def stopping(self, running: int) -> None:  # noqa: ARG002 - it is counted at each drawing
        """Say below the steps that the run is about to stop."""
        self._is_stopping = True

    def end(self, result: WorkflowResult | None) -> None:
        """Leave the steps as they are at the end standing."""
        self._printed.close()
        self._over.set()
        self._thread.join()
        self._measure()
        self._live.update(final_frame(self._console, self._progress, result), refresh=True)

    def _tick(self) -> None:
        while True:
            self._measure()
            with self._progress.lock:
                status = stopping_text(len(self._progress.running)) if self._is_stopping else ""
                drawn = frame(self._console, self._progress, status)
            try:
                self._live.update(drawn, refresh=True)
            except OSError:
                return  # the terminal is gone; the run tells so where it prints its end
            if self._over.wait(_TICK):
                return

    def _measure(self) -> None:
        """Take the terminal's size: rich would ask the standard streams, which lead elsewhere meanwhile."""
        if self._fd is not None:
            try:
                self._console.size = os.get_terminal_size(self._fd)
            except OSError:
                return


def frame(console: Console, progress: Progress, status: str = "") -> RenderableType:
    """The run as it is: cut to the terminal, a step at most two lines.

    Args:
        console: Where it will be drawn; its size decides what fits.
        progress: The steps.
        status: A line for below them.
    """
    below = list(Text(status, style="bold yellow").wrap(console, console.width)) if status else []
    lines = max(1, console.height - _ROUND_STEPS - len(below))
    table = _table(console)
    is_flat = _is_beside(console) or lines < _LINES_OF_A_STEP
    for view in _window(progress, lines, is_flat=is_flat):
        _add(table, console, view, progress.now(), is_flat=is_flat)
    goal = Text(one_line(progress.goal), style="bold", no_wrap=True, overflow="ellipsis")
    # The last line is for the ^C of whoever interrupts: elsewhere it would shift the drawing.
    return Group("", goal, _counts(console, progress), "", table, *below, "")


def final_frame(console: Console, progress: Progress, result: WorkflowResult | None) -> RenderableType:
    """The run at its end: every step, or how many there were, and every error and warning.

    Args:
        console: Where it will be drawn.
        progress: The steps.
        result: What the run gave back; None where it was stopped.
    """
    table = _table(console, is_final=True)
    shown, left_out = _worth_showing(progress)
    for view in shown:
        _add(table, console, view, progress.now())
    goal = [Text(one_line(progress.goal), style="bold")] if progress.goal else []
    more = [Text(f"and {left_out:,} others", style="dim")] if shown and left_out else []
    said = [] if result is None else _said(result)
    status = "stopped" if result is None else result.status
    style = "green" if status == "completed" else "bold red" if status == "failed" else "bold yellow"
    last = Text.assemble((status, style), f": {progress.tally()}, in {seconds_text(progress.seconds)}")
    return Group("", *goal, *([""] if goal else []), table, *more, *said, "", last)


def _worth_showing(progress: Progress) -> tuple[Sequence[StepView], int]:
    if len(progress.steps) <= _MOST_WHOLE:
        return progress.steps, 0
    shown = [view for view in progress.steps if view.state in {"failed", "stopped"}][:_MOST_LISTED]
    return shown, len(progress.steps) - len(shown)


def _said(result: WorkflowResult) -> list[RenderableType]:
    said: list[RenderableType] = []
    for step_id, error in list(result.errors.items())[:_MOST_LISTED]:
        what = f": step {printable(step_id)}: {one_line(error.message)}"
        said += ["", Text.assemble(("error", "bold red"), what)]
        if error.cause is not None:
            said.append(Text(f"  {one_line(error.cause)}", style="dim"))
    if len(result.errors) > _MOST_LISTED:
        said += ["", Text(f"{len(result.errors) - _MOST_LISTED} more errors", style="red")]
    for warning in result.warnings[:_MOST_LISTED]:
        said += ["", Text.assemble(("warning", "bold yellow"), f": {one_line(warning)}")]
    return said


def _is_beside(console: Console) -> bool:
    return console.width >= _BESIDE


def _table(console: Console, *, is_final: bool = False) -> Table:
    """A step a row: mark, id, description, state, elapsed, note; in a narrow terminal on two lines.

    Args:
        console: Where it will be drawn.
        is_final: Whether nothing is cut off, however many lines it takes.
    """
    is_beside = _is_beside(console)
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True, min_width=1)
    widest = _WIDEST_ID if is_beside else min(_WIDEST_ID_NARROW, console.width // 3)
    table.add_column(no_wrap=True, overflow="ellipsis", max_width=widest)
    long: _Column = {"overflow": "fold"} if is_final else {"overflow": "ellipsis", "no_wrap": True}
    table.add_column(ratio=3, **long)
    if is_beside:
        table.add_column(no_wrap=True)
    if console.width >= _TIMED:
        table.add_column(no_wrap=True, justify="right")
    if is_beside:
        table.add_column(ratio=2, style="dim", **long)
    return table


def _add(table: Table, console: Console, view: StepView, now: float, *, is_flat: bool = False) -> None:
    """Add a step; flat, it takes one line whatever there is to say."""
    mark, plain, style = _MARKS[view.state]
    seconds = view.elapsed(now)
    elapsed = [Text("" if seconds is None else seconds_text(seconds))] if console.width >= _TIMED else []
    is_running = view.state == "running"
    cells = [
        Text(plain if console.options.ascii_only else mark, style=style),
        Text(printable(view.step_id)),
        Text(one_line(view.description), style="bold" if is_running else ""),
    ]
    note = Text(one_line(view.note), style="red" if view.state == "failed" else "dim")
    if _is_beside(console):
        table.add_row(*cells, Text(view.state, style=style), *elapsed, note)
    elif view.note and not is_flat:
        table.add_row(*cells[:2], Group(cells[2], note), *elapsed)
    else:
        table.add_row(*cells, *elapsed)


def _window(progress: Progress, lines: int, *, is_flat: bool) -> Sequence[StepView]:
    """The steps that fit on so many lines: those that run, and those around the first of them."""
    steps = progress.steps

    def height(place: int) -> int:
        return 1 if is_flat or not steps[place].note else _LINES_OF_A_STEP

    if len(steps) <= lines and sum(map(height, range(len(steps)))) <= lines:
        return steps
    chosen: set[int] = set()
    left = lines
    anchors = sorted(progress.running) or [progress.last]
    for place in anchors:
        if left < height(place):
            break
        chosen.add(place)
        left -= height(place)
    up = down = anchors[0] if anchors[0] < len(steps) else 0
    while left > 0 and (up >= 0 or down < len(steps)):
        for place in (up, down):
            if 0 <= place < len(steps) and place not in chosen and height(place) <= left:
                chosen.add(place)
                left -= height(place)
        up, down = up - 1, down + 1
    return [steps[place] for place in sorted(chosen)]


def _counts(console: Console, progress: Progress) -> RenderableType:
    text = Text(progress.tally(), no_wrap=True, overflow="ellipsis")
    text.append(f", {seconds_text(progress.seconds)}")
    width = min(_WIDEST_BAR, console.width - text.cell_len - 2)
    if not progress.steps or width < _NARROWEST_BAR:
        return text
    line = Table.grid(padding=(0, 1))
    line.add_row(ProgressBar(total=len(progress.steps), completed=progress.over, width=width), text)
    return line
