"""What a step of a workflow costs beside 0.1.0 and LangGraph, as runs grow long, and in worker processes."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

from benchmarks.harness import (
    OURS,
    Cost,
    Section,
    at_least,
    at_most,
    bullets,
    elapsed,
    fastest,
    is_quick,
    microseconds,
    no_slower,
    table,
)
from benchmarks.peers import floor, versions
from benchmarks.peers.versions import NEW, OLD
from planning import Plan
from planning.tools import Tool, tool
from planning.workflow import Capabilities, Workflow, WorkflowResult, WorkflowStep, run_workflow
from planning.workflow.executors import processes

__all__ = ["measure"]

FEW, MANY = 1_000, 10_000
PIECES, PIECE_SECONDS = 8, 0.25
WORKFLOW, TASK, BARE_POOL = "workflow", "asyncio task", "2, of a bare ProcessPoolExecutor"
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
divided by its steps. Every round measures each once; a figure is the lowest of the rounds. After each run
the benchmark checks that every step was done."""
SHAPES = """\
Two shapes of our workflows: in a chain each step depends on the one before; in a fan one step comes first,
one waits for all, and the others run between them."""
WORKERS = f"""\
Wall-clock seconds for {PIECES} steps that each keep one processor busy for about {PIECE_SECONDS} s, in
worker processes that have started:"""
STEP_MICROSECONDS, TIMES_LANGGRAPH, MANY_SECONDS, LINEAR, TIMES_WORKERS = 42.0, 3.3, 2.0, 2.0, 1.7


def measure(rounds: int) -> Section:
    """Time every run in turn."""
    independent = [_step(number) for number in range(FEW)]
    plain = [_step(number, name="plain_noop") for number in range(FEW)]
    with versions.doors({WORKFLOW: 1}) as both:
        runs: dict[str, Callable[[], float]] = {
            **{version: run for (version, _), run in both.items()},
            TASK: partial(microseconds, floor.tasks(FEW)),
            OURS: partial(microseconds, partial(_run, independent)),
            OURS_PLAIN: partial(microseconds, partial(_run, plain)),
            LANGGRAPH: partial(microseconds, partial(_run_graph, _graph(node), is_async=True)),
            LANGGRAPH_PLAIN: partial(microseconds, partial(_run_graph, _graph(plain_node), is_async=False)),
        }
        one = {name: time / FEW for name, time in fastest(runs, rounds).items()}
    few = max(1, rounds // 3)
    shaped = {
        (shape, size): partial(microseconds, partial(_run, made(size)))
        for shape, made in MADE.items()
        for size in (FEW, MANY)
    }
    shapes = {key: time / key[1] for key, time in fastest(shaped, few).items()}
    work = _worked(few, PIECE_SECONDS / 10 if is_quick(rounds) else PIECE_SECONDS)
    checks = [
        *no_slower("a step of a workflow", one[NEW], one.get(OLD)),
        at_most(f"a step among {FEW:,}, async tool", one[NEW], STEP_MICROSECONDS, "microseconds"),
        at_least(f"a step, faster than {LANGGRAPH}", one[LANGGRAPH] / one[OURS], TIMES_LANGGRAPH),
        at_least("two worker processes beside one", work["1"] / work["2"], TIMES_WORKERS),
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
                [[name, time, time / one[OURS]] for name, time in one.items()],
            ),
            bullets(DESCRIPTIONS),
            SHAPES,
            table(
                ["shape", f"{FEW:,} steps", f"{MANY:,} steps"],
                [[shape, shapes[shape, FEW], shapes[shape, MANY]] for shape in MADE],
            ),
            WORKERS,
            table(["workers", "seconds"], [[name, time / 1e6] for name, time in work.items()]),
        ],
        checks,
        [
            Cost(f"a step among {FEW:,}", one[NEW], TASK, one[TASK]),
            *(
                Cost(f"a step among {MANY:,} in {shape}", shapes[shape, MANY], TASK, one[TASK])
                for shape in MADE
            ),
            Cost("pieces of work in two processes", work["2"], BARE_POOL, work[BARE_POOL]),
        ],
    )


def _worked(rounds: int, seconds: float) -> dict[str, float]:
    """Microseconds of the pieces in one process and in two of ours, and in two of a bare pool."""
    times = round(seconds / elapsed(lambda: work(100_000), 3) * 1e6 * 100_000)
    steps = [_step(number, name="work", inputs={"times": times}) for number in range(PIECES)]
    pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    with pool as bare, processes(1) as alone, processes(2) as two:
        runs: dict[str, Callable[[], object]] = {
            "1": partial(_run, steps, executor=alone),
            "2": partial(_run, steps, executor=two),
            BARE_POOL: lambda: list(bare.map(work, [times] * PIECES)),
        }
        return fastest({name: partial(elapsed, run) for name, run in runs.items()}, rounds)


def work(times: int) -> int:
    """Keep one processor busy."""
    total = 0
    for n in range(times):
        total = (total + n * n) % 1_000_003
    return total


async def noop() -> int:
    """Do nothing."""
    return 1


def plain_noop() -> int:
    """Do nothing."""
    return 1


CAPABILITIES = Capabilities(
    tools=[Tool("noop", "Do nothing.", noop), Tool("plain_noop", "Do nothing.", plain_noop), tool(work)]
)


def _step(number: int, *depends_on: int, name: str = "noop", **more: Any) -> WorkflowStep:
    return WorkflowStep(
        step_id=f"step_{number}",
        description="Do nothing",
        type="tool",
        name=name,
        depends_on=tuple(f"step_{each}" for each in depends_on),
        **more,
    )


def _chain(size: int) -> list[WorkflowStep]:
    return [_step(0), *(_step(number, number - 1) for number in range(1, size))]


def _fan(size: int) -> list[WorkflowStep]:
    middle = range(1, size - 1)
    return [_step(0), *(_step(number, 0) for number in middle), _step(size - 1, *middle)]


MADE = {"a chain": _chain, "a fan": _fan}


def _run(steps: list[WorkflowStep], **options: Any) -> None:
    """Run the steps: each must be done in the workflow, in the outputs and in the plan."""
    result: WorkflowResult = run_workflow(
        Workflow(goal="Measure", steps=tuple(steps)), CAPABILITIES, **options
    )
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
