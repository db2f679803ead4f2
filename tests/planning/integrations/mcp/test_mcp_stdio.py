"""A server over standard input and output: what is on the pipes, how it ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import IO, Any, Self

import pytest
from mcp_served import HELLO

from planning import Plan, register_plan
from planning.cli import app, main, mcp_server
from planning.integrations.mcp import build_server, serve_stdio, stdio
from session import Session
from session.stores import SqliteStore

for _ in (app, mcp_server):  # what main() would import in each fork
    build_server()


class Forked:
    """The ``planning`` command, or a server of tools, in a fork with pipes for its standard streams."""

    def __init__(self, *arguments: str, serving: Sequence[Any] = ()) -> None:
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        ours_errors, theirs_errors = os.pipe()
        ours, theirs = (ours_in, ours_out, ours_errors), (theirs_in, theirs_out, theirs_errors)
        self._pid = os.fork()
        if self._pid == 0:
            try:
                for number, pipe in enumerate(theirs):
                    os.dup2(pipe, number)
                for each in (*ours, *theirs):
                    os.close(each)
                code = _run(arguments, serving)
            except BaseException:  # noqa: BLE001 - a child must not return to the tests
                code = 99
            os._exit(code)
        for each in theirs:
            os.close(each)
        self.input: IO[bytes] = open(ours_in, "wb", buffering=0)  # noqa: SIM115, PTH123 - until the end
        self.output: IO[bytes] = open(ours_out, "rb")  # noqa: SIM115, PTH123 - the same
        self.errors: IO[bytes] = open(ours_errors, "rb")  # noqa: SIM115, PTH123 - the same
        self._code: int | None = None

    def send(self, data: bytes) -> None:
        """Write to its standard input, which it may have closed."""
        with suppress(BrokenPipeError):
            self.input.write(data)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self._pid, number)

    def wait(self) -> int:
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._code is None:
            self.signal(signal.SIGKILL)
            self.wait()
        for each in (self.input, self.output, self.errors):
            each.close()


def _run(arguments: Sequence[str], serving: Sequence[Any]) -> int:
    """Be the process of the command, or of the server."""
    signal.alarm(60)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the end of the process closes them
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115 - the same
    sys.argv = ["planning", *arguments]
    try:
        asyncio.run(serve_stdio(build_server(serving))) if serving else main()
    except SystemExit as over:
        return over.code if isinstance(over.code, int) else 1
    return 0


pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
SET = "Plan set, no steps yet. Add them with planning_add_step."


def lines(*requests: dict[str, Any]) -> bytes:
    """Requests with ids from 1, one a line, behind the handshake."""
    numbered = [{**each, "jsonrpc": "2.0", "id": number} for number, each in enumerate([HELLO, *requests])]
    initialized = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    return b"".join(json.dumps(each).encode() + b"\n" for each in [numbered[0], initialized, *numbered[1:]])


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"method": "tools/call", "params": {"name": name, "arguments": arguments}}


def answered(sent: bytes, *arguments: str) -> tuple[int, list[Any]]:
    """The exit code, and the messages on standard output, when this is all that is sent."""
    with Forked("mcp", *arguments) as server:
        server.send(sent)
        server.input.close()
        messages = [json.loads(line) for line in server.output]
        return server.wait(), messages


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


def test_nothing_but_the_protocol_is_on_standard_output() -> None:
    def loud() -> str:
        sys.stdout.write("from print\n")
        os.write(1, b"from the descriptor")
        subprocess.run(["/bin/echo", "from a process"], check=True)
        return repr(sys.stdin.read())

    with Forked(serving=[loud]) as server:
        server.send(lines(call("loud")))
        server.input.close()
        messages = [json.loads(line) for line in server.output]
        assert server.wait() == 0
    assert [each["jsonrpc"] for each in messages] == ["2.0"] * 2
    assert texts(messages) == ["''"]


@pytest.mark.parametrize(
    "line", [b"garbage", b"\xff\xfe", b"[" * 100_000], ids=["garbage", "bytes", "nested"]
)
def test_a_line_that_is_no_message_leaves_the_next_one_alone(line: bytes) -> None:
    _, messages = answered(line + b"\n\n" + lines(call("planning_setup_plan", objective="After it")))
    assert texts(messages) == [SET]


def greeted(server: Forked) -> None:
    server.send(lines())
    assert json.loads(server.output.readline())["id"] == 0


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_ends_it_without_a_word(number: signal.Signals, code: int) -> None:
    with Forked("mcp") as server:
        greeted(server)
        server.signal(number)
        assert (server.wait(), server.errors.read()) == (code, b"")


@pytest.mark.parametrize("requests", [0, 20], ids=["idle", "answers due"])
def test_a_client_that_goes_away_ends_it(requests: int) -> None:
    with Forked("mcp") as server:
        greeted(server)
        server.output.close()
        server.send(lines(*[{"method": "ping"}] * requests))
        server.input.close()
        assert server.wait() == 0


def test_an_answer_that_does_not_come_is_not_waited_for_forever(monkeypatch: pytest.MonkeyPatch) -> None:
    async def wait() -> str:
        await asyncio.Event().wait()
        return "never"

    monkeypatch.setattr(stdio, "_LAST_ANSWERS", 0.2)
    with Forked(serving=[wait]) as server:
        server.send(lines(call("wait"), call("planning_setup_plan", objective="Beside it")))
        server.input.close()
        messages = [json.loads(line) for line in server.output]
        assert (server.wait(), texts(messages)) == (0, [SET])


def test_the_last_answers_have_as_long_as_is_documented() -> None:
    assert f"takes longer than {stdio._LAST_ANSWERS:g} seconds." in str(serve_stdio.__doc__)


def test_a_plan_in_a_store_outlives_a_server_that_is_killed(tmp_path: Path) -> None:
    kept = ("--store", str(tmp_path / "plans.db"), "--session", "nightly")
    asked = [call("planning_setup_plan", objective="Survive", initial_steps=["One"])]
    asked.append(call("planning_mark_step", step_id="S001", status="done"))
    with Forked("mcp", *kept) as server:
        greeted(server)
        for number, each in enumerate(asked, start=1):
            server.send(json.dumps({"jsonrpc": "2.0", "id": number, **each}).encode() + b"\n")
            assert json.loads(server.output.readline())["result"]["isError"] is False
        server.signal(signal.SIGKILL)
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
