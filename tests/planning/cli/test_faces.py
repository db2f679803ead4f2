"""The faces: what a terminal shows of a plan, a run and an answer, and what a pipe gets."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from cli_runs import (
    ERASED_LINE,
    ROOT,
    TRIAGE,
    Clock,
    drawn,
    in_terminal,
    plain,
    terminal,
    written,
    written_in_terminal,
)
from run_folders import timeless
from syrupy.assertion import SnapshotAssertion

from examples.shop import create_database
from planning import Plan, PlanStep
from planning.cli.ask import answer_lines
from planning.cli.faces import Lines, Live, frame
from planning.cli.progress import Progress
from planning.cli.running import report_lines
from planning.cli.terminal import Line, lines_of
from planning.errors import one_line, printable
from planning.observe.steps import RunSteps
from planning.workflow import StepFailure, Workflow, WorkflowResult, WorkflowStep
from planning.workflow.run.records import WorkflowRun
from session import Session

BUSY = Plan(
    "Triage the open bug reports [red]of larkspur[/] " + "and say it at length " * 9,
    "active",
    (
        PlanStep("S001", "Read all reports", None, "done", ("Six of them",)),
        PlanStep(
            "S002", "Reproduce [/] " + "the crash " * 14, "With details", "in_progress", ("First", "Second")
        ),
        PlanStep("S003", "Wait for Windows", "Two\n\tlines", "blocked", ("One\nTwo [bold]",)),
        PlanStep("S004", "Write the summary", None, "pending"),
    ),
)
ERROR = StepFailure("find failed [/]. Call it again, or continue without it.", cause="no luck\nat \x1b[2Jall")
FLOW = Workflow(
    goal="Look into [bold]it[/]\nat length",
    steps=(
        WorkflowStep(step_id="plan", description="Think of what to look for"),
        WorkflowStep(
            step_id="a_step_with_a_very_long_id", description="Look [red]it[/] up in " + "the archives " * 9
        ),
        WorkflowStep(step_id="wait", description="Wait for the\nmail"),
        WorkflowStep(step_id="find", description="Find it"),
        WorkflowStep(step_id="tell", description="Tell the result", depends_on=("find",)),
        WorkflowStep(step_id="known", description="Look at what is known"),
        WorkflowStep(step_id="end", description="\x1b[31mEnd"),
    ),
)


def busy() -> Progress:
    """A plan in which there is something of everything."""
    progress = Progress()
    progress.take_plan(BUSY)
    for _ in range(2):
        progress.refuse("planning_read_plan", "no")
    return progress


def halfway() -> Progress:
    """A run in which there is something of everything."""
    clock = Clock()
    progress, record = Progress(RunSteps(FLOW), clock), clock.record
    long = "a_step_with_a_very_long_id"
    progress.take_record(record("plan", "completed"))
    progress.take_record(record(long, "in_progress", attempt=1))
    progress.take_record(record("find", "in_progress", attempt=1))
    clock.go_on(2.5)
    progress.take_record(record(long, "in_progress", attempt=2))
    progress.take_record(record("find", "failed", attempt=1, error=ERROR))
    progress.take_record(record("tell", "pending", after="find"))
    progress.take_record(record("known", "completed", skipped=True))
    clock.go_on(70)
    return progress


def result(status: Any, outputs: dict[str, Any], errors: dict[str, StepFailure]) -> WorkflowResult:
    return WorkflowResult(
        status=status,
        outputs=outputs,
        memory={},
        errors=errors,
        warnings=("step known: done_check ignored: [x]",),
        session=Session(),
        run=WorkflowRun(run_id="r", workflow=Workflow()),
        states={},
    )


@pytest.mark.parametrize("made", [busy, halfway], ids=["plan", "run"])
@pytest.mark.parametrize("width", [40, 100])
def test_what_a_terminal_shows_meanwhile_and_at_the_end(
    width: int, made: Any, snapshot: SnapshotAssertion
) -> None:
    progress, console = made(), terminal(width)
    meanwhile = drawn(terminal(width), frame(console, progress))
    with Live(console, progress) as live:
        print("printed [red]by a tool")  # noqa: T201 - as a tool does
        progress.stop()
        first, last = report_lines(FLOW, progress, None) if made is halfway else ((), ())
        live.end(first, last, is_whole=made is busy)
    text = written(console)
    end = plain(text.rsplit(ERASED_LINE, 1)[-1])
    assert "printed [red]by a tool\n" in text
    assert max(map(len, (meanwhile + end).splitlines())) <= width
    assert (meanwhile + end).replace("\n", "").isprintable()
    assert f"{meanwhile}-- at the end\n{end}" == snapshot


@pytest.mark.parametrize("height", [1, 7, 24, 200])
@pytest.mark.parametrize("at", [0, 49, 98])
def test_a_frame_of_many_steps_fits_and_shows_the_step_that_runs(height: int, at: int) -> None:
    steps = tuple(WorkflowStep(step_id=f"s{number}", description="Do it") for number in range(99))
    clock = Clock()
    progress = Progress(RunSteps(Workflow(steps=steps)), clock)
    progress.take_record(clock.record(f"s{at}", "in_progress", attempt=1))
    console = terminal(80, height)
    shown = drawn(console, frame(console, progress))
    assert len(shown.splitlines()) <= max(height, 7)
    assert f" s{at} " in shown


OUTPUTS: dict[str, Any] = {"plan": "One\n\ttext \x1b[2J", "known": {"é": [1, None]}, "find": 7}


def in_lines(*lines: Line) -> str:
    """Lines as a pipe gets them."""
    pipe = io.StringIO()
    Lines(pipe, Progress()).show(lines)
    assert pipe.getvalue().replace("\n", "").isprintable()
    return pipe.getvalue()


def test_the_report_of_a_run(snapshot: SnapshotAssertion) -> None:
    shown = ""
    for status in ("completed", "failed", "stopped"):
        made = None if status == "stopped" else result(status, OUTPUTS, {"find": ERROR})
        first, last = report_lines(FLOW, halfway(), made, is_verbose=status == "completed")
        shown += f"-- {status}\n{in_lines(*first, *last)}"
    assert shown == snapshot


SQL = "SELECT name,\n\tsum(total) -- [bold]\x1b[2J\nFROM order_totals"


def answered(rows: list[list[Any]], *, truncated: bool = False) -> dict[str, Any]:
    found = {"columns": ["name", "total"], "data": rows, "truncated": truncated}
    return {"success": True, "sql_query": SQL, "execution_result": found, "answer": "Done."}


ANSWERS: dict[str, dict[str, Any]] = {
    "rows": answered([["[red]Ada[/]", 2.5], [None, 10]]),
    "no rows": answered([]),
    "many rows": answered([[f"customer {number} " + "x" * 30, number] for number in range(1_050)]),
    "truncated": answered([["Ada", number] for number in range(51)], truncated=True),
    "asks": {"success": False, "needs_user_input": True, "answer": "Which year?\n- 2025\n- \x1b[2J2026"},
    "failed": {
        "success": False,
        "sql_query": "SELECT nmae",
        "answer": "no such column: nmae; did you mean name?",
    },
    "nothing": {},
}


@pytest.mark.parametrize("width", [40, None])
def test_an_answer_fits_the_terminal(width: int | None, snapshot: SnapshotAssertion) -> None:
    shown = (f"-- {name}\n{in_lines(*answer_lines(state, width))}" for name, state in ANSWERS.items())
    assert "".join(shown) == snapshot


# In a real terminal


@pytest.fixture
def asking(tmp_path: Path) -> list[str]:
    """How to ask the shop for its best customers."""
    create_database(tmp_path / "shop.db")
    sql = ROOT / "examples" / "shop" / "spent_most.sql"
    question = "Which customers spent the most?"
    return ["ask", question, "--db", str(tmp_path / "shop.db"), "--sql-from", str(sql)]


def test_a_question_in_a_terminal_leaves_the_plan_and_the_answer(
    asking: list[str], snapshot: SnapshotAssertion
) -> None:
    text = written_in_terminal(80, *asking, TERM="xterm-256color", NO_COLOR="1")
    assert plain(text.rsplit(ERASED_LINE, 1)[-1]) == snapshot
    assert "no such column" in text


def test_a_failed_run_in_a_terminal_says_why_and_how_to_resume(
    run_folder: None, snapshot: SnapshotAssertion
) -> None:
    text = written_in_terminal(
        80, "run", "failing.json", "--tools", "step_tools:tools", "--prompt=larks", NO_COLOR="1"
    )
    assert timeless(plain(text.rsplit(ERASED_LINE, 1)[-1])) == snapshot


@pytest.mark.parametrize(
    ("environment", "style"),
    [
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, ("<ESC>[31m", "<ESC>[0m")),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "dumb"}, ("", "")),
    ],
    ids=["FORCE_COLOR", "NO_COLOR wins"],
)
def test_colours_can_be_forced_and_forbidden(environment: dict[str, str], style: tuple[str, str]) -> None:
    first = in_terminal(200, "replay", str(TRIAGE), **environment).splitlines()[0]
    assert first.startswith(f"{style[0]}Refused planning_read_plan: ")
    assert first.endswith(f"first{style[1]}")


def test_text_for_a_terminal_cannot_act_on_it() -> None:
    assert printable("\x1b[31mred\u202e\ud800\x9b") == "\\x1b[31mred\\u202e\\ud800\\x9b"
    assert printable("plain [red] caf\u00e9") == "plain [red] caf\u00e9"
    assert one_line("a\n\tb\x07") == "a |  b\\x07"
    assert lines_of("\na\r\n\tb\n") == ["a", "    b"]
