"""``planning mcp``, and ``planning run --mcp``."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import mcp_bad_server
import pytest
from cli_runs import commands_in, run, runs, started
from mcp import Client
from mcp_served import within
from run_folders import step
from syrupy.assertion import SnapshotAssertion

PLANS = f"{shlex.quote(sys.executable)} -m planning mcp"
BAD = f"{shlex.quote(sys.executable)} {shlex.quote(str(Path(mcp_bad_server.__file__)))}"


@pytest.fixture(autouse=True)
def no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a token of the machine's own out."""
    monkeypatch.delenv("PLANNING_MCP_TOKEN", raising=False)


def test_an_option_that_makes_no_sense_is_refused(snapshot: SnapshotAssertion) -> None:
    assert runs(commands_in(snapshot), "mcp ") == snapshot


def test_a_token_is_required_elsewhere(monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion) -> None:
    shown = run("mcp", "--http", "0.0.0.0:0")
    monkeypatch.setenv("PLANNING_MCP_TOKEN", "short")
    assert shown + runs(["0.0.0.0:0", "localhost:0"], "mcp --http ") == snapshot


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_over_http_it_says_where_it_serves_and_a_signal_ends_it(number: signal.Signals, code: int) -> None:
    async def ask(url: str) -> str:
        async with Client(url) as client:
            (resource,) = (await client.list_resources()).resources
            return resource.uri

    with started("mcp", "--http", "localhost:0", "--session", "here") as serving:
        assert serving.stderr is not None
        said = serving.stderr.readline()
        where = re.fullmatch(r"planning: serving MCP at (http://localhost:\d+/mcp)\n", said)
        assert where is not None, said
        uri = within(ask(where[1]))
        serving.send_signal(number)
        rest = serving.communicate(timeout=30)
    assert (uri, serving.returncode, rest) == ("plan://here", code, ("", ""))


# planning run --mcp

ECHO = step("echo", step_id="a", inputs={"text": "x"})


def running(folder: Path, *steps: dict[str, object], servers: tuple[str, ...]) -> tuple[str, Any]:
    """What a run of a plan says on standard error, with its exit code; and the result that it prints."""
    (folder / "plan.json").write_text(json.dumps(list(steps)))
    options = [each for server in servers for each in ("--mcp", server)]
    said, _, result = run("run", "plan.json", "--json", *options).partition("--- stdout\n")
    return said, json.loads(result) if result else None


@pytest.mark.slow
def test_a_plan_runs_with_the_tools_of_several_servers(folder: Path) -> None:
    steps = [
        step("echo", step_id="a", inputs={"text": "ab", "count": 2}),
        step("planning_setup_plan", "a", step_id="b", inputs={"objective": "${a.output}"}),
    ]
    said, done = running(folder, *steps, servers=(BAD, PLANS))
    outputs = done["outputs"]
    assert said == "exit code 0\n"
    assert (outputs["a"], outputs["b"]["plan"]["objective"]) == ("abab", "abab")


def test_servers_that_cannot_be_used_end_it_at_once(folder: Path, snapshot: SnapshotAssertion) -> None:
    wrong = [("/no/such/program",), (BAD, BAD), ("sh -c 'exit 4'",)]
    shown = [running(folder, ECHO, servers=servers) for servers in wrong]
    assert "".join(said for said, result in shown if result is None) == snapshot


def test_no_server_outlives_the_command(folder: Path) -> None:
    (folder / "server.sh").write_text(f"echo $$ > pid; exec {BAD}")
    said, _ = running(folder, ECHO, servers=("sh server.sh",))
    assert said == "exit code 0\n"
    with pytest.raises(ProcessLookupError):
        os.kill(int((folder / "pid").read_text()), 0)
