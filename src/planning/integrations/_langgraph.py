"""The place of an agent in LangGraph, and whether its run began from an older checkpoint.

LangChain calls each hook from plain or from async code. A hook is one coroutine for both: in plain code
nothing in it has to be awaited, and ``run_plain`` runs it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractContextManager, aclosing, suppress
from functools import partial
from itertools import takewhile
from threading import Lock
from time import sleep
from typing import Any, TypeVar
from uuid import uuid4

import attrs
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.config import get_config
from langgraph.runtime import get_runtime

from planning.integrations._rewind import Position, calling, checked, go_back, is_older, settle
from planning.suite.events import FrameworkChange, last_change
from planning.tools.once import LastUsed
from session import Session, SessionId

T = TypeVar("T")
_MOST_RUNS = 10_000
_PAUSES = (0.01, 0.05, 0.2, 0.5)
"""The seconds to wait for a checkpoint that is being saved."""


def run_plain(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits only in plain code, so that it is over after one step."""
    try:
        coroutine.send(None)
    except StopIteration as over:
        result: T = over.value
        return result
    raise RuntimeError("a hook of plain code awaited something")


class _Run:
    """A run of an outermost graph: the sessions for which it is settled whether they go back."""

    def __init__(self, control: object) -> None:
        self.control = control  # kept, so that no other run's has its address
        self.lock = Lock()
        self.settled: set[SessionId] = set()


_runs = LastUsed[_Run](_MOST_RUNS)


@attrs.frozen(slots=False)  # made in half the time
class Here:
    """The place in LangGraph where a hook of an agent runs now.

    Attributes:
        step: The step of the agent's own graph; calls of one turn have the same.
        is_async: Whether the hook is called from async code.
        at: The checkpoint of the outermost graph, whose ids are in the order of time.
        place: The thread, as ``FrameworkChange`` names it; None without a checkpointer.
        thread: The thread's id.
        saver: What keeps the checkpoints.
        named: The checkpoint from which the caller began the run, if it named one.
        run: The run of the outermost graph; None when it cannot be distinguished from others.
    """

    step: str
    is_async: bool
    at: str = ""
    place: str | None = None
    thread: str | None = None
    saver: BaseCheckpointSaver[Any] | None = None
    named: str | None = None
    run: _Run | None = None

    @classmethod
    def now(cls, *, is_async: bool) -> Here:
        """The place of the running code; nowhere outside of a graph."""
        try:
            config = get_config()
        except RuntimeError:
            return cls(uuid4().hex, is_async)
        inner = config.get("configurable", {})
        checkpoints = inner.get("checkpoint_map") or {}
        step = checkpoints.get(str(inner.get("checkpoint_ns", "")).rpartition("|")[0]) or uuid4().hex
        thread, saver, at = inner.get("thread_id"), inner.get("__pregel_checkpointer"), checkpoints.get("")
        control, named = get_runtime().control, (config.get("metadata") or {}).get("checkpoint_id")
        run = None if control is None else _runs.of(id(control), partial(_Run, control))
        if saver is None or not thread or not at:
            return cls(step, is_async, run=run)
        return cls(step, is_async, at, f"langchain:{thread}", str(thread), saver, named, run)

    async def finish(self, session: Session | None, function: Callable[[], T]) -> T:
        """Call a function that may read a session's store, which must not hold an event loop."""
        return await session.run_in_worker(function) if self.is_async and session is not None else function()

    async def pause(self, seconds: float) -> None:
        """Sleep."""
        await asyncio.sleep(seconds) if self.is_async else sleep(seconds)

    def calling(self, session: Session | None) -> AbstractContextManager[None]:
        """Let changes of a session, in this context, carry where they were made."""
        return calling(session, self.place, self.at)

    async def follow(self, session: Session, position: Position | None) -> None:
        """Rewind a session if this run demonstrably began from an older checkpoint; once for each run.

        If the session's store cannot be reached, the next hook of the run tries again.
        """
        last = await self.finish(session, partial(self._last, session, position))
        if last is None or self.saver is None:
            return
        named, newest = None, list[CheckpointTuple]()
        with suppress(Exception):  # what a checkpointer cannot say now proves nothing
            if self.named:
                saver, config = self.saver, self._config(self.named)
                named = await saver.aget_tuple(config) if self.is_async else saver.get_tuple(config)
            for pause in _PAUSES:
                newest = await self._newer(self.saver, last.at)
                if not self._must_wait(newest):
                    break
                await self.pause(pause)
        await self.finish(session, partial(self._settle, session, last, newest, named))

    async def _newer(self, saver: BaseCheckpointSaver[Any], at: str) -> list[CheckpointTuple]:
        """The thread's checkpoints after one, newest first."""
        if not self.is_async:
            # No name holds the iterator: some savers are locked until it is gone.
            return list(takewhile(lambda kept: _id(kept) > at, saver.list(self._config())))
        newest = list[CheckpointTuple]()
        async with aclosing(saver.alist(self._config())) as listed:  # type: ignore[type-var]  # savers have generators
            async for kept in listed:
                if _id(kept) <= at:
                    break
                newest.append(kept)
        return newest

    def _last(self, session: Session, position: Position | None) -> FrameworkChange | None:
        """The thread's last change, where it is to be settled whether the session goes back behind it."""
        with self.calling(session):
            settle(session, position)
        if self.run is None or self.place is None or session.session_id in self.run.settled:
            return None
        last = last_change(session, self.place)
        if last is not None and last.at < self.at and is_older(session, position, last):
            return last
        self.run.settled.add(session.session_id)
        return None

    def _settle(
        self, session: Session, last: FrameworkChange, newest: Sequence[CheckpointTuple], named: Any
    ) -> None:
        if self.run is None:
            return
        with self.run.lock:  # the other agents of this run wait, so that they do not work in between
            if session.session_id in self.run.settled:
                return
            origin = None
            if self.step == self.at or self._is_apart(session, last, newest):
                origin = _origin(session, last, newest, named)
            if origin is not None:
                with self.calling(session):
                    go_back(session, _position(origin), last, _since(origin, newest))
            self.run.settled.add(session.session_id)

    def _must_wait(self, newest: Sequence[CheckpointTuple]) -> bool:
        """True if it is needed to know which checkpoints this run has behind it, and they are not saved yet.

        An agent within another graph does not see that graph's state.
        """
        may_go_back = self.named is not None or any(map(_is_fork, newest))
        return self.step != self.at and may_go_back and all(_id(kept) != self.at for kept in newest)

    def _is_apart(self, session: Session, last: FrameworkChange, newest: Sequence[CheckpointTuple]) -> bool:
        """True if this run has no checkpoint behind it that has the thread's last change."""
        saved = {_id(kept): kept for kept in newest}
        kept = saved.get(self.at)
        is_known = kept is not None
        while kept is not None and is_older(session, _position(kept), last):
            kept = saved.get(_parent(kept))
        return is_known and kept is None

    def _config(self, checkpoint: str | None = None) -> Any:
        """The thread's checkpoints of the outermost graph, or one of them."""
        ids = {} if checkpoint is None else {"checkpoint_id": checkpoint}
        return {"configurable": {"thread_id": self.thread, "checkpoint_ns": "", **ids}}


