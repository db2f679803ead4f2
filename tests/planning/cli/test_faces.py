"""The faces: what a terminal shows of a plan, a run, rows and an answer, and what a pipe gets."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from cli_runs import ROOT, TRIAGE, Clock, drawn, in_terminal, left_in, terminal, written_in_terminal
from examples.shop import create_database
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from run_folders import timeless
from syrupy.assertion import SnapshotAssertion

from planning import Plan, PlanStep
from planning.cli.ask import answer_lines, csv_lines, laid_out
from planning.cli.faces import Lines, Live, frame
from planning.cli.progress import Progress
from planning.cli.replay import replay_lines
from planning.cli.running import report_lines
from planning.cli.terminal import Line, as_json
from planning.cli.transcript import Call
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


@pytest.mark.parametrize("made", [busy, halfway], ids=["plan", "run"])
@pytest.mark.parametrize("width", [40, 100])
def test_what_a_terminal_shows_meanwhile_and_last(width: int, made: Any, snapshot: SnapshotAssertion) -> None:
    progress, file = made(), io.StringIO()
    console = terminal(file, width)
    meanwhile = drawn(frame(console, progress), width)
    with Live(console, progress) as live:
        print("printed [red]by a tool")  # noqa: T201 - as a tool does
        progress.stop()
        first, last = report_lines(FLOW, progress, None) if made is halfway else ((), ())
        live.end(first, last, is_whole=made is busy)
    end = left_in(file.getvalue())
    assert "printed [red]by a tool\n" in file.getvalue()
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
    shown = drawn(frame(terminal(io.StringIO(), 80, height), progress), 80, height)
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
    shown, statuses = "", ("completed", "failed", "stopped")
    common = {"memory": {}, "session": Session(), "run": WorkflowRun(run_id="r", workflow=Workflow())}
    common |= {"warnings": ("step known: done_check ignored: [x]",), "states": {}}
    for status in statuses:
        result: Any = {"status": status, "outputs": OUTPUTS, "errors": {"find": ERROR}, **common}
        made = None if status == "stopped" else WorkflowResult(**result)
        first, last = report_lines(FLOW, halfway(), made, is_verbose=status == "completed")
        shown += f"-- {status}\n{in_lines(*first, *last)}"
    assert shown == snapshot


SQL = "SELECT name,\n\tsum(total) -- [bold]\x1b[2J\nFROM order_totals"


def answered(
    rows: list[list[Any]], columns: Sequence[str] = ("name", "total"), *, truncated: bool = False
) -> dict[str, Any]:
    found = {"columns": columns, "data": rows, "truncated": truncated}
    return {"success": True, "sql_query": SQL, "execution_result": found, "answer": "Done."}


ANSWERS: dict[str, dict[str, Any]] = {
    "rows": answered([["[red]Ada[/]", 2.5], [None, 10]]),
    "no rows": answered([]),
    "many rows": answered([[f"customer {number} " + "x" * 30, number] for number in range(1_050)]),
    "many columns": answered([["x" * 20] * 30], [f"column_{number}" for number in range(30)]),
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


def test_a_question_in_a_terminal_leaves_the_plan_and_the_answer(snapshot: SnapshotAssertion) -> None:
    create_database("shop.db")
    sql = str(ROOT / "examples" / "shop" / "spent_most.sql")
    question = ("ask", "Which customers spent the most?", "--db", "shop.db", "--sql-from", sql)
    text = written_in_terminal(80, *question, TERM="xterm-256color", NO_COLOR="1")
    assert left_in(text) == snapshot
    assert "no such column" in text


def test_a_failed_run_in_a_terminal_says_how_to_resume(run_folder: None, snapshot: SnapshotAssertion) -> None:
    failing = ("run", "failing.json", "--tools", "step_tools:tools", "--prompt=larks")
    text = written_in_terminal(80, *failing, NO_COLOR="1")
    assert timeless(left_in(text)) == snapshot


@pytest.mark.parametrize(
    ("given", "is_coloured"),
    [
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"NO_COLOR": "1"}, False),
        ({"TERM": "dumb"}, False),
        ({"NO_COLOR": ""}, True),
    ],
)
def test_colours_are_forced_and_forbidden(given: dict[str, str], is_coloured: bool, run_folder: None) -> None:
    red, green, end = ("<ESC>[31m", "<ESC>[1;32m", "<ESC>[0m") if is_coloured else ("", "", "")
    valid = in_terminal(80, "validate", "fine.json", **given)
    assert valid == f"fine.json: {green}valid{end}, 2 steps\n"
    replayed = in_terminal(200, "replay", str(TRIAGE), **given)
    refused = "Refused planning_read_plan: no plan yet; call planning_setup_plan first"
    assert f"{red}{refused}{end}\n" in replayed
    assert ("<ESC>[31m" in replayed) is is_coloured


ABCD = Workflow(steps=tuple(WorkflowStep(step_id=each, description=f"Do {each}") for each in "abcd"))


def test_a_run_goes_from_step_to_step(snapshot: SnapshotAssertion) -> None:
    clock = Clock()
    progress, record = Progress(RunSteps(ABCD), clock), clock.record
    lines = progress.take_record(record("a", "in_progress", attempt=1))
    lines += progress.take_record(record("a", "in_progress", attempt=1, called=True))
    lines += progress.take_record(record("unknown", "in_progress"))
    clock.go_on(2)
    lines += progress.take_record(record("a", "in_progress", attempt=2))
    lines += progress.take_record(record("a", "completed", attempt=2, called=True, output={"é": [1, None]}))
    lines += progress.take_record(record("b", "failed", error=StepFailure("it broke")))
    lines += progress.take_record(record("c", "pending", after="b"))
    progress.take_record(record("d", "in_progress", attempt=1))
    clock.go_on(1)
    lines += progress.stop()
    assert (
        "\n".join(map(str, [*lines, progress.tally(), [step.state for step in progress.steps]])) == snapshot
    )


def test_lines_stay_aligned_whatever_the_alphabet_of_the_ids() -> None:
    ids = ("\u6d4b\u8bd5", "e\u0301", "abcd")
    steps = tuple(WorkflowStep(step_id=each, description="x") for each in ids)
    progress, record = Progress(RunSteps(Workflow(goal="x", steps=steps))), Clock().record
    lines = [progress.take_record(record(each, "in_progress", attempt=1))[0][0] for each in ids]
    assert lines == ["\u6d4b\u8bd5  running   x", "e\u0301     running   x", "abcd  running   x"]


texts = st.text(max_size=12) | st.sampled_from(["S001", "S002", "done", "\x1b[2J", "[red]", "\x9b", "\u202e"])
names = st.sampled_from(["setup_plan", "mark_step", "add_step", "update_step", "clear_plan"]) | texts
fields = st.sampled_from(
    ["objective", "initial_steps", "steps", "step_id", "status", "note", "title", "details"]
)
arguments = texts | st.dictionaries(fields | texts, texts | st.lists(texts, max_size=2), max_size=4)
SETUP = Call("planning_setup_plan", {"objective": "Fix the login", "initial_steps": ["Find it", "Fix it"]})


@given(st.lists(st.tuples(names.map("planning_".__add__), arguments), max_size=5))
def test_whatever_a_model_sends_is_printable_and_the_plan_is_shown(calls: list[tuple[str, object]]) -> None:
    sent = [Call(name, given if isinstance(given, str) else json.dumps(given)) for name, given in calls]
    pipe, progress = io.StringIO(), Progress()
    face, ends = Lines(pipe, progress), Counter[str]()
    for end, changed in replay_lines([SETUP, *sent], progress):
        ends[end] += 1
        face.show(changed)
        kept = progress.plan
        assert kept is not None
        shown = [(step.step_id, step.title, step.notes) for step in progress.steps]
        assert shown == [(step.step_id, step.title, step.notes) for step in kept.steps]
    assert pipe.getvalue().replace("\n", "").isprintable()
    assert (ends.total(), ends["refused"]) == (len(calls) + 1, progress.refused)


DAY = datetime.date(2026, 1, 2)
ROWS: list[list[Any]] = [
    [1, "Ada", None, 2.5, b"\x00\xff", "one\ntwo\tthree"],
    [20_000, "NULL", "'NULL'", 1e300, {"k": DAY}, "漢字かな交じり文の長い長い長い長い説明文"],
    [-3, "", "NULLs", None, b"x" * 80, "e\u0301\U0001f600 \x9b31m[red]"],
    [None, "a" * 3_000, "null", float("inf"), ["\u00e9", None], DAY],
]


def shown(width: int | None, columns: list[str], rows: list[list[Any]]) -> str:
    return "".join(f"{line}\n" for line in laid_out(columns, rows, width)[0])


@pytest.mark.parametrize("width", [40, 120, None])
def test_a_table_fits_its_width(width: int | None, snapshot: SnapshotAssertion) -> None:
    assert shown(width, ["id", "name", "name", "price", "raw\x1b[2J", "note"], ROWS) == snapshot


values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=40), st.binary(max_size=9)
)


@given(
    st.lists(st.tuples(st.text(max_size=20), values, values), min_size=1, max_size=12),
    st.integers(min_value=1, max_value=150),
)
def test_no_line_of_rows_is_wider_than_the_terminal(columns: list[tuple[str, Any, Any]], width: int) -> None:
    names, *rows = (list(each) for each in zip(*columns, strict=True))
    lines = laid_out(names, rows, width)[0]
    assert [line for line in lines if cell_len(line) > width or not line.isprintable()] == []
    assert len(lines) >= len(rows)


def test_csv_has_no_formulas() -> None:
    formulas = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\uff1d1"]
    formulas += ["-1 day", "+49 30"]  # no numbers
    data: list[Any] = ["a=1", "", "'x", None, " =1", "-5", "+1.5e3"]
    data += [-5, -2.5, -math.inf, decimal.Decimal("-1.10")]
    text = "".join(csv_lines(["=name", "-5"], [formulas, data]))
    names, first, second = csv.reader(io.StringIO(text, newline=""))
    assert names == ["'=name", "-5"]
    assert first == [f"'{each}" for each in formulas]
    assert second == ["" if each is None else str(each) for each in data]


def test_json_is_strict() -> None:
    value = {
        "floats": [1.5, math.nan, math.inf, -math.inf],
        "bytes": [b"\x00\xff", bytearray(b"a"), memoryview(b"")],
        "rest": ({1: None}, True, 2**70, "\udc80\x1b", datetime.date(2026, 1, 2), decimal.Decimal("1.10")),
        "sets": {"one"},
    }
    text = as_json(value)
    assert text.isascii()
    assert json.loads(text, parse_constant=pytest.fail) == {
        "floats": [1.5, "NaN", "Infinity", "-Infinity"],
        "bytes": ["x'00ff'", "x'61'", "x''"],
        "rest": [{"1": None}, True, 2**70, "\udc80\x1b", "2026-01-02", "1.10"],
        "sets": ["one"],
    }
