"""Rate limits that are counted in the process, and what a limiter refuses to be made of."""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from tool_entries import Clock, in_threads

from planning.tools import Tool, Toolbox, ToolRegistry
from planning.tools.errors import RateLimitExceeded, StorageUnavailable
from planning.tools.rate_limit import RateLimiter


def refusal(limiter: RateLimiter, key: str = "email_send") -> tuple[str, float] | None:
    try:
        limiter.hit(key)
    except RateLimitExceeded as error:
        return error.message, error.retry_after
    return None


SCHEDULES: list[tuple[str | None, list[float]]] = [
    ("2/minute", [0, 40, 19.75, 0.5, 0]),  # the window moves with each call
    ("1/minute", [0, 15, 15, 15, 15, 0.5]),  # a refused call does not count
    ("2/minute; 1/second", [0, 0, 1.5]),  # of several limits the first that refuses is named
    ("2/minute; 2 per minute", [0, 0, 0]),  # a limit that stands twice counts a call once
    (None, [0] * 61),  # a key without a rate has the default
]


def test_a_call_over_the_limit_is_refused_with_when_to_try_again(
    monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    clock, said = Clock(), []
    monkeypatch.setattr(time, "time", clock)
    for rate, calls in SCHEDULES:
        limiter = RateLimiter({"other": "1/day"} if rate is None else {"email_send": rate})
        said.append(f"{rate}")
        for later in calls:
            clock.now += later
            said.append(f"    after {later} s: {refusal(limiter) or 'passes'}")
    assert "\n".join(said) == snapshot


def test_keys_count_apart() -> None:
    limiter = RateLimiter({"a": "1/minute"}, default="1/minute")
    for key in ["a", "a/b", "b", "ab", "", "/", "a%2Fb", "ü", "\udc80"]:
        assert [refusal(limiter, key) is None for _ in range(2)] == [True, False]


def test_of_fifty_threads_ten_pass() -> None:
    limiter = RateLimiter({"email_send": "10/minute"})
    start = threading.Barrier(50)
    passed: list[bool] = []

    def call() -> None:
        start.wait()
        passed.append(refusal(limiter) is None)

    in_threads([call] * 50)
    assert (passed.count(True), len(passed)) == (10, 50)


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


STORAGES = ["", "me:hunter2@host", None, "mysql://me:hunter2@host", "redis://me:hunter2@host:70000"]


@pytest.mark.parametrize("wrong", STORAGES)
def test_a_wrong_storage_says_what_to_write_instead_without_a_word_of_it(wrong: Any) -> None:
    with pytest.raises(ValueError) as caught:
        RateLimiter(storage=wrong)
    assert str(caught.value) == (
        "unsupported storage URL: write memory://, or one of the limits library such as "
        "redis://localhost:6379/0, and install the client that it needs, as in "
        "pip install 'session-planning[redis]'"
    )
    assert caught.value.__context__ is None


@pytest.mark.usefixtures("own_default")
def test_without_the_library_a_limiter_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = ToolRegistry([plain := Tool("plain", "Has no limit.", Clock)])
    takers: list[Any] = [registry.register_tool, lambda made: Toolbox([made])]
    for name in ("limits", "limits.errors"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, name, None)
            for take in (lambda _: RateLimiter(), *takers):
                with pytest.raises(ImportError) as caught:
                    take(Tool("mail", "Has one.", Clock, rate_limit_key="mail"))
                assert str(caught.value) == "rate limits need limits: pip install 'session-planning[limits]'"
            assert [*registry] == [plain]


def test_a_server_that_is_gone_refuses_without_a_word_of_the_url(caplog: pytest.LogCaptureFixture) -> None:
    limit = RateLimiter({"email_send": "5/minute; 9/hour"}, storage="redis://me:hunter2@127.0.0.1:1/0")
    for key in ["email_send", "other"]:
        with pytest.raises(StorageUnavailable) as caught:
            limit.hit(key)
        assert str(caught.value) == (
            f"the calls of {key} cannot be counted now; try again later, or continue without it"
        )
        assert (caught.value.__cause__, caught.value.__context__) == (None, None)
    assert [record for record in caplog.records if record.name.startswith(("planning", "limits"))] == []
    mail = Tool("mail", "Counts.", Clock, rate_limit_key="other")
    message = "the calls of other cannot be counted now; try again later, or continue without it"
    assert Toolbox([mail], limiter=limit).call("mail").message == message
