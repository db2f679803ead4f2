"""A client of the MCP server in this process, in both protocol eras."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from frameworks import Answer, Call, Request, playing
from mcp import Client
from mcp_types import Implementation

from planning import PlanPolicy
from planning.integrations.mcp import build_server
from planning.tools import Tool


class Auto:
    """A client that agrees with the server on a protocol."""

    mode: Any = "auto"

    def __init__(self, session: Any, tools: Iterable[Tool] = (), policy: PlanPolicy | None = None) -> None:
        self.server = build_server(tools, session=session, policy=policy)

    async def run(self, before: Any = None) -> tuple[list[Answer], Any]:
        del before  # the server does not see the conversation
        clerk, script, answers = Implementation(name="clerk", version="1"), playing.get(), list[Answer]()
        async with Client(self.server, mode=self.mode, client_info=clerk) as client:

            async def answered(call_id: str, call: Call) -> Answer:
                meta: Any = {"planning/call_id": call_id}
                result = await client.call_tool(*call, meta=meta)
                text = "".join(getattr(each, "text", "") for each in result.content)
                return Answer(call_id, not result.is_error, text)

            offered = (await client.list_tools()).tools
            tools = {each.name: (each.description or "", each.input_schema) for each in offered}
            while calls := script.next(Request(client.instructions or "", [], "", tools, [])):
                answers += await asyncio.gather(*(answered(*each) for each in calls))
        return answers, None


class Legacy(Auto):
    mode = "legacy"
