"""The three ways in which a run is shown: in a terminal, as lines, and as the result alone."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

import typer

from planning.cli.run.plain import begin_line, change_line, end_lines, stopping_text
from planning.cli.run.progress import Progress, StepView
from planning.workflow.run.result import WorkflowResult

__all__ = ["View", "view_of"]


class View(Protocol):
    """What shows a run."""

    def changed(self, step: StepView) -> None:
        """A step changed."""
        ...

    def stopping(self, running: int) -> None:
        """The run is about to stop, and so many steps still run."""
        ...

    def end(self, result: WorkflowResult | None) -> None:
        """The run is over; without a result it was stopped."""
        ...


@contextmanager
def view_of(own: TextIO, progress: Progress, *, is_json: bool) -> Iterator[View]:
    """The view that fits an output.

    Args:
        own: The command's own standard output.
        progress: The run's steps.
        is_json: Whether only the result is wanted.
    """
    if is_json:
        yield _JsonView(own)
    elif own.isatty() and os.environ.get("TERM") != "dumb":
        from rich.console import Console

        from planning.cli.run.view_live_run import LiveView

        streams = [sys.stdout, *([sys.stderr] if sys.stderr is not None and sys.stderr.isatty() else [])]
        with LiveView(Console(file=own), progress, fd=own.fileno(), streams=streams) as live:
            yield live
    else:
        own.write(f"{begin_line(progress)}\n")
        yield _PlainView(own, progress)
        own.flush()


class _JsonView:
    def __init__(self, own: TextIO) -> None:
        self._own = own

    def changed(self, step: StepView) -> None:
        """Nothing but the result is told."""

    def stopping(self, running: int) -> None:
        typer.echo(f"planning: {stopping_text(running)}", err=True)

    def end(self, result: WorkflowResult | None) -> None:
        if result is not None:
            self._own.write(json.dumps(result.to_dict(), indent=2) + "\n")
            self._own.flush()


class _PlainView:
    def __init__(self, own: TextIO, progress: Progress) -> None:
        self._own = own
        self._progress = progress

    def changed(self, step: StepView) -> None:
        self._own.write(f"{change_line(self._progress, step)}\n")
        self._own.flush()

    def stopping(self, running: int) -> None:
        typer.echo(f"planning: {stopping_text(running)}", err=True)

    def end(self, result: WorkflowResult | None) -> None:
        for line in end_lines(self._progress, result):
            self._own.write(f"{line}\n")
        self._own.flush()
