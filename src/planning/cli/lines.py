"""A plan or a run as plain lines in a pipe, or silent for JSON.

Faces make text from a model or a tool printable; nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import typer

from planning.cli.progress import Progress
from planning.cli.terminal import HEADING, Line, count, lines_of, painted
from planning.errors import one_line
from planning.render import plan_text

__all__ = ["Face", "Lines"]


class Face:
    """What shows a plan or a run while it changes, and at its end.

    This one shows nothing: the command prints JSON at the end.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def show(self, lines: Sequence[Line]) -> None:
        """Show what changed."""

    def stopping(self) -> None:
        """Say that the run is about to stop, and waits for the steps that run."""
        if self._progress.running:
            typer.echo(f"planning: {self._progress.stopping()}", err=True)

    def end(self, first: Sequence[Line], last: Sequence[Line], *, is_whole: bool) -> None:
        """Show the end.

        Args:
            first: Lines above the steps.
            last: Lines below them.
            is_whole: Whether to show every word of the steps.
        """


class Lines(Face):
    """Prints a line for each change."""

    def __init__(self, write: Callable[[str], object], progress: Progress, *, color: bool = False) -> None:
        super().__init__(progress)
        self._write = write
        self._color = color
        self._is_begun = False

    def start(self) -> None:
        """Print what runs, if that is known already."""
        progress = self._progress
        if progress.steps and progress.plan is None:
            steps = count(len(progress.steps), "step")
            steps += f", {progress.before} done before" if progress.before else ""
            self.show([(f"{progress.title} ({steps})" if progress.title else steps, "")])

    def show(self, lines: Sequence[Line]) -> None:
        """Print the lines, with a blank one before each heading."""
        for text, style in lines:
            shown = one_line(text)
            if style == HEADING:
                shown, style = f"== {shown} ==", "bold"  # noqa: PLW2901 - as it is printed
                if self._is_begun:
                    self._write("")
            self._write(painted(shown, style, color=self._color))
            self._is_begun = True

    def end(self, first: Sequence[Line], last: Sequence[Line], *, is_whole: bool) -> None:
        """Print the lines of a report, and between them the plan where every word is wanted."""
        plan = self._progress.plan
        if is_whole:
            text = "no plan" if plan is None else plan_text(plan)
            first = [*(first or [("Final plan", HEADING)]), *((line, "") for line in lines_of(text))]
        self.show([*first, *last])
