"""Workflows of thousands of steps: they complete, in every shape, without recursion."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from run_cases import called, capable, flow, plan_of, plan_states, thought

from planning.workflow import Workflow, run_workflow
from planning.workflow.model import WorkflowStep
from planning.workflow.run.records import StepRecord
from session import Session, Snapshot

NUMBER = 10_000


def chain() -> list[WorkflowStep]:
    return [thought(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(NUMBER)]


def diamonds() -> list[WorkflowStep]:
    steps = [thought("top0")]
    for n in range(NUMBER // 4):
        steps += [thought(f"left{n}", f"top{n}"), thought(f"right{n}", f"top{n}")]
        steps.append(thought(f"top{n + 1}", f"left{n}", f"right{n}"))
    return steps


@pytest.mark.parametrize("shape", [chain, diamonds])
def test_ten_thousand_steps_complete_in_every_shape(shape: Any) -> None:
    steps = shape()
    result = run_workflow(flow(*steps), capable())
    assert (result.status, list(result.outputs), len(result.errors)) == (
        "completed",
        [step.step_id for step in steps],
        0,
    )
    plan = plan_of(result.session)
    assert (plan.status, set(plan_states(result.session))) == ("completed", {"done"})
    assert len(result.session.select_all(StepRecord)) == len(steps)


def test_a_failure_at_the_root_of_thousands_blocks_them_all() -> None:
    steps = [called("s0", tool="nobody"), *chain()[1:]]
    result = run_workflow(flow(*steps), capable())
    assert (result.status, list(result.errors), len(result.outputs)) == ("failed", ["s0"], 0)
    assert set(plan_states(result.session)) == {"blocked"}


def test_a_run_of_thousands_goes_on_from_its_json() -> None:
    steps = [*chain()[:2000], called("last", "s1999", tool="work")]
    session = Session()
    run_workflow(flow(*steps), capable(), session=session)
    other = Session()
    other.rollback(Snapshot.from_json(session.snapshot().to_json()))
    result = run_workflow(flow(*steps), capable(work=lambda: "done"), session=other)
    assert (result.status, result.outputs["last"], len(result.outputs)) == ("completed", "done", 2001)
    workflow = other.select_latest(Workflow)
    assert workflow == result.workflow


def test_inputs_nested_deeper_than_the_stack_are_an_error_of_their_step_or_arrive() -> None:
    deep: Any = "${a.output}"
    for _ in range(sys.getrecursionlimit()):
        deep = [deep]
    steps = [thought("a"), called("b", "a", inputs={"value": deep}), thought("c", "a")]
    result = run_workflow(flow(*steps), capable(work=lambda value: 1))
    assert result.outputs["c"] == "Do c"
    assert ("b" in result.errors) is not ("b" in result.outputs)
