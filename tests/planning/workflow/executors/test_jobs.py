"""Calls that are written down, carried out elsewhere, and read again."""

from __future__ import annotations

import asyncio
import pickle
import sys
import threading
from concurrent.futures import CancelledError
from typing import Any

import attrs
import executor_tools as tools
import pytest

from planning.tools import StorageUnavailable, Tool, ToolError, tool
from planning.tools.errors import ErrorKind, ToolTimeout, UserInputNeeded, classify_error
from planning.tools.guard import Retry
from planning.tools.spec import QueryCall
from planning.workflow.executors.jobs import RemoteError, dumps, pack, run_job, told_lost, unpack
from planning.workflow.failures import StepFailed, WorkerLost


def carried(
    called: Tool, params: Any = None, values: Any = None, seconds: float | None = None, claim: Any = None
) -> Any:
    """What comes of a call that was written down."""
    written = pack(called, params or {}, values or {}, seconds, write=dumps, claim=claim)
    return unpack(run_job(written))


def failure_of(called: Tool, params: Any = None, **more: Any) -> BaseException:
    """What a call that was written down fails with."""
    with pytest.raises(BaseException) as caught:
        carried(called, params, **more)
    return caught.value


def raising(error: BaseException) -> Tool:
    """A tool that raises this; it is written down with it."""

    def fail() -> None:
        raise error

    return Tool("fail", "", fail)


GREET = tools.Greet("Hello")


@pytest.mark.parametrize(
    ("called", "params", "expected"),
    [
        (tools.add, {"a": 1, "b": 2}, 3),
        (tools.add_later, {"a": 1, "b": 2}, 3),
        (Tool("times", "", tools.times), {"a": 3}, 6),
        (Tool("twice", "", tools.twice), {"a": 3}, 6),
        (Tool("inner", "", tools.Outer.inner), {"a": 3}, 3),
        (tools.ADD_PAIR, tools.Pair(1, 2), 3),
        (tools.FACTS.as_tool, QueryCall("pair", tools.Pair(1, 2)), ["pair", 1, "t1"]),
        (GREET.as_tool, {"who": "Ann"}, {"success": True, "data": "Hello Ann"}),
        (tools.seen, {}, ["trace"]),
    ],
    ids=["decorated", "async", "function", "lambda", "nested", "model", "query", "class", "context"],
)
def test_a_tool_of_any_form_can_be_carried_elsewhere(called: Tool, params: Any, expected: Any) -> None:
    assert carried(called, params, {"trace": "t1"}) == expected


def test_a_tool_that_was_called_before_can_still_be_carried() -> None:
    assert GREET.as_tool.execute(who="Ann")["success"] is True
    assert carried(GREET.as_tool, {"who": "Bob"}) == {"success": True, "data": "Hello Bob"}


def test_a_function_that_closes_over_values_is_carried_with_them() -> None:
    number = 7
    assert carried(Tool("closed", "", lambda a: a + number), {"a": 1}) == 8


def test_a_decorated_tool_travels_by_its_name_alone() -> None:
    written = pack(tools.add, {"a": 1, "b": 2}, {}, None, write=pickle.dumps)
    assert b"executor_tools" in written
    assert len(written) < 600


def test_a_function_of_the_script_itself_is_not_looked_up_by_name() -> None:
    def here(a: int) -> int:
        return a

    here.__module__ = "__main__"
    assert carried(Tool("here", "", here), {"a": 4}) == 4


def test_a_function_that_lost_its_name_is_carried_whole() -> None:
    def here(a: int) -> int:
        return a

    here.__module__ = None  # type: ignore[assignment]  # as what is made from source may have it
    assert carried(Tool("here", "", here), {"a": 4}) == 4


def test_the_retries_of_a_tool_happen_where_it_runs() -> None:
    calls = []

    def shaky() -> int:
        calls.append(1)
        if len(calls) < 3:
            raise StorageUnavailable("not yet")
        return len(calls)

    retry = Retry(attempts=3, wait_initial=0, wait_max=0, wait_jitter=0)
    assert carried(Tool("shaky", "", shaky, retry=retry)) == 3


