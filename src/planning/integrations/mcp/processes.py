"""A process that is an MCP server, and the pipes to it; what is kept of its output is bounded."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from planning.errors import cut, printable, show

__all__ = ["ServerProcess"]

_LONGEST_LINE: Final = 10_000_000
_LONGEST_REASON: Final = 300
_MOST_OTHERS: Final = 100
_GRACE: Final = 2.0  # seconds that it has to end by itself, and then after a signal
_CHUNK: Final = 65_536

_Read = MemoryObjectReceiveStream[SessionMessage | Exception]
_Write = MemoryObjectSendStream[SessionMessage]


class ServerProcess:
    """Starts a server and carries messages: the transport of one ``mcp.Client``.

    The server has this process's environment and a session of its own, so that Ctrl-C in a terminal does
    not reach it. When it sends a message of more than 10,000,000 bytes, the connection is closed.

    Attributes:
        ended: Why the connection is over; None while it is open.
    """

    def __init__(self, command: str) -> None:
        """Nothing runs yet.

        Raises:
            ValueError: The command has an open quote, or is empty.
        """
        self._words = shlex.split(command)
        if not self._words:
            raise ValueError("the command is empty")
        self._last_line = ""
        self._tasks: list[asyncio.Task[None]] = []
        self._process: Process | None = None
        self._close: Callable[[], object] = lambda: None
        self._is_closing = False
        self.ended: str | None = None

    async def __aenter__(self) -> tuple[_Read, _Write]:
        """Start the server.

        Raises:
            OSError: It cannot be started.
        """
        process = self._process = await asyncio.create_subprocess_exec(
            *self._words, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=_LONGEST_LINE, start_new_session=True
        )
        to_client, inbound = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outbound, from_client = anyio.create_memory_object_stream[SessionMessage](0)
        self._tasks = [
            asyncio.create_task(self._read(process, to_client), name="mcp server output"),
            asyncio.create_task(self._write(process, from_client), name="mcp server input"),
            asyncio.create_task(self._note(process), name="mcp server errors"),
        ]
        self._close = lambda: [each.close() for each in (to_client, inbound, outbound, from_client)]
        return inbound, outbound

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the server: close its input, and end it by signals when it does not leave."""
        process = self._process
        if process is None:
            return
        self._is_closing = True
        ending = asyncio.ensure_future(_end(process))
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending  # whoever leaves in a hurry leaves no process behind either
            raise
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.wait(self._tasks)
            self._close()
            process._transport.close()  # type: ignore[attr-defined]  # a child of its own may hold the pipes open

    async def _read(
        self, process: Process, to_client: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        """Pass on what the server sends; at its end, say why it ended."""
        reason = None
        others = 0
        output = process.stdout
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with to_client:
                try:
                    while output is not None and reason is None and (line := await output.readline()):
                        message = _message(line)
                        if message is not None:
                            await to_client.send(SessionMessage(message))
                        else:
                            others += 1
                            reason = (
                                f"it sent {show(_shown(line))}, which is not MCP"
                                if others > _MOST_OTHERS
                                else None
                            )
                except ValueError:
                    reason = f"it sent a message of more than {_LONGEST_LINE:,} bytes"
                reason = reason or await self._last_words(process)
                if not self._is_closing:
                    self.ended = reason

    async def _last_words(self, process: Process) -> str:
        try:
            async with asyncio.timeout(_GRACE):
                code = await process.wait()
                await asyncio.wait(self._tasks[2:])
        except TimeoutError:
            return "it closed its output"
        end = f"it ended with exit code {code}" if code >= 0 else f"it was ended by {_signal_name(-code)}"
        return f"{end}: {self._last_line}" if self._last_line else end

    async def _write(self, process: Process, from_client: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Pass on what the client sends; a server that does not read makes the client wait."""
        stdin = process.stdin
        with suppress(OSError):
            async with from_client:
                async for message in from_client:
                    if stdin is not None:
                        text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                        stdin.write(text.encode() + b"\n")
                        await stdin.drain()

    async def _note(self, process: Process) -> None:
        """Keep the last line that the server prints on standard error."""
        rest = b""
        while process.stderr is not None and (chunk := await process.stderr.read(_CHUNK)):
            *lines, rest = (rest + chunk).split(b"\n")
            rest = rest[:_CHUNK]
            said = [line for line in (*lines, rest) if line.strip()]
            if said:
                self._last_line = _shown(said[-1])


def _message(line: bytes) -> types.JSONRPCMessage | None:
    """A message; None for a line that is something else: servers print other things, too."""
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return None


def _shown(line: bytes) -> str:
    return cut(printable(line[: _LONGEST_REASON * 4].decode(errors="replace").strip()), _LONGEST_REASON)


async def _end(process: Process) -> None:
    if process.stdin is not None:
        process.stdin.close()
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE):
                await process.wait()
                return


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
