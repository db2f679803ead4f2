"""A plan or a run in a terminal: its steps redrawn as they change, all else scrolling by above them."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Final, Self, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live as Redrawn
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from planning.cli.output import passing_lines
from planning.cli.progress import Change, Progress, Step
from planning.cli.terminal import HEADING, MARKS, Line, lines_of, seconds_text
from planning.errors import one_line, printable

__all__ = ["Live", "final_frame", "frame"]

_BESIDE: Final = 72  # columns from which a note has a column of its own
_TIMED: Final = 30  # columns from which there is room for times
_WIDEST_ID: Final = 20
_WIDEST_ID_NARROW: Final = 12
_WIDEST_BAR: Final = 30
_NARROWEST_BAR: Final = 6
_ROUND_STEPS: Final = 5  # lines of a frame that are not steps: three blank ones, the title, the counts
_SOON: Final = 1.0  # seconds; a step of a plan that takes no longer needs no clock
_MOST_STEPS: Final = 200  # of a run; of more, only those that failed or were stopped are left standing
_MOST_LISTED: Final = 20


class Live:
    """Draws the steps again at each change, or several times a second from a thread of its own."""

    def __init__(
        self,
        console: Console,
        progress: Progress,
        *,
        tick: float | None = None,
        streams: Sequence[TextIO] = (),
    ) -> None:
        """Nothing is drawn yet.

        Args:
            console: A terminal.
            progress: What is shown.
            tick: Seconds between two drawings; None to draw at each change.
            streams: What is printed on these meanwhile appears above the steps.
        """
        self._console = console
        self._progress = progress
        self._tick = tick
        self._streams = streams
        self._printed = ExitStack()
        self._is_stopping = False
        self._live = Redrawn(
            console=console,
            auto_refresh=False,
            vertical_overflow="crop",
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._draw_on, name="live view", daemon=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        self._thread.start()
        if self._streams:
            self._printed.enter_context(passing_lines(self._streams, self.say))
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop()
        self._live.__exit__(None, None, None)

    def say(self, line: str) -> None:
        """Print a line above the steps."""
        self._console.print(Text(printable(line.expandtabs(4)), style="dim"))

    def show(self, changes: Sequence[Change]) -> None:
        """Print above the steps what they do not show; draw them, unless a thread does."""
        for change in changes:
            if change.is_aside:
                self._console.print(_aside(change))
        if self._tick is None and changes:
            self._draw()

    def stopping(self) -> None:
        """Say below the steps that the run is about to stop."""
        self._is_stopping = True

    def end(self, first: Sequence[Line], last: Sequence[Line], *, is_whole: bool) -> None:
        """Leave the steps standing as they are at the end, with lines above and below them."""
        self._stop()
        self._measure()
        steps = final_frame(self._console, self._progress, is_whole=is_whole)
        self._live.update(Group(*_texts(first), steps, *_texts([("", ""), *last])), refresh=True)

    def _stop(self) -> None:
        self._printed.close()
        self._over.set()
        self._thread.join()

    def _draw_on(self) -> None:
        if self._tick is None:
            return
        while True:
            try:
                self._draw()
            except OSError:
                return  # the terminal is gone: the command says so where it prints the end
            if self._over.wait(self._tick):
                return

    def _draw(self) -> None:
        self._measure()
        with self._progress.lock:
            status = self._progress.stopping() if self._is_stopping else ""
            drawn = frame(self._console, self._progress, status)
        self._live.update(drawn, refresh=True)

    def _measure(self) -> None:
        """Take the terminal's size: rich would ask the standard streams, which a run leads elsewhere."""
        with suppress(OSError, ValueError):
            self._console.size = os.get_terminal_size(self._console.file.fileno())


def frame(console: Console, progress: Progress, status: str = "") -> RenderableType:
    """The steps as they are: cut to the terminal, a step at most two lines.

    Args:
        console: Where it will be drawn; its size decides what fits.
        progress: The steps.
        status: A line for below them.
    """
    if not progress.title and not progress.steps:
        return Group("", _counts(console, progress, "no plan"))
    below = list(Text(status, style="bold yellow").wrap(console, console.width)) if status else []
    lines = max(1, console.height - _ROUND_STEPS - len(below))
    table = _table(console, progress)
    is_flat = _is_beside(console) or lines == 1
    for step in _window(progress, lines, is_flat=is_flat):
        _add(table, console, progress, step, is_flat=is_flat)
    title = Text(one_line(progress.title), style="bold", no_wrap=True, overflow="ellipsis")
    # The last line is for the ^C of a user who interrupts: elsewhere it would shift the drawing.
    return Group("", title, _counts(console, progress), "", table, *below, "")


def final_frame(console: Console, progress: Progress, *, is_whole: bool) -> RenderableType:
    """The steps at the end: all of them, however many lines they take.

    Args:
        console: Where it will be drawn.
        progress: The steps.
        is_whole: Whether every word of a plan's details and notes is shown.
    """
    if not progress.title and not progress.steps:
        return Group("", "no plan")
    steps, left = _worth_showing(progress)
    table = _whole_table() if is_whole else _table(console, progress, is_final=True)
    for step in steps:
        if is_whole:
            _add_whole(table, console, step)
        else:
            _add(table, console, progress, step)
    title = [Text(one_line(progress.title), style="bold")] if progress.title else []
    counts = [] if progress.plan is None else [_counts(console, progress)]
    more = [Text(f"and {left:,} others", style="dim")] if left else []
    return Group("", *title, *counts, "", table, *more)


