"""Workflows on a Dask cluster: here, and in worker processes, some of which are killed."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import executor_tools as tools
import pytest
from distributed import Client, LocalCluster
from executor_tools import failure, step
from hypothesis import given, settings
from json_runs import STEPS, giving, kept, values
from run_cases import capable, flow, refusal, restored

from planning.workflow import Workflow, WorkflowResult, run_workflow
from planning.workflow.executors import dask, open_executor
from planning.workflow.executors.jobs import ExecutorUnavailable
from planning.workflow.executors.workers import DaskExecutor, take_claim

LOST = "the worker that ran {0} died; {0} may have taken effect, so it is not run again"
BROKEN = "; the executor is broken, resume with another"


def cluster_of(workers: int, **options: Any) -> LocalCluster:
    options = {"threads_per_worker": 1, "protocol": "tcp://", "dashboard_address": ":0", **options}
    return LocalCluster(n_workers=workers, **options)  # type: ignore[no-untyped-call]  # of distributed


def client_of(where: Any, **options: Any) -> Client:
    """A client of a cluster, or of the one that another client knows."""
    address = where.scheduler.address if isinstance(where, Client) else where  # type: ignore[union-attr]  # it is connected
    return Client(address, **options)  # type: ignore[no-untyped-call]  # of distributed


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    """Dask writes of every worker that dies, and these tests kill some."""
    logger = logging.getLogger("distributed")
    before, logger.level = logger.level, logging.CRITICAL
    yield
    logger.level = before


@pytest.fixture
def mortal() -> Iterator[DaskExecutor]:
    """A cluster whose workers may be killed; nothing is left of them afterwards."""
    before = set(multiprocessing.active_children())
    with cluster_of(2) as cluster, client_of(cluster) as made:
        yield dask(made)
    end = time.monotonic() + 10
    while time.monotonic() < end and set(multiprocessing.active_children()) - before:
        time.sleep(0.05)
    assert set(multiprocessing.active_children()) - before == set()


def kill_when_told(path: Path) -> threading.Thread:
    def watch() -> None:
        end = time.monotonic() + 20
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.01)
        os.kill(int(path.read_text()), signal.SIGKILL)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


# In this process


@pytest.fixture(scope="module")
def near(_quiet: None) -> Iterator[Client]:
    """A client of a cluster without processes of its own."""
    with cluster_of(1, processes=False) as cluster, client_of(cluster) as made:
        yield made


@settings(max_examples=settings().max_examples // 5)
@given(value=values)
def test_each_step_gets_and_keeps_the_same_as_without_a_cluster(near: Client, value: Any) -> None:
    result = run_workflow(STEPS, giving(value), executor=dask(near))
    assert kept(result) == kept(run_workflow(STEPS, giving(value)))


ADD = flow(step("1", "add", inputs={"a": 1, "b": 2}))


@pytest.mark.parametrize("end", ["", "/"])
def test_an_address_opens_an_executor_that_is_closed_at_the_end(near: Client, end: str) -> None:
    address = near.scheduler.address.replace("tcp", "dask")  # type: ignore[union-attr]  # it is connected
    with open_executor(f"{address}{end}", 2) as executor:
        assert run_workflow(ADD, capable(tools.add), executor=executor).outputs == {"1": 3}
    closed = run_workflow(ADD, capable(tools.add), executor=executor)
    reason = "the executor takes no jobs (the Dask client is closed); resume with another"
    assert closed.errors == {"1": failure(f"add was not run: {reason}", "worker_lost")}


def test_a_cluster_that_does_not_answer_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("planning.workflow.executors.workers._CONNECT", 0.05)
    message = refusal(ExecutorUnavailable, open_executor("dask://127.0.0.1:1", 2).__enter__)
    assert message.startswith("dask://127.0.0.1:1 cannot be reached: Timed out trying to connect")


def test_two_equal_calls_are_two_and_claims_are_made_where_they_run(near: Client, tmp_path: Path) -> None:
    path = {"path": str(tmp_path / "calls")}
    steps = [step(f"{tool} {each}", tool, inputs=path) for tool in ("once", "noted") for each in "12"]
    result = run_workflow(flow(*steps), capable(tools.once, tools.noted), executor=dask(near))
    assert (dict(result.errors), list(result.outputs.values())) == ({}, ["noted"] * 4)
    assert tools.count(tmp_path / "calls") == 4
    claims = [near.submit(take_claim, name, pure=False).result() for name in ("a", "a", "b")]
    assert claims == [True, False, True]


def test_what_is_no_client_or_one_for_async_code_is_refused(near: Client) -> None:
    async def make() -> None:
        message = "dask() takes a distributed.Client made without asynchronous=True, got "
        async with client_of(near, asynchronous=True) as other:
            assert refusal(TypeError, dask, other) == message + "Client"
        assert refusal(TypeError, dask, "tcp://127.0.0.1:8786") == message + "str"

    asyncio.run(make())


def test_without_dask_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    told = "dask needs its library: run pip install 'session-planning[distributed]'"
    assert refusal(ImportError, dask, None) == told
    assert refusal(ExecutorUnavailable, open_executor("dask://127.0.0.1:1", 2).__enter__) == told


# In worker processes


@pytest.mark.slow
def test_a_workflow_survives_workers_that_are_killed(mortal: DaskExecutor, tmp_path: Path) -> None:
    """A step that must be once is not run again; all others are."""
    first, second, calls, lost, after = (tmp_path / name for name in ("1", "2", "calls", "lost", "after"))
    steps = flow(
        step("1", "once", inputs={"path": str(calls)}),
        step("2", "killed_first", "1", inputs={"path": str(first), "calls": str(tmp_path / "other")}),
        step("3", "once", "2", inputs={"path": str(after)}),
        step("4", "killed_once", "3", inputs={"path": str(second), "calls": str(lost)}),
        step("5", "add", "4", inputs={"a": 1, "b": 2}),
        step("6", "add", "3", inputs={"a": 1, "b": 2}),
        step("7", "add", "6", inputs={"a": "${6.output}", "b": 2}),
    )
    capabilities = capable(tools.once, tools.killed_first, tools.killed_once, tools.add)
    killings = [kill_when_told(each) for each in (first, second)]
    result = run_workflow(steps, capabilities, executor=mortal)
    for killing in killings:
        killing.join()
    assert result.outputs == {"1": "noted", "2": "survived", "3": "noted", "6": 3, "7": 5}
    assert result.errors == {"4": failure(LOST.format("killed_once"), "worker_lost")}
    assert result.workflow.steps[4].status == "pending"
    again = run_workflow(steps, capabilities, session=result.session)
    assert (again.errors, [tools.count(each) for each in (calls, lost, after)]) == (result.errors, [1] * 3)


# Clusters that are closed


def closing_in_the_middle(what: str, steps: Workflow, capabilities: Any, begun: Path) -> WorkflowResult:
    """A run whose cluster or client is closed as soon as a step says that it runs."""
    with cluster_of(1) as cluster, client_of(cluster) as made, ThreadPoolExecutor(1) as thread:

        def close() -> None:
            while not begun.exists():
                time.sleep(0.01)
            (made if what == "client" else cluster).close()

        thread.submit(close)
        return run_workflow(steps, capabilities, executor=dask(made))


@pytest.mark.slow
@pytest.mark.parametrize("what", ["client", "cluster"])
def test_a_run_whose_cluster_is_closed_goes_on_elsewhere(what: str, tmp_path: Path) -> None:
    calls, begun = tmp_path / "calls", tmp_path / "begun"
    steps = flow(
        step("1", "once", inputs={"path": str(calls)}),
        step("2", "slow", "1", inputs={"path": str(begun)}),
        step("3", "add", "1", "2", inputs={"a": 1, "b": 2}),
    )
    capabilities = capable(tools.once, tools.slow, tools.add)
    broken = closing_in_the_middle(what, steps, capabilities, begun)
    told = f"the worker that ran slow died while it ran{BROKEN}"
    assert (broken.errors, broken.outputs) == ({"2": failure(told, "worker_lost")}, {"1": "noted"})
    whole = run_workflow(steps, capabilities, session=restored(broken.session))
    assert (whole.status, whole.outputs) == ("completed", {"1": "noted", "2": "slow", "3": 3})
    assert tools.count(calls) == 1
