"""Executors by their name, and an executor of one's own."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import executor_tools as tools
import pytest
from executor_tools import capable, failure, flow, step

from planning.workflow import run_workflow
from planning.workflow.executors import Executor, Job, WorkerLost, open_executor, run_job

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


class Own:
    """An executor as somebody else writes it: no base class, one method."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.jobs: list[Job] = []

    def submit_job(self, job: Job) -> Future[Any]:
        self.jobs.append(job)
        future: Future[Any] = Future()
        if self.error is not None:
            future.set_exception(self.error)
        else:
            future.set_result(run_job(job.written()) if len(self.jobs) % 2 else job.run())
        return future


def test_an_executor_of_ones_own_needs_one_method() -> None:
    own = Own()
    executor: Executor = own
    steps = flow(
        step("1", "add", inputs={"a": 1, "b": 2}),
        step("2", "add", "1", inputs={"a": "${1.output}", "b": 2}),
        step("3", "refuse", "2"),
        step("4", "refuse", "2"),
    )
    result = run_workflow(steps, capable(tools.add, tools.refuse), executor=executor)
    told = failure("the archive is closed", "storage", user_message="the archive is closed")
    assert (result.outputs, result.errors) == ({"1": 3, "2": 5}, {"3": told, "4": told})
    assert [job.tool.name for job in own.jobs] == ["add", "add", "refuse", "refuse"]


@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (WorkerLost("it is gone"), "it is gone", "worker_lost"),
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
        flow(step("1", "add", inputs={"a": 1, "b": 2}, timeout=5)), capable(tools.add), executor=Own(error)
    )
    assert result.errors == {"1": failure(message, code)}
