"""How much a run builds and keeps: bounds that hold before anything is built."""

from __future__ import annotations

import sys
import threading
import tracemalloc
from collections import Counter
from dataclasses import replace
from sys import getsizeof
from typing import Any

import pytest
from run_cases import called, capable, flow, plain_tool, plan_of, plan_states, thought, told

from planning.tools import Tool, ToolResult
from planning.tools.parameters.model import FreeModel
from planning.workflow import Capabilities, WorkflowError, WorkflowResult, run_workflow
from planning.workflow.model import WorkflowStep
from planning.workflow.run.records import StepChanged, StepRecord, WorkflowRun
from session import Session

TOO_MUCH = (
    "the inputs of this step come to more than 32 MB; refer to parts of the outputs, or let the earlier step "
    "store its data and return where it is"
)


def doubled(levels: int) -> dict[str, Any]:
    """Inputs that hold one output so often, at so many levels."""
    value: Any = "${a.output}"
    for _ in range(levels):
        value = [value, value]
    return {"value": value}


def taking(output: Any, inputs: dict[str, Any]) -> tuple[WorkflowResult, list[Any]]:
    """A run whose second step is given the output of the first, and what it got."""
    seen: list[Any] = []
    workflow = flow(called("a", tool="produce"), called("b", "a", tool="take", inputs=inputs), thought("c"))
    take = Tool("take", "", seen.append, parameters=FreeModel())
    return run_workflow(workflow, capable(take, produce=lambda: ToolResult(True, "Done.", output))), seen


def test_inputs_may_come_to_32_mb() -> None:
    output = "x" * 1_000_000
    result, seen = taking(output, {"value": ["${a.output}"] * 31})
    assert (dict(result.errors), seen[0]["value"]) == ({}, [output] * 31)


@pytest.mark.parametrize(
    ("output", "inputs"),
    [
        ("x" * 50_000, {"value": "${a.output}" * 18_000}),
        ("\u00fc" * 30_000, {"value": "${a.output}-" * 5_000}),
        ("x" * 1_000_000, {"value": ["${a.output}"] * 33}),
        ("x" * 1_000_000, {"value": "\U0001f600" + "${a.output}" * 9}),
        (["x" * 1_000] * 1_000, {"value": "${a.output}" * 33}),
        ({"deep": ["x" * 1_000] * 1_000}, doubled(8)),
        ("x" * 100_000, doubled(12)),
        ("x", {"value": "y" * 33_000_000}),
    ],
    ids=range(8),
)  # fmt: skip
def test_inputs_that_come_to_too_much_are_an_error_before_they_are_built(
    output: Any, inputs: dict[str, Any]
) -> None:
    tracemalloc.start()
    try:
        result, seen = taking(output, inputs)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (dict(result.errors), seen) == ({"b": told(TOO_MUCH, "too_large")}, [])
    assert result.outputs["c"] == "Do c"
    assert peak < 200_000_000


def test_an_output_may_take_32_mb_and_no_more() -> None:
    most = "x" * (32_000_000 - getsizeof(""))
    outputs = {"a": most, "b": [most[:-100]], "c": most + "x"}
    steps = [called(name, tool=name) for name in outputs]
    result = run_workflow(
        flow(*steps), capable(**{name: lambda each=each: each for name, each in outputs.items()})
    )
    message = (
        "c returned more than 32 MB, which is too much to keep; let it store its data and return where it is"
    )
    assert dict(result.errors) == {"c": told(message, "too_large")}


def test_a_run_keeps_so_much_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    output = "x" * 1_000
    monkeypatch.setattr("planning.workflow.run.values.MOST_KEPT", 4 * getsizeof(output))
    steps, tools = flow(*(called(each) for each in "abcde")), capable(work=lambda: output)
    session, inputs = Session(), {"given": output[:300]}
    message = (
        "with the output of work the run would keep more than 256 MB; let work store its data and return "
        "where it is"
    )
    for _ in "12":
        result = run_workflow(steps, tools, session=session, inputs=inputs, max_parallel=1)
        assert dict(result.errors) == {name: told(message, "too_large") for name in "de"}
        assert list(result.outputs) == ["a", "b", "c"]
    alone = run_workflow(steps, tools, max_parallel=1)
    assert (list(alone.outputs), list(alone.errors)) == (["a", "b", "c", "d"], ["e"])


def test_a_run_keeps_256_mb() -> None:
    output = "x" * 31_990_000
    result = run_workflow(
        flow(*(called(each) for each in "abcdefghi")), capable(work=lambda: output), max_parallel=1
    )
    assert (list(result.outputs), list(result.errors)) == ([*"abcdefgh"], ["i"])


def test_a_large_value_is_copied_beside_the_event_loop() -> None:
    threads: list[threading.Thread] = []

    class Watched(dict[str, Any]):
        def __sizeof__(self) -> int:
            threads.append(threading.current_thread())
            return super().__sizeof__()

    async def produce(text: str) -> Any:
        return ToolResult(True, "Done.", Watched(rows=[text]))

    async def take(value: Any) -> int:
        return len(value)

    steps = [
        called(name, tool="produce", inputs={"text": text})
        for name, text in [("a", "x"), ("b", "x" * 2_000_000)]
    ]
    steps += [called(f"take {each.step_id}", each.step_id, tool="take") for each in steps]
    steps[2:] = [replace(step, inputs={"value": f"${{{step.depends_on[0]}.output}}"}) for step in steps[2:]]
    result = run_workflow(
        flow(*steps), Capabilities(tools=[plain_tool("produce", produce), plain_tool("take", take)])
    )
    assert result.status == "completed"
    assert Counter(thread is threading.main_thread() for thread in threads) == {True: 2, False: 1}


def chain(number: int) -> list[WorkflowStep]:
    return [thought(f"s{n}", *([f"s{n - 1}"] if n else [])) for n in range(number)]


def diamonds(number: int) -> list[WorkflowStep]:
    steps = [thought("top0")]
    for n in range(number // 4):
        steps += [thought(f"left{n}", f"top{n}"), thought(f"right{n}", f"top{n}")]
        steps.append(thought(f"top{n + 1}", f"left{n}", f"right{n}"))
    return steps


@pytest.mark.parametrize("steps", [chain(4_000), diamonds(2_000)], ids=["chain", "diamonds"])
def test_thousands_of_steps_complete_in_every_shape(steps: list[WorkflowStep]) -> None:
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
    steps = [called("s0", tool="nobody"), *chain(2_000)[1:]]
    result = run_workflow(flow(*steps), capable())
    assert (result.status, list(result.errors), len(result.outputs)) == ("failed", ["s0"], 0)
    assert set(plan_states(result.session)) == {"blocked"}


def test_inputs_nested_deeper_than_the_stack_are_an_error_of_their_step_or_arrive() -> None:
    deep: Any = "${a.output}"
    for _ in range(sys.getrecursionlimit()):
        deep = [deep]
    steps = [thought("a"), called("b", "a", inputs={"value": deep}), thought("c", "a")]
    result = run_workflow(flow(*steps), capable(work=lambda value: 1))
    assert result.outputs["c"] == "Do c"
    assert ("b" in result.errors) is not ("b" in result.outputs)


def out_of_memory() -> None:
    raise MemoryError("4 GB")


def test_a_tool_that_runs_out_of_memory_fails_its_step() -> None:
    result = run_workflow(flow(called("a"), thought("b")), capable(work=out_of_memory))
    message = "work failed. Call it again, or continue without it."
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
