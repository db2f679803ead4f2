"""The examples that are programs: what they print, and that they leave nothing behind."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_runs import TRIAGE, run
from examples.folder_store import FolderStore
from examples.shop import QUESTIONS, recorded_sql
from examples.shop import create_database as create_shop
from hypothesis import settings
from postgres_server import PostgresServer
from syrupy.assertion import SnapshotAssertion

from planning.agent import SqlDatabase, build_text_to_sql_graph
from planning.testing import StoreSuite
from planning.tools import Toolbox
from session.stores import PostgresStore, Store

ROOT = Path(__file__).parents[2]
BACKGROUND = ROOT / "examples" / "background"
FILINGS = ROOT / "examples" / "filings"


def run_program(folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Runs a program in a folder, which is also where temporary files go."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "TMPDIR": str(folder), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


# Company facts: the example's file, its tool and its plan


def test_the_program_answers_and_leaves_nothing_behind(snapshot: SnapshotAssertion, tmp_path: Path) -> None:
    beside = sorted(FILINGS.iterdir())
    done = run_program(tmp_path, FILINGS / "answer.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == snapshot
    assert (list(tmp_path.iterdir()), sorted(FILINGS.iterdir())) == ([], beside)


def test_the_command_in_the_readme_runs_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    block = (FILINGS / "README.md").read_text().partition("    planning ")[2]
    monkeypatch.chdir(ROOT)
    words = shlex.split(block.replace("\\\n", " "))
    shown = run(*words, "--json", "--store", str(tmp_path / "runs.db"))
    assert shown.startswith("exit code 0\n--- stdout\n")
    told = json.loads(shown.partition("--- stdout\n")[2])
    assert (told["status"], list(told["errors"])) == ("completed", ["amazon"])
    assert told["outputs"]["answer"]["question"] == "How much did Apple spend on research?"


# A worker that is killed, and an orchestrator that watches its plan


@pytest.mark.slow
def test_a_worker_that_is_killed_resumes_and_no_step_is_done_twice(tmp_path: Path) -> None:
    done = run_program(tmp_path, BACKGROUND / "orchestrator.py")
    assert (done.returncode, done.stderr, list(tmp_path.iterdir())) == (0, "", [])
    lines = done.stdout.splitlines()
    changes = [found for line in lines if (found := re.fullmatch(r" +(\d+)  (.*)", line))]
    versions = [int(found[1]) for found in changes]
    texts = " ".join(found[2] for found in changes)
    assert versions == list(range(1, len(versions) + 1))
    assert [texts.count(f"S00{number} done.") for number in (1, 2, 3, 4)] == [1, 1, 1, 1]
    assert [line for line in lines if line.startswith("The worker starts")] == ["The worker starts."] * 2
    assert texts.endswith("Plan completed.")
    assert lines[-1] == f"The plan is completed, after {versions[-1]} changes."


# A workflow on two machines, on a real server and a real cluster


@pytest.mark.slow
@pytest.mark.postgres
def test_a_run_of_a_killed_machine_is_finished_by_another(postgres: PostgresServer, tmp_path: Path) -> None:
    PostgresStore(postgres.url).create()
    done = run_program(tmp_path, ROOT / "examples" / "machines" / "two_machines.py", postgres.url)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "The first machine is killed: 2 of 4 steps are done." in lines
    *fetched, first, second, sent = lines[-1].removeprefix("Called: ").split(", ")
    assert sorted(fetched) == ["fetch north", "fetch south"]
    assert (first, second, sent) == ("total", "total", "send")
    assert "sent 18" in lines
    store = PostgresStore(postgres.url)
    assert store.verify("report") == 10
    store.delete("report")
    store.close()
    assert postgres.url not in done.stdout + done.stderr


# The sample shop: what the agent answers to the recorded questions


def test_every_recorded_question_has_its_answer(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    create_shop(tmp_path / "shop.db")
    answers = []
    with SqlDatabase(tmp_path / "shop.db") as database:
        graph = build_text_to_sql_graph(database, recorded_sql)
        for question in QUESTIONS:
            final = graph.invoke({"resolved_query": question})
            assert (final["success"], final["error"]) == (True, None)
            rows = final["execution_result"]["data"]
            answers.append(f"{question}\n{[*map(tuple, rows)]}\n")
    assert "\n".join(answers) == snapshot


# The transcript of the tour, the quickstart and the agent of the front page


def test_the_recorded_replies_of_the_triage_are_what_the_tools_answer(toolbox: Toolbox) -> None:
    calls: dict[str, Any] = {}
    for message in map(json.loads, TRIAGE.read_text().splitlines()):
        for call in message.get("tool_calls", ()):
            calls[call["id"]] = call["function"]
        called = calls.pop(str(message.get("tool_call_id")), None)
        if called is not None and called["name"].startswith("planning_"):
            assert message["content"] == toolbox.call(called["name"], called["arguments"]).message
    assert not calls


def test_the_quickstart_runs(snapshot: SnapshotAssertion, tmp_path: Path) -> None:
    done = run_program(tmp_path, ROOT / "examples" / "quickstart.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == snapshot


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_the_background_agent_is_killed_and_resumed(provider: str, tmp_path: Path) -> None:
    pytest.importorskip(provider, reason=f"needs the {provider} client: pip install '.[{provider}]'")
    done = run_program(tmp_path, ROOT / "examples" / "agent.py", provider)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "worker: New plan: Fix the login. Added S001, S002.\n"
        "worker: S001 done: Fails on an empty name.\n"
        "worker: S002 done. Plan completed.\n"
    )


# A store of your own passes the tests of every store


class TestFolderStore(StoreSuite):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    @pytest.fixture(autouse=True)
    def _few_examples(self) -> Iterator[None]:
        before = settings.get_current_profile_name()
        settings.load_profile("few")
        yield
        settings.load_profile(before)

    def open(self) -> Store:
        return FolderStore(self.folder)
