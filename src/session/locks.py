"""Locks that no exception leaves locked, and that are free in a forked child.

Ctrl-C may come between any two bytecodes: after something was taken and before the ``with`` block that gives
it back, or in the midst of giving it back. A ``Block`` notices both.
"""

from __future__ import annotations

import os
import sys
import weakref
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, _GeneratorContextManager, suppress
from functools import partial, wraps
from threading import get_ident
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from session.errors import StoreError, locked_error

P = ParamSpec("P")
T = TypeVar("T")
_TICK = 0.05
"""Seconds after which a waiting thread looks by itself: Ctrl-C may come before the one that would wake it."""


class _Exit:
    """The function that a ``with`` statement calls at the end of its block, looked up before the block.

    Only the statement holds it, so when it dies the block is over, also where an exception came before the
    block or in its end.
    """

    def __get__(self, block: Block | None, owner: type[Block]) -> Callable[..., Any]:
        if block is None:
            return owner._leave
        leave = partial(owner._leave, block)  # not a method: a call may take that apart before it begins
        if block.watch is None:
            block.watch = weakref.ref(leave, block._end)
        return leave


class Block:
    """A ``with`` block whose ``_end`` is called whatever happens, and again where it was cut short.

    Attributes:
        watch: Calls ``_end`` once the block is over; None before and after it.
    """

    __slots__ = ("watch",)

    def __init__(self) -> None:
        self.watch: weakref.ref[Callable[..., Any]] | None = None

    def __enter__(self) -> Self:
        return self

    def _leave(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """The function that the ``with`` statement calls at the end of the block."""
        self._end()

    def _end(self, _gone: object = None) -> None:
        """Give back what was taken, as far as it was."""
        self.watch = None  # last: until then it is called again

    if TYPE_CHECKING:
        __exit__ = _leave
    else:
        __exit__ = _Exit()


class Ending(Block):
    """Calls a function at the end of a block: one that may be called twice."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[], object]) -> None:
        self.watch = None
        self._function = function

    def _end(self, _gone: object = None) -> None:
        """Call it."""
        self._function()
        self.watch = None


class _Scope(_GeneratorContextManager[T]):
    """The block of a generator function, which is closed once the block is over."""

    watch: weakref.ref[Callable[..., Any]] | None = None
    if not TYPE_CHECKING:
        __exit__ = _Exit()

    def _leave(self, *error: Any) -> bool | None:
        is_settled = _GeneratorContextManager.__exit__(self, *error)
        self.watch = None
        return is_settled

    def _end(self, _gone: object = None) -> None:
        self.gen.close()


def scoped(function: Callable[P, Iterator[T]]) -> Callable[P, AbstractContextManager[T]]:
    """The same as ``contextmanager``, for what takes something: Ctrl-C gives it back at any moment."""

    @wraps(function)
    def scope(*args: P.args, **named: P.kwargs) -> AbstractContextManager[T]:
        begin: Any = function  # a generator function, whatever it says that it returns
        return _Scope(begin, args, named)

    return scope


class Held(Block):
    """A block that holds a lock.

    Attributes:
        thread: The thread that takes it.
        gate: What it waits at, if it must wait.
        place: Which of the lock's places it has.
    """

    __slots__ = ("gate", "lock_of", "place", "thread", "timeout")

    gate: Any
    thread: int

    def __init__(self, lock_of: ProcessLock, timeout: float | None = None) -> None:
        self.watch = None
        self.gate = None
        self.place = 0
        self.lock_of = lock_of
        self.timeout = timeout

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            StoreError: It is not free in time.
        """
        lock = self.lock_of
        self.thread = get_ident()
        if (lock.waiting or lock.holders.setdefault(0, self) is not self) and not lock.take(
            self, self.timeout
        ):
            raise lock.refusal(self.timeout or 0)
        return self

    def _end(self, _gone: object = None) -> None:
        """Let others have the lock."""
        lock = self.lock_of
        if self.gate is not None or lock.places:
            lock.give(self)
        elif lock.holders.get(0) is self:
            del lock.holders[0]
            if lock.waiting:
                lock.wake()
        self.watch = None


class ProcessLock:
    """A lock that the threads of a process take in order, and each thread as often as it likes.

    One step takes it and says for which block: there is no moment in which it is held by none. In a forked
    child it is free, unless the thread that forks holds it, which is the only one there.

    Attributes:
        places: The places for blocks that hold it: more than one is a pool, which a thread does not reenter.
        holders: The blocks that hold it, by place.
        waiting: The blocks that wait for it, in order.
    """

    __slots__ = ("__weakref__", "holders", "places", "waiting")

    def __init__(self, places: int = 0) -> None:
        self.places = places
        self.holders: dict[int, Held] = {}
        self.waiting: deque[Held] = deque()
        _owners.add(self)

    @property
    def lock(self) -> Held:
        """The block that holds it, for ``with``."""
        return Held(self)

    def refusal(self, timeout: float) -> StoreError:
        """The error when it is not free in so many seconds."""
        return locked_error(timeout)

    def take(self, held: Held, timeout: float | None = None) -> bool:
        """Take it for a block, or for one inside another of this thread; False if it is not free in time."""
        held.thread = get_ident()
        if not self.waiting and self._claim(held):
            return True
        holder = self.holders.get(0)
        is_inside = not self.places and holder is not None and holder.thread == held.thread
        return is_inside or (timeout != 0 and self._wait(held, timeout))

    def give(self, held: Held) -> None:
        """Take it from a block, which may have it, wait for it, or neither."""
        if held.gate is not None:
            with suppress(ValueError):
                self.waiting.remove(held)
        for place in range(self.places or 1):
            if self.holders.get(place) is held:
                del self.holders[place]
        self.wake()

    def wake(self) -> None:
        """Let the first of those that wait look."""
        with suppress(IndexError, RuntimeError):  # it waits no longer, or was woken before
            self.waiting[0].gate.release()

    def _claim(self, held: Held) -> bool:
        for place in range(self.places or 1):
            if self.holders.setdefault(place, held) is held:
                held.place = place
                return True
        return False

    def _wait(self, held: Held, timeout: float | None) -> bool:
        until = None if timeout is None else monotonic() + timeout
        held.gate = allocate_lock()
        held.gate.acquire()
        try:
            self.waiting.append(held)
            while not (self.waiting[0] is held and self._claim(held)):
                left = _TICK if until is None else min(_TICK, until - monotonic())
                if left <= 0:
                    self.give(held)
                    return False
                held.gate.acquire(timeout=left)
            self.waiting.popleft()
            self.wake()  # there may be another place
        except BaseException:
            self.give(held)
            raise
        return True

    def forget_other_threads(self) -> None:
        """End what threads had begun that are not in this process; called once in a forked child."""


def running_loop() -> Any:
    """The event loop that runs in this thread; None without one. Never imports asyncio."""
    events = sys.modules.get("asyncio.events")
    return None if events is None else events._get_running_loop()


# Python has one list of what to do after a fork, and nothing leaves it: it calls one function for all.
_owners: weakref.WeakSet[ProcessLock] = weakref.WeakSet()


def _renew_locks() -> None:
    for owner in tuple(_owners):
        owner.waiting.clear()
        for place, held in tuple(owner.holders.items()):
            if held.thread != get_ident():
                del owner.holders[place]
        with suppress(AttributeError):  # it is half made: by another thread, or an error ended that
            owner.forget_other_threads()


if hasattr(os, "register_at_fork"):  # a system that cannot fork has none
    os.register_at_fork(after_in_child=_renew_locks)
