"""``planning run`` as a process: signals, what tools print, outputs that cannot be written."""

from __future__ import annotations

import json
import time
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals

import pytest
from cli_runs import in_process, started
from run_folders import Running, calls, plan, step, thought, timeless

pytestmark = pytest.mark.slow

WITH = ("--tools", "step_tools:tools")
STOPPING = "press Ctrl-C again to stop at once"


@pytest.fixture(autouse=True)
def flows(folder: Path, run_folder: None) -> None:
    """Workflows that wait in their second step."""
    find = step("find", inputs={"topic": "larks"})
    for name in ("sleeper", "waiter", "stubborn", "blocking"):
        (folder / f"{name}.json").write_text(plan(find, step(name, "find"), thought("last", name)))


@pytest.mark.parametrize(("number", "code"), [(SIGINT, 130), (SIGTERM, 143)], ids=["ctrl-c", "terminated"])
def test_an_async_tool_is_cancelled_and_the_run_goes_on_later(
    number: Signals, code: int, folder: Path
) -> None:
    running = Running(folder, "sleeper.json", *WITH)
    running.until_called("sleeper")
    running.signal(number)
    assert running.ended() == code
    assert running.shown() == (
        "--- stderr\n"
        "planning: stopped; to resume, run: planning run sleeper.json --tools step_tools:tools"
        " --resume\n"
        "--- stdout\n"
        "Look into it: 0 of 3 done\n"
        "find     running   Call find\n"
        'find     done      0.0 s  {"topic":"larks","pages":3}\n'
        "sleeper  running   Call sleeper\n"
        "sleeper  stopped   0.0 s  stopped before it was done\n"
        "stopped: 1 of 3 done, 1 stopped, in 0.0 s\n"
    )
    (folder / "go").touch()
    done = in_process("run", "sleeper.json", *WITH, "--resume")
    assert (done.returncode, done.stderr) == (0, "")
    assert timeless(done.stdout) == (
        "Look into it: 1 of 3 done\n"
        "sleeper  running   Call sleeper\n"
        "sleeper  done      0.0 s  slept\n"
        "last     done      Think of last\n"
        "\n== Answer ==\nThink of last\n\n"
        "completed: 3 of 3 done, in 0.0 s\n"
    )
    assert calls(folder) == ["find", "sleeper", "sleeper"]


@pytest.mark.parametrize("executor", [None, "threads", "processes"])
def test_a_tool_that_cannot_be_cancelled_is_waited_for(executor: str | None, folder: Path) -> None:
    options = () if executor is None else ("--executor", executor)
    running = Running(folder, "waiter.json", "--tools", "step_tools:once", *options)
    running.until_called("waiter")
    running.signal(SIGINT)
    running.until_told(STOPPING)
    (folder / "go").touch()
    assert running.ended() == 130
    assert "waiter  done      0.0 s  waited\nstopped: 2 of 3 done, in 0.0 s\n" in running.shown()
    last = in_process("run", "waiter.json", "--tools", "step_tools:once", "--resume")
    assert (last.returncode, last.stderr) == (0, "")
    assert timeless(last.stdout) == (
        "Look into it: 2 of 3 done\n"
        "last    done      Think of last\n"
        "\n== Answer ==\nThink of last\n\n"
        "completed: 3 of 3 done, in 0.0 s\n"
    )
    assert calls(folder) == ["find", "waiter"]


@pytest.mark.parametrize(
    ("name", "executor"),
    [("waiter", "threads"), ("waiter", "processes"), ("stubborn", None), ("blocking", None)],
)
def test_a_second_signal_waits_for_nothing(name: str, executor: str | None, folder: Path) -> None:
    options = () if executor is None else ("--executor", executor)
    running = Running(folder, f"{name}.json", *WITH, *options)
    running.until_called(name)
    running.signal(SIGINT)
    if name == "blocking":  # it keeps the loop busy, which would say that the run stops
        time.sleep(0.3)
    else:
        running.until_told(STOPPING)
    running.signal(SIGINT)
    assert running.ended() == 130
    told = running.shown()
    assert f"{name}  stopped " in told
    assert "Traceback" not in told
    assert told.split("--- stdout\n")[0].endswith(" --resume\n")
    (folder / "go").touch()
    last = in_process("run", f"{name}.json", *WITH, "--json", "--resume")
    assert (last.returncode, json.loads(last.stdout)["status"]) == (0, "completed")
    assert calls(folder) == sorted(["find", name, name])


@pytest.mark.parametrize("executor", [(), ("--executor", "processes")], ids=["here", "processes"])
def test_what_a_tool_prints_is_no_part_of_the_output(executor: tuple[str, ...], folder: Path) -> None:
    (folder / "loud.json").write_text(plan(step("loud")))
    done = in_process("run", "loud.json", *WITH, *executor, "--json")
    assert (done.returncode, json.loads(done.stdout)["outputs"]) == (0, {"loud": "said"})
    assert "from a process\n" in done.stderr
    assert "without an end" in done.stderr
    assert "from print\n" in done.stderr


def test_a_tool_that_was_given_up_prints_nothing_behind_the_result(folder: Path) -> None:
    (folder / "late.json").write_text(plan(step("late"), step("fail")))
    done = in_process("run", "late.json", *WITH, "--timeout", "0.05", "--json")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (1, "failed")


def test_a_reader_that_goes_away_stops_the_run_and_nothing_is_lost(folder: Path) -> None:
    running = started("run", "waiter.json", *WITH)
    assert running.stdout is not None
    assert running.stderr is not None
    with running, running.stderr as errors:
        while not running.stdout.readline().startswith("waiter  running"):
            pass
        running.stdout.close()
        (folder / "go").touch()
        told = errors.read()
    assert running.returncode == 1
    assert told == (
        "planning: cannot write the output: Broken pipe\n"
        "planning: stopped; to resume, run: planning run waiter.json --tools step_tools:tools"
        " --resume\n"
    )
    last = in_process("run", "waiter.json", *WITH, "--json", "--resume")
    assert (last.returncode, json.loads(last.stdout)["status"]) == (0, "completed")
    assert calls(folder) == ["find", "waiter"]


def test_nothing_is_run_when_there_is_no_room_for_the_first_line(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = in_process("run", "fine.json", *WITH, "--prompt", "larks", stdout=full)
    assert (done.returncode, done.stderr) == (
        1,
        "planning: cannot write the output: No space left on device\n",
    )
    assert calls(folder) == []


def test_a_result_that_cannot_be_written_is_kept(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = in_process("run", "fine.json", *WITH, "--prompt", "larks", "--json", stdout=full)
    assert (done.returncode, done.stderr) == (
        1,
        "planning: cannot write the output: No space left on device\n"
        "planning: completed; to see the result, run: planning run fine.json --tools step_tools:tools"
        " --prompt larks --json --resume\n",
    )
    again = in_process("run", "fine.json", "--json", "--resume")
    assert (again.returncode, json.loads(again.stdout)["memory"]) == (0, {"found": 3})
    assert calls(folder) == ["find"]
