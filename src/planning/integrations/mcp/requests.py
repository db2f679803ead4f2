"""Who makes a request: its connection, and what its call is told of the client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from planning.integrations._common import call_context
from planning.tools.context import AGENT

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

__all__ = ["connection_of", "context_of", "is_single"]

_CALL_ID: Final = "planning/call_id"
_CALL_ID_OF_CLAUDE_CODE: Final = "claudecode/toolUseId"
_KEY: Final = "planning/idempotency_key"


def is_single(ctx: ServerRequestContext[Any]) -> bool:
    """Whether a request over HTTP belongs to no connection."""
    return ctx.request is not None and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def connection_of(ctx: ServerRequestContext[Any]) -> Any:
    """What lives as long as the connection of a request; there is no public way to it."""
    return ctx.lifespan_context if ctx.request is None else ctx.session._connection


def context_of(ctx: ServerRequestContext[Any]) -> dict[str, Any]:
    """What a call is told of its client.

    The id of a JSON-RPC request counts the messages of one connection, so that each connection has the
    same ones: it does not identify a call. Only an id and a key that the client gives are passed on. A key
    that is not text is refused, and not omitted: with it the client says what a repeat is.
    """
    client = ctx.session.client_params
    meta: Any = ctx.meta or {}
    actor = None if client is None else client.client_info.name
    call_id = meta.get(_CALL_ID, meta.get(_CALL_ID_OF_CLAUDE_CODE))
    agent = None if is_single(ctx) else connection_of(ctx).state.setdefault(AGENT, object())
    return call_context(call_id, actor, **{"idempotency_key": meta.get(_KEY), AGENT: agent})
