"""A server over standard input and output: what is on the pipes, how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from cli_runs import started
from mcp_served import HELLO

from planning import Plan, register_plan
from session import Session
from session.stores import SqliteStore

pytestmark = pytest.mark.slow  # each starts processes
SET = "Plan set, no steps yet. Add them with planning_add_step."


def lines(*requests: dict[str, Any]) -> bytes:
    """Requests with ids from 1, one a line, behind the handshake."""
    numbered = [{**each, "jsonrpc": "2.0", "id": number} for number, each in enumerate([HELLO, *requests])]
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    return b"".join(json.dumps(each).encode() + b"\n" for each in [numbered[0], initialized, *numbered[1:]])


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"method": "tools/call", "params": {"name": name, "arguments": arguments}}


COMMAND = ("-m", "planning", "mcp")


def answered(sent: bytes, *arguments: str, program: Iterable[str] = COMMAND) -> tuple[int, list[Any]]:
    """The exit code, and the messages on standard output, when this is all that is sent."""
    command = [sys.executable, *program, *arguments]
    done = subprocess.run(command, input=sent, capture_output=True, check=False, timeout=60)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


def texts(messages: Iterable[Any]) -> list[str]:
    """What the results say that are among the messages, in the order of their ids."""
    results = {
        each["id"]: each["result"]["content"][0]["text"]
        for each in messages
        if "content" in each.get("result", {})
    }
    return [results[number] for number in sorted(results)]


def test_what_was_sent_before_the_end_of_the_input_is_answered() -> None:
    calls = [call("planning_setup_plan", objective="Last words")]
    calls += [call("planning_add_step", steps=[f"Step {number}"]) for number in range(20)]
    code, messages = answered(lines(*calls))
    assert (code, len(messages)) == (0, 22)
    assert texts(messages) == [SET, *(f"Added S{number:03}." for number in range(1, 21))]


PROGRAM = """
import asyncio, os, subprocess, sys
from planning.integrations.mcp import build_server, serve_stdio, stdio

def loud() -> str:
    print("from print")
    os.write(1, b"from the descriptor")
    subprocess.run(["/bin/echo", "from a process"], check=True)
    return repr(sys.stdin.read())

async def wait() -> str:
    await asyncio.Event().wait()

stdio._LAST_ANSWERS = float(sys.argv[1])
asyncio.run(serve_stdio(build_server([loud, wait])))
"""


def test_nothing_but_the_protocol_is_on_standard_output() -> None:
    code, messages = answered(lines(call("loud")), "600", program=["-c", PROGRAM])
    assert (code, texts(messages), [each["jsonrpc"] for each in messages]) == (0, ["''"], ["2.0"] * 2)


def test_an_answer_that_does_not_come_is_not_waited_for_forever() -> None:
    sent = lines(call("wait"), call("planning_setup_plan", objective="Beside it"))
    code, messages = answered(sent, "0.2", program=["-c", PROGRAM])
    assert (code, texts(messages)) == (0, [SET])


def test_a_line_that_is_no_message_leaves_the_next_one_alone() -> None:
    wrong = b"garbage\n\xff\xfe\n" + b"[" * 100_000 + b"\n\n"
    _, messages = answered(wrong + lines(call("planning_setup_plan", objective="After it")))
    assert texts(messages) == [SET]


def send(server: subprocess.Popen[str], sent: bytes) -> None:
    """Write to a server's standard input, which it may have closed."""
    assert server.stdin is not None
    with suppress(BrokenPipeError):
        server.stdin.write(sent.decode())
        server.stdin.flush()


def reply(server: subprocess.Popen[str]) -> Any:
    assert server.stdout is not None
    return json.loads(server.stdout.readline())


def greeted(*arguments: str) -> subprocess.Popen[str]:
    """A server that has answered the handshake."""
    server = started("mcp", *arguments, stdin=subprocess.PIPE)
    send(server, lines())
    assert reply(server)["id"] == 0
    return server


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_ends_it_without_a_word(number: signal.Signals, code: int) -> None:
    with greeted() as server:
        server.send_signal(number)
        assert (server.wait(60), server.communicate()[1]) == (code, "")


def test_a_client_that_goes_away_while_answers_are_due_ends_it() -> None:
    with greeted() as server:
        assert server.stdout is not None
        server.stdout.close()
        send(server, lines(*[{"method": "ping"}] * 20))
        assert server.stdin is not None
        with suppress(BrokenPipeError):
            server.stdin.close()
        assert server.wait(60) == 0


def test_a_plan_in_a_store_outlives_a_server_that_is_killed(tmp_path: Path) -> None:
    kept = ("--store", str(tmp_path / "plans.db"), "--session", "nightly")
    asked = [call("planning_setup_plan", objective="Survive", initial_steps=["One"])]
    asked.append(call("planning_mark_step", step_id="S001", status="done"))
    with greeted(*kept) as server:
        for number, each in enumerate(asked, start=1):
            send(server, json.dumps({"jsonrpc": "2.0", "id": number, **each}).encode() + b"\n")
            assert reply(server)["result"]["isError"] is False
        server.kill()
    _, messages = answered(lines(call("planning_read_plan")), *kept)
    assert texts(messages) == ["Survive (completed, 1 of 1 done)\nS001 done: One"]


def test_in_a_store_each_client_has_its_plan_unless_a_session_is_named(tmp_path: Path) -> None:
    file = str(tmp_path / "plans.db")
    for name in "AB":
        _, messages = answered(lines(call("planning_setup_plan", objective=name)), "--store", file)
        assert texts(messages) == [SET]
    with closing(SqliteStore(file)) as store:
        sessions = [Session(session_id=each.session_id, store=store) for each in store.sessions()]
        for session in sessions:
            register_plan(session)
        plans = [session.select_latest(Plan) for session in sessions]
    assert sorted(plan.objective for plan in plans if plan is not None) == ["A", "B"]


def test_the_options_of_its_tools_are_taken() -> None:
    options = ("--approval", "--evidence", "unique", "--dependencies", "--tools", "setup,mark")
    setting = [{"objective": "A", "initial_steps": ["One"], name: 1} for name in ("span", "action")]
    sent = lines({"method": "tools/list"}, *(call("planning_setup_plan", **each) for each in setting))
    _, messages = answered(sent, "--always-load", "--no-structured", "--ignore", "trace, span", *options)
    _, listed, planned, _ = sorted(messages, key=lambda message: message["id"])
    tools = listed["result"]["tools"]
    names = ("planning_setup_plan", "planning_mark_step")
    assert [(each["name"], each["_meta"], "outputSchema" in each) for each in tools] == [
        (name, {"anthropic/alwaysLoad": True}, False) for name in names
    ]
    assert "structuredContent" not in planned["result"]
    setup, marking = (str(each["inputSchema"]) for each in tools)
    assert ("depends_on" in setup, "evidence" in marking) == (True, True)
    assert texts(messages) == [
        "Plan set: S001. Ask the user to approve it first.",
        "Refused, nothing changed. action: unknown field; the fields are objective, initial_steps",
    ]
