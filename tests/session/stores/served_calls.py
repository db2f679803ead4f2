"""A worker process of a server, as tests drive it: calls of many users at once, and what each was answered.

It gets scripts, and sends what it says of a call at once, so that one who kills it knows what was answered.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from contextvars import ContextVar
from itertools import count
from multiprocessing.connection import Connection
from typing import Any

from planning import Plan, PlanningToolsSection, Toolbox, register_plan
from session import Session, pool
from session.stores import PostgresStore, SqliteStore, Store

Call = dict[str, Any]
"""``number``, ``user``, ``at`` (milliseconds), ``fate`` (what is done to it) and ``after`` (milliseconds)."""
Script = dict[str, Any]
"""``place``, ``loops`` (the calls of each), ``at_once``, ``kept``, ``patience``, ``held``."""

_user: ContextVar[str] = ContextVar("user")


def title(number: int) -> str:
    return f"call {number}"


def opened(place: list[str], patience: float) -> Store:
    """The store of a place: a file, or a database and a schema in it."""
    if len(place) == 1:
        return SqliteStore(place[0], timeout=patience)
    return PostgresStore(place[0], schema=place[1], timeout=patience)


@contextmanager
def held(place: list[str]) -> Iterator[None]:
    if len(place) == 1:
        with closing(sqlite3.connect(place[0], isolation_level=None)) as connection:
            connection.execute("PRAGMA busy_timeout = 10000")
            connection.execute("BEGIN IMMEDIATE")
            yield
        return
    import psycopg

    with psycopg.connect(place[0]) as database:
        database.execute(f'SELECT FROM "{place[1]}".sessions ORDER BY key FOR UPDATE')
        yield
        database.rollback()


def titles(session: Session) -> list[str]:
    register_plan(session)
    plan = session.select_latest(Plan)
    return [] if plan is None else [step.title for step in plan.steps]


class Worker:
    def __init__(self, script: Script, answers: Connection) -> None:
        self._script, self._answers, self._sending = script, answers, threading.Lock()
        self._store = opened(script["place"], script["patience"])
        self._kept: dict[str, Session] = {}
        self._order = count()
        tools = PlanningToolsSection(session=self._session).tools()
        self._toolbox = Toolbox(tools, session=self._session)

    def run(self) -> None:
        """Run each loop in a thread of its own, and hold the store when it is time."""
        threads = [threading.Thread(target=self._loop, args=(calls,)) for calls in self._script["loops"]]
        threads += [threading.Thread(target=self._hold, args=tuple(each)) for each in self._script["held"]]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._kept.clear()
        self._store.close()

    def _session(self) -> Session:
        user = _user.get()
        if not self._script["kept"]:
            return Session(session_id=user, store=self._store)
        if user not in self._kept:
            self._kept[user] = Session(session_id=user, store=self._store)
        return self._kept[user]

    def _hold(self, at: int, limit: int) -> None:
        time.sleep(at / 1_000)
        with held(self._script["place"]):
            time.sleep(limit / 1_000)

    def _loop(self, calls: list[Call]) -> None:
        asyncio.run(self._main(calls))

    async def _main(self, calls: list[Call]) -> None:
        places, began = asyncio.Semaphore(self._script["at_once"]), time.monotonic()
        tasks = []
        for call in calls:
            await asyncio.sleep(max(0, began + call["at"] / 1_000 - time.monotonic()))
            tasks.append(asyncio.create_task(self._one(call, places)))
        await asyncio.gather(*tasks)

    async def _one(self, call: Call, places: asyncio.Semaphore) -> None:
        async with places:
            await self._answered(call)

    async def _answered(self, call: Call) -> None:
        fate, after = call["fate"], call["after"] / 1_000
        _user.set(call["user"])
        answer: dict[str, Any] = {
            "number": call["number"],
            "order": next(self._order),
            "begun": time.monotonic(),
        }
        arguments = {"steps": [{"title": title(call["number"])}]}
        task = asyncio.create_task(self._toolbox.acall("planning_add_step", arguments))
        try:
            if fate == "cancel":
                await asyncio.wait([task], timeout=after)
                task.cancel()
                result = await task
            else:
                async with asyncio.timeout(after if fate == "timeout" else None):
                    result = await task
            answer |= {"how": "made" if result.success else "refused", "message": result.message}
        except (asyncio.CancelledError, TimeoutError):
            answer |= {"how": "cancelled", "there": title(call["number"]) in titles(self._session())}
        except BaseException as error:
            answer |= {"how": "raised", "message": repr(error)}
            raise
        finally:
            with self._sending:
                self._answers.send({**answer, "ended": time.monotonic()})


def main(scripts: Connection) -> None:
    """Run the scripts that come; each ends with None."""
    pool._IDLE = 0.02  # threads end often, and are started often
    with suppress(EOFError):
        while True:
            Worker(scripts.recv(), scripts).run()
            scripts.send(None)
