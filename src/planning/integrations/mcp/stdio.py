"""An MCP server over the standard input and output of its process."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import Any, Final

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

__all__ = ["LONGEST_LINE", "serve_stdio"]

LONGEST_LINE: Final = 4_000_000
"""The most bytes that a message may have."""

_MOST_REQUESTS: Final = 100
_CHUNK: Final = 65_536
_PATIENCE: Final = 0.1  # seconds until one more is refused
_LAST_ANSWERS: Final = 5.0  # seconds until the next answer once the input has ended
_STREAM: Final = "subscriptions/listen"


async def serve_stdio(server: Server[Any]) -> None:
    """Serve the client at the other end of this process's standard input and output, until the input ends.

    What else the process reads there is empty, and what it prints goes to standard error. At most 100
    requests are in work at a time, and a message has at most 4,000,000 bytes: what is more is refused. A
    client that does not read its answers is not read from either.

    Args:
        server: From ``build_server``.
    """
    to_server, inbound = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outbound, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    with _own_pipes() as (source, sink):
        pipes = _Pipes(_Input(source), _Output(sink), to_server, from_server)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pipes.read)
            tasks.start_soon(pipes.write, tasks.cancel_scope)
            await server.run(inbound, outbound, server.create_initialization_options())


class _Pipes:
    """Carries messages between the pipes and a server, and bounds what is under way."""

    def __init__(
        self,
        source: _Input,
        sink: _Output,
        to_server: MemoryObjectSendStream[SessionMessage | Exception],
        from_server: MemoryObjectReceiveStream[SessionMessage],
    ) -> None:
        self._source = source
        self._sink = sink
        self._to_server = to_server
        self._from_server = from_server
        self._open: set[str | int] = set()
        self._settled = anyio.Event()

    async def read(self) -> None:
        """Pass on what the client sends; at its end wait for the answers that are due."""
        with suppress(BrokenPipeError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            async with self._to_server:
                while (line := await self._source.line()) is not None:
                    await self._take(line)
                while self._open and await self._settles(_LAST_ANSWERS):
                    pass

    async def write(self, everything: anyio.CancelScope) -> None:
        """Pass on what the server answers; when nobody reads it any more, end everything."""
        try:
            async with self._from_server:
                async for message in self._from_server:
                    await self._sink.write(_written(message.message))
                    self._close(getattr(message.message, "id", None))
        except BrokenPipeError:
            pass
        everything.cancel()

    async def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        if len(line) > LONGEST_LINE:
            await self._refuse(None, types.INVALID_REQUEST, f"a message has at most {LONGEST_LINE:,} bytes")
            return
        try:
            message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            await self._refuse(None, types.PARSE_ERROR, "the line is not a JSON-RPC message")
            return
        if isinstance(message, types.JSONRPCRequest) and message.method != _STREAM:
            if len(self._open) >= _MOST_REQUESTS and not await self._settles(_PATIENCE):
                reason = f"{_MOST_REQUESTS} requests are in work; wait for an answer"
                await self._refuse(message.id, types.INTERNAL_ERROR, reason)
                return
            self._open.add(message.id)
        elif isinstance(message, types.JSONRPCNotification) and message.method == "notifications/cancelled":
            self._close((message.params or {}).get("requestId"))  # it is not answered
        await self._to_server.send(SessionMessage(message))

    async def _settles(self, seconds: float) -> bool:
        """Wait until a request is settled; False when none is within the time."""
        self._settled = anyio.Event()
        with anyio.move_on_after(seconds):
            await self._settled.wait()
            return True
        return False

    async def _refuse(self, request_id: str | int | None, code: int, reason: str) -> None:
        error = types.ErrorData(code=code, message=reason)
        await self._sink.write(_written(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)))

    def _close(self, request_id: object) -> None:
        if isinstance(request_id, (str, int)):
            self._open.discard(request_id)
            self._settled.set()


def _written(message: types.JSONRPCMessage) -> bytes:
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


class _Input:
    """Lines of a pipe that blocks, read by a thread that never holds up the end of the process."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._loop = asyncio.get_running_loop()
        self._lines: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        threading.Thread(target=self._read, name="mcp input", daemon=True).start()

    async def line(self) -> bytes | None:
        """The next line; None at the end. Of one that is too long, the beginning."""
        return await self._lines.get()

    def _read(self) -> None:
        line = bytearray()
        with suppress(RuntimeError, CancelledError):  # the event loop is closed, or about to be
            while chunk := _some(self._number):
                *ends, rest = chunk.split(b"\n")
                for end in ends:
                    self._put(bytes(line) + end)
                    line.clear()
                if len(line) <= LONGEST_LINE:  # what follows is skipped
                    line += rest
            self._put(bytes(line))
            self._put(None)

    def _put(self, line: bytes | None) -> None:
        asyncio.run_coroutine_threadsafe(self._lines.put(line), self._loop).result()


class _Output:
    """Lines for a pipe that blocks, written by such a thread."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._loop = asyncio.get_running_loop()
        self._lines: SimpleQueue[tuple[bytes, asyncio.Future[None]]] = SimpleQueue()
        threading.Thread(target=self._write, name="mcp output", daemon=True).start()

    async def write(self, line: bytes) -> None:
        """Write a line; it is out when this returns.

        Raises:
            BrokenPipeError: Nobody reads it.
        """
        done: asyncio.Future[None] = self._loop.create_future()
        self._lines.put((line, done))
        await done

    def _write(self) -> None:
        with suppress(RuntimeError):  # the event loop is closed
            while True:
                line, done = self._lines.get()
                error = None
                try:
                    while line:
                        line = line[os.write(self._number, line) :]
                except OSError:
                    error = BrokenPipeError()
                self._loop.call_soon_threadsafe(_settle, done, error)


def _some(number: int) -> bytes:
    try:
        return os.read(number, _CHUNK)
    except OSError:
        return b""


def _settle(done: asyncio.Future[None], error: BrokenPipeError | None) -> None:
    if done.done():
        return  # its writer was cancelled
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


@contextmanager
def _own_pipes() -> Iterator[tuple[int, int]]:
    """Keep standard input and output for the protocol."""
    sys.stdout.flush()
    source, sink = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, 0)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no standard error
        os.dup2(nowhere, 1)
    os.close(nowhere)
    try:
        yield source, sink  # a thread may still read or write them when the block ends: they stay open
    finally:
        with suppress(OSError):
            sys.stdout.flush()
        os.dup2(source, 0)
        os.dup2(sink, 1)
