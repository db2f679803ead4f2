"""Claude Code itself, with a scripted model as its API: what the model reads, and where its plan is."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from frameworks import toolbox
from syrupy.assertion import SnapshotAssertion

from planning import register_plan
from planning.integrations.mcp.server import PLAN_TOOLS
from planning.prompt.planning_section import PlanningStrategy, section_body
from planning.testing import ScriptedModel
from session import Session, ToolInvoked
from session.stores import SqliteStore

PACKAGES = next(
    Path(__file__).parents[4].glob(".venvs/claude-code-0.2.188/lib/python*/site-packages"), Path("nowhere")
)
PROGRAM = PACKAGES / "claude_agent_sdk" / "_bundled" / "claude"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not PROGRAM.exists(),
        reason="Claude Code is not there: scripts/claude-code brings it, where its wheel has a program",
    ),
]
PAGE = Path(__file__).parents[4] / "docs" / "frameworks" / "claude-code.md"
PATIENCE = 60
OPTIONS = ("--always-load", "--no-structured")
PREFIX = "mcp__planning__"


def call(name: str, **arguments: object) -> tuple[str, Mapping[str, Any]]:
    return PREFIX + name, arguments


def mark(step_id: object, status: str, **more: object) -> tuple[str, Mapping[str, Any]]:
    return call("planning_mark_step", step_id=step_id, status=status, **more)


SETUP = call("planning_setup_plan", objective="Fix the login", initial_steps=["Reproduce it", "Fix it"])
READ = call("planning_read_plan")
TEN_TURNS: list[Any] = [
    [SETUP, mark(1, "in progress"), READ],
    [mark("S001", "completed"), mark("S009", "done")],
    [mark("S001", "done", note="Fails on empty names"), call("planning_add_step", steps=["Test it"])],
    [call("planning_update_step", step_id="S002"), call("planning_fly"), ("planning_read_plan", {})],
    [(PREFIX + "planning_mark_step", "[1, 2]"), (PREFIX + "planning_mark_step", '"done"')],
    [(PREFIX + "planning_mark_step", '{"step_id": "S00')],
    [call("planning_update_step", step_id="S002", title="Refuse empty names", details="In the form")],
    [mark("S002", "done"), mark("S003", "blocked", note="No server"), READ],
    [mark("S003", "done"), call("planning_clear_plan", reason="over"), mark("S001", "pending")],
    "The login is fixed.",
]


@contextmanager
def scripted(folder: Path, *script: Any) -> Iterator[tuple[ScriptedModel, dict[str, str]]]:
    """A model, and the environment in which the program asks it and nobody else."""
    folder.mkdir(exist_ok=True)
    with ScriptedModel(*script) as model, socket.create_server(("127.0.0.1", 0)) as elsewhere:
        proxy = f"http://127.0.0.1:{elsewhere.getsockname()[1]}"
        yield (
            model,
            {
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                "TMPDIR": str(folder),
                "ANTHROPIC_API_KEY": "test",
                "ANTHROPIC_BASE_URL": model.anthropic_url,
                "HTTP_PROXY": proxy,
                "HTTPS_PROXY": proxy,
                "NO_PROXY": "127.0.0.1",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            },
        )
        elsewhere.setblocking(False)
        with pytest.raises(BlockingIOError):  # nothing else was asked for
            elsewhere.accept()
        assert {each.path for each in model.requests} == {"/v1/messages?beta=true"}


def prompt(*server: str) -> list[str]:
    """The arguments with which the program works on a prompt with the tools of a server."""
    servers = {"mcpServers": {"planning": {"command": sys.executable, "args": server}}}
    only = ["--mcp-config", json.dumps(servers), "--strict-mcp-config"]
    return ["-p", "Fix the login", *only, "--allowedTools", "mcp__planning"]


def ended(folder: Path, environment: Mapping[str, str], *arguments: str) -> str:
    """What the program prints that ends well."""
    done = subprocess.run(
        [PROGRAM, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def said(folder: Path, server: list[str], *script: Any) -> tuple[list[Mapping[str, Any]], str]:
    """The requests of a run, and what the program printed."""
    with scripted(folder, *script) as (model, environment):
        printed = ended(folder, environment, *prompt(*server))
    return [each.body for each in model.requests], printed


def serving(store: Path, session: str, *options: str) -> list[str]:
    return ["-m", "planning", "mcp", "--store", str(store), "--session", session, *options]


def blocks(request: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What a request has in its messages."""
    for message in request["messages"]:
        content = message["content"]
        yield from [{"type": "text", "text": content}] if isinstance(content, str) else content


