"""Retry and circuit breaker: repeat after temporary failures, and stop calling a failing tool."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import attrs

from planning.tools.errors import (
    PASSING,
    CircuitOpen,
    ErrorKind,
    StorageUnavailable,
    classify_error,
    type_name,
)
from session.locks import Block, ProcessLock

if TYPE_CHECKING:
    from planning.tools.result import ToolResult

T = TypeVar("T")

CircuitState = Literal["closed", "open", "half_open"]


# What says nothing of a tool's health: it was never asked, or it answered that there is nothing.
BLAMELESS = frozenset(
    {
        ErrorKind.PARAMETER,
        ErrorKind.QUERY_TYPE,
        ErrorKind.NEEDS_USER_INPUT,
        ErrorKind.RATE_LIMIT,
        ErrorKind.CANCELLED,
        ErrorKind.DATA_NOT_FOUND,
    }
)
_TRANSIENT = (StorageUnavailable, ConnectionError, TimeoutError)


class _Failure(Exception):
    """A failed attempt as stamina's hooks see it: the tool's name and the error's type, without its text."""

    def __repr__(self) -> str:
        return str(self)


class _Tries:
    """The attempts of one call."""

    def __init__(
        self, on: tuple[type[Exception], ...], name: str, may_pass: Callable[[Any], bool] | None
    ) -> None:
        self.outcome: Any = None
        self._error: Exception | None = None
        self._transient: tuple[type[Exception], ...] = (*_TRANSIENT, *on)
        self._name = name
        self._may_pass = may_pass

    @contextmanager
    def one(self) -> Iterator[None]:
        """Watch one attempt."""
        try:
            yield
        except self._transient as error:
            self._error, reason = error, type_name(error)
        else:
            self._error, reason = None, "reported"
            if self._may_pass is None or not self._may_pass(self.outcome):
                return
        raise _Failure(f"{self._name}: {reason}")

    def end(self) -> Any:
        """The value that the last attempt returned."""
        if self._error is None:
            return self.outcome
        try:
            raise self._error
        finally:
            self._error = None  # its traceback holds this frame


@attrs.frozen(kw_only=True)
class Retry:
    """Calls a tool again after a temporary failure.

    Transient are ``StorageUnavailable``, ``ConnectionError``, ``TimeoutError`` and what ``on`` names; so is
    a failure that a tool returns with the code ``storage`` or ``timeout``. Every other error comes out at
    once. The waits grow from ``wait_initial`` to twice as long each time, and each has a random part on top.
    stamina counts and waits: its hooks get the tool's name and the type of the error, and never its text.

    Attributes:
        attempts: How many calls are made in all.
        on: Further types of errors that are transient.
        wait_initial: The seconds before the second attempt.
        wait_max: How many seconds a wait has at most, its random part included.
        wait_jitter: How many seconds the random part has at most.

    Raises:
        ValueError: A value is invalid.
        ImportError: stamina is not installed.
    """

    attempts: int = 3
    on: tuple[type[Exception], ...] = ()
    wait_initial: float = 0.1
    wait_max: float = 5.0
    wait_jitter: float = 1.0

    def __attrs_post_init__(self) -> None:
        _check_count("attempts", self.attempts)
        for name in ("wait_initial", "wait_max", "wait_jitter"):
            value = getattr(self, name)
            if not _is_seconds(value):
                raise ValueError(f"{name} must be seconds of 0 or more, such as 0.5, got {value!r}")
        on: Any = self.on
        if not (isinstance(on, tuple) and all(isinstance(kind, type) for kind in on)):
            raise ValueError(f"on must be a tuple of types of exceptions, such as (OSError,), got {on!r}")
        if find_spec("stamina") is None:
            raise ImportError("retrying needs stamina: pip install 'session-planning[retry]'")

    def run(self, function: Callable[[], T], name: str, may_pass: Callable[[T], bool] | None = None) -> T:
        """Call a function, again where it fails with a transient error; the waits block the thread.

        Args:
            function: Called without arguments.
            name: The tool's name, for stamina's hooks.
            may_pass: Asked of what was returned: whether that is a failure to try again.

        Raises:
            Exception: What the last attempt raised.
        """
        tries = _Tries(self.on, name, may_pass)
        with suppress(_Failure):
            for attempt in self._attempts():
                with attempt, tries.one():
                    tries.outcome = function()
        ended: T = tries.end()
        return ended

    async def arun(
        self, function: Callable[[], Awaitable[T]], name: str, may_pass: Callable[[T], bool] | None = None
    ) -> T:
        """Call an async function: the waits let other tasks run, and a cancelled task stops trying."""
        tries = _Tries(self.on, name, may_pass)
        with suppress(_Failure):
            async for attempt in self._attempts():
                with attempt, tries.one():
                    tries.outcome = await function()
        ended: T = tries.end()
        return ended

    def _attempts(self) -> Any:  # what it is has no public name
        import stamina

        return stamina.retry_context(
            on=_Failure,
            attempts=self.attempts,
            timeout=None,
            wait_initial=self.wait_initial,
            wait_max=self.wait_max,
            wait_jitter=self.wait_jitter,
        )


class _Period(NamedTuple):
    """The time between two changes of a breaker's state: its number, how long it lasts, who is the probe."""

    state: CircuitState
    number: int
    until: float
    probe: Block | None


