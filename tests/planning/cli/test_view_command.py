"""``planning view`` and ``planning export``: what they show, how they end, and what they refuse."""

from __future__ import annotations

import os
import re
import signal
import socket
import sqlite3
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from cli_runs import TRIAGE, lines, refused, run, runs, said, started
from page_data import embedded, of_store
from syrupy.assertion import SnapshotAssertion

from planning.observe.stores import open_session
from session.stores import SqliteStore

LINK = re.compile(r"http://127\.0\.0\.1:\d+/[\w-]{24}/")


pytestmark = pytest.mark.usefixtures("store_folder")


@contextmanager
def viewing(*arguments: str, **environment: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The command while it serves, and its link."""
    with started("view", *arguments, env={**os.environ, **environment}) as running:
        assert running.stdout is not None
        try:
            yield running.stdout.readline(), running
        finally:
            running.kill()


def data_at(link: str) -> Any:
    with urllib.request.urlopen(link) as page:  # noqa: S310 - our own
        return embedded(page.read())


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_it_prints_the_link_serves_the_page_and_ends_at_a_signal(number: signal.Signals, code: int) -> None:
    with viewing("plans.db", "--no-open") as (line, running):
        assert LINK.fullmatch(line.strip())
        assert data_at(line.strip())["session"] is None
        running.send_signal(number)
        out, err = running.communicate(timeout=10)
    assert (running.returncode, out, err) == (code, "", "Press Ctrl-C to end.\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "file"), [("transcript", str(TRIAGE)), ("snapshot", "a.json"), ("workflow", "fine.json")]
)
def test_a_file_is_shown_by_itself(kind: str, file: str, folder: Path, run_folder: None) -> None:
    (folder / "a.json").write_text(open_session(SqliteStore("plans.db"), "nightly").snapshot().to_json())
    with viewing(file, "--no-open") as (line, _):
        data = data_at(line.strip())
    assert (data["mode"], data["run"]["kind"]) == ("export", kind)
    assert data["run"]["title"] == Path(file).name


@pytest.mark.slow
def test_the_browser_is_opened_with_the_link(folder: Path) -> None:
    browser = folder / "browser.sh"
    browser.write_text('#!/bin/sh\necho "$1" > opened.new && mv opened.new opened.txt\n')
    browser.chmod(0o755)
    with viewing("plans.db", BROWSER=f"{browser} %s") as (line, _):
        while not (folder / "opened.txt").exists():
            pass
        assert (folder / "opened.txt").read_text() == line


@pytest.mark.slow
def test_without_a_browser_it_says_so_and_serves(folder: Path) -> None:
    with viewing("plans.db", BROWSER="/no/such/browser %s") as (line, running):
        assert running.stderr is not None
        said = "Press Ctrl-C to end.\nplanning: no browser was found; open the link yourself\n"
        assert "".join(running.stderr.readline() for _ in range(2)) == said
        assert data_at(line.strip())["mode"] == "live"


@pytest.mark.slow
def test_a_port_in_use_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        reason = f"port {port} is in use; name another with --port, or omit it"
        assert run("view", "plans.db", "--no-open", "--port", str(port)) == refused(reason)


def exported(*arguments: str) -> Any:
    """The run in the file that the command writes."""
    assert run("export", *arguments, "-o", "run.html") == "exit code 0\n"
    data = embedded(Path("run.html").read_bytes())
    assert data["mode"] == "export"
    return data["run"]


def test_a_session_is_written_as_the_page_has_it() -> None:
    assert exported("plans.db", "nightly") == of_store(Path("plans.db"))


def test_a_transcript_has_the_tokens_and_costs_that_its_messages_have(folder: Path) -> None:
    setup = ("planning_setup_plan", {"objective": "Go", "initial_steps": ["One"]})
    chat = said(setup, ("search", '{"q": 1}'))
    chat["usage"] = {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5}
    read = {"type": "tool_use", "id": "toolu_1", "name": "planning_read_plan", "input": {}}
    usage = {"input_tokens": 20, "output_tokens": 3, "cache": {"x": 1}}
    anthropic = {"role": "assistant", "content": [read], "usage": usage}
    usage = {"prompt_tokens": 5, "completion_tokens": True}
    thought = {"role": "assistant", "content": "Hm.", "usage": usage}
    usage = {"input_tokens": 7, "output_tokens": -1}
    langchain = {"type": "ai", "data": {"content": "", "tool_calls": [], "usage_metadata": usage}}
    (folder / "t.jsonl").write_text(lines(chat, thought, anthropic, langchain))
    changes = exported("t.jsonl")["changes"]
    told = [(change["call_id"], change["calls"][0]["name"], change.get("usage")) for change in changes]
    assert told == [
        ("call_1", "planning_setup_plan", {"input": 10, "output": 2, "cost": 0.5}),
        ("call_2", "search", None),
        ("toolu_1", "planning_read_plan", {"input": 32, "output": 3}),
    ]
    assert changes[1]["calls"] == [{"name": "search", "arguments": '{"q": 1}', "characters": 8}]


def test_sound_changes_before_the_damage_are_written(snapshot: SnapshotAssertion) -> None:
    with closing(sqlite3.connect("plans.db")) as database, database:
        database.execute("UPDATE changes SET text = 'x' || text WHERE version = 4")
    assert run("export", "plans.db", "nightly", "-o", "run.html") == snapshot
    assert [change["v"] for change in embedded(Path("run.html").read_bytes())["run"]["changes"]] == [1, 2, 3]


OUTPUTS = ["p.svg", "p.pdf", "p.html.gz", "p", "p.", ".html", "out/", "''"]  # none of them ends in .html
OUTPUTS += ["link.htm", "plans.html", "./plans.html"]  # the source itself
OUTPUTS += ["no/run.html", "page.html"]


def test_what_cannot_be_written_or_is_the_source_is_refused(
    folder: Path, snapshot: SnapshotAssertion
) -> None:
    (folder / "page.html").mkdir()
    (folder / "link.htm").symlink_to(folder / "plans.db")
    (folder / "plans.html").symlink_to("plans.db")
    before = {file: file.is_dir() or file.read_bytes() for file in folder.iterdir()}
    assert runs(OUTPUTS, "export plans.db nightly -o ") == snapshot
    assert {file: file.is_dir() or file.read_bytes() for file in folder.iterdir()} == before
