"""A report as a person reads it, in colours and lines of the width of a terminal."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, TextIO

import typer

if TYPE_CHECKING:
    from planning.workflow.reports.report import Report

__all__ = ["is_terminal", "print_report", "wants_color"]


def print_report(report: Report, file: str | None, *, err: bool = False) -> None:
    """Print a report for a person.

    Args:
        report: What to print.
        file: What it is about; None for standard input.
        err: Whether to print it on standard error.
    """
    in_terminal = is_terminal(sys.stderr if err else sys.stdout)
    color = in_terminal and wants_color()
    width = shutil.get_terminal_size().columns if in_terminal else None
    typer.echo(report.render(color=color, name=file or "<stdin>", width=width), err=err, color=color)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person reads what is written there."""
    return stream is not None and stream.isatty()


def wants_color() -> bool:
    """Whether that person has not asked for none."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
