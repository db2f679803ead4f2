"""The tools of MCP servers that run as long as a command does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from planning.cli.usage import Refused
from planning.errors import ToolError, printable

if TYPE_CHECKING:
    from planning.tools.tool import Tool


@contextmanager
def tools_of_servers(commands: Sequence[str]) -> Iterator[Mapping[str, Tool]]:
    """Start MCP servers, and end them with the block.

    Their clients run in an event loop in another thread, so that tools can be called from any loop.
    """
    if not commands:
        yield {}
        return
    try:
        from anyio.from_thread import start_blocking_portal

        from planning.integrations.mcp import open_server, tools_from
    except ImportError as error:
        raise Refused(str(error)) from None
    import logging

    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # of servers that print more than MCP
    found: dict[str, Tool] = {}
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        try:
            for command in commands:
                client = stack.enter_context(portal.wrap_async_context_manager(open_server(command)))
                tools = {tool.name: tool for tool in portal.call(tools_from, client)}
                for name in tools.keys() & found.keys():
                    raise Refused(f"--mcp: two tools are named {printable(name)}")
                found |= tools
        except ToolError as error:
            raise Refused(f"--mcp: {printable(error.message)}") from None
        yield found
