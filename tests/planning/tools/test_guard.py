"""Retries of what may pass by itself, and the breaker, which leaves alone what is down."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule
from stamina.instrumentation import RetryDetails, set_on_retry_hooks
from syrupy.assertion import SnapshotAssertion
from tool_entries import Clock, in_async, in_threads, through

from planning.tools import StorageUnavailable, Tool, ToolError
from planning.tools.errors import CircuitOpen
from planning.tools.guard import CircuitBreaker, Retry

PRIVATE = "the card number is 4111"
FAILED = {"success": False, "code": "storage"}


def flaky(*errors: Any) -> Mock:
    """A function that fails with each error in turn, or returns what is none, then returns "done"."""
    return Mock(side_effect=[*errors, *["done"] * 9])


def run(entry: str, retry: Retry, function: Mock) -> Any:
    called = in_async(function) if entry == "ainvoke" else function
    return through(entry, Tool("send_mail", "S.", called, retry=retry)).value


both = pytest.mark.parametrize("entry", ["invoke", "ainvoke"])


def at_once(**changes: Any) -> Retry:
    return Retry(**{"wait_initial": 0, "wait_jitter": 0, **changes})


@pytest.fixture
def retried() -> Iterator[list[RetryDetails]]:
    seen: list[RetryDetails] = []
    hook: Any = seen.append
    set_on_retry_hooks([hook])
    yield seen
    set_on_retry_hooks(None)


TRANSIENT = [StorageUnavailable("down"), ConnectionError(), ConnectionResetError(), TimeoutError()]


@both
@pytest.mark.parametrize(
    ("errors", "options"),
    [
        ([], {}),
        *(([error, error], {}) for error in TRANSIENT),
        ([KeyError("a"), ConnectionError()], {"on": (LookupError,)}),
    ],
)
def test_what_may_pass_and_what_on_names_is_tried_again_and_stamina_hears_of_each(
    entry: str, errors: list[Exception], options: dict[str, Any], retried: list[RetryDetails]
) -> None:
    function = flaky(*errors)
    assert run(entry, at_once(**options), function) == "done"
    assert (function.call_count, len(retried)) == (len(errors) + 1, len(errors))


@both
@pytest.mark.parametrize(
    ("before", "last"),
    [
        ([ConnectionError("1"), TimeoutError("2")], ConnectionError("3")),
        ([], ToolError("no such account")),
        ([ConnectionError()], ToolError("no such account")),
    ],
)
def test_the_last_error_comes_out_as_it_was(entry: str, before: list[Exception], last: Exception) -> None:
    function = flaky(*before, last)
    with pytest.raises(type(last)) as caught:
        run(entry, at_once(), function)
    assert caught.value is last
    assert (function.call_count, last.__cause__, last.__context__) == (len(before) + 1, None, None)


@both
@pytest.mark.parametrize("kind", [asyncio.CancelledError, KeyboardInterrupt, SystemExit])
def test_who_wants_to_stop_is_never_tried_again(entry: str, kind: type[BaseException]) -> None:
    for before in ([], [ConnectionError()]):
        function = flaky(*before, kind())
        with pytest.raises(kind):
            run(entry, at_once(on=(Exception,)), function)
        assert function.call_count == len(before) + 1


@both
def test_hooks_and_logs_hold_the_tools_name_and_the_errors_type_alone(
    entry: str, retried: list[RetryDetails], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "stamina")
    run(entry, at_once(), flaky(ConnectionResetError(PRIVATE), {**FAILED, "error": PRIVATE}))
    assert [
        (details.name, details.args, details.kwargs, details.retry_num, str(details.caused_by))
        for details in retried
    ] == [
        ("<context block>", (), {}, 1, "send_mail: ConnectionResetError"),
        ("<context block>", (), {}, 2, "send_mail: reported"),
    ]
    assert PRIVATE not in f"{retried!r}{caplog.text}"


@both
def test_the_waits_double_to_the_longest_with_a_random_part(entry: str, retried: list[RetryDetails]) -> None:
    def waits(**options: float) -> list[float]:
        retried.clear()
        run(entry, at_once(attempts=6, **options), flaky(*[ConnectionError()] * 5))
        return [details.wait_for for details in retried]

    assert waits(wait_initial=0.002, wait_max=0.01) == pytest.approx([0.002, 0.004, 0.008, 0.01, 0.01])
    longest, jittered = waits(wait_max=0.001, wait_jitter=5), waits(wait_max=0.01, wait_jitter=0.002)
    assert (max(longest), len(set(jittered)) > 1, max(jittered) <= 0.002) == (0.001, True, True)


WRONG: list[tuple[type, str, Any]] = [
    *((Retry, "attempts", wrong) for wrong in (0, True, 1.5)),
    (Retry, "wait_initial", -1),
    (Retry, "wait_max", float("inf")),
    *((Retry, "wait_jitter", wrong) for wrong in (float("nan"), "1")),
    *((Retry, "on", wrong) for wrong in (KeyError, (1,))),
    *((CircuitBreaker, "failures", wrong) for wrong in (0, "5")),
    *((CircuitBreaker, "reset_after", wrong) for wrong in (0, -1.0, float("nan"), None)),
]


def test_a_wrong_option_says_what_to_write_instead(snapshot: SnapshotAssertion) -> None:
    said = []
    for kind, option, wrong in WRONG:
        with pytest.raises(ValueError) as caught:
            kind(**{option: wrong})
        said.append(str(caught.value))
    assert "\n".join(said) == snapshot


def test_without_stamina_a_retry_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planning.tools.guard.find_spec", lambda _name: None)
    with pytest.raises(
        ImportError, match=r"^retrying needs stamina: pip install 'session-planning\[retry\]'$"
    ):
        Retry()


# The breaker, which leaves alone what is down and tries it again with one call


def waiting(clock: Clock) -> CircuitBreaker:
    """A breaker that has been open for as long as it stays so."""
    breaker = CircuitBreaker(failures=2, reset_after=30, clock=clock)
    for _ in range(2):
        breaker.record_failure(breaker.admit("send_mail"))
    clock.now += 30
    return breaker


@pytest.mark.parametrize(("later", "seconds"), [(0, 30), (12.5, 18), (29.5, 1)])
def test_while_a_probe_runs_a_refusal_says_so(later: float, seconds: int) -> None:
    breaker = waiting(clock := Clock())
    breaker.admit("send_mail")
    clock.now += later
    with pytest.raises(CircuitOpen) as caught:
        breaker.admit("send_mail")
    assert (caught.value.message, caught.value.retry_after) == (
        "send_mail failed 2 times in a row and is being tried by another call; "
        f"try again in {seconds} s, or continue without it",
        max(30 - later, 1.0),
    )


def test_of_many_threads_one_is_the_probe() -> None:
    breaker, start, admitted = waiting(Clock()), threading.Barrier(16), list[int]()

    def call() -> None:
        start.wait()
        with suppress(CircuitOpen):
            admitted.append(breaker.admit("send_mail"))

    in_threads([call] * 16)
    assert len(admitted) == 1


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
        self.breaker.record_success(call.admission)
        if call in self.under_way:
            self.under_way.remove(call)
            self.in_a_row = []
            if call.probe:
                self.opened_at = None
                self.forget()

    @rule(call=consumes(calls))
    def fail(self, call: NaiveCall) -> None:
        self.breaker.record_failure(call.admission)
        if call in self.under_way:
            self.under_way.remove(call)
            self.in_a_row.append("failed")
            if call.probe or len(self.in_a_row) == 3:
                self.opened_at = self.clock.now
                self.forget()

    @rule(call=consumes(calls))
    def release(self, call: NaiveCall) -> None:
        self.breaker.release(call.admission)
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
