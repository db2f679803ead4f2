"""The face of a plan or a run that fits an output: drawn in a terminal, lines in a pipe, silent for JSON.

Faces make text from a model or a tool printable; nothing else does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TextIO

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live as Redrawn
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from planning.cli.progress import Progress, note_of
from planning.cli.terminal import (
    HEADING,
    MARKS,
    TROUBLE,
    Line,
    can_redraw,
    console_of,
    is_terminal,
    lines_of,
    painted,
    seconds_text,
    wants_color,
)
from planning.observe.fact_words import approval_words
from planning.observe.steps import Step
from planning.observe.text import one_line

_BESIDE: Final = 72  # columns from which a note has a column of its own
_BAR: Final = 24
_ROUND_STEPS: Final = 6  # lines of a frame that are not steps
_MOST_STEPS: Final = 200  # of a run; of more, only those that failed or were stopped are left standing


@contextmanager
def face_of(own: TextIO, progress: Progress, *, is_json: bool = False) -> Iterator[Face]:
    """The face that fits an output."""
    if is_json:
        yield Face(progress)
    elif can_redraw(own):
        with Live(console_of(own), progress) as live:
            yield live
    else:
        yield Lines(own, progress)


class Face:
    """The display of a plan or a run while it changes, and at its end.

    This one shows nothing: the command prints JSON at the end.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def show(self, lines: Sequence[Line]) -> None:
        """Show what changed."""

    def end(self, first: Sequence[Line], last: Sequence[Line], *, is_whole: bool = False) -> None:
        """Show the end."""


class Lines(Face):
    """Prints a line for each change."""

    def __init__(self, own: TextIO, progress: Progress) -> None:
        super().__init__(progress)
        self._own = own
        self._color = wants_color(own)
        self._is_begun = False
        if progress.steps and progress.plan is None:
            far = progress.tally() if progress.now is None else progress.done()  # it continues from there
            self.show([(": ".join(filter(None, (progress.title, far))), "")])

    def show(self, lines: Sequence[Line]) -> None:
        """Print the lines, with a blank one before each heading."""
        for text, style in lines:
            is_heading = style == HEADING
            shown = f"== {one_line(text)} ==" if is_heading else one_line(text)
            if is_heading and self._is_begun:
                typer.echo(file=self._own)
            shown = painted(shown, "bold" if is_heading else style, color=self._color)
            typer.echo(shown, file=self._own, color=self._color)
            self._is_begun = True

    def end(self, first: Sequence[Line], last: Sequence[Line], *, is_whole: bool = False) -> None:
        """Print the lines of a report, and between them the plan where every word is wanted."""
        if is_whole:
            plan = ((line, "") for line in self._progress.whole_plan())
            first = [*(first or [("Final plan", HEADING)]), *plan]
        self.show([*first, *last])


class Live(Face):
    """Redraws the steps several times a second; all else scrolls by above them."""

    def __init__(self, console: Console, progress: Progress) -> None:
        super().__init__(progress)
        self._console = console
        self._final: RenderableType | None = None
        self._live = Redrawn(
            console=console,
            get_renderable=lambda: self._final or frame(console, progress),
            refresh_per_second=10,
            vertical_overflow="crop",
            redirect_stderr=is_terminal(sys.stderr),
        )

    def __enter__(self) -> Live:
        self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.stop()

    def show(self, lines: Sequence[Line]) -> None:
        """Print above the steps what they do not show."""
        for text, style in lines:
            if style == TROUBLE:
                self._console.print(Text(one_line(text), style))

    def end(self, first: Sequence[Line], last: Sequence[Line], *, is_whole: bool = False) -> None:
        """Leave the steps standing as they are at the end, with lines above and below them."""
        progress = self._progress
        steps = progress.steps
        if progress.plan is None and len(steps) > _MOST_STEPS:
            steps = [step for step in steps if step.state in {"failed", "stopped"}][:_MOST_STEPS]
        head = [("", ""), *first, *([("", "")] if first else []), (progress.title, "bold")]
        shown = [_counts(self._console, progress)] if progress.plan is not None or not steps else []
        if omitted := len(progress.steps) - len(steps):
            shown.append(Text(f"and {omitted:,} others", "dim"))
        table = _table(self._console, progress, steps, is_final=True, is_whole=is_whole)
        self._final = Group(*_texts(head), *shown, "", table, *_texts([("", ""), *last]))


