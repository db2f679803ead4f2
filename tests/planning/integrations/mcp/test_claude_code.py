"""Claude Code itself, with a scripted model as its API: what the model reads, and where its plan is."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import mcp_waiting_server
import pytest
from syrupy.assertion import SnapshotAssertion

from planning import Plan, PlanStep, register_plan
from planning.integrations.mcp import build_server
from planning.integrations.mcp.server import PLAN_TOOLS
from planning.prompt.planning_section import PlanningStrategy, section_body
from planning.testing import ScriptedModel
from session import Session, ToolInvoked, select_latest
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
USER: ContextVar[str] = ContextVar("user")


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


def starting(*titles: str) -> Iterator[PlanStep]:
    for number, title in enumerate(titles, start=1):
        yield PlanStep(f"S{number:03}", title, None, "pending")


PLAN = Plan(
    "Fix the login",
    "active",
    (
        PlanStep("S001", "Reproduce it", None, "pending", ("Fails on empty names",)),
        PlanStep("S002", "Refuse empty names", "In the form", "done"),
        PlanStep("S003", "Test it", None, "done", ("No server",)),
    ),
)


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


def started(folder: Path, environment: Mapping[str, str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [PROGRAM, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def prompt(*server: str) -> list[str]:
    """The arguments with which the program works on a prompt with the tools of a server."""
    servers = {"mcpServers": {"planning": {"command": sys.executable, "args": server}}}
    only = ["--mcp-config", json.dumps(servers), "--strict-mcp-config"]
    return ["-p", "Fix the login", *only, "--allowedTools", "mcp__planning"]


def ended(folder: Path, environment: Mapping[str, str], *arguments: str) -> str:
    """What the program prints that ends well."""
    with started(folder, environment, *arguments) as program:
        printed, errors = program.communicate(timeout=PATIENCE)
    assert (program.returncode, errors) == (0, "")
    return printed


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


Asked = list[Mapping[str, Any]]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plans") / "plans.db"


@pytest.fixture(scope="module")
def both(store: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Asked, Asked]:
    """The requests of two programs at once: ten turns, and a server without options."""
    folder = tmp_path_factory.mktemp("homes")
    with ThreadPoolExecutor() as pool:
        runs = [
            pool.submit(said, folder / "project", serving(store, "project", *OPTIONS), *TEN_TURNS),
            pool.submit(said, folder / "other", serving(store, "other"), [READ, SETUP, READ], "Planned."),
        ]
    (worked, printed), (deferred, _) = [each.result() for each in runs]
    assert printed == "The login is fixed.\n"
    return worked, deferred


@pytest.fixture(scope="module")
def worked(both: tuple[Asked, Asked]) -> Asked:
    return both[0]


@pytest.fixture(scope="module")
def deferred(both: tuple[Asked, Asked]) -> Asked:
    """The requests where the server has no options."""
    return both[1]


def test_the_tools_and_the_static_section_are_in_its_first_request(worked: Asked) -> None:
    assert tools(worked[0]) == sorted(PREFIX + name for name in PLAN_TOOLS)
    assert section_body(PlanningStrategy.REACT) in "".join(each.get("text", "") for each in blocks(worked[0]))


def test_without_always_load_the_tools_are_behind_a_search(deferred: Asked) -> None:
    assert tools(deferred[0]) == []
    texts = "".join(each.get("text", "") for each in blocks(deferred[0]))
    assert [name for name in PLAN_TOOLS if PREFIX + name not in texts] == []


def test_the_model_reads_our_text_of_ten_turns(worked: Asked, snapshot: SnapshotAssertion) -> None:
    read = results(worked[-1])
    lines = []
    for block in blocks(worked[-1]):
        if block["type"] == "tool_use":
            lines += [f"> {block['name']} {json.dumps(block['input'])}", read[block["id"]], ""]
    assert len(worked) == 10
    assert "\n".join(lines) == snapshot


def test_with_structured_results_the_model_reads_json_in_place_of_the_text(deferred: Asked) -> None:
    now = {"objective": "Fix the login", "status": "active", "done": 0, "total": 2, "next_step": "S001"}
    refused, planned, read = results(deferred[-1]).values()
    assert refused.startswith(
        "error: Refused, nothing changed. no plan yet; call planning_setup_plan first\n"
    )
    assert json.loads(planned) == {"message": "Plan set: S001 to S002. Next: S001 Reproduce it", "plan": now}
    assert list(json.loads(read)) == ["message", "plan"]


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


def test_the_history_has_the_models_ids_of_the_calls(store: Path, worked: Asked) -> None:
    read = results(worked[-1])
    with opened(store, "project") as session:
        made = calls_of(session)
    assert made == [
        (block["name"].removeprefix(PREFIX), block["id"], "claude-code")
        for block in blocks(worked[-1])
        if block["type"] == "tool_use" and not read[block["id"]].startswith("error: ")
    ]


def test_two_programs_at_once_keep_two_plans_in_one_store(
    store: Path, worked: Asked, deferred: Asked
) -> None:
    with opened(store, "project") as session:
        assert select_latest(session, Plan) == PLAN
    with opened(store, "other") as session:
        assert select_latest(session, Plan) == Plan(
            "Fix the login", "active", tuple(starting("Reproduce it", "Fix it"))
        )


def test_killed_in_the_middle_of_a_call_it_finds_its_plan_when_started_again(tmp_path: Path) -> None:
    """Started again as the page of Claude Code says."""
    store = tmp_path / "plans.db"
    server = [mcp_waiting_server.__file__, str(store), "project", str(tmp_path)]
    script = [[SETUP, mark("S001", "done")], [call("wait")]]
    with (
        scripted(tmp_path, *script) as (_, environment),
        started(tmp_path, environment, *prompt(*server)) as program,
    ):
        until(tmp_path / "waiting")
        program.send_signal(signal.SIGKILL)
    (tmp_path / "go on").touch()
    until(tmp_path / "ended")

    servers, settings = fenced("json")
    line = next(each for each in fenced("console") if "mcp add" in each).replace("\\\n", " ")
    command = tmp_path / "bin" / "planning"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m planning "$@"\n')
    command.chmod(0o755)
    (tmp_path / ".claude" / "settings.json").write_text(settings)
    with scripted(tmp_path, [READ], "It goes on.") as (model, environment):
        environment["PATH"] = f"{command.parent}:{environment['PATH']}"
        ended(tmp_path, environment, *shlex.split(line)[2:])
        assert json.loads((tmp_path / ".mcp.json").read_text()) == json.loads(servers)
        ended(tmp_path, environment, "-p", "Go on")
    plan = "Fix the login (active, 1 of 2 done)\nS001 done: Reproduce it\nS002 pending: Fix it"
    first, last = [each.body for each in model.requests]
    assert list(results(last).values()) == [plan]
    assert [each["text"].count(plan) for each in blocks(first) if plan in each.get("text", "")] == [1]
    with opened(store, "project") as session:
        names = [name for name, *_ in calls_of(session)]
    assert names == ["planning_setup_plan", "planning_mark_step", "wait", "planning_read_plan"]


def fenced(language: str) -> list[str]:
    """The examples of the page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def until(file: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not file.exists():
        assert time.monotonic() < end, f"{file.name} is not there"
        time.sleep(0.02)


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
    first = "Fix the login (active, 0 of 2 done)\nS001 pending: Reproduce it\nS002 pending: Fix it"
    then = "Fix the login (active, 1 of 2 done)\nS001 done: Reproduce it\nS002 pending: Fix it"
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{first}\n{then}\n", "")
    *_, prompted = blocks(model.requests[2].body)
    assert prompted["text"] == f"UserPromptSubmit hook additional context: {first}"


async def test_the_sdk_serves_two_users_with_one_server_in_the_hosts_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [each for each in os.environ if each.startswith(("ANTHROPIC", "CLAUDE"))]:
        monkeypatch.delenv(name)  # of a terminal of its own
    monkeypatch.syspath_prepend(str(PACKAGES))
    sdk = importlib.import_module("claude_agent_sdk")
    sessions = {"ada": Session(), "bob": Session()}
    server = build_server(session=lambda: sessions[USER.get()], always_load=True, structured=False)

    async def ask(user: str) -> tuple[list[str], list[str]]:
        USER.set(user)
        turn = [call("planning_setup_plan", objective=f"The plan of {user}", initial_steps=["Begin"]), READ]
        with scripted(tmp_path / user, turn, "Planned.") as (model, environment):
            options = sdk.ClaudeAgentOptions(
                mcp_servers={"planning": {"type": "sdk", "name": "planning", "instance": server}},
                allowed_tools=["mcp__planning"],
                cwd=tmp_path / user,
                env=environment,
            )
            messages = [each async for each in sdk.query(prompt="Plan", options=options)]
        assert messages[-1].result == "Planned."
        return tools(model.requests[0].body), list(results(model.requests[-1].body).values())

    offered = sorted(PREFIX + name for name in PLAN_TOOLS)
    assert await asyncio.gather(*map(ask, sessions)) == [
        (
            offered,
            [
                "Plan set: S001. Next: S001 Begin",
                f"The plan of {user} (active, 0 of 1 done)\nS001 pending: Begin",
            ],
        )
        for user in sessions
    ]
    assert [select_latest(each, Plan) for each in sessions.values()] == [
        Plan(f"The plan of {user}", "active", tuple(starting("Begin"))) for user in sessions
    ]
