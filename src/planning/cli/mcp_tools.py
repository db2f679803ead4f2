"""The tools of MCP servers that run as long as a command does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
        from planning.integrations.mcp.servers import Servers
    except ImportError as error:
        raise Refused(str(error)) from None
    servers = Servers(commands)
    try:
        try:
            tools = servers.tools()
        except ToolError as error:
            raise Refused(f"--mcp: {printable(error.message)}") from None
        yield tools
    finally:
        servers.close()
