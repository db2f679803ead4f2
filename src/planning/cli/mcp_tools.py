"""The tools of MCP servers that run as long as a command does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from planning.cli.usage import Refused
from planning.errors import ToolError, printable

if TYPE_CHECKING:
    from planning.tools.tool import Tool

__all__ = ["tools_of_servers"]


@contextmanager
def tools_of_servers(commands: Sequence[str]) -> Iterator[Mapping[str, Tool]]:
    """Start MCP servers, and end them with the block.

    They are spoken to in an event loop in a thread of its own, so that tools can be called from any other.

    Args:
        commands: The command of each server, as a shell takes it.

    Raises:
        Refused: One does not start or does not list its tools; or two tools have the same name.
    """
    if not commands:
        yield {}
        return
    try:
        import planning.integrations.mcp  # noqa: F401 - an extra, which is refused here when it is missing
    except ImportError as error:
        raise Refused(str(error)) from None
    servers = _Servers(commands)
    thread = threading.Thread(target=servers.run, name="mcp servers", daemon=True)
    thread.start()
    try:
        try:
            yield servers.tools.result()
        except ToolError as error:
            raise Refused(f"--mcp: {printable(error.message)}") from None
    finally:
        servers.stop()
        thread.join()


class _Servers:
    """Servers and the event loop in which they are spoken to.

    Attributes:
        tools: Their tools by name, once all are known.
    """

    def __init__(self, commands: Sequence[str]) -> None:
        self._commands = commands
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self.tools: Future[Mapping[str, Tool]] = Future()

    def run(self) -> None:
        """Run them until ``stop``; in their thread."""
        self._task = self._loop.create_task(self._serve())
        with suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._task)
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    def stop(self) -> None:
        """End them; from any thread."""
        with suppress(RuntimeError):  # the loop is closed: none of them has started
            self._loop.call_soon_threadsafe(lambda: None if self._task is None else self._task.cancel())

    async def _serve(self) -> None:
        from planning.integrations.mcp import open_server, tools_from

        found: dict[str, Tool] = {}
        try:
            async with AsyncExitStack() as stack:
                for command in self._commands:
                    client = await stack.enter_async_context(open_server(command))
                    _add(found, await tools_from(client))
                self.tools.set_result(found)
                await asyncio.Event().wait()  # until this is cancelled
        except Exception as error:  # noqa: BLE001 - whoever waits for the tools is told
            if not self.tools.done():
                self.tools.set_exception(error)


def _add(found: dict[str, Tool], tools: Iterable[Tool]) -> None:
    for tool in tools:
        if found.setdefault(tool.name, tool) is not tool:
            raise ToolError(f"two tools are named {tool.name}")
