"""Rate limits of tools, by key: counted in this process, or in a server that several machines share."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import nullcontext
from threading import Lock
from typing import TYPE_CHECKING

from planning.errors import show
from planning.tools.errors import RateLimitExceeded, StorageUnavailable
from session.locks import ProcessLock

if TYPE_CHECKING:
    from limits import RateLimitItem
    from limits.strategies import MovingWindowRateLimiter

_MISSING = "rate limits need limits: pip install 'session-planning[limits]'"


class RateLimiter:
    """Limits the calls of groups of tools.

    A limit of 5 per minute applies to any 60 seconds, not to the minutes of the clock. If a key has several
    limits, a refused call counts towards those before the one that refused it. Machines that share a server
    need clocks that agree. Threads may share a limiter.

    Attributes:
        is_local: Whether calls are counted in this process, so that counting never waits for a server.
    """

    def __init__(
        self,
        rates: Mapping[str, str] | None = None,
        *,
        default: str = "60/minute",
        storage: str = "memory://",
    ) -> None:
        """Parse the rates; it connects on first use.

        Args:
            rates: By key, in the notation of the limits library: ``5/minute``, or several as in
                ``5/minute; 100/day``.
            default: The rate of every other key.
            storage: Where calls are counted, as a storage URL of the limits library: ``memory://`` in this
                process, ``redis://localhost:6379/0`` in a server. A URL of Redis may have the options of the
                client, such as ``?socket_timeout=2``.

        Raises:
            ValueError: A rate or the storage is invalid. The URL is not in the message: it may
                hold a password.
            ImportError: The limits library is not installed.
        """
        self._default = _parse("default", default)
        self._rates = {key: _parse(f"the rate of {key}", rate) for key, rate in (rates or {}).items()}
        limiter = _limiter(storage)
        if limiter is None:  # raised here and not in the handler: the library's text may hold the URL
            raise ValueError(
                "unsupported storage URL: write memory://, or one of the limits library such as "
                "redis://localhost:6379/0, and install the client that it needs, as in "
                "pip install 'session-planning[redis]'"
            )
        self._limiter = limiter
        self.is_local = storage.startswith("memory:")
        self._lock = ProcessLock()

    def hit(self, key: str) -> None:
        """Count one call, or refuse it.

        Raises:
            RateLimitExceeded: The call is one too many; it was not counted.
            StorageUnavailable: The server cannot be reached, so the call must not be made.
        """
        from urllib.parse import quote

        from limits.errors import StorageError

        limits = self._rates.get(key, self._default)
        name = quote(key, errors="surrogatepass")  # a server takes no half characters
        try:
            with self._lock.lock if self.is_local else nullcontext():
                refusing = next((limit for limit in limits if not self._limiter.hit(limit, name)), None)
                wait = 0.0 if refusing is None else self._wait(refusing, name)
        except StorageError:
            pass  # raised below and not here: the client's text holds the host
        else:
            if refusing is None:
                return
            raise RateLimitExceeded(
                f"{key} is limited to {refusing!r}; "
                f"try again in {max(math.ceil(wait), 1)} s, or continue without it",
                wait,
            )
        raise StorageUnavailable(
            f"the calls of {key} cannot be counted now; try again later, or continue without it"
        )

    def _wait(self, limit: RateLimitItem, name: str) -> float:
        stats = self._limiter.get_window_stats(limit, name)
        return max(stats.reset_time - time.time(), 0.0) if stats.remaining < 1 else 0.0


class Limits:
    """Holds a limiter that is made when it is first needed, and can be replaced."""

    def __init__(self, limiter: RateLimiter | None = None) -> None:
        self._limiter = limiter
        self._lock = Lock()

    def __call__(self) -> RateLimiter:
        """The limiter that was given, or one with 60 calls a minute for each key, counted in this process."""
        with self._lock:
            if self._limiter is None:
                self._limiter = RateLimiter()
            return self._limiter

    def replace(self, limiter: RateLimiter) -> None:
        """Count with another limiter from now on."""
        self._limiter = limiter


DEFAULT_LIMITS = Limits()
"""Those of the default registry, for calls that come from no registry and no toolbox."""


def _limiter(storage: object) -> MovingWindowRateLimiter | None:
    """The limiter that counts in a storage; None if its URL cannot be used."""
    try:
        from limits.errors import ConfigurationError
        from limits.storage import storage_from_string
        from limits.strategies import MovingWindowRateLimiter
    except ImportError:
        raise ImportError(_MISSING) from None
    try:
        return MovingWindowRateLimiter(storage_from_string(str(storage), wrap_exceptions=True))
    except (ConfigurationError, NotImplementedError, TypeError, ValueError):
        return None


def _parse(what: str, rate: str) -> tuple[RateLimitItem, ...]:
    try:
        from limits import parse_many
    except ImportError:
        raise ImportError(_MISSING) from None
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
