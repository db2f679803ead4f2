"""What a run of a workflow costs beside the peers: a step that does nothing, many steps, two processes."""

from __future__ import annotations

import asyncio
import gc
import operator
import os
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from statistics import median
from time import monotonic, perf_counter, sleep
from typing import Annotated, Any, TypedDict, TypeVar

from planning import Plan
from planning.tools import Tool
from planning.workflow import Capabilities, Workflow, WorkflowResult, WorkflowStep, run_workflow
from planning.workflow.executors import processes

__all__ = [
    "BARE",
    "DESCRIPTIONS",
    "ENGINE",
    "FEW",
    "LANGGRAPH",
    "MANY",
    "OURS",
    "OURS_PLAIN",
    "PREFECT",
    "SHAPES",
    "WorkflowFigures",
    "measure_workflows",
]

FEW, MANY = 1_000, 10_000
PREFECT_ROUNDS = 3
SETTLING_SECONDS = 300.0
PIECES, PIECE_SECONDS = 8, 0.25
SHAPES = ("chain", "fan")
ENGINE, BARE = "run_workflow", "ProcessPoolExecutor alone"

OURS = "session-planning, async tool"
OURS_PLAIN = "session-planning, plain function"
LANGGRAPH = "langgraph, async nodes"
LANGGRAPH_PLAIN = "langgraph, plain nodes"
PREFECT_SUBMIT = "prefect, plain tasks submitted"
PREFECT_GATHER = "prefect, async tasks gathered"
PREFECT = (PREFECT_SUBMIT, PREFECT_GATHER)

DESCRIPTIONS = {
    OURS: "run_workflow with its defaults: a new session, its events, records and Plan, 16 steps at a time",
    OURS_PLAIN: "the same with a tool that is no coroutine function, which is called in a thread",
    LANGGRAPH: "StateGraph, compiled before, ainvoke; each node adds 1 to a key; no checkpointer, no tracer",
    LANGGRAPH_PLAIN: "the same with nodes that are no coroutine functions, invoke",
    PREFECT_SUBMIT: "a flow that submits each task and waits for all; 16 threads",
    PREFECT_GATHER: "an async flow that awaits all its async tasks together, without task.submit",
}


Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class WorkflowFigures:
    """Times of whole runs, medians of rounds.

    Attributes:
        step: By contestant, microseconds: a run of independent steps that do nothing, by their number.
        prefect_steps: How many of them Prefect was given; all others have 1,000.
        shapes: By shape and number of steps, seconds of a run of ours.
        work: By who hands it out, the engine or a bare pool, and number of worker processes, seconds for
            eight pieces of a quarter of a second each.
    """

    step: dict[str, float]
    prefect_steps: int
    shapes: dict[tuple[str, int], float]
    work: dict[tuple[str, int], float]


@dataclass(frozen=True, slots=True)
class _Contestant:
    """A run and its check.

    Attributes:
        steps: How many steps it has.
        run: The run, which is timed.
        done: Of what it returned, how many steps were done.
        settle: Waits, after the clock, until nothing of the run is still at work.
        rounds: In how many rounds it takes part; None for all.
    """

    steps: int
    run: Callable[[], Any]
    done: Callable[[Any], int]
    settle: Callable[[], object] = int
    rounds: int | None = None


async def noop() -> int:
    """Do nothing."""
    return 1


def plain_noop() -> int:
    """Do nothing."""
    return 1


def work(times: int) -> int:
    """Keep one processor busy; the answer is the process that did it."""
    total = 0
    for n in range(times):
        total = (total + n * n) % 1_000_003
    return os.getpid()


def measure_workflows(
    *, rounds: int, shape_rounds: int, work_rounds: int, prefect_steps: int
) -> WorkflowFigures:
    """Time every contestant in turn, several rounds.

    Args:
        rounds: How many times each is visited; Prefect in three of them.
        shape_rounds: How many times the chains and fans are run.
        work_rounds: How many times the work for two processes is.
        prefect_steps: How many tasks Prefect is given.

    Raises:
        RuntimeError: A run did not do all its steps.
    """
    with _prefect(prefect_steps) as prefect:
        step = _interleaved({**_ours(), **_langgraph(), **prefect}, rounds)
    shapes = {(shape, size): _run_of(_shaped(shape, size)) for shape in SHAPES for size in (FEW, MANY)}
    return WorkflowFigures(
        {name: seconds / (prefect_steps if name in PREFECT else FEW) * 1e6 for name, seconds in step.items()},
        prefect_steps,
        _interleaved(shapes, shape_rounds),
        _measure_work(work_rounds),
    )


