"""``planning run``: what it prints and refuses, where it keeps a run, and how the run is resumed."""

from __future__ import annotations

import json
import signal
import stat
from pathlib import Path
from typing import Any

import pytest
from cli_runs import commands_in, printed, run, runs
from run_folders import FAILING, FINE, Running, calls, plan, step, thought, timeless
from syrupy.assertion import SnapshotAssertion

from planning.cli.usage import DEFAULT_STORE
from session.stores import SqliteStore

WITH = ("--tools", "step_tools:tools")


pytestmark = pytest.mark.usefixtures("run_folder")


def ran(*arguments: str, stdin: str | None = None) -> str:
    """What a run shows."""
    return timeless(run("run", *arguments, stdin=stdin))


def test_a_completed_run_is_a_line_for_each_change(snapshot: SnapshotAssertion) -> None:
    executors = ((), ("--executor", "threads"), ("--executor", "processes"))
    first, *others = (ran("fine.json", *WITH, "--prompt", "larks", *each) for each in executors)
    assert first == snapshot
    assert others == [first] * 2


def test_a_failed_run_says_why_and_how_to_go_on(snapshot: SnapshotAssertion) -> None:
    shown = ran("failing.json", *WITH, "--prompt", "larks")
    assert shown.startswith("exit code 1\n")
    assert shown == snapshot


def test_the_result_as_json_is_all_that_stands_on_standard_output(snapshot: SnapshotAssertion) -> None:
    shown = ran("failing.json", *WITH, "--json", "--prompt", "larks")
    told, text = shown.split("--- stdout\n")
    result = json.loads(text)
    assert result.pop("workflow")["status"] == "failed"
    assert f"{told}--- stdout\n{json.dumps(result, indent=2)}\n" == snapshot


DONE_BEFORE = {"status": "completed", "completed_at": "2024-05-06T07:08:09+00:00"}
FOUND = {"expected_key": "found", "done_check": "found > 2"}
STEPS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "tried again": (step("flaky", retries=2), ["flaky", "flaky"]),
    "skipped": (step("find", inputs={"topic": "x"}, **FOUND), []),
    "completed in the plan alone": (step("find", inputs={"topic": "x"}, **DONE_BEFORE), ["find"]),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_says_what_becomes_of_it(name: str, folder: Path, snapshot: SnapshotAssertion) -> None:
    only, called = STEPS[name]
    (folder / "one.json").write_text(plan(only))
    assert ran("one.json", *WITH, "--var", "found=3") == snapshot
    assert calls(folder) == called


def test_a_plan_with_errors_is_told_as_validate_tells_it_and_not_run(folder: Path) -> None:
    (folder / "bad.json").write_text(plan(step("find"), step("nobody"), thought("a", "b")))
    told = run("validate", "bad.json", *WITH)
    assert told.startswith("exit code 1\n--- stdout\n")
    assert run("run", "bad.json", *WITH) == told.replace("--- stdout", "--- stderr")
    assert calls(folder) == []


def test_what_cannot_be_done_is_refused_at_once(folder: Path, snapshot: SnapshotAssertion) -> None:
    options = commands_in(snapshot)
    shown = runs(options, "run fine.json ")
    assert (shown.count("exit code 2\n"), calls(folder)) == (len(options), [])
    assert not (folder / ".planning").exists()
    assert shown == snapshot


def test_a_value_is_json_where_it_can_be(folder: Path) -> None:
    (folder / "think.json").write_text(plan(thought("a")))
    given = {"list": '["a", 1]', "text": '"2022"', "date": "2022-01-01", "nan": "NaN", "deep": "[" * 100_000}
    options = [each for name, value in given.items() for each in ("--var", f"{name}={value}")]
    shown = printed("run", "think.json", "--json", *options)
    assert shown["memory"] == given | {"list": ["a", 1], "text": "2022"}


@pytest.mark.parametrize("name", ["leave", "interrupt"])
def test_a_tool_that_exits_stops_the_run(name: str, folder: Path, snapshot: SnapshotAssertion) -> None:
    (folder / "end.json").write_text(plan(step(name)))
    assert ran("end.json", *WITH) == snapshot


def test_a_plan_that_was_cut_runs_none_of_its_steps_unless_the_model_ended_it(folder: Path) -> None:
    cut = FINE.rstrip()[:-1]
    assert run("run", "-", *WITH, stdin=cut).startswith("exit code 1\n--- stderr\nerror[truncated]")
    assert calls(folder) == []
    assert "completed: 2 of 2 done" in ran("-", *WITH, "--finished", "--prompt", "larks", stdin=cut)


# Where it is kept, and how it is resumed

LARKS = ("--prompt", "larks", "--var", "year=2022")


@pytest.fixture
def failed(folder: Path, run_folder: None) -> None:
    """A run that has failed."""
    run("run", "failing.json", *WITH, *LARKS)
    assert calls(folder) == ["fail", "find"]


def sessions(store: str = DEFAULT_STORE) -> list[str]:
    """The sessions in a store, sorted."""
    return sorted(str(head.session_id) for head in SqliteStore(store).sessions())


