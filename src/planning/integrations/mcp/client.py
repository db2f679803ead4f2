"""The tools of MCP servers as tools of ours."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from tempfile import TemporaryFile
from typing import IO, Any, Final

import mcp_types as types
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from planning.errors import ToolError, line_of, printable, show
from planning.tools.errors import StorageUnavailable, ToolTimeout
from planning.tools.spec import as_name
from planning.tools.tool import Tool

_AnyClient = ClientSession | Client
_TIMEOUT: Final = 60.0
_MOST_PAGES: Final = 100
_LONGEST_REASON: Final = 300
_MOST_TOOLS: Final = 1_000


async def tools_from(client: _AnyClient, *, prefix: str = "", timeout: float = _TIMEOUT) -> tuple[Tool, ...]:
    """The tools of an MCP server, for a toolbox, a workflow's capabilities or the engine.

    Arguments are checked against the server's own schema before they are sent. The calls run in the event
    loop of this coroutine, whichever loop or thread makes them.

    Args:
        client: A connected client, which must stay open as long as the tools are used.
        prefix: What the names begin with here, to tell the tools of several servers apart.
        timeout: The seconds after which a call times out.

    Raises:
        ToolError: The server did not list its tools, or one cannot be used; the message says why.
    """
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout):
            listed = await _list(client)
    except (TimeoutError, MCPError, ValidationError, OSError) as error:
        raise ToolError(f"the MCP server did not list its tools: {_reason(error, timeout)}") from None
    return tuple(_tool(client, each, prefix, timeout, loop) for each in listed)


@asynccontextmanager
async def open_server(command: str, *, timeout: float = _TIMEOUT) -> AsyncIterator[Client]:
    """Start an MCP server over stdio and connect to it; it ends with the block.

    Args:
        command: The command with its arguments, as a shell takes it; no shell runs it.
        timeout: The seconds that it has to answer.

    Raises:
        ToolError: It cannot be started, or does not speak MCP.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ToolError(f"the MCP server {show(command)} did not start: {error}") from None
    if not words:
        raise ToolError(f"the MCP server {show(command)} did not start: the command is empty")
    parameters = StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ))
    with TemporaryFile("w+", errors="replace") as printed:
        server = stdio_client(parameters, errlog=printed)
        client = Client(server, mode="auto", cache=None, read_timeout_seconds=timeout)
        try:
            async with asyncio.timeout(timeout):
                await client.__aenter__()
        except Exception as error:  # noqa: BLE001 - a server may fail in any way, and the client wraps it
            reason = ": ".join(filter(None, [_reason(error, timeout), _last_line(printed)]))
            raise ToolError(f"the MCP server {show(command)} did not start: {reason}") from None
        try:
            yield client
        finally:
            await client.__aexit__(None, None, None)


async def _list(client: _AnyClient) -> list[types.Tool]:
    """All pages of a server's tools."""
    tools: list[types.Tool] = []
    cursor = None
    for _ in range(_MOST_PAGES):
        session = client.session if isinstance(client, Client) else client
        page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None or len(tools) > _MOST_TOOLS:
            break
    if cursor is not None or len(tools) > _MOST_TOOLS:
        most = f"{_MOST_TOOLS:,} tools on {_MOST_PAGES} pages"
        raise ToolError(f"the MCP server's list of tools is too long; the limit is {most}")
    return tools


def _tool(
    client: _AnyClient, listed: types.Tool, prefix: str, timeout: float, loop: asyncio.AbstractEventLoop
) -> Tool:
    async def there(arguments: dict[str, Any]) -> Any:
        return _value(listed.name, await _call(client, listed.name, arguments, timeout))

    async def call(arguments: dict[str, Any]) -> Any:
        if asyncio.get_running_loop() is loop:
            return await there(arguments)
        if loop.is_closed():
            raise _closed_error(listed.name)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(there(arguments), loop))

    name = as_name(prefix + listed.name)
    hints = listed.annotations
    reads = hints is not None and bool(hints.read_only_hint)
    is_safe = reads or (hints is not None and bool(hints.idempotent_hint))
    schema = listed.input_schema
    try:
        return Tool(
            name, listed.description or "", call, parameters=schema, idempotent=is_safe, read_only=reads
        )
    except (TypeError, ValueError) as error:
        raise ToolError(f"the MCP server's tool {show(listed.name)} cannot be used: {error}") from None


async def _call(
    client: _AnyClient, name: str, arguments: dict[str, Any], timeout: float
) -> types.CallToolResult:
    if isinstance(client, Client) and not _is_open(client):
        raise _closed_error(name)
    try:
        async with asyncio.timeout(timeout):
            return await client.call_tool(name, arguments)
    except (TimeoutError, MCPError) as error:
        if isinstance(error, TimeoutError) or error.code == types.REQUEST_TIMEOUT:
            raise ToolTimeout(f"{name} did not answer within {timeout:g} s") from None
        if error.code == types.CONNECTION_CLOSED:
            raise _closed_error(name) from None
        raise ToolError(f"{name} was refused by its MCP server: {_reason(error, timeout)}") from None
    except (RuntimeError, ValidationError):  # the client's words for a result that breaks its schema
        raise ToolError(f"{name} failed: its MCP server sent an invalid result") from None


def _is_open(client: Client) -> bool:
    try:
        return client.session is not None
    except RuntimeError:
        return False


def _closed_error(name: str) -> StorageUnavailable:
    return StorageUnavailable(f"{name} failed: the connection to its MCP server is closed")


def _value(name: str, result: types.CallToolResult) -> Any:
    """The value of a tool's result: its structured content, or else its text, or else its blocks."""
    texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
    if result.is_error:
        raise ToolError("\n".join(texts) or f"{name} failed")
    if result.structured_content is not None:
        return result.structured_content
    if len(texts) == len(result.content):
        return "\n".join(texts)
    return [block.model_dump(by_alias=True, mode="json", exclude_none=True) for block in result.content]


def _reason(error: Exception, timeout: float) -> str:
    """Why something failed, on one line."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError) or (
        isinstance(error, MCPError) and error.code == types.REQUEST_TIMEOUT
    ):
        return f"no answer within {timeout:g} s"
    if isinstance(error, MCPError) and error.code == types.CONNECTION_CLOSED:
        return "it closed the connection"
    text = getattr(error, "strerror", None) or (str(error) if isinstance(error, MCPError) else "")
    return line_of(text, 500) or type(error).__name__


def _last_line(printed: IO[str]) -> str:
    """The last line that a server printed on standard error."""
    printed.seek(max(0, printed.seek(0, os.SEEK_END) - _LONGEST_REASON))
    lines = printed.read().split("\n")
    return printable(next((line for line in reversed(lines) if line.strip()), "").strip())
