"""What private tools tell when their worker is lost, and jobs that have not begun when the run stops."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
import executor_tools as tools
import pytest
from executor_tools import capable, failure, flow, step
from run_cases import cancelled, states

from planning.tools import Tool
from planning.workflow import Workflow, arun_workflow, run_workflow
from planning.workflow.executors import processes
from session import Session


def test_of_a_private_tool_only_that_its_worker_is_lost_is_told(tmp_path: Path) -> None:
    secret = attrs.evolve(tools.die, returns_private_data=True)
    steps = flow(step("1", "die", inputs={"path": str(tmp_path / "calls")}))
    with processes(1) as workers:
        result = run_workflow(steps, capable(secret), executor=workers)
    assert result.errors == {"1": failure("the worker that ran die died 3 times", "worker_lost")}


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_job_that_has_not_begun_when_the_run_stops_is_withdrawn(idempotent: bool) -> None:
    begun, go_on = threading.Event(), threading.Event()
    calls: list[str] = []

    def first() -> str:
        calls.append("first")
        begun.set()
        go_on.wait(10)
        return "first"

    def second() -> str:
        calls.append("second")
        return "second"

    workflow = flow(step("a", "first"), step("b", "second"))
    capabilities = capable(Tool("first", "", first), Tool("second", "", second, idempotent=idempotent))
    session = Session()

    async def scene(pool: ThreadPoolExecutor) -> None:
        run = asyncio.ensure_future(arun_workflow(workflow, capabilities, session=session, executor=pool))
        await asyncio.to_thread(begun.wait, 10)
        run.cancel()
        asyncio.get_running_loop().call_later(0.05, go_on.set)
        await cancelled(run)

    with ThreadPoolExecutor(1) as pool:
        asyncio.run(scene(pool))
    assert states(session.select_latest(Workflow)) == {"a": "completed", "b": "pending"}
    assert calls == ["first"]
    result = run_workflow(workflow, capabilities, session=session)
    assert (result.status, calls) == ("completed", ["first", "second"])
