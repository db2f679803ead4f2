"""Rate limits that are counted in the process, and what a limiter refuses to be made of."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import suppress
from typing import Any

import pytest
from tool_entries import in_threads

from planning.tools.errors import RateLimitExceeded, StorageUnavailable
from planning.tools.rate_limit import RateLimiter


class Clock:
    """The time of day, as the limits library asks for it."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "time", clock.time)
    return clock


def limiter(rate: str) -> RateLimiter:
    return RateLimiter({"email_send": rate})


def refused(limiter: RateLimiter, key: str = "email_send") -> tuple[str, float]:
    with pytest.raises(RateLimitExceeded) as caught:
        limiter.hit(key)
    return caught.value.message, caught.value.retry_after


def over(rate: str, seconds: int) -> str:
    return f"email_send is limited to {rate}; try again in {seconds} s, or continue without it"


@pytest.mark.parametrize(
    ("rate", "calls"),
    [
        # The window moves with each call.
        (
            "2/minute",
            [
                (0, None),
                (40, None),
                (19.75, (over("2 per 1 minute", 1), 0.25)),
                (0.5, None),
                (0, (over("2 per 1 minute", 40), 39.75)),
            ],
        ),
        # A refused call does not count.
        (
            "1/minute",
            [(0, None), *((15, (over("1 per 1 minute", left), left)) for left in (45, 30, 15)), (15.5, None)],
        ),
        # Of several limits the first that refuses is named.
        (
            "2/minute; 1/second",
            [(0, None), (0, (over("1 per 1 second", 1), 1.0)), (1.5, (over("2 per 1 minute", 59), 58.5))],
        ),
        # A limit that stands twice counts a call once.
        ("2/minute; 2 per minute", [(0, None), (0, None), (0, (over("2 per 1 minute", 60), 60))]),
        # A key without a rate has the default.
        (None, [*[(0, None)] * 60, (0, (over("60 per 1 minute", 60), 60))]),
    ],
)
def test_a_call_over_the_limit_is_refused_with_when_to_try_again(
    rate: str | None, calls: list[tuple[float, tuple[str, float] | None]], clock: Clock
) -> None:
    limit = RateLimiter({"other": "1/day"} if rate is None else {"email_send": rate})
    for later, refusal in calls:
        clock.now += later
        if refusal is None:
            limit.hit("email_send")
        else:
            assert refused(limit) == refusal


def test_keys_count_apart() -> None:
    limit = RateLimiter({"a": "1/minute"}, default="1/minute")
    for key in ["a", "a/b", "b", "ab", "", "/", "a%2Fb", "ü", "\udc80"]:
        limit.hit(key)
        refused(limit, key)


def test_of_fifty_threads_ten_pass() -> None:
    limit = limiter("10/minute")
    start = threading.Barrier(50)
    passed: list[int] = []

    def call() -> None:
        start.wait()
        with suppress(RateLimitExceeded):
            limit.hit("email_send")
            passed.append(1)

    in_threads([call] * 50)
    assert len(passed) == 10


@pytest.mark.parametrize(
    ("wrong", "shown"), [("often", "'often'"), ("0/minute", "'0/minute'"), (5, "a value of type int")]
)
def test_a_wrong_rate_says_what_to_write_instead(wrong: Any, shown: str) -> None:
    expected = f"must be calls per time, such as '5/minute', '100/hour' or '5/minute; 100/day', got {shown}"
    with pytest.raises(ValueError) as caught:
        RateLimiter({"email_send": wrong})
    assert str(caught.value) == f"the rate of email_send {expected}"
    with pytest.raises(ValueError) as caught:
        RateLimiter(default=wrong)
    assert str(caught.value) == f"default {expected}"


@pytest.mark.parametrize(
    "wrong",
    [
        "", "me:hunter2@host", None, "mysql://me:hunter2@host", "redis://me:hunter2@host:70000",
    ],
)  # fmt: skip
def test_a_wrong_storage_says_what_to_write_instead_without_a_word_of_it(wrong: Any) -> None:
    with pytest.raises(ValueError) as caught:
        RateLimiter(storage=wrong)
    assert str(caught.value) == (
        "unsupported storage URL: write memory://, or one of the limits library such as "
        "redis://localhost:6379/0, and install the client that it needs, as in "
        "pip install 'session-planning[redis]'"
    )
    assert caught.value.__context__ is None


def test_without_the_library_a_limiter_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("limits", "limits.errors"):
        monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(ImportError) as caught:
            RateLimiter()
        assert str(caught.value) == "rate limits need limits: pip install 'session-planning[limits]'"
        monkeypatch.undo()


def test_a_server_that_is_not_there_refuses_the_call_without_a_word_of_the_url(
    caplog: pytest.LogCaptureFixture,
) -> None:
    limit = RateLimiter({"email_send": "5/minute; 9/hour"}, storage="redis://me:hunter2@127.0.0.1:1/0")
    for key in ["email_send", "other"]:
        with pytest.raises(StorageUnavailable) as caught:
            limit.hit(key)
        assert str(caught.value) == (
            f"the calls of {key} cannot be counted now; try again later, or continue without it"
        )
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert [record for record in caplog.records if record.name.startswith(("planning", "limits"))] == []
