"""The face of a plan or a run that fits an output: drawn in a terminal, lines in a pipe, silent for JSON."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import typer

from planning.cli.lines import Face, Lines
from planning.cli.progress import Progress
from planning.cli.terminal import can_redraw, wants_color

__all__ = ["face_of"]


@contextmanager
def face_of(own: TextIO, progress: Progress, *, is_json: bool) -> Iterator[Face]:
    """The face that fits an output.

    Args:
        own: Where the command writes.
        progress: What is shown.
        is_json: Whether the command prints only JSON.
    """
    if is_json:
        yield Face(progress)
    elif can_redraw(own):
        from planning.cli.live import Live
        from planning.cli.terminal import console_of

        with Live(console_of(own), progress) as live:
            yield live
    else:
        color = wants_color(own)
        lines = Lines(lambda text: typer.echo(text, file=own, color=color), progress, color=color)
        lines.start()
        yield lines