def completed(*arguments: str) -> str:
    """The last line of a run that completes."""
    code, *_, last = ran(*arguments).splitlines()
    assert code == "exit code 0"
    return last


def test_a_run_is_kept_in_a_store_that_is_the_users_alone(folder: Path) -> None:
    completed("fine.json", *WITH, *LARKS)
    store = folder / DEFAULT_STORE
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (store.parent, store)]
    assert (modes, sessions()) == ([0o700, 0o600], ["fine"])
    assert (store.parent / ".gitignore").read_text() == "*\n"
    shown = run("show", DEFAULT_STORE, "fine")
    assert "\n== Answer ==\nThink of left\n" in shown
    assert shown == run("show", DEFAULT_STORE)
    assert run("sessions").splitlines()[3].split()[:5] == ["fine", "finished", "2", "of", "2"]
    assert run("history", DEFAULT_STORE, "fine").endswith("  Run completed: Look into it.\n")


@pytest.mark.usefixtures("failed")
def test_a_failed_run_is_resumed_where_it_failed(folder: Path, snapshot: SnapshotAssertion) -> None:
    (folder / "mended").touch()
    assert ran("failing.json", *WITH, "--resume") == snapshot
    assert calls(folder) == ["fail", "fail", "find"]
    head, again = ran("failing.json", *WITH, "--resume").split("--- stdout\n")
    said = "planning: the run in session 'failing' is already complete\n"
    assert head == f"exit code 0\n--- stderr\n{said}"
    assert again.endswith("\ncompleted: 4 of 4 done, in 0.0 s\n")
    assert calls(folder) == ["fail", "fail", "find"]


@pytest.mark.slow
def test_no_completed_step_of_a_killed_run_runs_twice(folder: Path, snapshot: SnapshotAssertion) -> None:
    (folder / "two.json").write_text(plan(step("find", inputs={"topic": "x"}), step("waiter", "find")))
    running = Running(folder, "two.json", *WITH)
    running.until_called("find", "waiter")
    running.signal(signal.SIGKILL)
    assert running.ended() == -signal.SIGKILL
    (folder / "go").touch()
    assert run("run", "two.json", *WITH) == snapshot
    assert completed("two.json", *WITH, "--resume") == "completed: 2 of 2 done, in 0.0 s"
    assert calls(folder) == ["find", "waiter", "waiter"]


def test_a_session_has_the_name_of_the_file(folder: Path) -> None:
    for name in ("think.json", "a b.json", "...json", "\u043f\u043b\u0430\u043d.json"):
        (folder / name).write_text(plan(thought("a")))
        completed(name)
    assert sessions() == ["a-b", "think", "workflow"]


@pytest.mark.usefixtures("failed")
def test_what_cannot_be_resumed_is_refused(folder: Path, snapshot: SnapshotAssertion) -> None:
    (folder / "changed.json").write_text(plan(FIRST[0] | {"description": "Else"}, *FIRST[1:]))
    (folder / "goal.json").write_text(plan(*FIRST, goal="Else"))
    commands = commands_in(snapshot)
    shown = runs(commands, "run ")
    assert (shown.count("exit code 2\n"), calls(folder)) == (len(commands), ["fail", "find"])
    assert shown == snapshot


FIRST = json.loads(FAILING)["steps"]


@pytest.mark.usefixtures("failed")
def test_a_plan_whose_other_steps_were_mended_is_resumed(folder: Path) -> None:
    mended = [FIRST[0], thought("new"), thought("fail", "find", "new"), thought("right", "fail")]
    (folder / "failing.json").write_text(plan(*mended, thought("left", "find")))
    assert completed("failing.json", *WITH, "--resume") == "completed: 5 of 5 done, in 0.0 s"
    assert calls(folder) == ["fail", "find"]


def test_where_no_store_can_be_written_it_says_what_to_do(folder: Path, snapshot: SnapshotAssertion) -> None:
    (folder / ".planning").write_text("mine")  # a folder that cannot be written would not stop root
    assert run("run", "fine.json", *WITH, "--prompt", "larks") == snapshot
    assert calls(folder) == []
    assert completed("fine.json", *WITH, "--prompt", "larks", "--store", "mine.db").startswith("completed")
    assert sessions("mine.db") == ["fine"]


def test_the_line_to_resume_with_is_quoted_for_a_shell(folder: Path, snapshot: SnapshotAssertion) -> None:
    (folder / "it's mine.json").write_text(FAILING)
    options = ("--max-parallel", "2", "--store", "a b.db")
    shown = run("run", "it's mine.json", *WITH, "--prompt", "larks", *options)
    assert shown.partition("--- stdout")[0] == snapshot


def test_what_may_not_be_called_twice_is_not_retried(folder: Path, snapshot: SnapshotAssertion) -> None:
    (folder / "go").touch()
    (folder / "pay.json").write_text(plan(step("waiter"), step("fail", "waiter")))
    once = ("pay.json", "--tools", "step_tools:once")
    assert "planning: failed; to retry the failed steps, run: " in run("run", *once)
    run("rewind", DEFAULT_STORE, "pay", "1")

    assert ran(*once, "--resume") == snapshot
    assert calls(folder) == ["fail", "waiter"]
