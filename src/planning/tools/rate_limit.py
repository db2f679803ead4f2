"""Rate limits of tools, by key: counted in this process, or in a Redis that several machines share."""

from __future__ import annotations

import math
import time
import weakref
from collections.abc import Mapping
from contextlib import nullcontext
from itertools import islice
from operator import itemgetter
from threading import Lock
from typing import TYPE_CHECKING
from urllib.parse import quote

import attrs

from planning.errors import show
from planning.tools.errors import RateLimitExceeded, StorageUnavailable

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.strategies import MovingWindowRateLimiter
    from redis import ConnectionPool

__all__ = ["RateLimiter"]

_REDIS = {"redis": "redis", "rediss": "rediss", "valkey": "redis", "valkeys": "rediss"}
_TIMEOUT = 2.0
_URLS = "write memory://, redis://host:6379/0, or the same with rediss, valkey or valkeys"

_Refusal = tuple["RateLimitItem", float]  # which limit, and for how many seconds


class RateLimiter:
    """Counts the calls of groups of tools, and refuses those that are too many.

    A limit of 5 per minute holds for every stretch of 60 seconds, not for the minutes of the clock.
    Where a key has several limits, a call that one of them refuses counts for none. With ``memory://``
    this always holds; with Redis it holds but for calls that arrive at the same moment: each limit is
    exact, yet a call that one limit took and another then refused stays counted in the first, so that
    fewer calls pass and never more. Redis is not reached before the first call; machines that share
    it need clocks that agree. Threads may share a limiter, and nothing is logged.
    """

    def __init__(
        self,
        rates: Mapping[str, str] | None = None,
        *,
        default: str = "60/minute",
        storage: str = "memory://",
    ) -> None:
        """Read the rates; nothing is connected.

        Args:
            rates: By key, in the notation of the limits library: ``5/minute``, or several as in
                ``5/minute; 100/day``.
            default: The rate of every other key.
            storage: Where calls are counted: ``memory://`` in this process, ``redis://`` or
                ``valkey://`` in a server (``rediss://`` and ``valkeys://`` with TLS). The options of
                the redis client may follow the URL; without any, a server that does not answer
                within 2 seconds counts as one that cannot be reached.

        Raises:
            ValueError: A rate or the storage is invalid. The URL is not in the message: it may
                hold a password.
            ImportError: The limits library or, for a server, the redis client is not installed.
        """
        self._default = _parse("default", default)
        self._rates = {key: _parse(f"the rate of {key}", rate) for key, rate in (rates or {}).items()}
        self._backend = _backend(storage)
        self._lock = Lock()

    @property
    def is_local(self) -> bool:
        """Whether calls are counted in this process, so that counting never waits for a server."""
        return self._backend.is_local

    def hit(self, key: str) -> None:
        """Count one call, or refuse it.

        Args:
            key: The group of tools.

        Raises:
            RateLimitExceeded: The call is one too many; it was not counted.
            StorageUnavailable: The server cannot be reached, so the call must not be made.
        """
        limits = self._rates.get(key, self._default)
        # The library joins names with slashes: none inside a name, or one key could pass for another.
        name = quote(key, "", errors="surrogatepass")
        try:
            with self._lock if self._backend.is_local else nullcontext():
                refusal = self._take(name, limits)
        except self._backend.errors:
            pass  # raised below and not here: the client's text holds the host
        else:
            if refusal is None:
                return
            limit, wait = refusal
            raise RateLimitExceeded(
                f"{key} is limited to {limit!r}; "
                f"try again in {max(math.ceil(wait), 1)} s, or go on without it",
                wait,
            )
        raise StorageUnavailable(
            f"the calls of {key} cannot be counted now; try again later, or go on without it"
        )

    async def ahit(self, key: str) -> None:
        """The same from async code: waiting for a server happens in a thread.

        A task that is cancelled meanwhile may have been counted.

        Args:
            key: The group of tools.

        Raises:
            RateLimitExceeded: The call is one too many; it was not counted.
            StorageUnavailable: The server cannot be reached, so the call must not be made.
        """
        if self._backend.is_local:
            self.hit(key)
        else:
            from planning.tools.background import run_off_loop

            # In a separate thread: asyncio has few, and they delay the end of their loop.
            await run_off_loop(lambda _stop: self.hit(key), key, None)

    def _take(self, name: str, limits: tuple[RateLimitItem, ...]) -> _Refusal | None:
        test, hit = self._backend.limiter.test, self._backend.limiter.hit
        refusing = [limit for limit in limits if not test(limit, name)] if len(limits) > 1 else []
        if not refusing:  # the first that refuses is the last that is asked
            refusing = list(islice((limit for limit in limits if not hit(limit, name)), 1))
        waits = [(limit, self._wait(limit, name)) for limit in refusing]
        return max(waits, key=itemgetter(1), default=None)

    def _wait(self, limit: RateLimitItem, name: str) -> float:
        stats = self._backend.limiter.get_window_stats(limit, name)
        return max(stats.reset_time - time.time(), 0.0) if stats.remaining < 1 else 0.0