def test_what_cannot_be_pickled_is_refused_before_it_is_sent() -> None:
    bound = Tool("bound", "", threading.Lock().acquire)
    assert failure_of(bound).args == (
        "bound cannot be sent to another process (cannot pickle '_thread.lock' object); define its function "
        "at the top of a module, or run it without an executor",
    )
    error = failure_of(tools.add, {"a": tools.Unwritable(), "b": 1})
    assert isinstance(error, StepFailed)
    assert (error.message, error.code) == (
        "the inputs of add cannot be sent to another process (this stays here); give it plain values",
        "not_sent",
    )


def test_a_lambda_needs_cloudpickle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    error = failure_of(Tool("twice", "", tools.twice))
    assert str(error).startswith(
        "twice cannot be sent to another process (Can't pickle <function <lambda> at"
    )
    assert str(error).endswith("define its function at the top of a module, or run it without an executor")


def test_a_value_that_cannot_be_sent_back_is_an_error_of_the_call() -> None:
    error = failure_of(tools.give_lock)
    assert isinstance(error, StepFailed)
    assert (error.message, error.code) == (
        "what give_lock gave back cannot be sent (this stays here); let it give back plain values",
        "not_sent",
    )


def test_a_value_that_cannot_be_read_again_is_an_error_of_the_call() -> None:
    error = failure_of(tools.give_unreadable)
    assert isinstance(error, StepFailed)
    assert (error.message, error.code) == (
        "what came back cannot be read here (this does not come back); let the tool give back plain values",
        "not_sent",
    )


def test_a_job_that_cannot_be_read_is_an_error_of_the_call() -> None:
    assert failure_of(tools.add, {"a": tools.Unreadable(), "b": 1}).args == (
        "a worker could not load what it is to run (this does not come back); its modules must be installed "
        "where the workers run",
    )


def test_a_huge_result_is_refused_where_it_is_made() -> None:
    written = pack(tools.give_much, {}, {}, None, write=dumps)
    answer = run_job(written)
    assert len(answer) < 1_000
    with pytest.raises(StepFailed) as caught:
        unpack(answer)
    assert (caught.value.message, caught.value.code) == (
        "give_much gave more than 32 MB, which is not kept; let it store that itself, and give back where "
        "it is",
        "too_large",
    )


# What a tool raises


def test_an_exception_comes_back_as_it_was() -> None:
    error = failure_of(raising(ValueError("no", 3)))
    assert (type(error), error.args) == (ValueError, ("no", 3))


def test_an_exception_that_cannot_be_carried_is_told_by_another() -> None:
    error = failure_of(tools.refuse_sealed)
    assert isinstance(error, RemoteError)
    assert (str(error), error.kind) == ("Sealed: nobody can carry this", ErrorKind.UNKNOWN)
    assert not isinstance(error, ConnectionError)


def test_one_that_may_pass_is_told_by_one_that_may_pass() -> None:
    error = failure_of(tools.reach)
    assert isinstance(error, RemoteError)
    assert isinstance(error, ConnectionError)
    assert (str(error), error.kind) == ("Unreached: archive does not answer", ErrorKind.STORAGE)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - written here
    assert (str(again), again.kind) == (str(error), error.kind)


def test_an_error_for_the_model_keeps_its_kind_when_what_is_in_it_cannot_be_carried() -> None:
    error = failure_of(tools.ask)
    assert isinstance(error, UserInputNeeded)
    assert (error.message, error.input_request, error.details) == (
        "the account is missing",
        "Which account?",
        {},
    )

    class Closed(StorageUnavailable):
        def __init__(self) -> None:
            super().__init__("closed today")
            self.lock = threading.Lock()

    closed = failure_of(raising_by(Closed))
    assert (type(closed), closed.args) == (StorageUnavailable, ("closed today",))


