"""The three ways in which a question is shown: in a terminal, as lines, and as the final state alone."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import typer

from planning.cli.ask.changes import plan_changes
from planning.cli.ask.outcome import outcome_of, row_notes
from planning.cli.ask.plain_json import as_json
from planning.cli.ask.table import laid_out
from planning.cli.printable import printable
from planning.model import Plan

__all__ = ["JsonView", "PlainView", "View", "lines_of", "view_of"]


class View(Protocol):
    """What shows a question and its answer."""

    def changed(self, plan: Plan | None, state: Mapping[str, Any]) -> None:
        """Something was done."""

    def end(self, state: Mapping[str, Any]) -> None:
        """It is over."""


@contextmanager
def view_of(question: str, *, is_json: bool) -> Iterator[View]:
    """The view that fits standard output.

    Args:
        question: What is asked.
        is_json: Whether only the final state is wanted.
    """
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    if is_json:
        yield JsonView(typer.echo)
    elif is_terminal and os.environ.get("TERM") != "dumb":
        from rich.console import Console

        from planning.cli.ask.live import LiveView

        with LiveView(Console()) as live:
            yield live
    else:
        yield PlainView(typer.echo, question, shutil.get_terminal_size().columns if is_terminal else None)


def lines_of(text: str) -> list[str]:
    """The lines of a text from a model, so that they act on no terminal."""
    return [printable(line.expandtabs(4)) for line in text.strip("\n").replace("\r\n", "\n").split("\n")]


class JsonView:
    """Prints the final state as JSON."""

    def __init__(self, echo: Callable[[str], object]) -> None:
        self._echo = echo

    def changed(self, plan: Plan | None, state: Mapping[str, Any]) -> None:
        """Nothing but the end is told."""

    def end(self, state: Mapping[str, Any]) -> None:
        """Print it."""
        self._echo(as_json(state))


class PlainView:
    """Prints a line for each change, and then the SQL and the rows."""

    def __init__(self, echo: Callable[[str], object], question: str, width: int | None = None) -> None:
        """Print the question.

        Args:
            echo: Prints a line.
            question: What is asked.
            width: How wide a table may be; None for as wide as it is.
        """
        self._echo = echo
        self._width = width
        self._plan: Plan | None = None
        for line in ("== Question ==", *lines_of(question), "", "== Plan =="):
            echo(line)

    def changed(self, plan: Plan | None, state: Mapping[str, Any]) -> None:  # noqa: ARG002 - the plan tells it
        """Print what changed in the plan."""
        for line in plan_changes(self._plan, plan):
            self._echo(line)
        self._plan = plan

    def end(self, state: Mapping[str, Any]) -> None:
        """Print what came of it."""
        outcome = outcome_of(state)
        told: list[str] = []
        if outcome.sql is not None:
            told += ["", "== SQL ==", *lines_of(outcome.sql)]
        if outcome.rows is not None:
            table = laid_out(outcome.columns, outcome.rows, self._width)
            shown = table.texts() if outcome.rows else table.texts()[:1]
            told += ["", "== Rows ==", *shown, "", *row_notes(outcome, table)]
        elif outcome.kind == "asks":
            told += ["", "== It asks back ==", *lines_of(outcome.told)]
        else:
            told += ["", "== No answer ==", *lines_of(outcome.told)]
        for line in told:
            self._echo(line)
