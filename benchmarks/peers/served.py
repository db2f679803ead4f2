"""Stores under the requests of a server: in each request a user's plan is read, changed and written.

A contestant is opened once for each process, in its event loop. Ours is a server's form: one section and one
toolbox for all users, whose session function opens the session of the request. The peers do the bare work of
their stores, without any planning: they read a state of as many steps, change one, and write it. What raises
an error of a database is refused.

Each loads its own library alone: a process's memory is measured.
"""
# ruff: noqa: PLC0415

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from contextvars import ContextVar
from functools import partial
from random import Random
from typing import Any

from benchmarks.harness import OURS
from benchmarks.peers.contest import title
from planning import PlanningToolsSection, Toolbox
from session import Session
from session.stores import PostgresStore, SqliteStore, Store

__all__ = ["CONNECTIONS", "CONTESTANTS", "HARNESS", "SAVER", "STEPS", "Turn", "opened", "served"]

STEPS, CONNECTIONS = 8, 8
HARNESS, SAVER = "pydantic-ai-harness, its plan store", "langgraph, its saver"
WORDS = ("in_progress", "pending", "blocked")
_chance = Random(7)  # noqa: S311 - which step is no secret

Turn = Callable[[str], Awaitable[bool]]
"""A request of a user; False where it was refused."""


def opened(place: str) -> Store:
    """Our store: a file, or a database."""
    return PostgresStore(place) if "=" in place else SqliteStore(place)


def served(store: Store) -> tuple[Toolbox, ContextVar[str]]:
    """A toolbox for all users, and the variable that says whose request it is."""
    user: ContextVar[str] = ContextVar("user")

    def session() -> Session:
        return Session(session_id=user.get(), store=store)

    return Toolbox(PlanningToolsSection(session=session).tools(), session=session), user


@asynccontextmanager
async def _ours(place: str) -> AsyncIterator[Turn]:
    known = set[str]()
    steps = [title(number) for number in range(STEPS)]
    with closing(opened(place)) as store:
        toolbox, current = served(store)

        async def turn(user: str) -> bool:
            current.set(user)
            if user not in known:
                known.add(user)
                plan = {"objective": "Serve", "initial_steps": steps}
                return (await toolbox.acall("planning_setup_plan", plan)).success
            mark = {"step_id": f"S{_chance.randrange(STEPS) + 1:03}", "status": _chance.choice(WORDS)}
            mark["note"] = str(_chance.random())
            return (await toolbox.acall("planning_mark_step", mark)).success

        yield turn


@asynccontextmanager
async def _harness(place: str) -> AsyncIterator[Turn]:
    import asyncpg
    from pydantic_ai_harness.planning import PlanItem, PostgresPlanStore, SqlitePlanStore, TaskStatus

    stores: dict[str, Any] = {}  # one that is new looks at the schema
    items = [PlanItem(id=f"{number:08x}", content=title(number)) for number in range(STEPS)]
    words = (TaskStatus.in_progress, TaskStatus.pending, TaskStatus.blocked)

    async def turn(user: str) -> bool:
        try:
            if user not in stores:
                stores[user] = open_(session=user)
                await stores[user].set_items(items)
                return True
            item, word = f"{_chance.randrange(STEPS):08x}", _chance.choice(words)
            return await stores[user].update_item(item, status=word, active_form=str(_chance.random()))
        except (sqlite3.Error, asyncpg.PostgresError):
            return False

    if "=" not in place:
        open_: Callable[..., Any] = partial(SqlitePlanStore, place)
        yield turn
        return
    from psycopg.conninfo import conninfo_to_dict

    options = conninfo_to_dict(place)
    options["database"] = options.pop("dbname")
    async with asyncpg.create_pool(**options, min_size=CONNECTIONS, max_size=CONNECTIONS) as pool:
        open_ = partial(PostgresPlanStore, pool)
        yield turn


@asynccontextmanager
async def _saver(place: str) -> AsyncIterator[Turn]:
    import psycopg
    from langgraph.checkpoint.base import empty_checkpoint

    async with _open_saver(place) as saver:
        await saver.setup()

        async def turn(user: str) -> bool:
            config: Any = {"configurable": {"thread_id": user, "checkpoint_ns": ""}}
            try:
                found = await saver.aget_tuple(config)
                if found is None:
                    step, steps = 0, [{"content": title(n), "status": "pending"} for n in range(STEPS)]
                else:
                    config, step = found.config, found.metadata["step"] + 1
                    steps = found.checkpoint["channel_values"]["todos"]
                    steps[_chance.randrange(STEPS)] |= {
                        "status": _chance.choice(WORDS), "note": str(_chance.random()),
                    }  # fmt: skip
                checkpoint = empty_checkpoint()
                checkpoint["channel_values"], checkpoint["channel_versions"] = (
                    {"todos": steps},
                    {"todos": step + 1},
                )
                metadata: Any = {"source": "loop", "step": step, "parents": {}}
                await saver.aput(config, checkpoint, metadata, {"todos": step + 1})
            except (sqlite3.Error, psycopg.Error):
                return False
            return True

        yield turn


@asynccontextmanager
async def _open_saver(place: str) -> AsyncIterator[Any]:
    if "=" not in place:
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        async with AsyncSqliteSaver.from_conn_string(place) as saver:
            yield saver
        return
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    async with AsyncConnectionPool(
        place, kwargs=options, min_size=CONNECTIONS, max_size=CONNECTIONS, open=False
    ) as pool:
        yield AsyncPostgresSaver(pool)


CONTESTANTS: dict[str, Callable[[str], AbstractAsyncContextManager[Turn]]] = {
    OURS: _ours,
    HARNESS: _harness,
    SAVER: _saver,
}
"""By name: what opens one in a process, at a file or at the ``name=value`` words of a database."""