def _interleaved(contestants: dict[Key, _Contestant], rounds: int) -> dict[Key, float]:
    """The median seconds of each, after a run that is not counted."""
    for key, contestant in contestants.items():
        _timed(key, contestant)
    figures: dict[Key, list[float]] = {key: [] for key in contestants}
    for number in range(rounds):
        for key, contestant in contestants.items():
            # Spread over all rounds, so that every contestant meets the same moods of the machine.
            every = max(1, rounds // (contestant.rounds or rounds))
            if number % every == 0:
                figures[key].append(_timed(key, contestant))
    return {key: median(times) for key, times in figures.items()}


def _timed(key: object, contestant: _Contestant) -> float:
    gc.collect()
    gc.disable()
    try:
        started = perf_counter()
        outcome = contestant.run()
        seconds = perf_counter() - started
    finally:
        gc.enable()
    contestant.settle()
    done = contestant.done(outcome)
    if done != contestant.steps:
        raise RuntimeError(f"{key}: {done:,} of {contestant.steps:,} steps were done")
    return seconds


# Ours


def _ours() -> dict[str, _Contestant]:
    return {
        OURS: _run_of(tuple(_step(number, "noop") for number in range(FEW))),
        OURS_PLAIN: _run_of(tuple(_step(number, "plain_noop") for number in range(FEW))),
    }


def _step(number: int, name: str, *depends_on: str, **inputs: Any) -> WorkflowStep:
    return WorkflowStep(
        step_id=f"step_{number}",
        description="Do nothing",
        type="tool",
        name=name,
        inputs=inputs,
        depends_on=depends_on,
    )


def _shaped(shape: str, size: int) -> tuple[WorkflowStep, ...]:
    """A chain; or a fan: a first step, a last one that waits for all, and between them the others."""
    if shape == "chain":
        return tuple(
            _step(number, "noop", *([f"step_{number - 1}"] if number else [])) for number in range(size)
        )
    middle = [_step(number, "noop", "step_0") for number in range(1, size - 1)]
    return (_step(0, "noop"), *middle, _step(size - 1, "noop", *(step.step_id for step in middle)))


def _run_of(steps: tuple[WorkflowStep, ...], **options: Any) -> _Contestant:
    workflow = Workflow(goal="Measure the engine", steps=steps)
    capabilities = Capabilities(
        tools=[
            Tool("noop", "Do nothing.", noop),
            Tool("plain_noop", "Do nothing.", plain_noop),
            Tool("work", "Work.", work),
        ]
    )
    return _Contestant(len(steps), lambda: run_workflow(workflow, capabilities, **options), _done)


def _done(result: WorkflowResult) -> int:
    """The steps that are done everywhere: in the workflow, in the outputs and in the plan."""
    if result.errors or result.warnings or result.status != "completed":
        raise RuntimeError(f"the run did not go through: {result.errors or result.warnings}")
    plan = result.session.select_latest(Plan)
    return min(
        sum(step.status == "completed" for step in result.workflow.steps),
        len(result.outputs),
        sum(step.status == "done" for step in plan.steps) if plan else 0,
    )


# LangGraph


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


def _langgraph() -> dict[str, _Contestant]:
    from langgraph.graph import END, START, StateGraph

    def compiled(function: Any) -> Any:
        graph = StateGraph(State)
        for number in range(FEW):
            graph.add_node(f"node_{number}", function)
            graph.add_edge(START, f"node_{number}")
            graph.add_edge(f"node_{number}", END)
        return graph.compile()

    def done(state: State) -> int:
        return state["done"]

    graph, plain = compiled(node), compiled(plain_node)
    return {
        LANGGRAPH: _Contestant(FEW, lambda: asyncio.run(graph.ainvoke({"done": 0})), done),
        LANGGRAPH_PLAIN: _Contestant(FEW, lambda: plain.invoke({"done": 0}), done),
    }


# Prefect


@contextmanager
def _prefect(steps: int) -> Iterator[dict[str, _Contestant]]:
    """Prefect with a server of its own on a temporary database, silent, and without telemetry."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        os.environ |= {  # it reads them when it is imported
            "DO_NOT_TRACK": "1",
            "PREFECT_HOME": home,
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "PREFECT_LOGGING_TO_API_ENABLED": "false",
            "PREFECT_LOGGING_LEVEL": "CRITICAL",
            "PREFECT_LOGGING_INTERNAL_LEVEL": "CRITICAL",
            "PREFECT_LOGGING_SERVER_LEVEL": "CRITICAL",
        }
        from prefect.client.orchestration import get_client
        from prefect.testing.utilities import prefect_test_harness

        with prefect_test_harness(server_startup_timeout=120), get_client(sync_client=True) as client:
            yield _flows(steps, client)


def _flows(steps: int, client: Any) -> dict[str, _Contestant]:
    from prefect import flow, task
    from prefect.events.worker import EventsWorker
    from prefect.task_runners import ThreadPoolTaskRunner

    do_nothing, do_nothing_async = task(plain_noop), task(noop)

    @flow(task_runner=ThreadPoolTaskRunner(max_workers=16))
    def submitted() -> list[int]:
        futures = [do_nothing.submit() for _ in range(steps)]
        return [future.result() for future in futures]

    @flow
    async def gathered() -> list[int]:
        return await asyncio.gather(*(do_nothing_async() for _ in range(steps)))

    completed = {"task_runs": {"state": {"type": {"any_": ["COMPLETED"]}}}}
    recorded = 0

    def settle() -> None:
        """Wait until the server has recorded the run: it goes on at that when the flow is over."""
        nonlocal recorded
        recorded += steps
        EventsWorker.drain_all(timeout=SETTLING_SECONDS, at_exit=False)
        deadline = monotonic() + SETTLING_SECONDS
        while (count := client.request("POST", "/task_runs/count", json=completed).json()) < recorded:
            if monotonic() > deadline:
                raise RuntimeError(f"prefect's server recorded {count:,} of {recorded:,} task runs")
            sleep(0.2)

    return {
        PREFECT_SUBMIT: _Contestant(steps, submitted, sum, settle, PREFECT_ROUNDS),
        PREFECT_GATHER: _Contestant(steps, lambda: asyncio.run(gathered()), sum, settle, PREFECT_ROUNDS),
    }


# Two processes


def _measure_work(rounds: int) -> dict[tuple[str, int], float]:
    """The run that is not counted starts the workers; what is timed finds them running."""
    times = _calibrated()
    steps = tuple(_step(number, "work", times=times) for number in range(PIECES))
    with (
        processes(workers=1) as one,
        processes(workers=2) as two,
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as bare_one,
        ProcessPoolExecutor(2, mp_context=get_context("spawn")) as bare_two,
    ):
        contestants: dict[tuple[str, int], _Contestant] = {}
        for count, executor in ((1, one), (2, two)):
            run = _run_of(steps, executor=executor, max_parallel=PIECES)
            contestants[ENGINE, count] = replace(run, done=partial(_shared_out, run.done, count))
        for count, pool in ((1, bare_one), (2, bare_two)):
            contestants[BARE, count] = _Contestant(PIECES, partial(_bare, pool, times), len)
        return _interleaved(contestants, rounds)


def _bare(pool: ProcessPoolExecutor, times: int) -> list[int]:
    return list(pool.map(work, [times] * PIECES))


def _shared_out(done: Callable[[WorkflowResult], int], count: int, result: WorkflowResult) -> int:
    """The steps that are done, and by so many processes."""
    used = set(result.outputs.values())
    if len(used) != count or os.getpid() in used:
        raise RuntimeError(f"the work was done by {len(used)} processes, not by {count} others")
    return done(result)


def _calibrated() -> int:
    """How many times to loop for a quarter of a second on this machine."""
    times = 1_000_000
    samples = []
    for _ in range(5):
        started = perf_counter()
        work(times)
        samples.append(perf_counter() - started)
    return int(times * PIECE_SECONDS / median(samples))