def _backend(storage: object) -> _Backend:
    scheme, separator, rest = storage.partition("://") if isinstance(storage, str) else ("", "", "")
    if separator and scheme == "memory":
        return _memory()
    if separator and scheme in _REDIS:
        return _redis(f"{_REDIS[scheme]}://{rest}")
    raise ValueError(f"unsupported storage URL; {_URLS}")


@attrs.frozen
class _Backend:
    """Where the limits library counts.

    Attributes:
        limiter: The library's own limiter.
        is_local: Whether it counts in this process.
        errors: What it raises when it cannot count.
    """

    limiter: MovingWindowRateLimiter
    is_local: bool
    errors: tuple[type[Exception], ...] = ()


def _memory() -> _Backend:
    from limits.storage import MemoryStorage
    from limits.strategies import MovingWindowRateLimiter

    return _Backend(MovingWindowRateLimiter(MemoryStorage()), is_local=True)


def _redis(url: str) -> _Backend:
    try:
        import redis
    except ImportError:
        raise ImportError(
            "rate limits in a server need the redis client: pip install 'session-planning[redis]'"
        ) from None
    from limits.storage import RedisStorage
    from limits.strategies import MovingWindowRateLimiter

    pool = _pool(url)
    if pool is None:  # raised here and not in the handler: the client's text may hold a part of the URL
        raise ValueError(f"storage is not a URL that the redis client accepts; {_URLS}")
    limiter = MovingWindowRateLimiter(RedisStorage(url, connection_pool=pool))
    weakref.finalize(limiter, pool.disconnect)  # or its sockets wait for the garbage collector, open
    return _Backend(limiter, is_local=False, errors=(redis.RedisError, OSError))


def _pool(url: str) -> ConnectionPool | None:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    try:
        pool = redis.ConnectionPool.from_url(
            url,
            socket_timeout=_TIMEOUT,
            socket_connect_timeout=_TIMEOUT,
            retry=Retry(NoBackoff(), 0),  # the default waits, and may count a call twice
        )
        pool.connection_class(**pool.connection_kwargs)  # connects nothing; refuses an unknown option
    except (redis.RedisError, TypeError, ValueError):
        return None
    return pool


def _parse(what: str, rate: str) -> tuple[RateLimitItem, ...]:
    try:
        from limits import parse_many
    except ImportError:
        raise ImportError("rate limits need limits: pip install 'session-planning[limits]'") from None
    try:
        parsed = parse_many(rate)
    except ValueError:
        parsed = []
    if not parsed or any(limit.amount < 1 for limit in parsed):
        raise ValueError(
            f"{what} must be calls per time, such as '5/minute', '100/hour' or '5/minute; 100/day', "
            f"got {show(rate)}"
        )
    named = (type(limit)(limit.amount, limit.multiples, "session-planning") for limit in parsed)
    return tuple(dict.fromkeys(named))  # the same limit twice would count a call twice