def results(request: Mapping[str, Any]) -> dict[str, str]:
    """What the model read of its calls, by their ids."""
    read = {}
    for block in blocks(request):
        if block["type"] == "tool_result":
            content = block["content"]
            text = content if isinstance(content, str) else "\n".join(each["text"] for each in content)
            read[block["tool_use_id"]] = f"error: {text}" if block.get("is_error") else text
    return read


def tools(request: Mapping[str, Any]) -> list[str]:
    return sorted(name for each in request["tools"] if "planning" in (name := each["name"]))


@contextmanager
def opened(store: Path, name: str) -> Iterator[Session]:
    """A stored session, as the host opens it beside the program."""
    with closing(SqliteStore(store)) as there:
        session = Session(session_id=name, store=there)
        register_plan(session)
        yield session


def calls_of(session: Session) -> list[tuple[str, str | None, str | None]]:
    """The calls in a session's history: name, id and actor."""
    events = [event for change in session.history() for event in change.events]
    return [(each.name, each.call_id, each.actor) for each in events if isinstance(each, ToolInvoked)]


def test_in_ten_turns_the_model_has_our_tools_and_reads_our_text(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    store = tmp_path / "plans.db"
    requests, printed = said(tmp_path / "home", serving(store, "project", *OPTIONS), *TEN_TURNS)
    first, last = requests[0], requests[-1]
    assert (len(requests), printed) == (10, "The login is fixed.\n")
    assert tools(first) == sorted(PREFIX + name for name in PLAN_TOOLS)
    assert section_body(PlanningStrategy.REACT) in "".join(each.get("text", "") for each in blocks(first))
    read, lines, made = results(last), list[str](), []
    for block in blocks(last):
        if block["type"] == "tool_use":
            lines += [f"> {block['name']} {json.dumps(block['input'])}", read[block["id"]], ""]
            if not read[block["id"]].startswith("error: "):
                made.append((block["name"].removeprefix(PREFIX), block["id"], "claude-code"))
    assert "\n".join(lines) == snapshot
    with opened(store, "project") as session:
        assert calls_of(session) == made  # with the model's ids


BEGUN = "Fix the login (active, 0 of 2 done)\nS001 pending: Reproduce it\nS002 pending: Fix it"


def test_started_as_the_page_says_it_finds_the_plan_of_the_store(tmp_path: Path) -> None:
    store = tmp_path / "plans.db"
    with opened(store, "project") as session:
        toolbox(session, ()).call(SETUP[0].removeprefix(PREFIX), SETUP[1])
    servers, settings = fenced("json")
    line = next(each for each in fenced("console") if "mcp add" in each).replace("\\\n", " ")
    command = tmp_path / "bin" / "planning"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m planning "$@"\n')
    command.chmod(0o755)
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".claude" / "settings.json").write_text(settings)
    with scripted(tmp_path, [READ], "It goes on.") as (model, environment):
        environment["PATH"] = f"{command.parent}:{environment['PATH']}"
        ended(tmp_path, environment, *shlex.split(line)[2:])
        assert json.loads((tmp_path / ".mcp.json").read_text()) == json.loads(servers)
        ended(tmp_path, environment, "-p", "Go on")
    first, last = [each.body for each in model.requests]
    assert list(results(last).values()) == [BEGUN]
    assert [each["text"].count(BEGUN) for each in blocks(first) if BEGUN in each.get("text", "")] == [1]
    with opened(store, "project") as session:
        assert [name for name, *_ in calls_of(session)] == ["planning_setup_plan", "planning_read_plan"]


def fenced(language: str) -> list[str]:
    """The examples of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def test_in_the_sdk_the_plan_is_in_the_hosts_session_as_the_page_says(tmp_path: Path) -> None:
    example = tmp_path / "example.py"
    example.write_text(fenced("py")[0])
    script = [[SETUP], "Planned.", [mark("S001", "done")], "It goes on."]
    with scripted(tmp_path, *script) as (model, environment):
        done = subprocess.run(
            [sys.executable, example],
            cwd=tmp_path,
            env=environment | {"PYTHONPATH": str(PACKAGES)},
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    then = BEGUN.replace("S001 pending", "S001 done").replace("0 of 2", "1 of 2")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{BEGUN}\n{then}\n", "")
    *_, prompted = blocks(model.requests[2].body)
    assert prompted["text"] == f"UserPromptSubmit hook additional context: {BEGUN}"
