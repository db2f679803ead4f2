"""Locks that no exception leaves locked, and that are free in a forked child.

Ctrl-C may come between any two bytecodes: after something was taken and before the ``with`` block that gives
it back, or in the midst of giving it back. A ``Block`` notices both.
"""

from __future__ import annotations

import os
import weakref
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial, wraps
from threading import get_ident
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self, TypeVar

from session.errors import StoreError, locked

__all__ = ["Block", "Ending", "Held", "ProcessLock", "scoped"]

P = ParamSpec("P")
T = TypeVar("T")
_TICK = 0.05
"""Seconds after which a waiting thread looks by itself: Ctrl-C may come before the one that would wake it."""


class _Exit:
    """What a ``with`` statement calls at the end of a block, and alone holds until then.

    Python looks it up before the block is entered. Where it dies uncalled, or its call was cut short, the
    block is over all the same. A bound method would not do: a call may take it apart before it begins.
    """

    def __get__(self, block: Block | None, owner: type[Block]) -> Callable[..., None]:
        if block is None:
            return owner.leave
        leave = partial(owner.leave, block)
        if block.watch is None:
            block.watch = weakref.ref(leave, block.end)
        return leave


class Block:
    """A ``with`` block whose ``end`` is called whatever happens, and again where it was cut short.

    Attributes:
        watch: Calls ``end`` when the block is over; None where there is nothing to give back.
    """

    __slots__ = ("__weakref__", "watch")

    watch: weakref.ref[Callable[..., None]] | None

    def __init__(self) -> None:
        self.watch = None

    def __enter__(self) -> Self:
        return self

    if TYPE_CHECKING:

        def __exit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None: ...

    else:
        __exit__ = _Exit()

    def leave(
        self,
        kind: type[BaseException] | None,  # noqa: ARG002 - as __exit__
        error: BaseException | None,  # noqa: ARG002
        trace: TracebackType | None,  # noqa: ARG002
    ) -> None:
        """Do what the end of a ``with`` block does."""
        self.end()

    def end(self, _gone: object = None) -> None:
        """Give back what was taken, as far as it was; the last step forgets the watch."""
        self.watch = None


