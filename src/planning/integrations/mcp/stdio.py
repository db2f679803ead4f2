"""An MCP server over the standard input and output of its process."""

from __future__ import annotations

from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage

_LAST_ANSWERS: Final = 5.0  # seconds for the answers that are due when the input has ended
_STREAM: Final = "subscriptions/listen"


async def serve_stdio(server: Server[Any]) -> None:
    """Serve the client at the other end of this process's standard input and output, until the input ends.

    Meanwhile, other code in this process reads nothing there, and what it prints goes to standard error.
    Requests that were sent before the input ended are answered, unless that takes longer than 5 seconds.

    Args:
        server: From ``build_server``.
    """
    to_server, requests = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    answers, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    due = set[str | int | None]()
    is_answered = anyio.Event()

    try:
        async with stdio_server() as (source, sink), anyio.create_task_group() as tasks:

            async def read() -> None:
                nonlocal is_answered
                async with to_server:
                    async for message in source:
                        asked = message.message if isinstance(message, SessionMessage) else None
                        if isinstance(asked, types.JSONRPCRequest) and asked.method != _STREAM:
                            due.add(asked.id)
                        await to_server.send(message)
                    with anyio.move_on_after(_LAST_ANSWERS):
                        while due:
                            is_answered = anyio.Event()
                            await is_answered.wait()

            async def write() -> None:
                async with sink, from_server:
                    async for message in from_server:
                        await sink.send(message)
                        if isinstance(message.message, types.JSONRPCResponse | types.JSONRPCError):
                            due.discard(message.message.id)
                        is_answered.set()

            tasks.start_soon(read)
            tasks.start_soon(write)
            await server.run(requests, answers, server.create_initialization_options())
    except* (OSError, anyio.BrokenResourceError):  # the client does not read any more
        pass
