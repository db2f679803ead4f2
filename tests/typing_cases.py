"""What a type checker infers of the public names: ``make check`` reads it, and nothing calls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_type

from planning import Plan, PlanningToolsSection, Toolbox, tool
from planning.tools import Tool, ToolResult
from session import Session, select_all, select_latest
from session.stores import MemoryStore, PostgresStore, SqliteStore, Store, StoredSession


def selectors(session: Session) -> None:
    assert_type(select_latest(session, Plan), Plan | None)
    assert_type(select_all(session.snapshot(), Plan), tuple[Plan, ...])
    assert_type(session.at(0).select_latest(Plan), Plan | None)


@tool
def add(first: int, second: int = 1) -> int:
    return first + second


async def tools(session: Session) -> None:
    made = tool(timeout=5)(lambda: "made")
    box = Toolbox([*PlanningToolsSection(session=session).tools(), add, made], session=session)
    assert_type(add, Tool)
    assert_type(made, Tool)
    assert_type(box.call("add", {"first": 1}), ToolResult)
    assert_type(await box.acall("add", "{}"), ToolResult)
    assert_type(box.session, Session | None)


def stores(session: Session) -> None:
    kept: list[Store] = [MemoryStore(), SqliteStore("plans.db"), PostgresStore("postgresql://host/plans")]
    assert_type(kept[0].sessions(), Sequence[StoredSession])
    assert_type(Session(store=kept[0]).store, Store | None)
    assert_type(session.fork(), Session)
