"""The breaker, which leaves alone what is down and tries it again with one call."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from tool_entries import in_threads

from planning.tools.errors import CircuitOpen
from planning.tools.guard import CircuitBreaker


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def fail(breaker: CircuitBreaker, times: int = 1) -> None:
    for _ in range(times):
        breaker.failed(breaker.admit("send_mail"))


def opened(clock: Clock, failures: int = 2, reset_after: float = 30.0) -> CircuitBreaker:
    breaker = CircuitBreaker(failures=failures, reset_after=reset_after, clock=clock)
    fail(breaker, failures)
    assert str(breaker.state) == "open"
    return breaker


def refused(breaker: CircuitBreaker) -> tuple[str, float]:
    with pytest.raises(CircuitOpen) as caught:
        breaker.admit("send_mail")
    return caught.value.message, caught.value.retry_after


@pytest.mark.parametrize(
    ("failures", "reset_after", "later", "message", "wait"),
    [
        (5, 30.0, 18.5, "5 times in a row and is left alone; try again in 12 s", 11.5),
        (1, 0.5, 0, "1 time in a row and is left alone; try again in 1 s", 0.5),
    ],
)
def test_an_open_breaker_names_the_tool_how_often_it_failed_and_when_to_try_again(
    failures: int, reset_after: float, later: float, message: str, wait: float
) -> None:
    clock = Clock()
    breaker = opened(clock, failures, reset_after)
    clock.now += later
    assert refused(breaker) == (f"send_mail failed {message}, or go on without it", wait)


def test_of_many_threads_one_is_the_probe() -> None:
    clock, start, admitted = Clock(), threading.Barrier(16), list[int]()
    breaker = opened(clock, failures=1)
    clock.now += 30

    def call() -> None:
        start.wait()
        with suppress(CircuitOpen):
            admitted.append(breaker.admit("send_mail"))

    in_threads([call] * 16)
    assert len(admitted) == 1


WHOLE = "a whole number of at least 1, such as 3"
SECONDS = "seconds of more than 0, such as 30"


@pytest.mark.parametrize(
    ("option", "wrong", "expected"),
    [
        *(("failures", wrong, WHOLE) for wrong in (0, "5")),
        *(("reset_after", wrong, SECONDS) for wrong in (0, -1.0, float("nan"), None)),
    ],
)
def test_a_wrong_breaker_says_what_to_write_instead(option: str, wrong: Any, expected: str) -> None:
    with pytest.raises(ValueError) as caught:
        CircuitBreaker(**{option: wrong})
    assert str(caught.value) == f"{option} must be {expected}, got {wrong!r}"


class NaiveCall:
    """A call that is under way; what happens to the breaker marks it, so that nothing has a number."""

    def __init__(self, admission: int, *, probe: bool) -> None:
        self.admission = admission
        self.probe = probe
        self.stale = False


class BreakerMachine(RuleBasedStateMachine):
    """The breaker beside a model that remembers the calls themselves and the failures one by one."""

    calls = Bundle("calls")

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.breaker = CircuitBreaker(failures=3, reset_after=10, clock=self.clock)
        self.under_way: list[NaiveCall] = []
        self.in_a_row: list[str] = []
        self.opened_at: float | None = None
        self.probe: NaiveCall | None = None

    def forget(self) -> None:
        for call in self.under_way:
            call.stale = True
        self.under_way = []
        self.probe = None

    @rule(seconds=st.integers(0, 12))
    def time_passes(self, seconds: int) -> None:
        self.clock.now += seconds

    @rule(target=calls)
    def admit(self) -> NaiveCall:
        open_for = None if self.opened_at is None else self.clock.now - self.opened_at
        may = open_for is None or (open_for >= 10 and self.probe is None)
        try:
            call = NaiveCall(self.breaker.admit("tool"), probe=open_for is not None)
        except CircuitOpen as refusal:
            assert not may
            assert f"tool failed {len(self.in_a_row)} times in a row" in refusal.message
            assert refusal.retry_after >= 0
            if self.probe is None:
                assert refusal.retry_after == 10 - (open_for or 0)
            return NaiveCall(-1, probe=False)
        assert may
        self.under_way.append(call)
        if call.probe:
            self.probe = call
        return call

    @rule(call=consumes(calls))
    def succeed(self, call: NaiveCall) -> None:
        self.breaker.succeeded(call.admission)
        if call in self.under_way:
            self.under_way.remove(call)
            self.in_a_row = []
            if call.probe:
                self.opened_at = None
                self.forget()

    @rule(call=consumes(calls))
    def fail(self, call: NaiveCall) -> None:
        self.breaker.failed(call.admission)
        if call in self.under_way:
            self.under_way.remove(call)
            self.in_a_row.append("failed")
            if call.probe or len(self.in_a_row) == 3:
                self.opened_at = self.clock.now
                self.forget()

    @rule(call=consumes(calls))
    def release(self, call: NaiveCall) -> None:
        self.breaker.released(call.admission)
        if call in self.under_way:
            self.under_way.remove(call)
            if call.probe:
                self.probe = None

    @invariant()
    def same_state(self) -> None:
        expected = "closed" if self.opened_at is None else "half_open" if self.probe else "open"
        assert str(self.breaker.state) == expected


TestBreakerMachine = BreakerMachine.TestCase
TestBreakerMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
