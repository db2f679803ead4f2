"""Retries of what may pass by itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

from planning.tools import StorageUnavailable, Tool, Toolbox, ToolError
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


def mailing(function: Any, retry: Retry, **options: Any) -> Toolbox:
    return Toolbox([Tool("send_mail", "S.", function, retry=retry, **options)])


def run(retry: Retry, function: Flaky) -> Any:
    return mailing(function, retry).invoke("send_mail").value


def arun(retry: Retry, function: Flaky) -> Any:
    async def main() -> Any:
        return (await mailing(function.later, retry).ainvoke("send_mail")).value

    return asyncio.run(main())


both = pytest.mark.parametrize("run", [run, arun])


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
    run: Any, errors: list[Exception], options: dict[str, Any], retried: list[RetryDetails]
) -> None:
    function = Flaky(*errors)
    assert run(at_once(**options), function) == "done"
    assert (function.calls, len(retried)) == (len(errors) + 1, len(errors))


@both
@pytest.mark.parametrize(
    ("before", "last"),
    [
        ([ConnectionError("1"), TimeoutError("2")], ConnectionError("3")),
        ([], ToolError("no such account")),
        ([ConnectionError()], ToolError("no such account")),
    ],
)
def test_the_error_that_ends_the_attempts_comes_out_as_it_was(
    run: Any, before: list[Exception], last: Exception
) -> None:
    function = Flaky(*before, last)
    with pytest.raises(type(last)) as caught:
        run(at_once(), function)
    assert caught.value is last
    assert (function.calls, last.__cause__, last.__context__) == (len(before) + 1, None, None)


@both
@pytest.mark.parametrize("kind", [asyncio.CancelledError, KeyboardInterrupt, SystemExit])
def test_who_wants_to_stop_is_never_tried_again(run: Any, kind: type[BaseException]) -> None:
    for before in ([], [ConnectionError()]):
        function = Flaky(*before, kind())
        with pytest.raises(kind):
            run(at_once(on=(Exception,)), function)
        assert function.calls == len(before) + 1


@both
def test_hooks_and_logs_hold_the_tools_name_and_the_errors_type_alone(
    run: Any, retried: list[RetryDetails], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "stamina")
    run(at_once(), Flaky(ConnectionResetError(PRIVATE), StorageUnavailable(PRIVATE)))
    assert [
        (details.name, details.args, details.kwargs, details.retry_num, str(details.caused_by))
        for details in retried
    ] == [
        ("<context block>", (), {}, 1, "send_mail: ConnectionResetError"),
        ("<context block>", (), {}, 2, "send_mail: StorageUnavailable"),
    ]
    assert PRIVATE not in f"{retried!r}{caplog.text}"


WHOLE = "a whole number of at least 1, such as 3"
SECONDS = "seconds of 0 or more, such as 0.5"
TYPES = "a tuple of types of exceptions, such as (OSError,)"


@pytest.mark.parametrize(
    ("option", "wrong", "expected"),
    [
        *(("attempts", wrong, WHOLE) for wrong in (0, True, 1.5)),
        ("wait_initial", -1, SECONDS),
        ("wait_max", float("inf"), SECONDS),
        *(("wait_jitter", wrong, SECONDS) for wrong in (float("nan"), "1")),
        *(("on", wrong, TYPES) for wrong in (KeyError, (1,))),
    ],
)
def test_a_wrong_retry_says_what_to_write_instead(option: str, wrong: Any, expected: str) -> None:
    with pytest.raises(ValueError) as caught:
        Retry(**{option: wrong})
    assert str(caught.value) == f"{option} must be {expected}, got {wrong!r}"
