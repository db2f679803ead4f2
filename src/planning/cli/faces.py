"""The faces of a plan or a run: drawn in a terminal, as plain lines in a pipe, or silent for JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol, TextIO

import typer

from planning.cli.progress import Change, Progress
from planning.cli.terminal import (
    HEADING,
    MARKS,
    Line,
    can_redraw,
    count,
    lines_of,
    painted,
    seconds_text,
    wants_color,
)
from planning.errors import one_line
from planning.render import plan_text

__all__ = ["Face", "Lines", "Silent", "face_of"]

_PLAN_COLUMNS: Final = (7, 22)  # "refused", "in_progress -> blocked"
_RUN_STATE: Final = 8  # "retrying"
_WIDEST_ID: Final = 24


class Face(Protocol):
    """What shows a plan or a run while it changes, and at its end."""

    def show(self, changes: Sequence[Change]) -> None:
        """Show what changed."""

    def stopping(self) -> None:
        """Say that the run is about to stop, and waits for the steps that run."""

    def end(self, first: Sequence[Line], last: Sequence[Line], *, is_whole: bool) -> None:
        """Show the end.

        Args:
            first: Lines above the steps.
            last: Lines below them.
            is_whole: Whether to show every word of the steps.
        """


@contextmanager
def face_of(
    own: TextIO | None,
    progress: Progress,
    *,
    is_json: bool,
    tick: float | None = None,
    streams: Sequence[TextIO] = (),
) -> Iterator[Face]:
    """The face that fits an output.

    Args:
        own: Where the command writes.
        progress: What is shown.
        is_json: Whether the command prints only JSON.
        tick: Seconds between two drawings in a terminal; None to draw at each change.
        streams: In a terminal, what is printed on these meanwhile appears above the steps.
    """
    if is_json:
        yield Silent(progress)
    elif own is not None and can_redraw(own):
        from planning.cli.live import Live
        from planning.cli.terminal import console_of

        with Live(console_of(own), progress, tick=tick, streams=streams) as live:
            yield live
    else:
        color = wants_color(own)
        lines = Lines(lambda text: typer.echo(text, file=own, color=color), progress, color=color)
        lines.start()
        yield lines


class Silent:
    """Shows nothing: the command prints JSON at the end."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def show(self, changes: Sequence[Change]) -> None:
        """Show nothing."""

    def stopping(self) -> None:
        """Say on standard error that the run is about to stop."""
        if self._progress.running:
            typer.echo(f"planning: {self._progress.stopping()}", err=True)

    def end(self, first: Sequence[Line], last: Sequence[Line], *, is_whole: bool) -> None:
        """Show nothing."""


class Lines(Silent):
    """Prints a line for each change."""

    def __init__(self, write: Callable[[str], object], progress: Progress, *, color: bool = False) -> None:
        super().__init__(progress)
        self._write = write
        self._color = color
        self._is_begun = False
        longest = max((len(step.step_id) for step in progress.steps), default=0)
        is_run = progress.plan is None and longest > 0
        self._widths = (min(_WIDEST_ID, longest), _RUN_STATE) if is_run else _PLAN_COLUMNS

    def start(self) -> None:
        """Print what runs, if that is known already."""
        progress = self._progress
        if progress.steps and progress.plan is None:
            steps = count(len(progress.steps), "step")
            steps += f", {progress.before} done before" if progress.before else ""
            self._print(f"{one_line(progress.title)} ({steps})" if progress.title else steps)

    def show(self, changes: Sequence[Change]) -> None:
        """Print a line for each change."""
        for change in changes:
            self._print(self.line(change))

    def line(self, change: Change) -> str:
        """A change as a line."""
        subject, what = one_line(change.subject), one_line(change.what)
        width, wide = self._widths
        what = painted(
            f"{what:<{wide}}", MARKS[change.state][2] if change.state else "dim", color=self._color
        )
        parts = [f"{subject:<{width}}", what]
        if change.seconds is not None:
            parts.append(seconds_text(change.seconds))
        parts.append(_reason(change.text) if change.subject == "refused" else one_line(change.text))
        return "  ".join(part for part in parts if part).rstrip()

    def end(self, first: Sequence[Line], last: Sequence[Line], *, is_whole: bool) -> None:
        """Print the lines of a report, and between them the plan where every word is wanted."""
        plan = self._progress.plan
        lines = list(first)
        if is_whole:
            text = "no plan" if plan is None else plan_text(plan)
            lines = [*(lines or [("Final plan", HEADING)]), *((line, "") for line in lines_of(text))]
        for text, style in [*lines, *last]:
            if style == HEADING and self._is_begun:
                self._print("")
            shown = f"== {text} ==" if style == HEADING else text
            self._print(painted(shown, "bold" if style == HEADING else style, color=self._color))

    def _print(self, line: str) -> None:
        self._write(line)
        self._is_begun = True


def _reason(reason: str) -> str:
    """Why a call was refused, on one line, however many problems it had."""
    first, *problems = reason.split("\n")
    shown = " | ".join(one_line(problem.removeprefix("- ")) for problem in problems)
    return f"{one_line(first)} {shown}".strip()
