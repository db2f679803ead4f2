"""How a session is named in every command, and which names a shell completes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cli_runs import refused, run
from page_data import call, kept
from store_files import timeless
from typer.testing import CliRunner

from planning.cli import history, view
from planning.cli.app import app
from session.stores import SqliteStore

UUIDS = [f"1{number}8f2a4c-7b1d-4f6e-9a3b-5c2d1e0f0000" for number in range(2)]
LAST = UUIDS[1]
COMMANDS: dict[str, list[str]] = {each: [] for each in ("show", "history", "audit", "verify")} | {
    "diff": ["0", "1"],
    "fork": ["--as", "copy"],
    "approve": ["--yes"],
    "rewind": ["1"],
    "export": ["-o", "run.html"],
}


@pytest.fixture(autouse=True)
def stores(folder: Path) -> None:
    """The store of ``planning run``, and another one."""
    (folder / ".planning").mkdir()
    for place in (".planning/runs.db", "plans.db"):
        for name in UUIDS:
            toolbox = kept(Path(place), name)[1]
            call(toolbox, "setup_plan", objective=f"Fix it in {place}", initial_steps=["Find it"])


def versions(place: str) -> dict[str, int]:
    return {str(head.session_id): head.version for head in SqliteStore(place).sessions()}


@pytest.mark.parametrize("place", ["plans.db", ".planning/runs.db"])
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_takes_a_beginning_and_the_last_session(command: str, place: str, folder: Path) -> None:
    stores = ["plans.db", ".planning/runs.db"]
    before, made = {each: versions(each) for each in stores}, dict[str, str]()
    alone = {"alone": [LAST], "beginning alone": ["118"], "last alone": ["--last"]}
    ways = {"whole": [place, LAST], "beginning": [place, "118"], "last": [place, "--last"]}
    for way, named in (ways if place == "plans.db" else ways | alone).items():
        made[way] = timeless(run(command, *named, *COMMANDS[command]))
        if command == "export":
            made[way] += (folder / "run.html").read_text()
        for changed in [each for each in stores if versions(each) != before[each]]:
            assert (changed, command in {"fork", "rewind"}) == (place, True)
            SqliteStore(changed).delete("copy") if command == "fork" else None
            before[changed] = versions(changed)
    if command == "rewind":  # each makes a version
        made = {way: text.split("Version ")[1][1:] for way, text in made.items()}
    assert set(made.values()) == {made["whole"]}
    assert "exit code 2" not in made["whole"]


@pytest.mark.parametrize("named", [["plans.db", "118"], ["plans.db", "--last"]])
def test_so_do_the_live_ones(named: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_as_they_come", lambda changes: iter(()))
    assert run("watch", *named, "--json") == "exit code 0\n--- stderr\nplanning: the session was deleted\n"
    served = list[object]()
    monkeypatch.setattr(view, "until_signalled", lambda _: None)
    monkeypatch.setattr("planning.view.server.serve", lambda shown, *_, **__: served.append(shown.only))
    assert run("view", *named) == "exit code 0\n"
    assert served == [LAST]


SEVERAL = refused(f"several sessions begin with '1': {LAST}, {UUIDS[0]}")


@pytest.mark.parametrize("command", [*COMMANDS, "watch", "view"])
def test_a_beginning_that_several_ids_have_is_refused_with_their_names(command: str) -> None:
    for named in (["plans.db", "1"], ["1"]):
        assert run(command, *named, *COMMANDS.get(command, [])) == SEVERAL


def test_the_last_session_is_copied_and_deleted() -> None:
    assert run("store", "copy", "plans.db", "copy.db", "--last").endswith(f"Copied {LAST}: 1 version.\n")
    assert run("sessions", "delete", "plans.db", "--last", "--yes").endswith(f"Deleted {LAST}.\n")
    assert list(versions("plans.db")) == UUIDS[:1]
    assert run("sessions", "plans.db", "--last").endswith("Error: No such option: --last\n")


def test_a_run_is_resumed_by_the_beginning_of_its_session_and_as_the_last(run_folder: None) -> None:
    given = ("fine.json", "--tools", "step_tools:tools", "--prompt", "larks")
    run("run", *given, "nightly-1")
    whole = run("run", *given, "nightly-1", "--resume")
    assert "planning: the run in session 'nightly-1' is already complete\n" in whole
    assert run("run", *given, "night", "--resume") == whole
    assert run("run", *given, "--last", "--resume") == whole
    run("run", *given, "night")  # without --resume, the id of a new session
    assert list(versions(".planning/runs.db"))[:2] == ["night", "nightly-1"]
    assert run("run", *given, "1", "--resume") == SEVERAL


def test_a_path_is_not_taken_for_a_session() -> None:
    for place in ("planz.db", "folder/11", "run.json"):
        missing = f"cannot read '{place}': No such file or directory"
        assert run("history", place) == refused(missing)


# What a shell completes


def completed(line: str) -> list[str]:
    """What bash is offered for the last word of a line."""
    words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    words["_PLANNING_COMPLETE"] = "complete_bash"
    result = CliRunner().invoke(app, [], env=words, prog_name="planning")
    assert (result.stderr, "Traceback" in result.stdout) == ("", False)
    return result.stdout.split()


LINES = [f"{command} plans.db " for command in (*COMMANDS, "watch", "view", "sessions delete")]
LINES += ["store copy plans.db other.db ", "mcp --store plans.db --session "]


@pytest.mark.parametrize("line", [f"planning {line}" for line in LINES])
def test_a_session_is_completed_with_the_ids_of_its_store(line: str) -> None:
    assert [completed(f"{line}{begin}") for begin in ("", "11", "x")] == [[LAST, UUIDS[0]], [LAST], []]


def test_a_run_is_kept_in_the_default_store_or_that_of_an_option(folder: Path) -> None:
    run("fork", "plans.db", "--last", "--as", "what-if")
    assert completed("planning run report.json w") == []
    assert completed("planning run report.json --store plans.db w") == ["what-if"]
    assert completed("planning run report.json 11") == [LAST]
    (folder / ".planning" / "runs.db").unlink()
    assert completed("planning run report.json ") == []


@pytest.mark.parametrize(
    "place", ["none.db", ".", "-", "notes.txt", "pipe", "mysql://h/x", "postgresql://[", "'"]
)
def test_what_is_not_a_store_completes_nothing(place: str, folder: Path) -> None:
    (folder / "notes.txt").write_text("Remember the milk.")
    os.mkfifo(folder / "pipe")
    files = sorted(folder.iterdir())
    assert completed(f"planning show {place} ") == []
    assert sorted(folder.iterdir()) == files
