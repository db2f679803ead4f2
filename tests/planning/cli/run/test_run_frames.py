"""The live view of a run: what stands in a terminal while it goes on, and at its end."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli_runs import Clock, drawn, terminal, written, written_in_terminal
from run_folders import TOOLS, plan, step, thought, timeless
from syrupy.assertion import SnapshotAssertion

from planning.cli.run.plain import seconds_text, stopping_text
from planning.cli.run.progress import Progress
from planning.cli.run.view_live_run import LiveView, final_frame, frame
from planning.workflow import StepError, Workflow, WorkflowResult, WorkflowStep
from planning.workflow.run.records import StepRecord, WorkflowRun
from session import Session

ERROR = StepError("find failed [/]. Call it again, or go on without it.", cause="no luck\nat \x1b[2Jall")
STEPS = (
    ("plan", "Think of what to look for"),
    ("a_step_with_a_very_long_id", "Look [red]it[/] up in " + "the archives " * 9),
    ("wait", "Wait for the\nmail"),
    ("find", "Find it"),
    ("tell", "Tell what was found"),
    ("known", "Look at what is known"),
    ("end", "\x1b[31mEnd"),
)


def workflow_of(*steps: tuple[str, str]) -> Workflow:
    made = (WorkflowStep(step_id=step_id, description=description) for step_id, description in steps)
    return Workflow(goal="Look into [bold]it[/]\nat length", steps=tuple(made))


def record(step_id: str, status: str, **fields: object) -> StepRecord:
    return StepRecord(run_id="r", step_id=step_id, status=status, at="", **fields)  # type: ignore[arg-type] # the tests know the words


def halfway(clock: Clock) -> Progress:
    """A run in which something of everything has happened."""
    progress = Progress(workflow_of(*STEPS), clock)
    begun = record("a_step_with_a_very_long_id", "in_progress", attempt=1)
    for each in (record("plan", "completed"), begun, record("find", "in_progress", attempt=1)):
        progress.take(each, None)
    clock.seconds += 2.5
    progress.take(record("a_step_with_a_very_long_id", "in_progress", attempt=2), None)
    progress.take(record("find", "failed", attempt=1, error=ERROR), None)
    progress.take(record("tell", "pending", after="find"), None)
    progress.take(record("known", "completed", skipped=True), None)
    clock.seconds += 70
    return progress


def result_of(progress: Progress, status: str, errors: dict[str, StepError]) -> WorkflowResult:
    return WorkflowResult(
        status=status,  # type: ignore[arg-type] # the tests know the words
        outputs={},
        memory={},
        errors=errors,
        warnings=("step known: its done_check was left out of account: [x]",),
        session=Session(),
        run=WorkflowRun(run_id="r", workflow=Workflow()),
        states={},
    )


@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_a_frame_fits_the_terminal(width: int, snapshot: SnapshotAssertion) -> None:
    shown = drawn(terminal(width), frame(terminal(width), halfway(Clock())))
    assert max(map(len, shown.splitlines())) <= width
    assert shown.replace("\n", "").isprintable()
    assert shown == snapshot


@pytest.mark.parametrize("width", [40, 80])
def test_a_frame_says_below_its_steps_that_the_run_stops(width: int, snapshot: SnapshotAssertion) -> None:
    shown = drawn(terminal(width, 12), frame(terminal(width, 12), halfway(Clock()), stopping_text(1)))
    assert len(shown.splitlines()) <= 11
    assert shown == snapshot


@pytest.mark.parametrize("width", [40, 80])
def test_the_final_frame_shows_every_error_whole(width: int, snapshot: SnapshotAssertion) -> None:
    progress = halfway(Clock())
    assert [each.step_id for each in progress.stopped()] == ["a_step_with_a_very_long_id"]
    shown = drawn(terminal(width), final_frame(terminal(width), progress, None))
    progress = halfway(Clock())
    result = result_of(progress, "failed", {"find": ERROR})
    assert shown + drawn(terminal(width), final_frame(terminal(width), progress, result)) == snapshot


def test_a_run_of_very_many_steps_is_summed_up_at_its_end() -> None:
    clock = Clock()
    progress = Progress(workflow_of(*((f"s{number}", "Do it") for number in range(10_000))), clock)
    for number in range(9_999):
        progress.take(record(f"s{number}", "completed"), None)
    progress.take(record("s9999", "failed", error=StepError("it broke")), None)
    shown = drawn(terminal(), final_frame(terminal(), progress, None))
    assert [line.split() for line in shown.splitlines() if line] == [
        ["Look", "into", "[bold]it[/]", "|", "at", "length"],
        ["✗", "s9999", "Do", "it", "failed", "it", "broke"],
        ["and", "9,999", "others"],
        ["stopped:", "9999", "of", "10000", "done,", "1", "failed,", "in", "0.0", "s"],
    ]


@pytest.mark.parametrize("height", [1, 6, 10, 24])
@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("running", [[0], [49], [98], [3, 97], list(range(20, 40))], ids=len)
def test_a_frame_of_many_steps_fits_and_shows_what_runs(height: int, width: int, running: list[int]) -> None:
    progress = Progress(workflow_of(*((f"s{number}", "Do it") for number in range(99))), Clock())
    for number in running:
        progress.take(record(f"s{number}", "in_progress", attempt=1), None)
        progress.take(record(f"s{number}", "in_progress", attempt=2), None)
    console = terminal(width, height)
    shown = drawn(console, frame(console, progress))
    assert len(shown.splitlines()) <= max(height, 6)
    lines = max(1, height - 5)
    fitting = lines if width == 80 or lines == 1 else lines // 2
    assert [number for number in running if f" s{number} " in shown] == running[:fitting]


def test_a_change_that_shows_nothing_new_is_none() -> None:
    progress = Progress(workflow_of(("a", "A")), Clock())
    assert progress.take(record("a", "in_progress", attempt=1), None) is not None
    assert progress.take(record("a", "in_progress", attempt=1, called=True), None) is None
    assert progress.take(record("unknown", "in_progress"), None) is None
    assert progress.tally() == "0 of 1 done, 1 running"


def test_times_are_spelled_for_a_person() -> None:
    assert [seconds_text(seconds) for seconds in (0.04, 59.94, 61, 3_599, 7_260)] == [
        "0.0 s",
        "59.9 s",
        "1:01 min",
        "59:59 min",
        "2:01 h",
    ]


def test_the_view_leaves_the_end_standing_and_lines_above_it() -> None:
    console, progress = terminal(), halfway(Clock())
    with LiveView(console, progress) as view:
        view.say("printed \x1b[2J[red]by a tool")
        view.end(result_of(progress, "completed", {}))
    text = written(console)
    assert "printed \\x1b[2J[red]by a tool\n" in text
    assert text.rstrip("\x1b[?25h\n").endswith(
        "completed: 1 of 7 done, 1 running, 1 failed, 1 blocked, 1 skipped, in 1:12 min"
    )


def test_in_a_terminal_what_tools_print_stands_above_the_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    (tmp_path / "step_tools.py").write_text(TOOLS)
    (tmp_path / "loud.json").write_text(plan(step("loud"), thought("after", "loud")))
    monkeypatch.chdir(tmp_path)
    options = ("--tools", "step_tools:tools")
    text = written_in_terminal(60, "run", "loud.json", *options, NO_COLOR="1").replace("\r", "")
    plain = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", text)
    for line in ("from print", "from a process", "without an end"):
        assert re.search(rf"^{line} *$", plain, re.MULTILINE)
    end = text.rsplit("\x1b[2K", 1)[-1]
    assert timeless(re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", end)) == snapshot
