"""MCP: a toolbox and its plan as a server, and the tools of other servers as tools.

It needs the extra ``[mcp]``. A server in three lines::

    from planning.integrations.mcp import build_server, serve_stdio

    asyncio.run(serve_stdio(build_server(session=session)))
"""

from typing import TYPE_CHECKING

from planning.lazy import lazy_names

try:
    import mcp as _mcp  # noqa: F401 - an extra: nothing here works without it
except ModuleNotFoundError:
    raise ImportError("MCP needs the mcp library: pip install 'session-planning[mcp]'") from None

if TYPE_CHECKING:
    from planning.integrations.mcp.client import open_server, tools_from
    from planning.integrations.mcp.http import http_app, serve_http
    from planning.integrations.mcp.server import build_server
    from planning.integrations.mcp.stdio import serve_stdio

__all__ = ["build_server", "serve_stdio", "http_app", "serve_http", "tools_from", "open_server"]

_HOMES = {
    "build_server": "server",
    "serve_stdio": "stdio",
    "http_app": "http",
    "serve_http": "http",
    "tools_from": "client",
    "open_server": "client",
}

__getattr__, __dir__ = lazy_names(__name__, globals(), _HOMES, __all__)
