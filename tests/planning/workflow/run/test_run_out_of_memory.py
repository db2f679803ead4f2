"""Memory that runs out during a run: an error of the step, and never a MemoryError out of the run."""

from __future__ import annotations

from typing import Any

import pytest
from run_cases import called, capable, flow, thought, told

from planning.workflow import Capabilities, WorkflowError, run_workflow
from planning.workflow.run.records import StepChanged, WorkflowRun
from session import Session


def out_of_memory() -> None:
    raise MemoryError("4 GB")


def test_a_tool_that_runs_out_of_memory_fails_its_step() -> None:
    result = run_workflow(flow(called("a"), thought("b")), capable(work=out_of_memory))
    message = "work failed. Call it again, or go on without it."
    assert dict(result.errors) == {"a": told(message, "unknown", cause="4 GB")}
    assert dict(result.outputs) == {"b": "Do b"}


def test_a_session_that_runs_out_of_memory_stops_the_run_which_can_be_resumed() -> None:
    is_full = [True]

    def keep(_slice: tuple[Any, ...], event: StepChanged) -> tuple[Any, ...]:
        if event.record.status == "completed" and is_full:
            raise MemoryError
        return ()

    session = Session()
    session.register_reducer(StepChanged, keep, Capabilities)
    with pytest.raises(WorkflowError) as refused:
        run_workflow(flow(thought("a")), capable(), session=session)
    assert str(refused.value) == "memory ran out; run the workflow in this session again to resume it"
    is_full.clear()
    assert run_workflow(flow(thought("a")), capable(), session=session).status == "completed"
    assert len(session.select_all(WorkflowRun)) == 1
