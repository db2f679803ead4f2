"""Every entry to a tool, and what many tests call: shared by the tests of this folder."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from planning.tools import BaseTool, Tool, Toolbox, ToolRegistry, ToolResult, execute_tools
from planning.tools.guard import Retry
from session import Session
from session.stores import MemoryStore, SqliteStore

SORRY = "I ran into a problem looking that up. Could you try again?"
QUESTION = "Could you give me your identifier, email or registration id?"
CALLS = ["call", "acall"]
NOW = Retry(attempts=3, wait_initial=0, wait_max=0, wait_jitter=0)


class Clock:
    """A clock that a test moves."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Answer(BaseTool):
    """A tool named t whose ``execute`` returns an outcome."""

    name = "t"
    description = "Answer."

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome

    async def execute(self, args: Any, context: dict[str, Any]) -> Any:
        return self.outcome


class Look(BaseTool):
    """A tool that returns what it was given."""

    name = "look"
    description = "Look."

    async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "data": [args, context]}


def made(function: Any, **options: Any) -> Tool:
    """A tool named t."""
    return Tool("t", "T.", function, **options)


def returning(outcome: Any, **options: Any) -> Tool:
    """A tool named t that returns a value."""
    return Tool("t", "T.", lambda: outcome, **options)


def raising(error: BaseException | type[BaseException], *, is_async: bool = False, **options: Any) -> Tool:
    """A tool named t that raises an error, plain or async."""

    def fail() -> None:
        raise error

    return Tool("t", "T.", in_async(fail) if is_async else fail, **options)


def in_async(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, async."""

    async def run(**arguments: Any) -> Any:
        return function(**arguments)

    return run


def through(
    entry: str,
    tool: Any,
    arguments: Any = None,
    session: Session | None = None,
    context: Any = None,
    **options: Any,
) -> ToolResult:
    """Call a tool by a method of a toolbox that holds it."""
    name = tool.name if hasattr(tool, "name") else tool.__name__
    return enter(entry, Toolbox([tool], session=session, **options), name, arguments, context)


def enter(entry: str, toolbox: Toolbox, name: str, arguments: Any = None, context: Any = None) -> ToolResult:
    """Call a tool by a method of the toolbox."""
    outcome: Any = getattr(toolbox, entry)(name, arguments, context=context)
    return asyncio.run(outcome) if asyncio.iscoroutine(outcome) else outcome  # type: ignore[no-any-return]  # by its entry


def told(result: ToolResult) -> tuple[Any, ...]:
    """What a result says, and to whom."""
    return result.success, result.message, result.value, result.error, result.user_message, result.code


def in_threads(functions: list[Callable[[], Any]]) -> None:
    """Call each in a thread of its own, all at the same time, and wait for them."""
    workers = [threading.Thread(target=function, daemon=True) for function in functions]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
        assert not worker.is_alive()


def safely(tool: BaseTool, arguments: Any = None, context: Any = None) -> dict[str, Any]:
    """What ``safe_execute`` answers."""
    given = [{} if value is None else value for value in (arguments, context)]
    return asyncio.run(tool.safe_execute(*given))


def piped(
    tools: list[Any], calls: Any, session: Session | None = None, **state: Any
) -> dict[str, dict[str, Any]]:
    """The results that ``execute_tools`` gives for a planner's calls of these tools."""
    given = {"tool_calls": calls, **state}
    return asyncio.run(execute_tools(given, registry=ToolRegistry(tools), session=session))["tool_results"]


SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}


def reopener(kind: str, folder: Path) -> Callable[[], Session]:
    """Opens a session, as another process does if it has a store."""
    if kind == "memory":
        session = Session()
        return lambda: session
    store = MemoryStore() if kind == "a memory store" else SqliteStore(folder / "plans.db")
    return lambda: Session(session_id="run-7", store=store)


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
