"""A server of a stored plan and of a tool that waits: ``STORE SESSION FOLDER``."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from planning import tool
from planning.integrations.mcp import build_server, serve_stdio
from session import Session
from session.stores import SqliteStore

if __name__ == "__main__":
    folder = Path(sys.argv[3])

    @tool
    async def wait() -> str:
        """Waits until it may go on."""
        (folder / "waiting").touch()
        while not (folder / "go on").exists():
            await asyncio.sleep(0.01)
        return "It may go on."

    session = Session(session_id=sys.argv[2], store=SqliteStore(sys.argv[1]))
    asyncio.run(serve_stdio(build_server([wait], session=session, always_load=True, structured=False)))
    (folder / "ended").touch()