class Ending(Block):
    """Calls a function at the end of a block: one that may be called twice."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[[], object]) -> None:
        self.watch = None
        self._function = function

    def end(self, _gone: object = None) -> None:
        """Call it."""
        self._function()
        self.watch = None


class _Scope(Block, Generic[T]):
    """The block of a generator function, which is closed where the block is over without its end."""

    __slots__ = ("_manager",)

    def __init__(self, manager: Any) -> None:
        self.watch = None
        self._manager = manager

    def __enter__(self) -> T:  # type: ignore[override]  # what the function yields
        found: T = self._manager.__enter__()
        return found

    def leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Any:
        """Resume the function."""
        is_settled = self._manager.__exit__(kind, error, trace)
        self.watch = None
        return is_settled

    def end(self, _gone: object = None) -> None:
        """Close the generator."""
        self._manager.gen.close()
        self.watch = None


def scoped(function: Callable[P, Generator[T, None, None]]) -> Callable[P, AbstractContextManager[T]]:
    """The same as ``contextmanager``, for what takes something: Ctrl-C gives it back at any moment."""
    begin = contextmanager(function)

    @wraps(function)
    def scope(*args: P.args, **named: P.kwargs) -> AbstractContextManager[T]:
        return _Scope(begin(*args, **named))

    return scope


class Held(Block):
    """A block that holds a lock.

    Attributes:
        thread: The thread that takes it.
        gate: What it waits at, where it has to.
        place: Which of the lock's places it has.
    """

    __slots__ = ("gate", "lock_of", "place", "thread", "timeout")

    def __init__(self, lock_of: ProcessLock, timeout: float | None = None) -> None:
        self.watch = None
        self.lock_of = lock_of
        self.timeout = timeout
        self.thread = self.place = 0
        self.gate: Any = None

    def __enter__(self) -> Self:
        """Take the lock.

        Raises:
            StoreError: It is held for longer than the time to wait.
        """
        if not self.lock_of.take(self, self.timeout):
            raise self.lock_of.refusal(self.timeout or 0)
        return self

    def end(self, _gone: object = None) -> None:
        """Let others have the lock."""
        self.lock_of.give(self)
        self.watch = None


class ProcessLock:
    """A lock that the threads of a process take in order, and each thread as often as it likes.

    Who holds it is the lock itself: one step takes it and says for which block. In a forked child it is free
    unless the thread that forks holds it, which is the only thread there.

    Attributes:
        holders: The blocks that hold it, by place; one at most, unless it has several places.
        places: The places; more than one for what may be held several times at once.
        waiting: The blocks that wait for it, in order.
    """

    __slots__ = ("__weakref__", "_is_pool", "holders", "places", "waiting")

    def __init__(self, places: int | None = None) -> None:
        """Make a free lock.

        Args:
            places: How many blocks can hold it at once, also those of one thread; None for a plain lock.
        """
        self.places = range(1 if places is None else places)
        self._is_pool = places is not None
        self.holders: dict[int, Held] = {}
        self.waiting: deque[Held] = deque()
        _owners.add(self)

    @property
    def lock(self) -> Held:
        """What holds it within a ``with`` block."""
        return Held(self)

    def held(self, timeout: float | None) -> Held:
        """The same; with a StoreError where it takes more than so many seconds."""
        return Held(self, timeout)

    def is_here(self) -> bool:
        """Whether a block of this thread holds it."""
        holder = self.holders.get(0)
        return holder is not None and holder.thread == get_ident()

    def refusal(self, timeout: float) -> StoreError:
        """What is raised where it is not free in time."""
        return locked(timeout)

    def take(self, held: Held, timeout: float | None = None) -> bool:
        """Take it for a block, or for one inside a block of this thread; False if it is not free in time."""
        held.thread = get_ident()
        return (
            (not self.waiting and self._claim(held))
            or (not self._is_pool and self.is_here())
            or (timeout != 0 and self._wait(held, timeout))
        )

    def give(self, held: Held) -> None:
        """Take it from a block, if that has it or waits for it."""
        if held.gate is not None:
            with suppress(ValueError):
                self.waiting.remove(held)
        for place in self.places:
            if self.holders.get(place) is held:
                del self.holders[place]
        if self.waiting:
            self.wake()

    def wake(self) -> None:
        """Let the first of those that wait look."""
        with suppress(IndexError, RuntimeError):  # it waits no longer, or was woken before
            self.waiting[0].gate.release()

    def _claim(self, held: Held) -> bool:
        for place in self.places:
            if self.holders.setdefault(place, held) is held:
                held.place = place
                return True
        return False

    def _wait(self, held: Held, timeout: float | None) -> bool:
        held.gate = gate = allocate_lock()
        gate.acquire()
        until = None if timeout is None else monotonic() + timeout
        try:
            self.waiting.append(held)
            while not (self.waiting[0] is held and self._claim(held)):
                left = _TICK if until is None else min(_TICK, until - monotonic())
                if left <= 0:
                    self.give(held)
                    return False
                gate.acquire(timeout=left)
            self.waiting.popleft()
        except BaseException:
            self.give(held)
            raise
        if self._is_pool:
            self.wake()  # there may be another place
        return True

    def renew(self) -> None:
        """Forget the threads that are not in a forked child."""
        self.waiting.clear()
        for place, holder in tuple(self.holders.items()):
            if holder.thread != get_ident():
                del self.holders[place]
        self.forget_other_threads()

    def forget_other_threads(self) -> None:
        """End what threads had begun that are not in this process; called once in a forked child."""


# Python has one list of what to do after a fork, and nothing leaves it: it calls one function for all.
_owners: weakref.WeakSet[ProcessLock] = weakref.WeakSet()


def _renew_locks() -> None:
    for owner in tuple(_owners):
        owner.renew()


if hasattr(os, "register_at_fork"):  # a system that cannot fork has none
    os.register_at_fork(after_in_child=_renew_locks)
