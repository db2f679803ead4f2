"""How much a run builds and keeps: bounds that hold before anything is built."""

from __future__ import annotations

import threading
import tracemalloc
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from run_cases import called, capable, flow, plain_tool, thought, told

from planning.tools import Tool, ToolResult
from planning.tools.parameters.model import FreeModel
from planning.workflow import (
    Capabilities,
    run_workflow,
)
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("output", "inputs"),
    [
        ("x" * 50_000, {"value": "${a.output}" * 18_000}),
        ("\u00fc" * 30_000, {"value": "${a.output}-" * 5_000}),
        ("x" * 1_000_000, {"value": ["${a.output}"] * 100_000}),
        ("x" * 1_000_000, {"value": "\U0001f600" + "${a.output}" * 9}),
        (["x" * 1_000] * 1_000, {"value": "${a.output}" * 100_000}),
        ({"deep": ["x" * 1_000] * 1_000}, doubled(8)),
        ("x" * 100_000, doubled(12)),
        ("x", {"value": "y" * 33_000_000}),
    ],
    ids=range(8),
)  # fmt: skip
def test_inputs_that_come_to_too_much_are_an_error_before_they_are_built(
    output: Any, inputs: dict[str, Any]
) -> None:
    seen: list[Any] = []
    workflow = flow(called("a", tool="produce"), called("b", "a", tool="take", inputs=inputs), thought("c"))

    def take_all(inputs: Any) -> None:
        seen.append(inputs)

    take = Tool("take", "", take_all, parameters=FreeModel())
    produce = plain_tool("produce", lambda: ToolResult(True, "Done.", output))
    tracemalloc.start()
    try:
        result = run_workflow(workflow, capable(produce, take))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (dict(result.errors), seen) == ({"b": told(TOO_MUCH, "too_large")}, [])
    assert result.outputs["c"] == "Do c"
    assert peak < 200_000_000


@pytest.mark.slow
def test_a_run_keeps_so_much_and_no_more() -> None:
    steps = [called(f"s{n}", tool="produce", expected_key=f"k{n}") for n in range(60)]
    produce = plain_tool("produce", lambda: ToolResult(True, "Done.", "x" * 30_000_000))
    session = Session()
    inputs = {"given": ["x" * 30_000_000]}
    result = run_workflow(flow(*steps), capable(produce), session=session, inputs=inputs, max_parallel=1)
    message = (
        "with the output of produce the run would keep more than 256 MB; let produce store its data and "
        "return where it is"
    )
    assert dict(result.errors) == {f"s{n}": told(message, "too_large") for n in range(7, 60)}
    assert (list(result.outputs), len(result.memory)) == ([f"s{n}" for n in range(7)], 8)
    again = run_workflow(flow(*steps), capable(produce), session=session, inputs=inputs, max_parallel=1)
    assert list(again.outputs) == [f"s{n}" for n in range(7)]


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
