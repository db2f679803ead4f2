"""A plan or a run in a terminal: its steps redrawn as they change, all else scrolling by above them."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import Final, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live as Redrawn
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from planning.cli.lines import Face
from planning.cli.progress import Progress, Step
from planning.cli.terminal import HEADING, MARKS, TROUBLE, Line, is_terminal, lines_of, seconds_text
from planning.errors import one_line

__all__ = ["Live", "final_frame", "frame"]

_BESIDE: Final = 72  # columns from which a note has a column of its own
_TIMED: Final = 30  # columns from which there is room for times
_WIDEST_ID: Final = 20
_WIDEST_ID_NARROW: Final = 12
_WIDEST_BAR: Final = 30
_NARROWEST_BAR: Final = 6
_ROUND_STEPS: Final = 6  # lines of a frame that are not steps: three blank ones, title, counts, status
_SOON: Final = 1.0  # seconds; a step of a plan that takes no longer needs no clock
_MOST_STEPS: Final = 200  # of a run; of more, only those that failed or were stopped are left standing
_TICK: Final = 0.1  # seconds between two drawings


class Live(Face):
    """Draws the steps several times a second, from a thread of its own."""

    def __init__(self, console: Console, progress: Progress) -> None:
        super().__init__(progress)
        self._console = console
        self._is_stopping = False
        self._final: RenderableType | None = None
        self._live = Redrawn(
            console=console,
            get_renderable=self._frame,
            auto_refresh=False,
            vertical_overflow="crop",
            redirect_stderr=is_terminal(sys.stderr),
        )
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._draw_on, name="live view", daemon=True)

    def __enter__(self) -> Self:
        self._live.start()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop()
        self._live.stop()

    def show(self, lines: Sequence[Line]) -> None:
        """Print above the steps what they do not show."""
        for text, style in lines:
            if style == TROUBLE:
                self._console.print(Text(one_line(text), style))

    def stopping(self) -> None:
        """Say below the steps that the run is about to stop."""
        self._is_stopping = True

    def end(self, first: Sequence[Line], last: Sequence[Line], *, is_whole: bool) -> None:
        """Leave the steps standing as they are at the end, with lines above and below them."""
        self._stop()
        steps = final_frame(self._console, self._progress, is_whole=is_whole)
        self._final = Group(*_texts(first), steps, *_texts([("", ""), *last]))

    def _stop(self) -> None:
        self._over.set()
        self._thread.join()

    def _draw_on(self) -> None:
        while not self._over.wait(_TICK):
            try:
                self._live.refresh()
            except OSError:
                return  # the terminal is gone: the command says so where it prints the end

    def _frame(self) -> RenderableType:
        if self._final is not None:
            return self._final
        status = self._progress.stopping() if self._is_stopping else ""
        return frame(self._console, self._progress, status)


def frame(console: Console, progress: Progress, status: str = "") -> RenderableType:
    """The steps as they are, a line each: as many as the terminal has room for.

    Args:
        console: Where it will be drawn; its size decides what fits.
        progress: The steps.
        status: A line for below them.
    """
    steps, room = progress.steps, max(1, console.height - _ROUND_STEPS)
    at = (progress.running or [progress.last])[0]
    first = max(0, min(at - room // 2, len(steps) - room))
    table = _table(console, progress, steps[first : first + room], is_final=False, is_whole=False)
    below = [_cut(status, "bold yellow")] if status else []
    # The last line is for the ^C of a user who interrupts: elsewhere it would shift the drawing.
    title = [_cut(progress.title, "bold")] if progress.title else []
    return Group("", *title, _counts(console, progress), "", table, *below, "")


def final_frame(console: Console, progress: Progress, *, is_whole: bool) -> RenderableType:
    """The steps at the end: all of them, however many lines they take.

    Args:
        console: Where it will be drawn.
        progress: The steps.
        is_whole: Whether every word of a plan's details and notes is shown.
    """
    if not progress.title and not progress.steps:
        return Group("", "no plan")
    steps = progress.steps
    if progress.plan is None and len(steps) > _MOST_STEPS:
        steps = [step for step in steps if step.state in {"failed", "stopped"}][:_MOST_STEPS]
    left = len(progress.steps) - len(steps)
    table = _table(console, progress, steps, is_final=True, is_whole=is_whole)
    title = [Text(one_line(progress.title), "bold")] if progress.title else []
    counts = [] if progress.plan is None else [_counts(console, progress)]
    more = [Text(f"and {left:,} others", "dim")] if left else []
    return Group("", *title, *counts, "", table, *more)


def _table(
    console: Console, progress: Progress, steps: Sequence[Step], *, is_final: bool, is_whole: bool
) -> Table:
    """A step a row: mark, id, title; of a run its state; its time and its last note where they have room.

    Args:
        console: Where it will be drawn.
        progress: What the steps are of.
        steps: The steps.
        is_final: Whether a text may take several lines.
        is_whole: Whether details and all notes are below the title.
    """
    is_beside = console.width >= _BESIDE and not is_whole
    is_run, is_timed = progress.plan is None, console.width >= _TIMED and not is_whole
    widest = _WIDEST_ID if console.width >= _BESIDE else min(_WIDEST_ID_NARROW, console.width // 3)
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True, min_width=1)
    table.add_column(no_wrap=not is_final, overflow="fold" if is_final else "ellipsis", max_width=widest)
    table.add_column(ratio=3, no_wrap=not is_final, overflow="fold" if is_final else "ellipsis")
    for has, column in ((is_beside and is_run, "left"), (is_timed, "right")):
        if has:
            table.add_column(no_wrap=True, justify="right" if column == "right" else "left")
    if is_beside:
        table.add_column(ratio=2, overflow="ellipsis", no_wrap=True)
    for step in steps:
        mark, ascii_mark, style = MARKS[step.state]
        title = Text(one_line(step.title), "bold" if step.state == "running" else "")
        note = _cut(step.notes[-1] if step.notes else "", "red" if step.state == "failed" else "dim")
        more: list[Text] = []
        if is_whole:
            notes = ["- " + note.replace("\n", "\n  ") for note in step.notes]
            more = [_lines(text) for text in (step.details or "", *notes) if text]
        elif is_final and not is_beside and step.notes:
            more = [note]
        seconds = step.elapsed(progress.now())
        is_shown = seconds is not None and (is_run or seconds >= _SOON)
        cells: list[RenderableType] = [
            Text(ascii_mark if console.options.ascii_only else mark, style),
            Text(one_line(step.step_id)),
            Group(title, *more) if more else title,
        ]
        cells += [Text(step.state, style)] if is_beside and is_run else []
        cells += [Text(seconds_text(seconds or 0.0) if is_shown else "")] if is_timed else []
        table.add_row(*cells, *([note] if is_beside else []))
    return table


def _counts(console: Console, progress: Progress) -> RenderableType:
    """How far it is, in words and, where that has room, as a bar."""
    plan = progress.plan
    words = progress.tally() if plan is None else f"{plan.status}, {progress.tally()}"
    if not progress.title and not progress.steps:
        words = "no plan"
    elif plan is None:
        words += progress.time_text
    text = _cut(words)
    if progress.refused:
        text.append(f", {progress.refused} refused", style="red")
    width = min(_WIDEST_BAR, console.width - text.cell_len - 2)
    if not progress.steps or width < _NARROWEST_BAR:
        return text
    line = Table.grid(padding=(0, 1))
    line.add_row(ProgressBar(total=len(progress.steps), completed=progress.over, width=width), text)
    return line


def _cut(text: str, style: str = "") -> Text:
    """A text on one line, cut where the terminal ends."""
    return Text(one_line(text), style, no_wrap=True, overflow="ellipsis")


def _lines(text: str) -> Text:
    return Text("\n".join(one_line(line) for line in lines_of(text)), "dim")


def _texts(lines: Sequence[Line]) -> list[Text]:
    """Lines for a terminal: a blank one before each heading, and never two of them."""
    texts: list[Text] = []
    for text, style in lines:
        is_heading = style == HEADING
        if is_heading and texts and texts[-1].plain:
            texts.append(Text())
        if text or not texts or texts[-1].plain:
            texts.append(Text(one_line(text), "bold" if is_heading else style, overflow="fold"))
    return texts
