"""What a step of a workflow costs beside LangGraph, and as runs grow long."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

from benchmarks.harness import OURS, Section, at_least, at_most, bullets, medians, microseconds, table
from planning import Plan
from planning.tools import Tool
from planning.workflow import Capabilities, Workflow, WorkflowResult, WorkflowStep, run_workflow

__all__ = ["measure"]

FEW, MANY = 1_000, 10_000
OURS_PLAIN = f"{OURS}, plain function"
LANGGRAPH, LANGGRAPH_PLAIN = "langgraph, async nodes", "langgraph, plain nodes"
DESCRIPTIONS = {
    OURS: "run_workflow with its defaults and an async tool: a new session, its events, records and Plan",
    OURS_PLAIN: "the same with a tool that is not a coroutine function, which is called in a thread",
    LANGGRAPH: "StateGraph, compiled before, ainvoke; each node adds 1 to a key; no checkpointer, no tracer",
    LANGGRAPH_PLAIN: "the same with nodes that are not coroutine functions, invoke",
}
METHOD = f"""\
Microseconds for each step of a run of {FEW:,} independent steps that do nothing: the time of the whole run
by the number of its steps. Every round visits all once; a figure is the median of the rounds. After each
run it is checked that every step was done."""
SHAPES = """\
The same of ours in two shapes: in a chain each step depends on the one before; a fan is a first step, a
last one that waits for all, and between them the others."""
STEP_MICROSECONDS, TIMES_LANGGRAPH, MANY_SECONDS, LINEAR = 60.0, 5.0, 2.0, 2.0


def measure(rounds: int) -> Section:
    """Time every run in turn."""
    independent = [_step(number) for number in range(FEW)]
    plain = [_step(number, name="plain_noop") for number in range(FEW)]
    one = _per_step(
        {
            (OURS, FEW): partial(_run, independent),
            (OURS_PLAIN, FEW): partial(_run, plain),
            (LANGGRAPH, FEW): partial(_run_graph, _graph(node), is_async=True),
            (LANGGRAPH_PLAIN, FEW): partial(_run_graph, _graph(plain_node), is_async=False),
        },
        rounds,
    )
    runs = {(shape, size): partial(_run, made(size)) for shape, made in MADE.items() for size in (FEW, MANY)}
    shapes = _per_step(runs, max(1, rounds // 2))
    ours = one[OURS, FEW]
    checks = [
        at_most(f"a step among {FEW:,}, async tool", ours, STEP_MICROSECONDS, "microseconds"),
        at_least(f"a step, faster than {LANGGRAPH}", one[LANGGRAPH, FEW] / ours, TIMES_LANGGRAPH),
    ]
    for shape in MADE:
        many, growth = shapes[shape, MANY], shapes[shape, MANY] / shapes[shape, FEW]
        checks += [
            at_most(f"{MANY:,} steps in {shape}", many * MANY / 1e6, MANY_SECONDS, "s"),
            at_most(f"a step among {MANY:,} in {shape} beside one among {FEW:,}", growth, LINEAR),
        ]
    return Section(
        "One workflow",
        ("session-planning", "langgraph"),
        [
            METHOD,
            table(
                ["run by", "microseconds a step", "times ours"],
                [[name, time, time / ours] for (name, _), time in one.items()],
            ),
            bullets(DESCRIPTIONS),
            SHAPES,
            table(
                ["shape", f"{FEW:,} steps", f"{MANY:,} steps"],
                [[shape, shapes[shape, FEW], shapes[shape, MANY]] for shape in MADE],
            ),
        ],
        checks,
    )


def _per_step(runs: dict[tuple[str, int], Callable[[], object]], rounds: int) -> dict[tuple[str, int], float]:
    """Microseconds by the number of steps."""
    times = medians({key: partial(microseconds, run) for key, run in runs.items()}, rounds)
    return {key: time / key[1] for key, time in times.items()}


async def noop() -> int:
    """Do nothing."""
    return 1


def plain_noop() -> int:
    """Do nothing."""
    return 1


CAPABILITIES = Capabilities(
    tools=[Tool("noop", "Do nothing.", noop), Tool("plain_noop", "Do nothing.", plain_noop)]
)


def _step(number: int, *depends_on: int, name: str = "noop") -> WorkflowStep:
    return WorkflowStep(
        step_id=f"step_{number}",
        description="Do nothing",
        type="tool",
        name=name,
        depends_on=tuple(f"step_{each}" for each in depends_on),
    )


def _chain(size: int) -> list[WorkflowStep]:
    return [_step(0), *(_step(number, number - 1) for number in range(1, size))]


def _fan(size: int) -> list[WorkflowStep]:
    middle = range(1, size - 1)
    return [_step(0), *(_step(number, 0) for number in middle), _step(size - 1, *middle)]


MADE = {"a chain": _chain, "a fan": _fan}


def _run(steps: list[WorkflowStep]) -> None:
    """Run the steps: each must be done in the workflow, in the outputs and in the plan."""
    result: WorkflowResult = run_workflow(Workflow(goal="Measure", steps=tuple(steps)), CAPABILITIES)
    plan = result.session.select_latest(Plan)
    done = (
        sum(step.status == "completed" for step in result.workflow.steps),
        len(result.outputs),
        sum(step.status == "done" for step in plan.steps) if plan else 0,
    )
    if set(done) != {len(steps)}:
        raise RuntimeError(f"{done} of {len(steps)} steps were done: {result.errors or result.warnings}")


class State(TypedDict):
    """What the nodes write to: their additions are summed up, so that they may be parallel."""

    done: Annotated[int, operator.add]


async def node(state: State) -> dict[str, int]:
    """Do nothing but say so."""
    del state
    return {"done": 1}


def plain_node(state: State) -> dict[str, int]:
    """Do nothing but say so."""
    del state
    return {"done": 1}


def _graph(function: Any) -> Any:
    graph = StateGraph(State)
    for number in range(FEW):
        graph.add_node(f"node_{number}", function)
        graph.add_edge(START, f"node_{number}")
        graph.add_edge(f"node_{number}", END)
    return graph.compile()


def _run_graph(graph: Any, *, is_async: bool) -> None:
    state = asyncio.run(graph.ainvoke({"done": 0})) if is_async else graph.invoke({"done": 0})
    if state["done"] != FEW:
        raise RuntimeError(f"{state['done']} of {FEW} nodes ran")