def _worth_showing(progress: Progress) -> tuple[Sequence[Step], int]:
    if progress.plan is not None or len(progress.steps) <= _MOST_STEPS:
        return progress.steps, 0
    shown = [step for step in progress.steps if step.state in {"failed", "stopped"}][:_MOST_LISTED]
    return shown, len(progress.steps) - len(shown)


def _is_beside(console: Console) -> bool:
    return console.width >= _BESIDE


def _table(console: Console, progress: Progress, *, is_final: bool = False) -> Table:
    """A step a row: mark, id, title, of a run its state, time, note; in a narrow terminal on two lines."""
    is_beside = _is_beside(console)
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True, min_width=1)
    widest = _WIDEST_ID if is_beside else min(_WIDEST_ID_NARROW, console.width // 3)
    if is_final:
        table.add_column(overflow="fold", max_width=widest)
        table.add_column(ratio=3, overflow="fold")
    else:
        table.add_column(no_wrap=True, overflow="ellipsis", max_width=widest)
        table.add_column(ratio=3, overflow="ellipsis", no_wrap=True)
    if is_beside and progress.plan is None:
        table.add_column(no_wrap=True)
    if console.width >= _TIMED:
        table.add_column(no_wrap=True, justify="right")
    if is_beside:
        table.add_column(ratio=2, style="dim", overflow="ellipsis", no_wrap=True)
    return table


def _add(table: Table, console: Console, progress: Progress, step: Step, *, is_flat: bool = False) -> None:
    """Add a step; flat, it takes one line whatever there is to say."""
    style = MARKS[step.state][2]
    seconds = step.elapsed(progress.now())
    is_shown = seconds is not None and (progress.plan is None or seconds >= _SOON)
    time = [Text(seconds_text(seconds or 0.0) if is_shown else "")] if console.width >= _TIMED else []
    title = Text(one_line(step.title), style="bold" if step.state == "running" else "")
    last = one_line(step.notes[-1]) if step.notes else ""
    note = Text(last, style="red" if step.state == "failed" else "dim", no_wrap=True, overflow="ellipsis")
    cells: list[RenderableType] = [_mark(console, step), Text(printable(step.step_id))]
    if _is_beside(console):
        state = [Text(step.state, style=style)] if progress.plan is None else []
        table.add_row(*cells, title, *state, *time, note)
    else:
        table.add_row(*cells, Group(title, note) if last and not is_flat else title, *time)


def _whole_table() -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    return table


def _add_whole(table: Table, console: Console, step: Step) -> None:
    texts = [step.details or "", *("- " + note.replace("\n", "\n  ") for note in step.notes)]
    more = [Text("\n".join(lines_of(text)), style="dim") for text in texts if text]
    title = Text(one_line(step.title), style="bold" if step.state == "running" else "")
    table.add_row(_mark(console, step), Text(printable(step.step_id)), Group(title, *more))


def _mark(console: Console, step: Step) -> Text:
    mark, plain, style = MARKS[step.state]
    return Text(plain if console.options.ascii_only else mark, style=style)


def _window(progress: Progress, lines: int, *, is_flat: bool) -> Sequence[Step]:
    """The steps that fit on so many lines: those that run, and those around the first of them."""
    steps = progress.steps

    def height(place: int) -> int:
        return 1 if is_flat or not steps[place].notes else 2

    if len(steps) <= lines and sum(map(height, range(len(steps)))) <= lines:
        return steps
    chosen: set[int] = set()
    left = lines
    anchors = [progress.last] if progress.plan is not None else progress.running or [progress.last]
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


def _counts(console: Console, progress: Progress, words: str | None = None) -> RenderableType:
    plan = progress.plan
    if words is None:
        words = progress.tally() if plan is None else f"{plan.status}, {progress.tally()}"
        words += progress.time_text if plan is None else ""
    text = Text(words, no_wrap=True, overflow="ellipsis")
    if progress.refused:
        text.append(f", {progress.refused} refused", style="red")
    width = min(_WIDEST_BAR, console.width - text.cell_len - 2)
    if not progress.steps or width < _NARROWEST_BAR:
        return text
    line = Table.grid(padding=(0, 1))
    line.add_row(ProgressBar(total=len(progress.steps), completed=progress.over, width=width), text)
    return line


def _aside(change: Change) -> RenderableType:
    line = Table.grid(padding=(0, 1))
    line.add_column(no_wrap=True)
    line.add_column(overflow="fold")
    said = Text.assemble((printable(change.what), "bold"), "  ", "\n".join(lines_of(change.text)))
    line.add_row(Text(printable(change.subject), style="red"), said)
    return line


def _texts(lines: Sequence[Line]) -> list[Text]:
    """Lines for a terminal: a blank one before each heading, and never two of them."""
    texts: list[Text] = []
    for text, style in lines:
        is_heading = style == HEADING
        if is_heading and texts and texts[-1].plain:
            texts.append(Text())
        if text or not texts or texts[-1].plain:
            texts.append(Text(text, style="bold" if is_heading else style, overflow="fold"))
    return texts
