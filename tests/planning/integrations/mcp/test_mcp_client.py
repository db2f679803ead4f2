"""The tools of MCP servers in a toolbox, a workflow and the engine; servers that die or hang."""

from __future__ import annotations

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Any

import mcp_bad_server
import pytest
from frameworks import setup
from mcp import Client
from mcp_served import in_both_eras
from syrupy.assertion import SnapshotAssertion

from planning import Plan, Toolbox
from planning.errors import ToolError
from planning.integrations.mcp import build_server, open_server, tools_from
from planning.tools import Tool, ToolResult
from session import Session

BAD = f"{shlex.quote(sys.executable)} {shlex.quote(str(Path(mcp_bad_server.__file__)))}"
SILENT = "sh -c 'cat >/dev/null'"  # until the client leaves


def bad(how: str) -> str:
    return f"{BAD} {shlex.quote(how)}"


async def listed(how: str, **options: Any) -> list[Tool]:
    """The tools of a server that behaves so; it has ended since."""
    async with open_server(bad(how)) as client:
        return [*await tools_from(client, **options)]


async def echoed(how: str, *, timeout: float = 20.0, **arguments: Any) -> list[ToolResult]:
    """The results of two calls of a server that behaves so."""
    async with open_server(bad(how)) as client:
        box = Toolbox(await tools_from(client, timeout=timeout))
        return [await box.acall("echo", {"text": "hi", **arguments}) for _ in range(2)]


@in_both_eras
async def test_the_tools_of_a_server_are_tools_of_a_toolbox(mode: str) -> None:
    theirs, ours = Session(session_id="theirs"), Session(session_id="ours")
    async with Client(build_server(session=theirs), mode=mode) as client:
        tools = await tools_from(client)
        toolbox = Toolbox(tools, session=ours)
        done = await toolbox.acall(*setup("Far away"), context={"call_id": "c1"})
        refused = await toolbox.acall("planning_mark_step", {"step_id": "S004", "status": "done"})
    assert tools[0].name == "planning_setup_plan"
    assert [each.name for each in tools if each.read_only] == ["planning_read_plan"]
    assert [each.name for each in tools if each.idempotent] == ["planning_read_plan"]
    assert done.value["message"] == "Plan set, no steps yet. Add them with planning_add_step."
    assert done.message.startswith('{"message":"Plan set, no steps yet.')
    assert refused.message == (
        "Refused, nothing changed. step_id: the plan has no steps yet; add some with planning_add_step"
    )
    assert [change.call_id for change in ours.history()] == ["c1", None]
    assert theirs.select_latest(Plan) is not None
    assert ours.select_latest(Plan) is None


async def test_a_bare_client_session_will_do() -> None:
    async with open_server(bad("")) as client:
        toolbox = Toolbox(await tools_from(client.session))
        result = [(await toolbox.acall("echo", {"text": "hi"})).message]
    assert result == ["hi"]


async def test_arguments_are_checked_against_the_schema_of_the_server_before_they_are_sent() -> None:
    assert (await listed("die"))[0].parameters_schema() == mcp_bad_server.SCHEMA
    assert (await echoed("die", text="", count=10))[0].message == (
        "Refused, nothing changed. 2 problems:\n"
        "- text: expected at least 1 character, got 0 characters\n"
        "- count: expected at most 9, got 10"
    )


async def test_all_pages_are_read_and_names_keep_their_dots_or_are_made_fit() -> None:
    far = [(tool.name, tool.description) for tool in await listed("pages", prefix="far_")]
    assert far == [("far_one.first/tool", "Do one.first/tool."), ("far_echo", "Do echo.")]
    names = ["files.list", "files_list", "list_all", "x" * 128]
    assert [*Toolbox(await listed("names")).tools] == names


@pytest.mark.parametrize(
    ("how", "value"),
    [
        ("", "hihi"),
        ("banner", "hihi"),
        ("structured", {"n": 2}),
        ("image", [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]),
    ],
)
async def test_the_value_of_a_call_is_its_structured_content_its_text_or_blocks(how: str, value: Any) -> None:
    assert (await echoed(how, count=2))[0].value == value


async def test_a_server_that_fails_is_a_clear_refusal(snapshot: SnapshotAssertion) -> None:
    shown = ""
    for how in ("refuse", "silent", "error", "strict", "die", "hang"):
        first, second = await echoed(how, timeout=0.4 if how == "hang" else 20.0)
        shown += f"{how}: {first.success}, {first.message}\n"
        assert (second.success, second.message) == (first.success, first.message)
    assert shown == snapshot


COMMANDS = (
    "/no/such/program",
    "",
    "'open",
    "sh -c 'echo Oh >&2; echo $WHY >&2'",
    r"sh -c 'printf \\377 >&2; exit 7'",
    "sh -c 'kill -9 $$'",
    SILENT,
)


async def test_a_server_that_does_not_start_says_why(
    monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.setenv("WHY", "sorry")
    shown = ""
    for command in COMMANDS:
        with pytest.raises(ToolError) as refused:
            async with open_server(command, timeout=0.2 if command == SILENT else 20.0):
                raise AssertionError("it started")
        shown += f"{refused.value.message}\n"
    assert shown == snapshot


async def test_tools_that_cannot_be_used_are_refused(snapshot: SnapshotAssertion) -> None:
    shown = ""
    for how in ("endless", "bad schema"):
        with pytest.raises(ToolError) as refused:
            await listed(how)
        shown += f"{refused.value.message}\n"
    assert shown == snapshot


async def test_the_tools_can_be_called_from_other_threads_and_loops() -> None:
    async with open_server(bad("")) as client:
        toolbox = Toolbox(await tools_from(client))
        replies = [
            await asyncio.to_thread(toolbox.call, "echo", {"text": "plain"}),
            await asyncio.to_thread(lambda: asyncio.run(toolbox.acall("echo", {"text": "another loop"}))),
            await toolbox.acall("echo", {"text": "here"}),
        ]
    late = await toolbox.acall("echo", {"text": "late"})
    assert [each.message for each in replies] == ["plain", "another loop", "here"]
    assert late.message == "echo failed: the connection to its MCP server is closed"
