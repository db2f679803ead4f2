"""A question in a terminal: the plan while it is asked, and what stands there at its end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli_runs import (
    ERASED_LINE,
    ROOT,
    Clock,
    ascii_terminal,
    drawn,
    plain,
    terminal,
    written,
    written_in_terminal,
)
from syrupy.assertion import SnapshotAssertion

from examples.shop import create_database
from planning import Plan, PlanStep
from planning.cli.ask.live import LiveView, answer, timed
from planning.cli.ask.outcome import outcome_of
from planning.cli.ask.views import PlainView

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
    text = drawn(console, answer(console, outcome_of(answered([[None, 1]]))))
    assert ("\x1b[1mname" in text, "\x1b[2;3mNULL" in text) == (True, True)


def test_where_only_ascii_prints_three_dots_stand_for_what_was_cut() -> None:
    console, sent = ascii_terminal(20)
    console.print(answer(console, outcome_of(answered([["Ada" * 9, 1]]))))
    assert b"AdaAdaAdaA...      1\n" in sent.getvalue()


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
    assert plain(written(console)) == snapshot


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


@pytest.fixture
def asked(tmp_path: Path) -> list[str]:
    """A question to the shop, whose first statement is wrong."""
    create_database(tmp_path / "shop.db")
    statements = str(ROOT / "examples" / "shop" / "spent_most.sql")
    question = "Which customers spent the most?"
    return ["ask", question, "--db", str(tmp_path / "shop.db"), "--sql-from", statements]


def test_in_a_terminal_the_plan_and_the_answer_are_left_standing(
    asked: list[str], snapshot: SnapshotAssertion
) -> None:
    text = written_in_terminal(60, *asked, TERM="xterm-256color", NO_COLOR="1")
    assert plain(text.rsplit(ERASED_LINE, 1)[-1]) == snapshot
    assert "tried" in text


def test_a_terminal_that_cannot_redraw_gets_lines(asked: list[str]) -> None:
    text = written_in_terminal(60, *asked, TERM="dumb")
    assert "\x1b" not in text
    assert text.startswith("== Question ==\nWhich customers spent the most?\n\n== Plan ==\n")
