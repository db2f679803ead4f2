"""Workflows on executors: the same outputs as without one, and failures that stay with their step."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import executor_tools as tools
import json_runs
import pytest
from executor_tools import Own, failure, spawned, step
from hypothesis import given, settings
from json_runs import STEPS, giving, values
from run_cases import SORRY, cancelled, capable, flow, restored, states

from planning.tools import Tool
from planning.workflow import Workflow, arun_workflow, run_workflow
from planning.workflow.executors import processes
from session import Session

TOO_LARGE = (
    "give_much returned more than 32 MB, which is too much to keep; let it store its data and return where "
    "it is"
)
NO_FORM = (
    "give_lock returned nothing that can be used. Go on without it. Reason: the function returned "
    "executor_tools.Unwritable, which has no JSON form; return text, numbers, booleans, None, lists, "
    "dicts or records of these, at most 100 levels deep."
)
FAILED = "{} failed. Call it again, or go on without it."


@pytest.fixture(scope="module")
def kept() -> Iterator[dict[str, Executor | None]]:
    with ThreadPoolExecutor(2) as threads, spawned() as pool, processes(2) as workers:
        yield {"none": None, "threads": threads, "pool": pool, "processes": workers, "own": Own()}


KINDS = ["none", "threads", "pool", "processes", "own"]


@pytest.fixture(params=KINDS)
def executor(kept: dict[str, Executor | None], request: pytest.FixtureRequest) -> Executor | None:
    return kept[request.param]


ELSEWHERE = pytest.mark.parametrize("executor", ["pool", "processes", "own"], indirect=True)


@pytest.mark.parametrize("kind", KINDS[1:])
@settings(max_examples=10, deadline=None)
@given(value=values)
def test_each_step_gets_and_keeps_the_same_as_without_an_executor(
    kept: dict[str, Executor | None], kind: str, value: Any
) -> None:
    result = run_workflow(STEPS, giving(value), executor=kept[kind])
    assert json_runs.kept(result) == json_runs.kept(run_workflow(STEPS, giving(value)))


def test_tools_of_every_form_run_and_are_told_the_same_context(executor: Executor | None) -> None:
    steps = flow(
        step("1", "add", inputs={"a": 1, "b": 2}),
        step("2", "times", "1", inputs={"a": "${1.output}"}),
        step("3", "add_pair", "2", inputs={"a": "${2.output}", "b": 1}),
        step("4", "greet", inputs={"who": "Ann"}),
        step("5", "seen"),
    )
    called = tools.add, tools.times, tools.ADD_PAIR, tools.Greet("Hello"), tools.seen
    result = run_workflow(steps, capable(*called), executor=executor)
    context = ["description", "goal", "memory", "step_id", "user_prompt"]
    outputs = {"1": 3, "2": 6, "3": 7, "4": "Hello Ann", "5": context}
    assert (result.errors, result.outputs) == ({}, outputs)


def test_failures_are_told_as_without_an_executor_and_stay_with_their_step(executor: Executor | None) -> None:
    names = ("refuse", "reach", "ask", "stop_iteration", "give_much", "give_lock", "refuse_sealed")
    steps = [step(name, name) for name in names]
    steps += [step("hang", "hang", timeout=0.05), step("add", "add", inputs={"a": 1, "b": 2})]
    called = [getattr(tools, str(each.name)) for each in steps]
    result = run_workflow(flow(*steps), capable(*called), executor=executor)
    told = {name: (error.message, error.user_message, error.code) for name, error in result.errors.items()}
    no_data = "reach cannot reach its data now. Try again later, or go on without it."
    hung = "hang took longer than 0.05 s and was given up; call it again, or go on without it"
    assert told == {
        "refuse": ("the archive is closed", "the archive is closed", "storage"),
        "reach": (no_data, SORRY, "storage"),
        "ask": ("the account is missing", "Which account?", "needs_user_input"),
        "stop_iteration": (FAILED.format("stop_iteration"), SORRY, "unknown"),
        "give_lock": (NO_FORM, SORRY, "bad_result"),
        "refuse_sealed": (FAILED.format("refuse_sealed"), SORRY, "unknown"),
        "give_much": (TOO_LARGE, SORRY, "too_large"),
        "hang": (hung, SORRY, "timeout"),
    }
    assert (result.outputs, result.warnings) == ({"add": 3}, ())


@ELSEWHERE
def test_nothing_of_a_private_tools_error_is_told(executor: Executor) -> None:
    steps = flow(step("1", "refuse_private"), step("2", "give_private_lock"))
    session = Session()
    result = run_workflow(
        steps, capable(tools.refuse_private, tools.give_private_lock), executor=executor, session=session
    )
    assert result.errors == {
        "1": failure(FAILED.format("refuse_private")),
        "2": failure("give_private_lock returned nothing that can be used. Go on without it.", "bad_result"),
    }
    assert "secret" not in session.snapshot().to_json()


# Workers that die


def test_a_worker_that_dies_each_time_or_hangs_whole_fails_its_own_step_alone(
    kept: dict[str, Executor | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planning.workflow.executors.workers._GRACE", 0.2)
    always, never = tmp_path / "always", tmp_path / "never"
    steps = flow(
        step("1", "die", inputs={"path": str(always)}),
        step("2", "die_once", inputs={"path": str(never)}),
        step("3", "hang_hard", timeout=0.1),
        step("4", "add", "1", inputs={"a": 1, "b": 2}),
        step("5", "add", inputs={"a": 1, "b": 2}),
        step("6", "add", "5", inputs={"a": "${5.output}", "b": 2}),
    )
    capabilities = capable(tools.die, tools.die_once, tools.hang_hard, tools.add)
    result = run_workflow(steps, capabilities, executor=kept["processes"])
    assert (tools.count(always), tools.count(never), result.outputs) == (3, 1, {"5": 3, "6": 5})
    assert result.errors == {
        "1": failure("the worker that ran die died while it ran", "worker_lost"),
        "2": failure(
            "the worker that ran die_once died; die_once may have taken effect, so it is not run again",
            "worker_lost",
        ),
        "3": failure(
            "hang_hard took longer than 0.1 s and was given up; call it again, or go on without it",
            "timeout",
        ),
    }
    statuses = dict.fromkeys("123", "failed") | {"4": "pending"} | dict.fromkeys("56", "completed")
    assert states(result.workflow) == statuses


def test_a_broken_pool_leaves_the_rest_for_another(kept: dict[str, Executor | None], tmp_path: Path) -> None:
    first, once, deadly = (tmp_path / name for name in ("first", "once", "deadly"))
    steps = flow(
        step("1", "noted", inputs={"path": str(first)}),
        step("2", "once", "1", inputs={"path": str(once)}),
        step("3", "die_first", "2", inputs={"path": str(deadly)}),
        step("4", "add", "2", inputs={"a": 1, "b": 2}),
    )
    capabilities = capable(tools.noted, tools.once, tools.die_first, tools.add)
    with spawned(1) as pool:
        broken = run_workflow(steps, capabilities, executor=pool, max_parallel=1)
    assert (broken.status, broken.outputs) == ("failed", {"1": "noted", "2": "done"})
    lost = "the worker that ran die_first died while it ran; the executor is broken, resume with another"
    assert broken.errors["3"] == failure(lost, "worker_lost")
    assert "add was not run: the executor takes no jobs" in broken.errors["4"].message
    session = restored(broken.session)
    whole = run_workflow(steps, capabilities, executor=kept["processes"], session=session)
    assert (whole.status, whole.outputs) == ("completed", {"1": "noted", "2": "done", "3": 2, "4": 3})
    assert [tools.count(path) for path in (first, once, deadly)] == [1, 1, 2]


# Executors that refuse


@pytest.mark.parametrize("make", [ThreadPoolExecutor, processes], ids=["threads", "processes"])
def test_an_executor_that_was_shut_down_runs_nothing(make: Callable[[int], Executor]) -> None:
    executor = make(1)
    executor.shutdown()
    steps = flow(*(step(each, "add", inputs={"a": 1, "b": 2}) for each in "12"))
    result = run_workflow(steps, capable(tools.add), executor=executor, max_parallel=1)
    told = (
        "add was not run: the executor takes no jobs (cannot schedule new futures after shutdown); resume "
        "with another"
    )
    assert result.errors == dict.fromkeys("12", failure(told, "worker_lost"))
    whole = run_workflow(steps, capable(tools.add), session=result.session)
    assert (whole.status, whole.outputs) == ("completed", {"1": 3, "2": 3})


@pytest.mark.parametrize("wrong", [3, "threads", object()])
def test_what_is_no_executor_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError) as caught:
        run_workflow(flow(), capable(), executor=wrong)
    assert str(caught.value) == (
        f"executor must be a concurrent.futures.Executor, got {type(wrong).__name__}"
    )


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