def _origin(
    session: Session, last: FrameworkChange, newest: Sequence[CheckpointTuple], named: CheckpointTuple | None
) -> CheckpointTuple | None:
    """The older checkpoint from which a run demonstrably began.

    That is the one that the caller named, or one that was made of an old one after a checkpoint had the
    thread's last change. If no checkpoint has that change, the work is under way, or was cut short.
    """
    fork = None
    for kept in newest:
        if not is_older(session, _position(kept), last):
            origin = named or fork
            return origin if origin is not None and is_older(session, _position(origin), last) else None
        if fork is None and _is_fork(kept):
            fork = kept
    return None


def _since(origin: CheckpointTuple, newest: Sequence[CheckpointTuple]) -> str:
    """The checkpoint of a run whose position an origin has: its own, or the one that it was made of."""
    saved, since = {_id(kept): kept for kept in newest}, _id(origin)
    kept: CheckpointTuple | None = origin
    while kept is not None and _is_fork(kept):
        since = _parent(kept)
        kept = saved.get(since)
    return since


def _is_fork(kept: CheckpointTuple) -> bool:
    """True if a checkpoint was made of another, by ``update_state`` or to run again from there."""
    return kept.metadata.get("source") in {"update", "fork"}


def _parent(kept: CheckpointTuple) -> str:
    parent = kept.parent_config or {}
    return str(parent.get("configurable", {}).get("checkpoint_id") or "")


def _id(kept: CheckpointTuple) -> str:
    found: str = kept.checkpoint["id"]
    return found


def _position(kept: CheckpointTuple) -> Position | None:
    return checked(kept.checkpoint["channel_values"].get("planning"))
