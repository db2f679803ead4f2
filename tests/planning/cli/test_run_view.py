"""``planning run --view``: a page of the run while it goes on, which stays until it is closed."""

from __future__ import annotations

import json
import re
import urllib.request
from pathlib import Path
from signal import SIGINT, SIGTERM, Signals
from typing import Any

import pytest
from run_folders import Running, plan, step, thought

pytestmark = pytest.mark.slow

WITH = ("--tools", "step_tools:tools", "--view")
LINK = re.compile(r"http://127\.0\.0\.1:\d+/[\w-]{24}/")
SHOWN = "planning: the run is shown at LINK\n"
CLOSE = "planning: press Ctrl-C to close the page\n"


@pytest.fixture(autouse=True)
def flows(folder: Path, run_folder: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workflows that fail and wait, on a machine whose browser opens nothing."""
    monkeypatch.setenv("BROWSER", "true %s")
    find = step("find", inputs={"topic": "larks"})
    (folder / "failing.json").write_text(plan(find, step("fail", "find")))
    (folder / "waiter.json").write_text(plan(find, step("waiter", "find"), thought("last", "waiter")))


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
def test_the_page_of_a_run_stays_after_its_end_until_it_is_closed(
    number: Signals, code: int, folder: Path
) -> None:
    running = Running(folder, "fine.json", *WITH, "--prompt", "larks")
    running.until_told(CLOSE)
    said, link = told(running)
    assert said == SHOWN + CLOSE
    assert states(link, "fine") == {"find": "completed", "left": "completed"}
    assert "== Answer ==\nThink of left\n" in (folder / "out.txt").read_text()
    running.signal(number)
    assert running.ended() == code
    if number is SIGINT:  # a run that is complete is shown likewise
        running = Running(folder, "fine.json", *WITH, "--prompt", "larks", "--resume")
        running.until_told(CLOSE)
        said, link = told(running)
        assert said == f"planning: the run in session 'fine' is already complete\n{SHOWN}{CLOSE}"
        assert states(link, "fine") == {"find": "completed", "left": "completed"}
        running.signal(SIGINT)
        assert running.ended() == 0


def test_the_page_of_a_run_that_failed_stays_and_the_exit_code_says_so(folder: Path) -> None:
    running = Running(folder, "failing.json", *WITH)
    running.until_told(CLOSE)
    said, link = told(running)
    assert said == (
        f"{SHOWN}planning: failed; to retry the failed steps, run: planning run failing.json --tools"
        f" step_tools:tools --view --resume\n{CLOSE}"
    )
    assert states(link, "failing") == {"find": "completed", "fail": "failed"}
    running.signal(SIGINT)
    assert running.ended() == 1


def test_a_run_that_is_stopped_closes_its_page(folder: Path) -> None:
    running = Running(folder, "waiter.json", *WITH)
    running.until_called("waiter")
    _, link = told(running)
    assert states(link, "waiter") == {"find": "completed", "waiter": "in_progress"}
    running.signal(SIGINT)
    (folder / "go").touch()
    assert running.ended() == 130
    assert CLOSE not in told(running)[0]
