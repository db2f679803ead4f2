"""Executors by their name, and executors that fail."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from typing import Any

import executor_tools as tools
import pytest
from executor_tools import capable, failure, flow, step

from planning.workflow import run_workflow
from planning.workflow.executors import open_executor

STEPS = flow(step("1", "add", inputs={"a": 1, "b": 2}))


@pytest.mark.parametrize("name", ["threads", pytest.param("processes", marks=pytest.mark.slow)])
def test_a_name_opens_its_executor(name: str) -> None:
    with open_executor(name, 2) as executor:
        assert run_workflow(STEPS, capable(tools.add), executor=executor).outputs == {"1": 3}
    again = run_workflow(STEPS, capable(tools.add), executor=executor)
    assert again.status == "failed"


@pytest.mark.parametrize("name", ["gpu", "Threads", "dask://host", "dask://host:x", "threads "])
def test_an_unknown_name_is_refused_with_those_that_there_are(name: str) -> None:
    with pytest.raises(ValueError, match=r"^Unknown executor ") as caught:
        open_executor(name, 2)
    assert str(caught.value) == f"Unknown executor '{name}'. Use threads, processes or dask://HOST:PORT."


class Failing(Executor):
    """An executor whose every job fails in one way."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def submit(self, _function: Any, /, *_args: Any, **_kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(self.error)
        return future


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (LookupError("no such module"), "the executor could not run add (no such module)", "not_sent"),
        (
            TimeoutError(),
            "add took longer than 5 s and was given up; call it again, or go on without it",
            "timeout",
        ),
    ],
)
def test_what_the_future_fails_with_is_the_error_of_the_step(
    error: Exception, message: str, code: str
) -> None:
    result = run_workflow(
        flow(step("1", "add", inputs={"a": 1, "b": 2}, timeout=5)),
        capable(tools.add),
        executor=Failing(error),
    )
    assert result.errors == {"1": failure(message, code)}
