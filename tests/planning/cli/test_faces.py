"""The faces: what a terminal shows of a plan, a run and an answer, and what a pipe gets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from cli_runs import (
    ERASED_LINE,
    ROOT,
    TRIAGE,
    Clock,
    ascii_terminal,
    drawn,
    in_terminal,
    plain,
    terminal,
    written,
    written_in_terminal,
)
from rich.console import Console
from run_folders import FAILING, TOOLS, plan, step, thought, timeless
from syrupy.assertion import SnapshotAssertion

from examples.shop import create_database
from planning import Plan, PlanStep
from planning.cli.ask import answer_lines
from planning.cli.lines import Lines
from planning.cli.live import Live, final_frame, frame
from planning.cli.progress import Progress
from planning.cli.replay import replayed as made
from planning.cli.running import report_lines
from planning.cli.terminal import lines_of
from planning.cli.transcript import parse_transcript
from planning.errors import one_line, printable
from planning.workflow import StepError, Workflow, WorkflowResult, WorkflowStep
from planning.workflow.run.records import StepRecord, WorkflowRun
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
ERROR = StepError("find failed [/]. Call it again, or go on without it.", cause="no luck\nat \x1b[2Jall")
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


def record(step_id: str, status: str, **fields: object) -> StepRecord:
    return StepRecord(run_id="r", step_id=step_id, status=status, at="", **fields)  # type: ignore[arg-type] # the tests know the words


def busy() -> Progress:
    """A plan in which there is something of everything."""
    clock = Clock()
    progress = Progress(clock)
    progress.take_plan(BUSY)
    for _ in range(2):
        progress.refuse("planning_read_plan", "no")
    clock.seconds += 75
    return progress


def halfway() -> Progress:
    """A run in which there is something of everything."""
    clock = Clock()
    progress = Progress.of_run(FLOW, clock)
    long = "a_step_with_a_very_long_id"
    progress.take_record(record("plan", "completed"))
    progress.take_record(record(long, "in_progress", attempt=1))
    progress.take_record(record("find", "in_progress", attempt=1))
    clock.seconds += 2.5
    progress.take_record(record(long, "in_progress", attempt=2))
    progress.take_record(record("find", "failed", attempt=1, error=ERROR))
    progress.take_record(record("tell", "pending", after="find"))
    progress.take_record(record("known", "completed", skipped=True))
    clock.seconds += 70
    return progress


def result(status: Any, outputs: dict[str, Any], errors: dict[str, StepError]) -> WorkflowResult:
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
@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_a_frame_fits_the_terminal(width: int, made: Any, snapshot: SnapshotAssertion) -> None:
    shown = drawn(terminal(width), frame(terminal(width), made()))
    assert max(map(len, shown.splitlines())) <= width
    assert shown.replace("\n", "").isprintable()
    assert shown == snapshot


@pytest.mark.parametrize("made", [busy, halfway], ids=["plan", "run"])
@pytest.mark.parametrize("width", [40, 80])
def test_the_final_frame_holds_all_steps(width: int, made: Any, snapshot: SnapshotAssertion) -> None:
    progress = made()
    progress.stop()
    is_plan = made is busy
    assert drawn(terminal(width), final_frame(terminal(width), progress, is_whole=is_plan)) == snapshot


@pytest.mark.parametrize("height", [1, 7, 24, 200])
@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("at", [0, 49, 98])
def test_a_frame_of_a_long_plan_fits_and_shows_the_step_that_changed(
    height: int, width: int, at: int
) -> None:
    ids = [f"S{number:03d}" for number in range(1, 100)]
    progress = Progress()
    steps = tuple(PlanStep(each, f"Do {each}", None, "pending", ("Noted",)) for each in ids)
    progress.take_plan(Plan("Do a great deal", "active", steps))
    changed = PlanStep(ids[at], "Do it", None, "done", ("Noted",))
    progress.take_plan(Plan("Do a great deal", "active", (*steps[:at], changed, *steps[at + 1 :])))
    console = terminal(width, height)
    shown = drawn(console, frame(console, progress))
    assert len(shown.splitlines()) <= max(height, 7)
    assert ids[at] in shown


@pytest.mark.parametrize("height", [1, 7, 10, 24])
@pytest.mark.parametrize("running", [[0], [49], [98], [3, 97]], ids=str)
def test_a_frame_of_a_long_run_fits_and_shows_the_first_step_that_runs(
    height: int, running: list[int]
) -> None:
    flow = Workflow(
        steps=tuple(WorkflowStep(step_id=f"s{number}", description="Do it") for number in range(99))
    )
    progress = Progress.of_run(flow, Clock())
    for number in running:
        progress.take_record(record(f"s{number}", "in_progress", attempt=1))
    console = terminal(80, height)
    shown = drawn(console, frame(console, progress))
    assert len(shown.splitlines()) <= max(height, 7)
    assert f" s{running[0]} " in shown


def test_marks_are_ascii_where_nothing_else_prints() -> None:
    console, sent = ascii_terminal()
    progress = Progress()
    progress.take_plan(
        Plan("Fix", "active", tuple(PlanStep(s.step_id, "Do", None, s.status) for s in BUSY.steps))
    )
    console.print(frame(console, progress))
    shown = sent.getvalue().decode("ascii").splitlines()[-5:-1]
    assert [line[:6] for line in shown] == ["x S001", "> S002", "# S003", ". S004"]


def replayed(console: Console) -> str:
    """What a terminal is sent during the replay of the triage."""
    progress = Progress()
    with Live(console, progress) as live:
        for lines in made(parse_transcript(TRIAGE.read_bytes()), progress):
            live.show(lines)
        live.end((), [(progress.calls(), "")], is_whole=True)
    return written(console)


def test_a_replay_leaves_its_plan_standing(snapshot: SnapshotAssertion) -> None:
    text = replayed(terminal(height=60))
    assert plain(text.rsplit(ERASED_LINE, 1)[-1]) == snapshot
    refused = [line for line in plain(text.replace(ERASED_LINE, "\n")).splitlines() if line[:7] == "Refused"]
    assert len(refused) == 7


def test_what_a_tool_prints_appears_above_the_steps() -> None:
    console, progress = terminal(), halfway()
    with Live(console, progress) as live:
        print("printed [red]by a tool")  # noqa: T201 - as a tool does
        live.stopping()
        live.end(*report_lines(FLOW, progress, None, is_verbose=False), is_whole=False)
    text = written(console)
    assert "printed [red]by a tool\n" in text
    assert text.rstrip("\x1b[?25h\n").endswith(
        "stopped: 1 of 7 done, 1 running, 1 failed, 1 blocked, 1 skipped, in 1:12 min"
    )


OUTPUTS: dict[str, Any] = {"plan": "One\n\ttext \x1b[2J", "known": {"é": [1, None]}, "find": 7}


@pytest.mark.parametrize("is_verbose", [False, True], ids=["brief", "verbose"])
@pytest.mark.parametrize("status", ["completed", "failed", "stopped"])
def test_the_report_of_a_run(status: str, is_verbose: bool, snapshot: SnapshotAssertion) -> None:
    made = None if status == "stopped" else result(status, OUTPUTS, {"find": ERROR})
    lines: list[str] = []
    progress = halfway()
    first, last = report_lines(FLOW, progress, made, is_verbose=is_verbose)
    Lines(lines.append, progress).end(first, last, is_whole=False)
    assert all(line.isprintable() for line in lines)
    assert "".join(f"{line}\n" for line in lines) == snapshot


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


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("width", [40, None])
def test_an_answer_fits_the_terminal(width: int | None, name: str, snapshot: SnapshotAssertion) -> None:
    lines: list[str] = []
    Lines(lines.append, Progress()).show(answer_lines(ANSWERS[name], width))
    assert width is None or max(map(len, lines)) <= max(width, 60)
    assert all(line.isprintable() for line in lines)
    assert "".join(f"{line}\n" for line in lines) == snapshot


# In a real terminal


@pytest.fixture
def asking(tmp_path: Path) -> list[str]:
    """How to ask the shop for its best customers."""
    create_database(tmp_path / "shop.db")
    sql = ROOT / "examples" / "shop" / "spent_most.sql"
    question = "Which customers spent the most?"
    return ["ask", question, "--db", str(tmp_path / "shop.db"), "--sql-from", str(sql)]


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_question_in_a_terminal_leaves_the_plan_and_the_answer(
    columns: int, asking: list[str], snapshot: SnapshotAssertion
) -> None:
    tries = (written_in_terminal(columns, *asking, TERM="xterm-256color", NO_COLOR="1") for _ in range(5))
    ends = ((text, plain(text.rsplit(ERASED_LINE, 1)[-1])) for text in tries)
    # A step of a second or more shows its time: then the machine was busy.
    text, end = next(each for each in ends if re.search(r"\d\.\d s\b", each[1]) is None)
    assert end == snapshot
    assert "no such column" in text


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_a_run_in_a_terminal_ends_with_the_answer_first_and_what_tools_print_above(
    columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    (tmp_path / "step_tools.py").write_text(TOOLS)
    (tmp_path / "loud.json").write_text(plan(step("loud"), thought("after", "loud")))
    monkeypatch.chdir(tmp_path)
    options = ("--tools", "step_tools:tools")
    text = written_in_terminal(columns, "run", "loud.json", *options, NO_COLOR="1").replace("\r", "")
    bare = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", text)
    assert re.search(r"^from print *$", bare, re.MULTILINE)
    end = text.rsplit("\x1b[2K", 1)[-1]
    assert timeless(plain(re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", end))) == snapshot


def test_a_failed_run_in_a_terminal_says_why_and_how_to_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    (tmp_path / "step_tools.py").write_text(TOOLS)
    (tmp_path / "failing.json").write_text(FAILING)
    monkeypatch.chdir(tmp_path)
    text = written_in_terminal(
        80, "run", "failing.json", "--tools", "step_tools:tools", "--prompt=larks", NO_COLOR="1"
    )
    assert timeless(plain(text.rsplit(ERASED_LINE, 1)[-1])) == snapshot


def test_a_terminal_that_cannot_redraw_gets_lines(asking: list[str]) -> None:
    text = written_in_terminal(60, *asking, TERM="dumb")
    assert "\x1b" not in text
    assert text.startswith("New plan: Which customers spent the most? Added S001, S002, S003, S004.")


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
