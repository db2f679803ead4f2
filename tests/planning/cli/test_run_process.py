"""``planning run`` as a process: signals, what tools print, outputs that cannot be written, and its page."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals
from typing import Any

import pytest
from cli_runs import in_process, started
from run_folders import Running, calls, plan, step, thought, timeless
from syrupy.assertion import SnapshotAssertion

pytestmark = pytest.mark.slow

WITH = ("--tools", "step_tools:tools")
THREADS, PROCESSES = ["--executor=threads"], ["--executor=processes"]
STOPPING = "press Ctrl-C again to stop at once"


@pytest.fixture(autouse=True)
def flows(folder: Path, run_folder: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workflows that wait or fail in their second step, on a machine whose browser opens nothing."""
    monkeypatch.setenv("BROWSER", "true %s")
    find = step("find", inputs={"topic": "larks"})
    (folder / "broken.json").write_text(plan(find, step("fail", "find")))
    for name in ("sleeper", "waiter", "stubborn", "blocking"):
        (folder / f"{name}.json").write_text(plan(find, step(name, "find"), thought("last", name)))


@pytest.mark.parametrize(("number", "code"), [(SIGINT, 130), (SIGTERM, 143)], ids=["ctrl-c", "terminated"])
def test_an_async_tool_is_cancelled_and_the_run_resumed(
    number: Signals, code: int, folder: Path, snapshot: SnapshotAssertion
) -> None:
    running = Running(folder, "sleeper.json", *WITH)
    running.until_called("sleeper")
    running.signal(number)
    assert running.ended() == code
    (folder / "go").touch()
    done = in_process("run", "sleeper.json", *WITH, "--resume")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{running.shown()}-- resumed\n{timeless(done.stdout)}" == snapshot
    assert calls(folder) == ["find", "sleeper", "sleeper"]


@pytest.mark.parametrize("options", [[], THREADS, PROCESSES])
def test_a_tool_that_cannot_be_cancelled_is_waited_for(options: list[str], folder: Path) -> None:
    running = Running(folder, "waiter.json", "--tools", "step_tools:once", *options)
    running.until_called("waiter")
    running.signal(SIGINT)
    running.until_told(STOPPING)
    (folder / "go").touch()
    assert running.ended() == 130
    assert "waiter  done      0.0 s  waited\nstopped: 2 of 3 done, in 0.0 s\n" in running.shown()
    last = in_process("run", "waiter.json", "--tools", "step_tools:once", "--json", "--resume")
    assert (last.returncode, json.loads(last.stdout)["status"]) == (0, "completed")
    assert calls(folder) == ["find", "waiter"]


@pytest.mark.parametrize(
    ("name", "options"), [("waiter", THREADS), ("waiter", PROCESSES), ("stubborn", []), ("blocking", [])]
)
def test_a_second_signal_waits_for_nothing(name: str, options: list[str], folder: Path) -> None:
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


@pytest.mark.parametrize("executor", [[], PROCESSES])
def test_what_a_tool_prints_is_no_part_of_the_output(executor: list[str], folder: Path) -> None:
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


def test_a_reader_that_goes_away_stops_the_run(folder: Path, snapshot: SnapshotAssertion) -> None:
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
    assert told == snapshot
    last = in_process("run", "waiter.json", *WITH, "--json", "--resume")
    assert (last.returncode, json.loads(last.stdout)["status"]) == (0, "completed")
    assert calls(folder) == ["find", "waiter"]


FULL = "planning: cannot write the output: No space left on device\n"


def test_nothing_is_run_when_there_is_no_room_for_the_first_line(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = in_process("run", "fine.json", *WITH, "--prompt", "larks", stdout=full)
    assert (done.returncode, done.stderr) == (1, FULL)
    assert calls(folder) == []


def test_a_result_that_cannot_be_written_is_kept(folder: Path, snapshot: SnapshotAssertion) -> None:
    with Path("/dev/full").open("w") as full:
        done = in_process("run", "fine.json", *WITH, "--prompt", "larks", "--json", stdout=full)
    assert done.returncode == 1
    assert done.stderr == snapshot
    again = in_process("run", "fine.json", "--json", "--resume")
    assert (again.returncode, json.loads(again.stdout)["memory"]) == (0, {"found": 3})
    assert calls(folder) == ["find"]


# Its page, which stays until it is closed

VIEWED = (*WITH, "--view")
LINK = re.compile(r"http://127\.0\.0\.1:\d+/[\w-]{24}/")
SHOWN = "planning: the run is shown at LINK\n"
CLOSE = "planning: press Ctrl-C to close the page\n"


def told(running: Running) -> tuple[str, str]:
    """What it said on standard error, with LINK for the link; and the link."""
    text = (running.folder / "err.txt").read_text()
    (link,) = LINK.findall(text)
    return text.replace(link, "LINK"), link


def states(link: str, session: str) -> dict[str, Any]:
    """The states of the steps as the page has them now."""
    with urllib.request.urlopen(f"{link}run/{session}.json") as answer:  # noqa: S310 - our own
        data = json.load(answer)
    found = dict(data["steps"])
    for change in data["changes"]:
        found |= change.get("steps", {})
    return {name: step["state"] for name, step in found.items()}


@pytest.mark.parametrize(("number", "code"), [(SIGINT, 0), (SIGTERM, 143)])
def test_the_page_of_a_run_stays_until_it_is_closed(number: Signals, code: int, folder: Path) -> None:
    running = Running(folder, "fine.json", *VIEWED, "--prompt", "larks")
    running.until_told(CLOSE)
    said, link = told(running)
    assert said == SHOWN + CLOSE
    assert states(link, "fine") == {"find": "completed", "left": "completed"}
    assert "== Answer ==\nThink of left\n" in (folder / "out.txt").read_text()
    running.signal(number)
    assert running.ended() == code
    if number is SIGINT:  # a run that is complete is shown likewise
        running = Running(folder, "fine.json", *VIEWED, "--prompt", "larks", "--resume")
        running.until_told(CLOSE)
        said, link = told(running)
        assert said == f"planning: the run in session 'fine' is already complete\n{SHOWN}{CLOSE}"
        assert states(link, "fine") == {"find": "completed", "left": "completed"}
        running.signal(SIGINT)
        assert running.ended() == 0


def test_the_page_of_a_run_that_failed_stays(folder: Path, snapshot: SnapshotAssertion) -> None:
    running = Running(folder, "broken.json", *VIEWED)
    running.until_told(CLOSE)
    said, link = told(running)
    assert said == snapshot
    assert states(link, "broken") == {"find": "completed", "fail": "failed"}
    running.signal(SIGINT)
    assert running.ended() == 1


def test_a_run_that_is_stopped_closes_its_page(folder: Path) -> None:
    running = Running(folder, "waiter.json", *VIEWED)
    running.until_called("waiter")
    _, link = told(running)
    assert states(link, "waiter") == {"find": "completed", "waiter": "in_progress"}
    running.signal(SIGINT)
    (folder / "go").touch()
    assert running.ended() == 130
    assert CLOSE not in told(running)[0]
