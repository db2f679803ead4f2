"""``planning run --store``: a run that is kept in a session of a store, and resumed there."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_runs import run
from run_folders import FAILING, FINE, TOOLS, calls, timeless
from syrupy.assertion import SnapshotAssertion

from session.stores import SqliteStore

WITH = ("--tools", "step_tools:tools", "--store", "plans.db")
NIGHTLY = (*WITH, "--session", "nightly")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Run in a folder with workflows and tools, and forget the tools afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "fine.json").write_text(FINE)
    (tmp_path / "failing.json").write_text(FAILING)
    (tmp_path / "step_tools.py").write_text(TOOLS)
    yield tmp_path
    sys.modules.pop("step_tools", None)


GO_ON = (
    "exit code 0\n--- stdout\n"
    "Look into it (4 steps, 2 done before)\n"
    "fail   running   Call fail\n"
    "fail   done      0.0 s  better now\n"
    "right  done      Think of right\n"
    "\n== Answer ==\nleft:\nThink of left\nright:\nThink of right\n\n"
    "completed: 4 of 4 done, in 0.0 s\n"
)


@pytest.mark.parametrize("again", [NIGHTLY, (*WITH, "--resume", "nightly")], ids=["the same", "resume"])
def test_a_failed_run_is_resumed_in_its_session(
    again: tuple[str, ...], folder: Path, snapshot: SnapshotAssertion
) -> None:
    assert timeless(run("run", "failing.json", *NIGHTLY, "--prompt", "larks")) == snapshot
    (folder / "mended").touch()
    assert timeless(run("run", "failing.json", *again)) == GO_ON
    assert calls(folder) == ["fail", "fail", "find"]
    assert sorted(path.name for path in folder.glob("*.snapshot*")) == []


def test_a_session_whose_run_is_complete_begins_another_or_shows_it(folder: Path) -> None:
    first = run("run", "fine.json", *NIGHTLY, "--prompt", "larks", "--json")
    shown = run("run", "fine.json", *WITH, "--resume", "nightly", "--json")
    complete = "planning: the run in the session 'nightly' is already complete\n"
    assert shown == first.replace("--- stdout\n", f"--- stderr\n{complete}--- stdout\n")
    assert calls(folder) == ["find"]
    assert run("run", "fine.json", *NIGHTLY, "--prompt", "larks").startswith("exit code 0\n")
    assert calls(folder) == ["find", "find"]
    assert json.loads(run("show", "plans.db", "nightly", "--json").split("--- stdout\n")[1])["run"][
        "status"
    ] == ("completed")


def test_several_runs_share_a_store() -> None:
    for name in ("one", "two"):
        run("run", "fine.json", *WITH, "--prompt", "larks", "--session", name)
    assert {str(head.session_id) for head in SqliteStore("plans.db").sessions()} == {"one", "two"}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (
            [*NIGHTLY, "--prompt", "owls"],
            "the session 'nightly' holds a run with another prompt: 'larks'; omit the prompt to resume with"
            " that, or name another --session to start over",
        ),
        (
            [*WITH, "--resume", "nightly", "--var", "a=1"],
            "the session 'nightly' holds a run without a value for 'a'; omit --var a to resume with that, or"
            " name another --session to start over",
        ),
        ([*WITH, "--resume", "nigthly"], "the store holds no session 'nigthly'; did you mean nightly?"),
        (
            ["--tools", "step_tools:tools", "--store", "missing.db", "--resume", "nightly"],
            "cannot read 'missing.db': No such file or directory",
        ),
        (
            ["--tools", "step_tools:tools", "--store", "fine.json", "--session", "nightly"],
            "'fine.json' is a workflow, not a store of sessions; 'planning graph fine.json' draws it,"
            " 'planning run fine.json' runs it",
        ),
    ],
)
def test_what_cannot_be_resumed_is_refused(arguments: list[str], reason: str, folder: Path) -> None:
    run("run", "failing.json", *NIGHTLY, "--prompt", "larks")
    assert run("run", "failing.json", *arguments) == f"exit code 2\n--- stderr\nplanning: {reason}\n"
    assert calls(folder) == ["fail", "find"]


@pytest.mark.parametrize(
    "options",
    [
        ["--store", "plans.db"],
        ["--session", "nightly"],
        ["--store", "plans.db", "--session", "a", "--resume", "a"],
        ["--store", "plans.db", "--session", "a", "--save", "a.json"],
        ["--store", "plans.db", "--session", "a/b"],
    ],
    ids=["no session", "no store", "session and resume", "save", "a name"],
)
def test_options_that_do_not_go_together_are_refused(
    options: list[str], folder: Path, snapshot: SnapshotAssertion
) -> None:
    assert run("run", "fine.json", "--tools", "step_tools:tools", *options) == snapshot
    assert calls(folder) == []
