"""``planning run``: what it prints, what it refuses, its exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_runs import run, runs
from run_folders import FINE, calls, plan, step, thought, timeless
from syrupy.assertion import SnapshotAssertion

WITH = ("--tools", "step_tools:tools")


pytestmark = pytest.mark.usefixtures("run_folder")


def ran(*arguments: str, stdin: str | None = None) -> str:
    return timeless(run("run", *arguments, stdin=stdin))


def test_a_completed_run_is_a_line_for_each_change() -> None:
    assert ran("fine.json", *WITH, "--prompt", "larks") == (
        "exit code 0\n--- stdout\n"
        "Look into it: 0 of 2 done\n"
        "find  running   Call find\n"
        'find  done      0.0 s  {"topic":"larks","pages":3}\n'
        "left  done      Think of left\n"
        "\n== Answer ==\nThink of left\n\n"
        "completed: 2 of 2 done, in 0.0 s\n"
    )


def test_a_failed_run_says_why_and_how_to_go_on(snapshot: SnapshotAssertion) -> None:
    shown = ran("failing.json", *WITH, "--prompt", "larks")
    assert shown.startswith("exit code 1\n")
    assert shown == snapshot


def test_the_result_as_json_is_all_that_stands_on_standard_output(folder: Path) -> None:
    shown = ran("failing.json", *WITH, "--json", "--prompt", "larks")
    told, text = shown.split("--- stdout\n")
    result = json.loads(text)
    assert result.pop("workflow")["status"] == "failed"
    assert result == {
        "status": "failed",
        "outputs": {"find": {"topic": "larks", "pages": 3}, "left": "Think of left"},
        "memory": {"found": 3},
        "errors": {
            "fail": {
                "message": "fail failed. Call it again, or continue without it.",
                "user_message": "I ran into a problem looking that up. Could you try again?",
                "code": "unknown",
            }
        },
        "warnings": [],
    }
    assert told == (
        "exit code 1\n--- stderr\n"
        "planning: failed; to retry the failed steps, run:"
        " planning run failing.json --tools step_tools:tools --json --prompt larks --resume\n"
    )


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_an_executor_gives_the_same_result(executor: str) -> None:
    fine = ("fine.json", *WITH, "--prompt", "larks")
    assert ran(*fine, "--executor", executor) == ran(*fine)


DONE_BEFORE = {"status": "completed", "completed_at": "2024-05-06T07:08:09+00:00"}
STEPS: dict[str, tuple[dict[str, Any], list[str], list[str]]] = {
    "tried again": (step("flaky", retries=2), [], ["flaky", "flaky"]),
    "skipped": (
        step("find", inputs={"topic": "x"}, expected_key="found", done_check="found > 2"),
        ["--var", "found=3"],
        [],
    ),
    "completed in the plan alone": (step("find", inputs={"topic": "x"}, **DONE_BEFORE), [], ["find"]),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_says_what_becomes_of_it(name: str, folder: Path, snapshot: SnapshotAssertion) -> None:
    only, arguments, called = STEPS[name]
    (folder / "one.json").write_text(plan(only))
    assert ran("one.json", *WITH, *arguments) == snapshot
    assert calls(folder) == called


def test_a_plan_with_errors_is_told_as_validate_tells_it_and_not_run(folder: Path) -> None:
    (folder / "bad.json").write_text(plan(step("find"), step("nobody"), thought("a", "b")))
    told = run("validate", "bad.json", *WITH)
    assert told.startswith("exit code 1\n--- stdout\n")
    assert run("run", "bad.json", *WITH) == told.replace("--- stdout", "--- stderr")
    assert calls(folder) == []


REFUSED = [
    "",
    "--tools find",
    "--tools nowhere:tools",
    "--tools step_tools:tools --var year",
    "--tools step_tools:tools --var =1",
    "--tools step_tools:tools --var a=1 --var a=1",
    "--tools step_tools:tools --prompt a --var user_prompt=a",
    "--tools step_tools:tools --executor dask://nowhere",
    "--tools step_tools:tools --timeout 0",
    "--tools step_tools:tools --json",
]


def test_what_cannot_be_done_is_refused_at_once(folder: Path, snapshot: SnapshotAssertion) -> None:
    shown = runs(REFUSED, "run fine.json ")
    assert (shown.count("exit code 2\n"), calls(folder)) == (len(REFUSED), [])
    assert shown == snapshot


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        ("2022", 2022),
        ("null", None),
        ('["a", 1]', ["a", 1]),
        ('"2022"', "2022"),
        ("2022-01-01", "2022-01-01"),
        ("NaN", "NaN"),
        ("1e999", "1e999"),
        ("[" * 100_000, "[" * 100_000),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_value_is_json_where_it_can_be(value: str, stored: object, folder: Path) -> None:
    (folder / "think.json").write_text(plan(thought("a")))
    shown = run("run", "think.json", "--json", "--var", f"given={value}")
    assert json.loads(shown.split("--- stdout\n")[1])["memory"] == {"given": stored}


@pytest.mark.parametrize(("name", "call"), [("leave", "SystemExit: 3"), ("interrupt", "KeyboardInterrupt: ")])
def test_a_tool_that_ends_the_program_stops_the_run(name: str, call: str, folder: Path) -> None:
    (folder / "end.json").write_text(plan(step(name)))
    assert ran("end.json", *WITH) == (
        "exit code 1\n--- stderr\n"
        f"planning: the run was stopped by {call}\n"
        "planning: stopped; to resume, run: planning run end.json --tools step_tools:tools"
        " --resume\n"
        "--- stdout\n"
        "Look into it: 0 of 1 done\n"
        f"{name}  running   Call {name}\n"
        f"{name}  stopped   0.0 s  stopped before it was done\n"
        "stopped: 0 of 1 done, 1 stopped, in 0.0 s\n"
    )


def test_a_plan_that_was_cut_runs_none_of_its_steps_unless_the_model_ended_it(folder: Path) -> None:
    cut = FINE.rstrip()[:-1]
    assert run("run", "-", *WITH, stdin=cut).startswith("exit code 1\n--- stderr\nerror[truncated]")
    assert calls(folder) == []
    assert "completed: 2 of 2 done" in ran("-", *WITH, "--finished", "--prompt", "larks", stdin=cut)
