"""``planning run``: keeping a run in a file, and going on with it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_runs import run
from run_folders import FAILING, FINE, TOOLS, calls, plan, step, thought, timeless

from planning.workflow.run.records import WorkflowRun
from session import Session, Snapshot

WITH = ("--tools", "step_tools:tools")
RESUME = ("--resume", "failing.snapshot.json")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Run in a folder with plans and tools, and forget the tools afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "fine.json").write_text(FINE)
    (tmp_path / "failing.json").write_text(FAILING)
    (tmp_path / "step_tools.py").write_text(TOOLS)
    yield tmp_path
    sys.modules.pop("step_tools", None)


@pytest.fixture
def failed(folder: Path) -> None:
    """A run that has failed, and was kept."""
    run("run", "failing.json", *WITH, "--prompt", "larks", "--var", "year=2022")
    assert calls(folder) == ["fail", "find"]


def told(*arguments: str) -> str:
    """The one line that a run says which is refused."""
    code, _, line = run("run", *arguments).splitlines()
    assert code == "exit code 2"
    return line.removeprefix("planning: ")


@pytest.mark.usefixtures("failed")
def test_a_failed_run_goes_on_where_it_failed(folder: Path) -> None:
    (folder / "mended").touch()
    assert timeless(run("run", "failing.json", *WITH, *RESUME)) == (
        "exit code 0\n--- stdout\n"
        "Look into it (4 steps, 2 done before)\n"
        "fail   running   Call fail\n"
        "fail   done      0.0 s  better now\n"
        "right  done      Think of right\n"
        "\n== Answer ==\nleft:\nThink of left\nright:\nThink of right\n\n"
        "completed: 4 of 4 done, in 0.0 s\n"
    )
    assert calls(folder) == ["fail", "fail", "find"]


@pytest.mark.usefixtures("failed")
def test_the_prompt_and_the_values_are_those_of_the_snapshot(folder: Path) -> None:
    (folder / "mended").touch()
    shown = run("run", "failing.json", *WITH, *RESUME, "--json", "--prompt", "larks", "--var", "year=2022")
    result = json.loads(shown.split("--- stdout\n")[1])
    assert result["outputs"]["find"] == {"topic": "larks", "pages": 3}
    assert result["memory"] == {"year": 2022, "found": 3}


@pytest.mark.usefixtures("failed")
@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (
            ["--prompt", "owls"],
            "'failing.snapshot.json' holds a run with another prompt: 'larks'; omit the prompt to resume"
            " with that, or omit --resume to start over",
        ),
        (
            ["--var", "year=2023"],
            "'failing.snapshot.json' holds a run with 2022 for 'year'; omit --var year to resume with"
            " that, or omit --resume to start over",
        ),
        (
            ["--var", "month=1"],
            "'failing.snapshot.json' holds a run without a value for 'month'; omit --var month to"
            " resume with that, or omit --resume to start over",
        ),
    ],
)
def test_another_prompt_or_value_is_refused(arguments: list[str], line: str, folder: Path) -> None:
    assert told("failing.json", *WITH, *RESUME, *arguments) == line
    assert calls(folder) == ["fail", "find"]


def test_a_run_that_began_without_a_prompt_cannot_be_given_one(folder: Path) -> None:
    (folder / "failing.json").write_text(plan(step("fail"), goal="Look"))
    run("run", "failing.json", *WITH)
    assert told("failing.json", *WITH, *RESUME, "--prompt", "owls") == (
        "'failing.snapshot.json' holds a run without a prompt; omit the prompt to resume with that, or omit"
        " --resume to start over"
    )
    refers = step("find", inputs={"topic": "${user_prompt}"})
    (folder / "failing.json").write_text(plan(step("fail"), refers, goal="Look"))
    assert told("failing.json", *WITH, *RESUME) == (
        "step 'find' refers to ${user_prompt}, and the run began without one; remove the reference, or start"
        " over"
    )
    assert calls(folder) == ["fail"]


FIRST = json.loads(FAILING)["steps"]


@pytest.mark.usefixtures("failed")
@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (
            plan(FIRST[0] | {"description": "Else"}, *FIRST[1:]),
            "cannot be resumed: step 'find' is completed and its description changed; restore that step",
        ),
        (
            plan(FIRST[1] | {"depends_on": []}, *FIRST[3:]),
            "cannot be resumed: step 'find' is completed and was removed; restore that step",
        ),
        (
            plan(*FIRST, goal="Else"),
            "holds a run with another goal: 'Look into it'; restore the goal",
        ),
    ],
    ids=["changed", "taken out", "goal"],
)
def test_a_plan_whose_completed_steps_changed_is_refused(document: str, reason: str, folder: Path) -> None:
    (folder / "other.json").write_text(document)
    assert told("other.json", *WITH, *RESUME) == (
        f"'failing.snapshot.json' {reason}, or omit --resume to start over"
    )
    assert calls(folder) == ["fail", "find"]


@pytest.mark.usefixtures("failed")
def test_a_plan_whose_other_steps_were_mended_goes_on(folder: Path) -> None:
    mended = [FIRST[0], thought("new"), thought("fail", "find", "new"), thought("right", "fail")]
    (folder / "failing.json").write_text(plan(*mended, thought("left", "find")))
    assert timeless(run("run", "failing.json", *WITH, *RESUME)) == (
        "exit code 0\n--- stdout\n"
        "Look into it (5 steps, 2 done before)\n"
        "new    done      Think of new\n"
        "fail   done      Think of fail\n"
        "right  done      Think of right\n"
        "\n== Answer ==\nright:\nThink of right\nleft:\nThink of left\n\n"
        "completed: 5 of 5 done, in 0.0 s\n"
    )
    assert calls(folder) == ["fail", "find"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a snapshot must be JSON text: Expecting value: line 1 column 1 (char 0)"),
        ("[]", "a snapshot must be a JSON object"),
        ('{"version": 1}', "snapshot version 1 is not known; this release reads 2"),
        ('{"version": 2}', "slices: expected dict, got None"),
    ],
)
def test_what_is_no_snapshot_is_refused(text: str, reason: str, folder: Path) -> None:
    (folder / "bad.json").write_text(text)
    assert told("fine.json", *WITH, "--resume", "bad.json") == (
        f"'bad.json' is not a snapshot of a run: {reason}"
    )


def test_a_snapshot_without_a_run_is_refused(folder: Path) -> None:
    (folder / "empty.json").write_text(Session().snapshot().to_json())
    assert told("fine.json", *WITH, "--resume", "empty.json") == "'empty.json' holds no workflow run"


def test_a_completed_run_is_kept_where_that_is_asked_for_and_shown_again(folder: Path) -> None:
    assert run("run", "fine.json", *WITH, "--prompt", "larks", "--save", "kept.json").startswith(
        "exit code 0\n--- stdout\n"
    )
    saved = Snapshot.from_json((folder / "kept.json").read_text(), types=[WorkflowRun])
    assert [each.status for each in saved.select_all(WorkflowRun)] == ["completed"]
    first = run("run", "fine.json", *WITH, "--prompt", "larks", "--json", "--save", "again.json")
    shown = run("run", "fine.json", "--json", "--resume", "again.json")
    nothing = "planning: the run in 'again.json' is already complete\n"
    assert shown == first.replace("--- stdout\n", f"--- stderr\n{nothing}--- stdout\n")
    assert calls(folder) == ["find", "find"]


def kept(folder: Path) -> list[str]:
    """The snapshots in a folder, and whether their last run is completed."""
    found = sorted(folder.glob("*.snapshot*"))
    runs = [
        Snapshot.from_json(path.read_text(), types=[WorkflowRun]).select_latest(WorkflowRun) for path in found
    ]
    return [f"{path.name} {run.status if run else None}" for path, run in zip(found, runs, strict=True)]


@pytest.mark.usefixtures("failed")
def test_a_run_is_kept_in_one_file_however_often_it_fails(folder: Path) -> None:
    before = (folder / "failing.snapshot.json").read_text()
    for more in ((), RESUME, RESUME):
        shown = run("run", "failing.json", *WITH, "--prompt", "larks", *more)
        assert shown.splitlines()[2] == (
            "planning: failed; to retry the failed steps, run: planning run failing.json"
            " --tools step_tools:tools --resume failing.snapshot.json"
        )
        assert (folder / "failing.snapshot.json").read_text() != before
    assert kept(folder) == ["failing.snapshot.json failed"]


@pytest.mark.usefixtures("failed")
def test_a_run_that_was_resumed_is_kept_where_it_was_also_when_it_is_completed(folder: Path) -> None:
    (folder / "failing.snapshot.json").rename(folder / "my.snapshot.json")
    (folder / "mended").touch()
    run("run", "failing.json", *WITH, "--resume", "my.snapshot.json")
    assert kept(folder) == ["my.snapshot.json completed"]
    shown = run("run", "failing.json", *WITH, "--resume", "my.snapshot.json")
    assert shown.startswith(
        "exit code 0\n--- stderr\nplanning: the run in 'my.snapshot.json' is already complete"
    )
    assert calls(folder) == ["fail", "fail", "find"]


@pytest.mark.parametrize("is_folder", [False, True], ids=["a file", "a folder"])
def test_a_run_that_could_not_be_saved_under_its_name_does_not_begin(is_folder: bool, folder: Path) -> None:
    target = folder / "failing.snapshot.json"
    target.mkdir() if is_folder else target.write_text("mine")
    assert told("failing.json", *WITH, "--prompt", "larks") == (
        "'failing.snapshot.json' holds something else, and a run that is stopped or fails is saved under this"
        " name; name another file with --save, or rename that one"
    )
    assert (calls(folder), target.is_dir() or target.read_text() == "mine") == ([], True)
    run("run", "failing.json", *WITH, "--prompt", "larks", "--save", "other.json")
    assert calls(folder) == ["fail", "find"]
    assert sorted(path.name for path in folder.glob("*.snapshot*")) == ["failing.snapshot.json"]


def test_the_line_to_go_on_with_is_quoted_for_a_shell(folder: Path) -> None:
    (folder / "it's mine.json").write_text(FAILING)
    options = ("--max-parallel", "2", "--timeout", "1.5", "--executor", "threads", "--save", "a b.json")
    shown = run("run", "it's mine.json", *WITH, "--prompt", "larks", *options)
    assert (
        "planning: failed; to retry the failed steps, run: planning run 'it'\"'\"'s mine.json'"
        " --tools step_tools:tools --executor threads --max-parallel 2 --timeout 1.5 --save 'a b.json'"
        " --resume 'a b.json'\n"
    ) in shown
    assert json.loads((folder / "a b.json").read_text())["version"] == 2


def test_a_snapshot_that_cannot_be_written_fails_a_run_that_was_fine(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    (folder / "kept.json").write_text("before")
    shown = run("run", "fine.json", *WITH, "--prompt", "larks", "--save", "kept.json")
    assert shown.startswith(
        "exit code 1\n--- stderr\nplanning: cannot write the snapshot: No space left on device\n---"
    )
    assert (folder / "kept.json").read_text() == "before"
    shown = run("run", "failing.json", *WITH, "--prompt", "larks")
    assert shown.startswith(
        "exit code 1\n--- stderr\nplanning: cannot write the snapshot: No space left on device; the run"
        " cannot be resumed\n"
    )
    assert {path.name for path in folder.iterdir() if path.is_file()} == {
        "calls.txt", "failing.json", "fine.json", "kept.json", "step_tools.py"
    }  # fmt: skip


def test_a_step_that_is_done_needs_no_tool_any_more(folder: Path) -> None:
    (folder / "two.json").write_text(plan(step("find", inputs={"topic": "x"}), step("fail", "find")))
    run("run", "two.json", *WITH, "--save", "two.snapshot.json")
    line = told("two.json", "--tools", "find,fail", "--resume", "two.snapshot.json")
    assert line.startswith("step 'fail' calls the tool 'fail', which was given by its name alone;")
