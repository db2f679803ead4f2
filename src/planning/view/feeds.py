"""The feeds of a page's clients: one look at a source serves all of them, none is made without them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from threading import Lock
from typing import Final

from planning.observe.deltas import Fields
from planning.view.document import as_json
from planning.view.sources import Run, StoreSource
from planning.view.steer import HostCommand

_POLLED: Final = 0.1  # seconds between two looks at a session
_LIST_POLLED: Final = 1.0  # the same at the list
_LOOKED: Final = 10.0  # seconds after which it is looked for what is over without a change
_HEARTBEAT: Final = 15.0  # seconds without news after which a client is sent a sign of life
_LINGER: Final = 10.0  # seconds that a session is kept for a client that has read it and will follow it
_MOST_KEPT: Final = 16  # sessions without clients
_END: Final = "event: end\ndata: null\n\n"  # the server ends: there is nothing to connect to again


class _Feed:
    """Looks at something again and again while it has followers."""

    def __init__(self, look: Callable[[], bool], stamp: Callable[[], object | None], seconds: float) -> None:
        """Nothing follows it yet."""
        self.followers = 0
        self.is_over = False
        self._look = look
        self._stamp = stamp
        self._seen: object | None = None
        self._seconds = seconds
        self._one = Lock()
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def followed(self) -> AsyncIterator[None]:
        """Look once, and continue within the block."""
        await self.look()
        self.followers += 1
        if self._task is None:
            self._task = asyncio.create_task(self._go_on())
        try:
            yield
        finally:
            self.followers -= 1
            if not self.followers and self._task is not None:
                self._task.cancel()
                self._task = None

    async def look(self) -> None:
        """Look once; followers hear of what is new."""
        if await asyncio.to_thread(self._look_alone):
            self._tell()

    async def end(self) -> None:
        """Look for the last time; the followers leave then."""
        await self.look()
        self.is_over = True
        self._tell()

    async def news(self) -> bool:
        """Wait for something new; False if there was nothing for a while."""
        news = self._news
        with suppress(TimeoutError):
            async with asyncio.timeout(_HEARTBEAT):
                await news.wait()
        return news.is_set()

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def _look_alone(self) -> bool:
        with self._one:
            return self._look()

    async def _go_on(self) -> None:
        looked = time.monotonic()
        while True:
            await asyncio.sleep(self._seconds)
            stamp = self._stamp()
            if stamp is None or stamp != self._seen or time.monotonic() > looked + _LOOKED:
                self._seen, looked = stamp, time.monotonic()
                await self.look()


class _SessionFeed(_Feed):
    """Follows one session."""

    def __init__(self, run: Run) -> None:
        super().__init__(self._read, run.stamp, _POLLED)
        self.run = run

    def _read(self) -> bool:
        document = self.run.document
        before = document.version, document.problem, document.health_fields
        document.read(self.run.moments)
        if document.problem is not None:
            self._seen, self._seconds = None, _LIST_POLLED  # it may pass
        else:
            self._seconds = _POLLED
        return before != (document.version, document.problem, document.health_fields)


class _ListFeed(_Feed):
    """Follows the list of sessions; if there are many, it looks until all are read."""

    def __init__(self, source: StoreSource) -> None:
        super().__init__(self._read, source.stamp, _LIST_POLLED)
        self.listed: Fields = {"sessions": []}
        self._source = source

    def _read(self) -> bool:
        began, before = time.monotonic(), self.listed
        self.listed = self._source.listed()
        if self.listed["reading"]:
            self._seen, self._seconds = None, _POLLED
        else:
            self._seconds = max(_LIST_POLLED, 10 * (time.monotonic() - began))
        return before != self.listed


class Feeds:
    """All that clients follow."""

    def __init__(self, source: StoreSource) -> None:
        """Nothing is read yet."""
        self.only = source.only
        self._source = source
        self._sessions: dict[str, asyncio.Task[_SessionFeed]] = {}
        self._list = _ListFeed(source)

    async def run(self, name: str) -> list[str]:
        """A session as JSON, in parts."""
        feed = await self._feed(name)
        async with feed.followed():
            return feed.run.document.parts()

    async def changes(self, name: str, after: int) -> AsyncGenerator[str]:
        """The changes of a session after a version as server-sent events, until the server ends."""
        return self._changes(await self._feed(name), name, after)

    async def _changes(self, feed: _SessionFeed, name: str, after: int) -> AsyncGenerator[str]:
        document, problem, health = feed.run.document, None, Fields()
        try:
            async with feed.followed():
                while after >= document.first:
                    is_over = feed.is_over
                    for version, text in document.after(after):
                        yield f"event: change\nid: {version}\ndata: {text}\n\n"
                        after = version
                    if document.problem != problem:
                        problem = document.problem
                        yield problem_event(problem)
                    if (now := document.health_fields) != health:
                        health = now
                        yield _event("health", health)
                    if is_over:
                        yield _END
                        return
                    if not await feed.news():
                        yield ":\n\n"
                yield problem_event("this page is too far behind; load it again")
        finally:
            self._leave(name, feed)

    async def session_changes(self) -> AsyncGenerator[str]:
        """The sessions, and then those that changed, as server-sent events, until the server ends."""
        feed, known, said = self._list, dict[str, Fields](), Fields()
        async with feed.followed():
            while not feed.is_over:
                found = dict(feed.listed)
                sessions = {each["id"]: each for each in found.pop("sessions")}
                found["gone"] = [name for name in known if name not in sessions]
                changed = [each for name, each in sessions.items() if known.get(name) != each]
                known = sessions
                if changed:
                    yield _event("sessions", changed)
                if found != said:
                    said = {**found, "gone": []}
                    yield _event("list", found)
                if not await feed.news():
                    yield ":\n\n"
            yield _END

    async def steer(self, name: str, command: HostCommand, version: int) -> int:
        """Change the plan of a session, as ``StoreSource.steer`` does; those who follow it hear of it."""
        return await asyncio.to_thread(self._source.steer, name, command, version)

    async def end(self) -> None:
        """Let all clients have what is newest, and leave."""
        opened = [task.result() for task in self._sessions.values() if _is_good(task)]
        await asyncio.gather(self._list.end(), *(feed.end() for feed in opened))

    async def _feed(self, name: str) -> _SessionFeed:
        task = self._sessions.get(name)
        if task is None or (task.done() and not _is_good(task)):
            task = self._sessions[name] = asyncio.create_task(self._opened(name))
        feed = await asyncio.shield(task)
        self._leave(name, feed)  # unless it is followed by then
        return feed

    async def _opened(self, name: str) -> _SessionFeed:
        return _SessionFeed(await asyncio.to_thread(self._source.open, name))

    def _leave(self, name: str, feed: _SessionFeed) -> None:
        """Forget a session that no client follows, in a while."""
        asyncio.get_running_loop().call_later(_LINGER, self._forget, name, feed)
        idle = [key for key, task in self._sessions.items() if _is_good(task) and not task.result().followers]
        for key in idle[:-_MOST_KEPT]:
            self._forget(key, self._sessions[key].result())

    def _forget(self, name: str, feed: _SessionFeed) -> None:
        task = self._sessions.get(name)
        if task is not None and _is_good(task) and task.result() is feed and not feed.followers:
            del self._sessions[name]
            feed.run.close()


def problem_event(text: str | None) -> str:
    """The problem, or None once it is over, as a server-sent event."""
    return _event("problem", {"text": text})


def _event(name: str, data: object) -> str:
    return f"event: {name}\ndata: {as_json(data)}\n\n"


def _is_good(task: asyncio.Task[_SessionFeed]) -> bool:
    return task.done() and not task.cancelled() and task.exception() is None
