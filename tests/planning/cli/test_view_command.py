"""``planning view``: what it prints, how it ends, and what it refuses."""

from __future__ import annotations

import json
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
from cli_runs import TRIAGE, run, runs, started
from syrupy.assertion import SnapshotAssertion
from test_page import embedded

from planning.observe.stores import open_session
from session.stores import SqliteStore

LINK = re.compile(r"http://127\.0\.0\.1:\d+/[\w-]{24}/")
WORKFLOW = {
    "schema_version": 2,
    "goal": "Look into it",
    "steps": [{"step_id": "find", "description": "Find it", "type": "tool", "name": "find", "inputs": {}}],
}


pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("store_folder")]


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


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_it_prints_the_link_serves_the_page_and_ends_at_a_signal(number: signal.Signals, code: int) -> None:
    with viewing("plans.db", "--no-open") as (line, running):
        assert LINK.fullmatch(line.strip())
        assert data_at(line.strip())["session"] is None
        running.send_signal(number)
        out, err = running.communicate(timeout=10)
    assert (running.returncode, out, err) == (code, "", "Press Ctrl-C to end.\n")


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [("transcript", [str(TRIAGE)]), ("snapshot", ["a.json"]), ("workflow", ["plan.json"])],
)
def test_a_file_is_shown_by_itself(kind: str, arguments: list[str], folder: Path) -> None:
    (folder / "a.json").write_text(open_session(SqliteStore("plans.db"), "nightly").snapshot().to_json())
    (folder / "plan.json").write_text(json.dumps(WORKFLOW))
    with viewing(*arguments, "--no-open") as (line, _):
        data = data_at(line.strip())
    assert (data["mode"], data["run"]["kind"]) == ("export", kind)
    assert data["run"]["title"] == Path(arguments[0]).name


def test_the_browser_is_opened_with_the_link(folder: Path) -> None:
    browser = folder / "browser.sh"
    browser.write_text('#!/bin/sh\necho "$1" > opened.new && mv opened.new opened.txt\n')
    browser.chmod(0o755)
    with viewing("plans.db", BROWSER=f"{browser} %s") as (line, _):
        while not (folder / "opened.txt").exists():
            pass
        assert (folder / "opened.txt").read_text() == line


def test_without_a_browser_it_says_so_and_serves(folder: Path) -> None:
    with viewing("plans.db", BROWSER="/no/such/browser %s") as (line, running):
        assert running.stderr is not None
        assert running.stderr.readline() == "Press Ctrl-C to end.\n"
        assert running.stderr.readline() == "planning: no browser was found; open the link yourself\n"
        assert data_at(line.strip())["mode"] == "live"


def test_a_port_in_use_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        reason = f"port {port} is in use; name another with --port, or omit it"
        shown = run("view", "plans.db", "--no-open", "--port", str(port))
        assert shown == f"exit code 2\n--- stderr\nplanning: {reason}\n"


REFUSED = [
    *("none.db", ".", "empty.db", "text.txt", "pipe", "cut.db", "sqlite.db", "newer.db", "mysql://x"),
    "plans.db nightli",
    "bad.json",
]


@pytest.mark.parametrize("command", ["view --no-open ", "export -o run.html "])
def test_what_cannot_be_shown_is_refused(command: str, folder: Path, snapshot: SnapshotAssertion) -> None:
    (folder / "empty.db").touch()
    os.mkfifo(folder / "pipe")
    (folder / "text.txt").write_text("hello\n")
    (folder / "cut.db").write_bytes((folder / "plans.db").read_bytes()[:50])
    (folder / "newer.db").write_bytes((folder / "plans.db").read_bytes())
    with closing(sqlite3.connect("newer.db")) as connection:
        connection.execute("PRAGMA user_version = 3")
    (folder / "sqlite.db").write_bytes(b"SQLite format 3\0")
    (folder / "bad.json").write_text('[{"step_id": "a", "depends_on": ["b"]}]')
    assert runs(REFUSED, command).replace(f"{folder}/", "") == snapshot


def test_a_session_of_a_file_that_is_not_a_store_is_wrong_use(folder: Path) -> None:
    (folder / "t.jsonl").write_text(TRIAGE.read_text())
    for command in (["view", "--no-open"], ["export", "-o", "run.html"]):
        assert run(*command, "t.jsonl", "x").endswith(
            "Invalid value for 'SESSION': it names a session of a store, and 't.jsonl' is not a store\n"
        )