class CircuitBreaker:
    """Stops calling a tool for a while after it has failed several times in a row.

    It is ``closed`` while calls go through, and ``open`` once ``failures`` of them failed with no
    success between. After ``reset_after`` seconds one call, the probe, is let through: while it runs
    the breaker is ``half_open`` and refuses every other. If the probe succeeds the breaker closes; if
    it fails the breaker is open for another ``reset_after`` seconds.

    Every admitted call ends with exactly one of ``record_success``, ``record_failure`` and ``release``, with
    the number that ``admit`` gave it. It is the number of the period, which each change of state ends: what
    a call reports that was admitted in an earlier period is of the past, and changes nothing. A probe
    that reports nothing keeps the breaker half open for good, unless ``admit`` was given its block, which
    has ended. Threads may share a breaker.
    """

    __slots__ = ("_clock", "_count", "_failures", "_lock", "_now", "_reset_after")

    def __init__(
        self, *, failures: int = 5, reset_after: float = 30.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Make a closed breaker.

        Args:
            failures: After how many failures in a row the tool is not called for a while.
            reset_after: For how many seconds.
            clock: Returns the time in seconds, and never goes back.

        Raises:
            ValueError: A value is invalid.
        """
        _check_count("failures", failures)
        if not _is_seconds(reset_after) or reset_after == 0:
            raise ValueError(f"reset_after must be seconds of more than 0, such as 30, got {reset_after!r}")
        self._failures = failures
        self._reset_after = reset_after
        self._clock = clock
        self._lock = ProcessLock()
        self._now = _Period("closed", 0, 0.0, None)
        self._count = 0

    @property
    def state(self) -> CircuitState:
        """Its state; ``open`` also after its time, until the next call, which is the probe."""
        return self._now.state

    def admit(self, name: str, probe: Block | None = None) -> int:
        """Let a call through or refuse it.

        Args:
            name: The tool's name.
            probe: The block of the call: once it has ended, it does not count as a probe any more.

        Returns:
            The number to report the call's end with.

        Raises:
            CircuitOpen: The call is not to be made; it says in how many seconds one may be.
        """
        with self._lock.lock:
            at = self._now
            if at.state == "closed":
                return at.number
            now = self._clock()
            wait = at.until - now
            probed = at.state == "half_open" and (at.probe is None or at.probe.watch is not None)
            if not probed and (wait <= 0 or at.state == "half_open"):
                self._enter("half_open", now + self._reset_after, probe)
                return self._now.number
            count = self._count
        if probed:  # how long is unknown: it may end at any moment
            wait = max(wait, 1.0)
        message = (
            f"{name} failed {count} time{'s' if count > 1 else ''} in a row and is "
            f"{'being tried by another call' if probed else 'paused'}; "
            f"try again in {max(math.ceil(wait), 1)} s, or continue without it"
        )
        raise CircuitOpen(message, wait)

    def record_success(self, admission: int) -> None:
        """The call showed that the tool works."""
        with self._lock.lock:
            if admission == self._now.number:
                self._count = 0
                if self.state == "half_open":
                    self._enter("closed", 0.0)

    def record_failure(self, admission: int) -> None:
        """The call showed that the tool does not work."""
        with self._lock.lock:
            if admission == self._now.number:
                self._count += 1
                if self.state == "half_open" or self._count >= self._failures:
                    self._enter("open", self._clock() + self._reset_after)

    def release(self, admission: int) -> None:
        """The call ended and showed neither, as one that was cancelled: the next may be the probe."""
        with self._lock.lock:
            if admission == self._now.number and self.state == "half_open":
                self._enter("open", self._clock())

    def _enter(self, state: CircuitState, until: float, probe: Block | None = None) -> None:
        self._now = _Period(state, self._now.number + 1, until, probe)


class Admission(Block):
    """A call that a breaker, if there is one, let through, and that reports back to it however it ends.

    Attributes:
        is_running: Whether the tool itself has been called.
        result: The result, once there is one.
    """

    __slots__ = ("_breaker", "_name", "_number", "is_running", "result")

    def __init__(self, breaker: CircuitBreaker | None, name: str) -> None:
        super().__init__()
        self._breaker = breaker
        self._name = name
        self._number = -1  # of no period
        self.is_running = False
        self.result: ToolResult | None = None

    def __enter__(self) -> Admission:
        if self._breaker is not None:
            self._number = self._breaker.admit(self._name, self)
        return self

    def _leave(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Report how the call ended."""
        if self._breaker is None:
            pass
        elif self.result is not None and self.result.success:
            self._breaker.record_success(self._number)
        elif self._is_blameless(error):
            self._breaker.release(self._number)
        else:
            self._breaker.record_failure(self._number)
        self._end()

    def _is_blameless(self, error: BaseException | None) -> bool:
        if error is None:
            return self.result is not None and self.result.code in BLAMELESS
        return not self.is_running or issubclass(type(error), PASSING) or classify_error(error) in BLAMELESS


def _check_count(name: str, value: object) -> None:
    if type(value) is not int or value < 1:
        raise ValueError(f"{name} must be a whole number of at least 1, such as 3, got {value!r}")


def _is_seconds(value: object) -> bool:
    return type(value) in {int, float} and 0 <= value < math.inf  # type: ignore[operator]  # a number
