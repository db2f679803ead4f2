"""Retries of what may pass by itself."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import time
import weakref
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
import stamina
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from planning.tools.errors import StorageUnavailable, ToolError
from planning.tools.guard import Retry

PRIVATE = "the card number is 4111"


class Flaky:
    """Fails with each error in turn, then gives back "done"."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"

    async def later(self) -> str:
        await asyncio.sleep(0)
        return self()


Run = Callable[[Retry, Flaky], str]


def run(retry: Retry, function: Flaky) -> str:
    return retry.run(function, "send_mail")


def arun(retry: Retry, function: Flaky) -> str:
    return asyncio.run(retry.arun(function.later, "send_mail"))


both = pytest.mark.parametrize("run", [run, arun])


def at_once(**changes: Any) -> Retry:
    return Retry(**{"wait_initial": 0, "wait_jitter": 0, **changes})


@pytest.fixture
def retried() -> Iterator[list[RetryDetails]]:
    seen: list[RetryDetails] = []

    def hook(details: RetryDetails) -> None:
        seen.append(details)

    set_on_retry_hooks([hook])
    yield seen
    set_on_retry_hooks(None)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits, none of which takes any time."""
    waits: list[float] = []
    nap = asyncio.sleep

    async def asleep(seconds: float) -> None:
        if seconds:
            waits.append(seconds)
        await nap(0)

    monkeypatch.setattr(time, "sleep", waits.append)
    monkeypatch.setattr(asyncio, "sleep", asleep)
    return waits


@both
def test_a_call_that_succeeds_is_made_once_and_stamina_hears_nothing(
    run: Run, retried: list[RetryDetails]
) -> None:
    function = Flaky()
    assert (run(at_once(), function), function.calls, retried) == ("done", 1, [])


@both
@pytest.mark.parametrize(
    "error", [StorageUnavailable("down"), ConnectionError(), ConnectionResetError(), TimeoutError()]
)
def test_a_transient_error_is_retried(run: Run, error: Exception) -> None:
    function = Flaky(error, error)
    assert (run(at_once(), function), function.calls) == ("done", 3)


@both
def test_after_the_last_attempt_its_own_error_comes_out(run: Run) -> None:
    first, second, last = ConnectionError("1"), TimeoutError("2"), ConnectionError("3")
    function = Flaky(first, second, last)
    with pytest.raises(ConnectionError) as caught:
        run(at_once(), function)
    assert caught.value is last
    assert (function.calls, last.__cause__, last.__context__) == (3, None, None)


@both
def test_another_error_comes_out_at_once_at_the_first_and_at_a_later_attempt(run: Run) -> None:
    for before in ([], [ConnectionError()]):
        error = ToolError("no such account")
        function = Flaky(*before, error)
        with pytest.raises(ToolError) as caught:
            run(at_once(), function)
        assert caught.value is error
        assert (function.calls, error.__context__) == (len(before) + 1, None)


@both
def test_what_on_names_is_retried_too(run: Run) -> None:
    function = Flaky(KeyError("a"), ConnectionError())
    assert (run(at_once(on=(LookupError,)), function), function.calls) == ("done", 3)


@both
@pytest.mark.parametrize("kind", [asyncio.CancelledError, KeyboardInterrupt, SystemExit])
def test_who_wants_to_stop_is_never_tried_again(run: Run, kind: type[BaseException]) -> None:
    for before in ([], [ConnectionError()]):
        function = Flaky(*before, kind())
        with pytest.raises(kind):
            run(at_once(on=(Exception,)), function)
        assert function.calls == len(before) + 1


@both
def test_a_single_attempt_needs_no_stamina(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stamina", None)
    error = ConnectionError()
    function = Flaky(error)
    with pytest.raises(ConnectionError) as caught:
        run(Retry(attempts=1), function)
    assert caught.value is error
    assert function.calls == 1


def test_a_retry_without_stamina_is_refused_where_it_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stamina", None)
    with pytest.raises(ImportError) as caught:
        Retry()
    assert str(caught.value) == "retrying needs stamina: pip install 'session-planning[retry]'"


@both
def test_the_waits_double_and_are_capped(run: Run, slept: list[float]) -> None:
    function = Flaky(*[ConnectionError()] * 5)
    assert run(Retry(attempts=6, wait_initial=0.5, wait_max=3, wait_jitter=0), function) == "done"
    assert slept == [0.5, 1.0, 2.0, 3, 3]


@both
def test_each_wait_has_a_random_part_within_the_cap(
    run: Run, slept: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("random.uniform", lambda _low, high: high / 2)
    function = Flaky(*[ConnectionError()] * 3)
    assert run(Retry(attempts=4, wait_initial=1, wait_max=4, wait_jitter=1), function) == "done"
    assert slept == [1.5, 2.5, 4]


def test_the_attempts_are_made_however_long_they_take(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = [0.0]
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "monotonic", lambda: sum(slept))
    function = Flaky(ConnectionError(), ConnectionError())
    assert run(Retry(wait_initial=1000, wait_max=1000), function) == "done"
    assert sum(slept) == 2000


def test_a_caller_who_has_gone_stops_the_attempts_before_the_wait(slept: list[float]) -> None:
    error = ConnectionError()
    function = Flaky(error)
    with pytest.raises(ConnectionError) as caught:
        Retry().run(function, "send_mail", lambda: True)
    assert caught.value is error
    assert (function.calls, slept) == (1, [])


def test_a_caller_who_goes_during_the_wait_stops_the_attempts_after_it(slept: list[float]) -> None:
    function = Flaky(ConnectionError())
    with pytest.raises(ConnectionError):
        Retry(wait_jitter=0).run(function, "send_mail", lambda: bool(slept))
    assert (function.calls, slept) == (1, [0.1])


def test_a_caller_who_stays_has_every_attempt() -> None:
    function = Flaky(ConnectionError(), ConnectionError())
    assert (at_once().run(function, "send_mail", lambda: False), function.calls) == ("done", 3)


def test_a_cancelled_task_does_not_wait_on() -> None:
    function = Flaky(ConnectionError(PRIVATE))

    async def main() -> None:
        task = asyncio.create_task(Retry(wait_initial=3600, wait_max=3600).arun(function.later, "send_mail"))
        while not function.calls:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert caught.value.__context__ is None

    asyncio.run(main())
    assert function.calls == 1


@both
def test_a_hook_hears_the_tools_name_and_the_errors_type_alone(run: Run, retried: list[RetryDetails]) -> None:
    try:
        raise ValueError(PRIVATE)
    except ValueError:
        run(at_once(), Flaky(ConnectionResetError(PRIVATE), StorageUnavailable(PRIVATE)))
    assert [
        (details.name, details.retry_num, str(details.caused_by), repr(details.caused_by))
        for details in retried
    ] == [
        ("send_mail", 1, "ConnectionResetError", "ConnectionResetError"),
        ("send_mail", 2, "StorageUnavailable", "StorageUnavailable"),
    ]
    assert PRIVATE not in repr(retried)
    for details in retried:
        assert (details.args, details.kwargs) == ((), {})


@both
def test_the_exception_that_stamina_sees_leads_to_no_other_and_to_no_frame(run: Run) -> None:
    leads: list[Any] = []

    def hook(details: RetryDetails) -> None:
        error = details.caused_by
        leads.extend([error.__context__, error.__cause__, error.__traceback__, vars(error)])

    set_on_retry_hooks([hook])
    try:
        raise ValueError(PRIVATE)
    except ValueError:
        run(at_once(), Flaky(ConnectionError(PRIVATE)))
    finally:
        set_on_retry_hooks(None)
    assert leads == [None, None, None, {}]


@both
def test_the_log_of_a_retry_holds_nothing_of_the_error(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "stamina")
    run(at_once(), Flaky(ConnectionError(PRIVATE)))
    records = [record for record in caplog.records if record.name == "stamina"]
    assert [record.getMessage() for record in records] == ["stamina.retry_scheduled"]
    fields = {name: value for name, value in vars(records[0]).items() if name.startswith("stamina.")}
    assert fields == {
        "stamina.callable": "send_mail",
        "stamina.args": (),
        "stamina.kwargs": {},
        "stamina.retry_num": 1,
        "stamina.caused_by": "ConnectionError",
        "stamina.wait_for": 0.0,
        "stamina.waited_so_far": 0.0,
    }
    assert PRIVATE not in caplog.text


def test_a_stamina_that_takes_no_name_retries_all_the_same(
    retried: list[RetryDetails], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(type(stamina.retry_context(on=KeyError)), "with_name")
    assert run(at_once(), Flaky(ConnectionError())) == "done"
    assert [details.name for details in retried] == ["<context block>"]


@both
def test_a_user_who_switches_stamina_off_has_one_attempt(run: Run) -> None:
    error = ConnectionError()
    function = Flaky(error)
    stamina.set_active(False)
    try:
        with pytest.raises(ConnectionError) as caught:
            run(Retry(), function)
    finally:
        stamina.set_active(True)
    assert caught.value is error
    assert function.calls == 1


@both
def test_staminas_test_mode_sets_the_attempts_and_takes_the_waits_away(run: Run, slept: list[float]) -> None:
    function = Flaky(*[ConnectionError()] * 9)
    stamina.set_testing(True, attempts=4)
    try:
        with pytest.raises(ConnectionError):
            run(Retry(wait_initial=9), function)
    finally:
        stamina.set_testing(False)
    assert (function.calls, sum(slept)) == (4, 0)


class Chained(Flaky):
    def __call__(self) -> str:
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise ConnectionError("outer") from inner


def test_the_error_keeps_its_own_context_and_cause() -> None:
    try:
        raise ValueError("what the caller deals with")
    except ValueError:
        with pytest.raises(ConnectionError) as caught:
            run(at_once(), Chained())
    assert repr(caught.value.__context__) == repr(caught.value.__cause__) == "KeyError('inner')"


def test_the_error_of_async_code_keeps_its_own_context_and_cause() -> None:
    async def main() -> BaseException:
        try:
            raise ValueError("what the caller deals with")
        except ValueError:
            with pytest.raises(ConnectionError) as caught:
                await at_once().arun(Chained().later, "send_mail")
            return caught.value

    error = asyncio.run(main())
    assert repr(error.__context__) == repr(error.__cause__) == "KeyError('inner')"


def test_nothing_holds_the_error_once_it_is_handled() -> None:
    class Down(ConnectionError):
        pass

    def fail() -> None:
        raise Down

    def handle() -> weakref.ref[BaseException]:
        try:
            at_once().run(fail, "send_mail")
        except Down as error:
            return weakref.ref(error)
        raise AssertionError

    gc.disable()
    try:
        assert handle()() is None
    finally:
        gc.enable()


def test_any_awaitable_will_do() -> None:
    async def main() -> str:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        future.set_result("done")

        def give() -> Awaitable[str]:
            return future

        return await Retry().arun(give, "send_mail")

    assert asyncio.run(main()) == "done"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"attempts": 0}, "attempts must be a whole number of at least 1, such as 3, got 0"),
        ({"attempts": True}, "attempts must be a whole number of at least 1, such as 3, got True"),
        ({"attempts": 1.5}, "attempts must be a whole number of at least 1, such as 3, got 1.5"),
        ({"wait_initial": -1}, "wait_initial must be seconds of 0 or more, such as 0.5, got -1"),
        ({"wait_max": float("inf")}, "wait_max must be seconds of 0 or more, such as 0.5, got inf"),
        ({"wait_jitter": float("nan")}, "wait_jitter must be seconds of 0 or more, such as 0.5, got nan"),
        ({"wait_jitter": "1"}, "wait_jitter must be seconds of 0 or more, such as 0.5, got '1'"),
        ({"on": KeyError}, f"on must be a tuple of types of exceptions, such as (OSError,), got {KeyError}"),
        ({"on": (1,)}, "on must be a tuple of types of exceptions, such as (OSError,), got (1,)"),
        (
            {"on": (KeyboardInterrupt,)},
            "on must be a tuple of types of exceptions, such as (OSError,), "
            "got (<class 'KeyboardInterrupt'>,)",
        ),
    ],
)
def test_a_wrong_retry_says_what_to_write_instead(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        Retry(**wrong)
    assert str(caught.value) == message


def test_a_retry_takes_keywords_only() -> None:
    with pytest.raises(TypeError):
        Retry(3)  # type: ignore[call-arg]  # what is tested
