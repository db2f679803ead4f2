"""MCP servers that are spoken to in a thread of their own, for programs without an event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress

from planning.errors import ToolError
from planning.integrations.mcp.client import open_server, tools_from
from planning.tools.tool import Tool

__all__ = ["Servers"]


class Servers:
    """Starts servers, and ends them when it is closed; their tools can be called from any thread and loop."""

    def __init__(self, commands: Sequence[str]) -> None:
        """Start them.

        Args:
            commands: The command of each, as a shell takes it; no shell runs it.
        """
        self._commands = commands
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._tools: Future[Mapping[str, Tool]] = Future()
        self._thread = threading.Thread(target=self._run, name="mcp servers", daemon=True)
        self._thread.start()

    def tools(self) -> Mapping[str, Tool]:
        """Their tools by name, once all are known.

        Raises:
            ToolError: One did not start or did not list its tools; or two tools have the same name.
        """
        return self._tools.result()

    def close(self) -> None:
        """End them, also while they start."""
        with suppress(RuntimeError):  # the loop is closed: they have ended
            self._loop.call_soon_threadsafe(self._cancel)
        self._thread.join()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _run(self) -> None:
        self._task = self._loop.create_task(self._serve())
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._task)
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _serve(self) -> None:
        found: dict[str, Tool] = {}
        try:
            async with AsyncExitStack() as stack:
                for command in self._commands:
                    client = await stack.enter_async_context(open_server(command))
                    _add(found, await tools_from(client))
                self._tools.set_result(found)
                await asyncio.Event().wait()  # until this is cancelled
        except Exception as error:  # noqa: BLE001 - whoever waits for the tools is told
            if not self._tools.done():
                self._tools.set_exception(error)


def _add(found: dict[str, Tool], tools: Iterable[Tool]) -> None:
    for tool in tools:
        if found.setdefault(tool.name, tool) is not tool:
            raise ToolError(f"two tools are named {tool.name}")
