"""What the tests of repeats share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from planning.tools import Tool
from session import Session
from session.stores import MemoryStore, SqliteStore

__all__ = ["SCHEMA", "by", "counting", "openers"]

SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}


def openers(folder: Path) -> dict[str, Callable[[], Session]]:
    """By name, what opens a session: each time another one in memory, and the same one in a store."""
    memory, file = MemoryStore(), SqliteStore(folder / "plans.db")
    return {
        "memory": Session,
        "a memory store": lambda: Session(session_id="run-7", store=memory),
        "a file": lambda: Session(session_id="run-7", store=file),
    }


def counting(**options: Any) -> tuple[Tool, list[str]]:
    """A tool that sends, and to whom it has sent."""
    made: list[str] = []

    def send(arguments: dict[str, str]) -> str:
        made.append(arguments["to"])
        return f"Sent {len(made)} to {arguments['to']}"

    return Tool("send", "Send a mail.", send, parameters=SCHEMA, **options), made


def by(key: str) -> dict[str, Any]:
    """The context of a call with an idempotency key."""
    return {"call_id": "call_1", "actor": "agent", "idempotency_key": key}
