"""A question in a terminal: the plan while it is asked, and what stands there at its end."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from typing import Any

import pytest
from rich.console import Console, RenderableType
from syrupy.assertion import SnapshotAssertion

from planning import Plan, PlanStep
from planning.cli.ask.live import LiveView, answer, timed
from planning.cli.ask.outcome import outcome_of
from planning.cli.ask.views import PlainView

CONTROLS = ("\x1b[?25l", "\x1b[?25h", "\x1b[2K", "\x1b[1A", "\r")
PLAN = Plan(
    "Which customers [red]spent[/] the most?",
    "active",
    (
        PlanStep("S001", "Read the schema", None, "done", ("SQLite, 5 tables",)),
        PlanStep("S002", "Write the SQL", None, "in_progress", ("SELECT 1",)),
        PlanStep("S003", "Run the SQL", None, "pending"),
        PlanStep("S004", "Check the results", None, "pending"),
    ),
)
SQL = "SELECT name,\n\tsum(total) -- [bold]\x1b[2J\nFROM order_totals"


def answered(rows: list[list[Any]], *, truncated: bool = False) -> dict[str, Any]:
    result = {"columns": ["name", "total"], "data": rows, "truncated": truncated}
    return {"success": True, "sql_query": SQL, "execution_result": result, "answer": "Done."}


STATES: dict[str, dict[str, Any]] = {
    "rows": answered([["[red]Ada[/]", 2.5], [None, 10]]),
    "no_rows": answered([]),
    "one_row": answered([["Ada", 1]]),
    "many_rows": answered([[f"customer {number}", number] for number in range(1_050)]),
    "truncated": answered([["Ada", number] for number in range(51)], truncated=True),
    "asks": {
        "success": False,
        "needs_user_input": True,
        "input_request": "Which year?",
        "answer": "Which year?\n- 2025\n- \x1b[2J2026",
    },
    "failed": {
        "success": False,
        "sql_query": "SELECT nmae FROM customers",
        "error": "no such column: nmae",
        "answer": "The question could not be answered: no such column: nmae; did you mean name?",
    },
    "nothing": {},
}


def terminal(width: int = 80, **options: Any) -> Console:
    given: dict[str, Any] = {"file": io.StringIO(), "color_system": None} | options
    return Console(force_terminal=True, width=width, height=24, legacy_windows=False, _environ={}, **given)


def drawn(console: Console, renderable: RenderableType) -> str:
    console.print(renderable)
    return written(console)


def written(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    text = console.file.getvalue()
    for sequence in CONTROLS:
        text = text.replace(sequence, "")
    return "".join(f"{line.rstrip()}\n" for line in text.rstrip().split("\n"))


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("width", [40, 80, 120])
def test_an_answer_fits_the_terminal(width: int, name: str, snapshot: SnapshotAssertion) -> None:
    shown = drawn(terminal(width), answer(terminal(width), outcome_of(STATES[name])))
    assert max(map(len, shown.splitlines())) <= width
    assert shown.replace("\n", "").isprintable()
    assert shown == snapshot


@pytest.mark.parametrize("name", STATES)
def test_lines_tell_the_same(name: str, snapshot: SnapshotAssertion) -> None:
    lines: list[str] = []
    view = PlainView(lines.append, "Which customers\n\x1b[31mspent the most?")
    view.changed(None, {})
    view.changed(PLAN, {})
    view.changed(PLAN, {})
    view.changed(timed(PLAN, 75.0), {})
    view.end(STATES[name])
    assert all(line.isprintable() for line in lines)
    assert "".join(f"{line}\n" for line in lines) == snapshot


def test_null_and_names_are_marked_by_style() -> None:
    console = terminal(color_system="standard")
    console.print(answer(console, outcome_of(answered([[None, 1]]))))
    assert isinstance(console.file, io.StringIO)
    assert "\x1b[1mname" in console.file.getvalue()
    assert "\x1b[2;3mNULL" in console.file.getvalue()


def test_where_only_ascii_prints_three_dots_stand_for_what_was_cut() -> None:
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="backslashreplace")
    console = terminal(20, file=file)
    console.print(answer(console, outcome_of(answered([["Ada" * 9, 1]]))))
    file.flush()
    assert isinstance(file.buffer, io.BytesIO)
    assert b"AdaAdaAdaA...      1\n" in file.buffer.getvalue()


class Clock:
    """A time that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.mark.parametrize("width", [40, 80, 120])
def test_what_was_tried_scrolls_by_above_the_plan(width: int, snapshot: SnapshotAssertion) -> None:
    console, clock = terminal(width), Clock()
    attempts = [{"sql": "SELECT nmae", "error": "no such column: nmae;\ndid you mean [b]\x1b[2Jname?"}]
    with LiveView(console, clock, tick=60.0) as view:
        view.changed(None, {})
        view.changed(PLAN, {})
        clock.seconds += 42
        view.changed(PLAN, {"attempts": attempts})
        view.changed(PLAN, {"attempts": attempts})
        view.end(STATES["rows"])
    assert written(console) == snapshot


def test_a_step_that_takes_long_says_how_long() -> None:
    assert [timed(PLAN, seconds).steps[1].notes for seconds in (0.9, 1.0, 59.9, 61, 600)] == [
        ("SELECT 1",),
        ("SELECT 1", "1 s"),
        ("SELECT 1", "59 s"),
        ("SELECT 1", "1:01 min"),
        ("SELECT 1", "10:00 min"),
    ]
    assert timed(PLAN, 5).steps[0] == PLAN.steps[0]


def test_a_view_that_is_left_early_stops_drawing() -> None:
    console = terminal()
    view = LiveView(console, tick=0.001)
    with pytest.raises(ZeroDivisionError), view:
        view.changed(PLAN, {})
        raise ZeroDivisionError
    before = written(console)
    assert "S004 Check the results" in before
    assert written(console) == before


def in_a_terminal(width: int, **environment: str) -> str:
    """What the command writes to a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    with subprocess.Popen(
        [sys.executable, "-m", "planning.cli", "ask"],
        stdout=theirs,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
        env={"PATH": os.environ["PATH"], "PYTHONIOENCODING": "utf-8", **environment},
    ) as running:
        os.close(theirs)
        text = b""
        while True:
            try:
                chunk = os.read(ours, 65_536)
            except OSError:  # that is how a terminal says that it was closed
                break
            if not chunk:
                break
            text += chunk
        os.close(ours)
    assert running.returncode == 0, text
    return text.decode()


def test_in_a_terminal_the_plan_and_the_answer_are_left_standing(snapshot: SnapshotAssertion) -> None:
    text = in_a_terminal(60, TERM="xterm-256color", NO_COLOR="1")
    last = text.rsplit("\x1b[2K", 1)[-1]
    for sequence in CONTROLS:
        last = last.replace(sequence, "")
    assert "".join(f"{line.rstrip()}\n" for line in last.split("\n")) == snapshot
    assert "tried" in text


def test_a_terminal_that_cannot_redraw_gets_lines() -> None:
    text = in_a_terminal(60, TERM="dumb")
    assert "\x1b" not in text
    assert text.startswith("== Question ==\r\nWhich customers spent the most?\r\n\r\n== Plan ==\r\n")