def frame(console: Console, progress: Progress) -> RenderableType:
    """The steps as they are, a line each: as many as the terminal has room for."""
    steps, room = progress.steps, max(1, console.height - _ROUND_STEPS)
    first = max(0, min(progress.at_hand - room // 2, len(steps) - room))
    table = _table(console, progress, steps[first : first + room], is_final=False, is_whole=False)
    title = Text(one_line(progress.title), "bold", no_wrap=True, overflow="ellipsis")
    # The last line is for the ^C of a user who interrupts: elsewhere it would shift the drawing.
    return Group("", title, _counts(console, progress), "", table, "")


def _table(
    console: Console, progress: Progress, steps: Sequence[Step], *, is_final: bool, is_whole: bool
) -> Table:
    """A step a row: its mark, its id, its title, its time, and its last note where that has room."""
    is_beside = console.width >= _BESIDE and not is_whole
    overflow: Final = "fold" if is_final else "ellipsis"
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=not is_final, overflow=overflow, max_width=max(4, console.width // 4))
    table.add_column(ratio=3, no_wrap=not is_final, overflow=overflow)
    table.add_column(no_wrap=True, justify="right")
    if is_beside:
        table.add_column(ratio=2, no_wrap=True, overflow="ellipsis")
    for step in steps:
        mark, ascii_mark, style = MARKS[step.state]
        note, seconds = note_of(step), progress.seconds(step)
        below = [note] if is_final and not is_beside else []
        if is_whole:
            below = [step.details or "", *(f"- {each}" for each in step.notes)]
        title = Text(one_line(step.title), "bold" if step.state == "in_progress" else "")
        remark = ", ".join(filter(None, (step.remark, progress.when(step))))
        title.append(f" ({remark})" if remark else "", "dim")
        table.add_row(
            Text(ascii_mark if console.options.ascii_only else mark, style),
            Text(one_line(step.step_id)),
            Group(title, *(Text(one_line(line), "dim") for each in below if each for line in lines_of(each))),
            "" if seconds is None else seconds_text(seconds),
            *([Text(one_line(note), "red" if step.state == "failed" else "dim")] * is_beside),
        )
    return table


def _counts(console: Console, progress: Progress) -> RenderableType:
    """The progress in words, and as a bar if there is room."""
    if not progress.title and not progress.steps:
        return Text("no plan")
    plan = progress.plan
    tally = progress.tally() + progress.lasted() if plan is None else f"{plan.status}, {progress.tally()}"
    words = Text(tally, no_wrap=True, overflow="ellipsis")
    if approval := approval_words(progress.facts):
        words.append(f". {one_line(approval)}", style="yellow")
    if progress.refused:
        words.append(f", {progress.refused} refused", style="red")
    if not progress.steps or console.width < _BESIDE:
        return words
    line = Table.grid(padding=(0, 1))
    line.add_row(ProgressBar(total=len(progress.steps), completed=progress.over, width=_BAR), words)
    return line


def _texts(lines: Sequence[Line]) -> list[Text]:
    """Lines for a terminal: a blank one before each heading, and never two of them."""
    texts: list[Text] = []
    for text, style in lines:
        if style == HEADING and texts and texts[-1].plain:
            texts.append(Text())
        if text or not texts or texts[-1].plain:
            texts.append(Text(one_line(text), "bold" if style == HEADING else style, overflow="fold"))
    return texts