def raising_by(make: Any) -> Tool:
    """A tool that raises what it makes itself."""

    def fail() -> None:
        raise make()

    return Tool("fail", "", fail)


def test_an_error_that_was_never_made_whole_is_told_all_the_same() -> None:
    error = failure_of(raising_by(tools.NeverMade))
    assert (type(error), error.args) == (ToolError, ("",))


class Talking(Exception):
    """Whatever is asked of it ends the program."""

    def __reduce__(self) -> Any:
        raise SystemExit

    def __str__(self) -> str:
        raise SystemExit


def test_an_exception_that_ends_the_program_when_it_is_written_down_does_not() -> None:
    error = failure_of(raising_by(Talking))
    assert isinstance(error, StepFailed)
    assert (error.message, error.code) == ("the tool ended with SystemExit", "interrupted")


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError])
def test_what_would_end_the_worker_is_an_error_of_the_call(kind: type[BaseException]) -> None:
    error = failure_of(raising_by(kind))
    assert isinstance(error, StepFailed)
    assert (error.message, error.code) == (f"fail ended with {kind.__name__}", "interrupted")


def test_an_async_tool_that_cancels_itself_is_an_error_of_the_call() -> None:
    async def give_up() -> None:
        raise asyncio.CancelledError

    assert failure_of(Tool("give_up", "", give_up)).args == ("give_up ended with CancelledError",)


def test_a_cancelled_future_of_the_tools_own_comes_back() -> None:
    assert type(failure_of(raising_by(CancelledError))) is CancelledError


@pytest.mark.parametrize("function", [tools.hang.function, tools.hang_async])
def test_a_call_has_its_time_where_it_runs(function: Any) -> None:
    error = failure_of(Tool("hang", "", function), seconds=0.05)
    assert isinstance(error, ToolTimeout)
    assert (
        error.message == "hang took longer than 0.05 s and was given up; call it again, or go on without it"
    )


def test_an_exception_of_a_local_type_comes_back() -> None:
    class Local(Exception):
        pass

    assert failure_of(raising_by(Local)).__class__.__name__ == "Local"


# Claims and losses


@attrs.frozen
class Taken:
    """A claim that somebody else has."""

    def take(self) -> bool:
        return False


@attrs.frozen
class Free:
    """A claim that nobody has."""

    def take(self) -> bool:
        return True


def test_a_job_whose_claim_is_taken_does_not_run(tmp_path: Any) -> None:
    calls = tmp_path / "calls"
    error = failure_of(tools.once, {"path": str(calls)}, claim=Taken())
    assert isinstance(error, WorkerLost)
    assert (error.message, error.code, tools.count(calls)) == (
        "the worker that ran once died; once may have taken effect, so it is not run again",
        "worker_lost",
        0,
    )


def test_a_job_whose_claim_is_free_runs(tmp_path: Any) -> None:
    assert carried(tools.once, {"path": str(tmp_path / "calls")}, claim=Free()) == "done"


def test_a_lost_worker_is_told_in_the_words_that_fit() -> None:
    assert [told_lost(tools.add), told_lost(tools.add, 3), told_lost(tools.once, 3)] == [
        "the worker that ran add died while it ran",
        "the worker that ran add died 3 times",
        "the worker that ran once died; once may have taken effect, so it is not run again",
    ]


def test_a_remote_error_is_of_the_kind_that_the_other_was() -> None:
    assert classify_error(failure_of(raising_by(lambda: FileNotFoundError("gone")))) is ErrorKind.STORAGE


def test_a_tool_can_be_declared_in_a_function() -> None:
    @tool
    def inner(a: int) -> int:
        return a + 1

    assert carried(inner, {"a": 1}) == 2


class Turning(Exception):
    """An exception that comes back as another."""

    def __reduce__(self) -> Any:
        return ValueError, ("something else",)


def test_an_exception_that_would_come_back_as_another_is_told_as_what_it_was() -> None:
    error = failure_of(raising_by(lambda: Turning("turned")))
    assert (type(error), str(error)) == (RemoteError, "Turning: turned")
