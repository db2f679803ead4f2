"""Calls that are carried out elsewhere; and worker processes, which end with their program."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import executor_tools as tools
import json_runs
import pytest
from executor_tools import Own, failure, spawned, step
from hypothesis import given, settings
from json_runs import giving, values
from run_cases import SORRY, cancelled, capable, flow, refusal, restored, states
from syrupy.assertion import SnapshotAssertion

from planning.tools import Retry, Tool, ToolContext
from planning.workflow import Workflow, arun_workflow, run_workflow
from planning.workflow.executors import open_executor, processes
from planning.workflow.executors.jobs import Job
from planning.workflow.executors.workers import WorkerProcesses
from planning.workflow.failures import StepFailed, WorkerLost
from session import Session

DEFINE = "define its function at the top of a module, give it plain values, or run it without an executor"
Executors = dict[str, Executor | None]
GIVEN_UP = "timed out; call it again, or continue without it"
LOST = "the worker that ran {} died while it ran; the executor is broken, resume with another"


def carried(called: Any, inputs: dict[str, Any] | None = None, executor: Executor | None = None) -> Any:
    """What comes of a call that was written down: its output, or the error of its step."""
    steps = flow(step("s", called.name, inputs=inputs))
    result = run_workflow(steps, capable(called), executor=executor or Own())
    return {**result.outputs, **result.errors}["s"]


def raising(make: Callable[[], BaseException]) -> Tool:
    def fail() -> None:
        raise make()

    return Tool("fail", "", fail)


NUMBER = 7


def local(module: str | None = __name__) -> Tool:
    def inner(a: int) -> int:
        return a + 1

    inner.__module__ = module  # type: ignore[assignment]  # what is made from source may have none
    return Tool("inner", "", inner)


@pytest.mark.parametrize(
    ("called", "inputs", "output"),
    [
        (tools.add, {"a": 1, "b": 2}, 3),
        (tools.add_later, {"a": 1, "b": 2}, 3),
        (Tool("twice", "", tools.twice), {"a": 3}, 6),
        (Tool("closed", "", lambda a: a + NUMBER), {"a": 1}, 8),
        (Tool("inner", "", tools.Outer.inner), {"a": 3}, 3),
        (local(), {"a": 1}, 2),
        (local(None), {"a": 1}, 2),
        (tools.ADD_PAIR, {"a": 1, "b": 2}, 3),
        (tools.FACTS, {"query_type": "pair", "parameters": {"a": 1, "b": 2}}, ["pair", 1, "s"]),
        (tools.Greet("Hello"), {"who": "Ann"}, "Hello Ann"),
        (tools.fail, {"how": "unread"}, {"part": 1}),
        (tools.fail, {"how": "told"}, {"part": 1}),
        (tools.seen, {}, ["description", "goal", "memory", "step_id", "user_prompt"]),
    ],
    ids=range(13),
)
def test_a_tool_of_any_form_can_be_carried_elsewhere(called: Any, inputs: Any, output: Any) -> None:
    assert carried(called, inputs) == output
    with ThreadPoolExecutor(1) as threads:
        assert carried(called, inputs, threads) == output


class Turning(Exception):
    def __reduce__(self) -> Any:
        return ValueError, ("something else",)


class Leaving:
    def __reduce__(self) -> Any:
        return sys.exit, ()


LEAVING = Leaving()


async def give_up() -> None:
    raise asyncio.CancelledError


RAISED: list[Callable[[], BaseException]] = [
    lambda: ValueError("no", 3),
    lambda: Turning("turned"),
    lambda: FileNotFoundError("gone"),
    tools.NeverMade,
    tools.Talking,
    SystemExit,
    KeyboardInterrupt,
    asyncio.CancelledError,
]
FAILING: list[tuple[Any, dict[str, Any]]] = [
    (Tool("bound", "", threading.Lock().acquire), {}),
    (tools.fail, {"how": "unreadable"}),
    *((raising(make), {}) for make in RAISED),
    (Tool("held", "", lambda: LEAVING), {}),
    (Tool("give_up", "", give_up), {}),
]


def test_a_failure_of_a_carried_call_keeps_its_message_and_its_code(snapshot: SnapshotAssertion) -> None:
    errors = [carried(called, inputs) for called, inputs in FAILING]
    assert {error.user_message for error in errors} == {SORRY}
    assert "".join(f"{each.code}: {each.message} ({each.cause})\n" for each in errors) == snapshot


def test_a_tool_that_tries_again_does_so_where_it_runs(tmp_path: Path) -> None:
    unsteady = Tool("unsteady", "", tools.unsteady, retry=Retry(attempts=2, wait_initial=0.001))
    assert carried(unsteady, {"path": str(tmp_path / "calls")}) == 2


def test_a_job_carries_what_its_tool_takes_of_the_run_and_no_more() -> None:
    def alone(left: int) -> int:
        return left

    def beside(left: int, context: ToolContext) -> int:
        return left

    def written(function: Any, values: dict[str, Any]) -> bytes:
        return Job(Tool("work", "", function), {"left": 7}, ToolContext(None, values), None).written()

    held = {"memory": threading.Lock()}
    assert written(alone, held) == written(alone, {})
    with pytest.raises(StepFailed):
        written(beside, held)


def test_a_lambda_needs_cloudpickle_and_what_has_a_name_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    message = carried(Tool("twice", "", tools.twice), {"a": 1}).message
    assert message.startswith("twice cannot be sent to another process (Can't pickle <function <lambda> at")
    assert message.endswith(DEFINE)
    assert carried(tools.add, {"a": 1, "b": 2}) == 3


STEPS = flow(step("1", "add", inputs={"a": 1, "b": 2}))


@pytest.mark.parametrize("name", ["threads", "processes"])
def test_a_name_opens_its_executor(name: str) -> None:
    with open_executor(name, 2) as executor:
        assert run_workflow(STEPS, capable(tools.add), executor=executor).outputs == {"1": 3}
    again = run_workflow(STEPS, capable(tools.add), executor=executor)
    assert again.status == "failed"


def test_a_name_waits_for_nothing_that_still_runs() -> None:
    let = threading.Event()
    with open_executor("threads", 1) as executor:
        running, waiting = (executor.submit(let.wait, 5) for _ in "12")  # type: ignore[union-attr]  # it is a pool
    assert (running.done(), waiting.cancelled()) == (False, True)
    let.set()
    assert running.result() is True


@pytest.mark.parametrize("name", ["gpu", "Threads", "dask://host", "dask://host:x", "threads "])
def test_an_unknown_name_is_refused_with_those_that_there_are(name: str) -> None:
    message = f"Unknown executor '{name}'. Use threads, processes or dask://HOST:PORT."
    assert refusal(ValueError, open_executor, name, 2) == message


class Failing(Executor):
    def __init__(self, error: Exception) -> None:
        self.error = error

    def submit(self, _function: Any, /, *_args: Any, **_kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(self.error)
        return future


@pytest.mark.parametrize(
    ("error", "timeout", "message", "code"),
    [
        (LookupError("no such module"), 5, "the executor could not run add (no such module)", "not_sent"),
        (TimeoutError(), 5, f"add took longer than 5 s and {GIVEN_UP}", "timeout"),
        (TimeoutError(), None, f"add took longer and {GIVEN_UP}", "timeout"),
        (BrokenExecutor(), None, LOST.format("add"), "worker_lost"),
    ],
)
def test_failed_futures_are_errors(error: Exception, timeout: float | None, message: str, code: str) -> None:
    steps = flow(step("1", "add", inputs={"a": 1, "b": 2}, timeout=timeout))
    result = run_workflow(steps, capable(tools.add), executor=Failing(error))
    assert result.errors == {"1": failure(message, code)}


# On executors


@pytest.fixture(scope="module")
def kept() -> Iterator[Executors]:
    with ThreadPoolExecutor(2) as threads, spawned() as pool, processes(2) as workers:
        yield {"none": None, "threads": threads, "pool": pool, "processes": workers, "own": Own()}


KINDS = ["none", "threads", "pool", "processes", "own"]


@pytest.mark.parametrize("kind", KINDS[1:])
@settings(max_examples=settings().max_examples // 5)
@given(value=values)
def test_each_step_gets_and_keeps_the_same(kept: Executors, kind: str, value: Any) -> None:
    result = run_workflow(json_runs.STEPS, giving(value), executor=kept[kind])
    assert json_runs.kept(result) == json_runs.kept(run_workflow(json_runs.STEPS, giving(value)))


def test_failures_are_told_as_without_an_executor(kept: Executors, snapshot: SnapshotAssertion) -> None:
    """They stay with their step."""
    named = ("refused", "unreached", "asked", "stopped", "sealed", "unwritable", "much")
    steps = [step(name, "fail", inputs={"how": name}) for name in named]
    steps += [step("hang", "hang", timeout=0.05), step("add", "add", inputs={"a": 1, "b": 2})]
    told = dict[str, str]()
    for kind, executor in kept.items():
        result = run_workflow(flow(*steps), capable(tools.fail, tools.hang, tools.add), executor=executor)
        assert (result.outputs, result.warnings) == ({"add": 3}, ())
        each = result.errors.items()
        told[kind] = "".join(f"{n}: {e.code}: {e.message} ({e.user_message})\n" for n, e in each)
    assert told["none"] == snapshot
    assert told == dict.fromkeys(KINDS, told["none"])


@pytest.mark.parametrize("kind", ["pool", "processes", "own"])
def test_nothing_of_a_private_tools_error_is_told(kept: Executors, kind: str) -> None:
    steps = flow(*(step(how, "fail", inputs={"how": how}) for how in ("sealed", "unwritable")))
    result = run_workflow(steps, capable(tools.private_fail), executor=kept[kind])
    assert result.errors == {
        "sealed": failure("fail failed. Call it again, or continue without it."),
        "unwritable": failure("fail returned nothing that can be used. Continue without it.", "bad_result"),
    }
    assert "secret" not in result.session.snapshot().to_json()


def test_a_worker_that_dies_each_time_or_hangs_whole_fails_its_own_step_alone(
    kept: Executors, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
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
    assert "".join(f"{name}: {error!r}\n" for name, error in result.errors.items()) == snapshot
    statuses = dict.fromkeys("123", "failed") | {"4": "pending"} | dict.fromkeys("56", "completed")
    assert states(result.workflow) == statuses


@pytest.mark.slow
def test_a_broken_pool_leaves_the_rest_for_another(kept: Executors, tmp_path: Path) -> None:
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
    assert (broken.status, broken.outputs) == ("failed", {"1": "noted", "2": "noted"})
    assert broken.errors["3"] == failure(LOST.format("die_first"), "worker_lost")
    assert "add was not run: the executor takes no jobs" in broken.errors["4"].message
    session = restored(broken.session)
    whole = run_workflow(steps, capabilities, executor=kept["processes"], session=session)
    assert (whole.status, whole.outputs) == ("completed", {"1": "noted", "2": "noted", "3": 2, "4": 3})
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


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_job_that_has_not_begun_when_the_run_stops_is_withdrawn(idempotent: bool) -> None:
    begun, go_on = threading.Event(), threading.Event()
    calls: list[str] = []

    def first() -> None:
        calls.append("first")
        begun.set()
        go_on.wait(10)

    def second() -> None:
        calls.append("second")

    workflow, session = flow(step("a", "first"), step("b", "second")), Session()
    capabilities = capable(Tool("second", "", second, idempotent=idempotent), first=first)

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


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def soon(condition: Callable[[], bool]) -> bool:
    """Whether something comes true within ten seconds."""
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


@pytest.fixture(scope="module")
def workers() -> Iterator[WorkerProcesses]:
    with processes(1) as executor:
        yield executor


@pytest.mark.parametrize("number", [0, -1, True, 1.5, "2"])
def test_a_wrong_number_of_workers_is_refused(number: Any) -> None:
    message = f"workers must be a whole number of at least 1, got {number!r}"
    assert refusal(ValueError, processes, number) == message


def test_without_loky_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "loky", None)
    message = "worker processes need loky: pip install 'session-planning[processes]'"
    assert refusal(ImportError, processes) == message


@pytest.mark.slow
def test_a_worker_that_died_between_two_jobs_costs_none(workers: WorkerProcesses) -> None:
    pid = workers.submit(os.getpid).result()
    os.kill(pid, signal.SIGKILL)
    time.sleep(1)  # loky notices it after 0.1 s
    assert workers.submit(abs, -1).result() == 1


def test_killing_ends_what_runs_and_cancels_what_waits() -> None:
    with processes(1) as workers:
        pid = workers.submit(os.getpid).result()
        first, second = workers.submit(time.sleep, 30), workers.submit(int)
        assert soon(first.running)
        workers.kill()
        error = first.exception(timeout=0)
        assert (type(error), str(error), second.cancelled()) == (WorkerLost, "the worker was lost", True)
        assert not is_running(pid)
        workers.kill()
        assert refusal(RuntimeError, workers.submit, int) == "cannot schedule new futures after shutdown"


def test_shutting_down_may_cancel_what_waits() -> None:
    workers = processes(1)
    first, second = workers.submit(time.sleep, 0.2), workers.submit(int)
    assert soon(first.running)
    workers.shutdown(cancel_futures=True)
    assert (first.result(), second.cancelled()) == (None, True)


def test_a_forked_process_is_refused_the_workers_of_its_parent(workers: WorkerProcesses) -> None:
    child = os.fork()
    if child == 0:  # pragma: no cover - in another process
        with suppress(BaseException):
            try:
                workers.submit(int)
            except RuntimeError as error:
                refused = str(error) == "these worker processes belong to the parent process; make new ones"
                os._exit(0 if refused else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert workers.submit(abs, -1).result() == 1


def test_what_a_job_prints_goes_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    with processes(1) as executor:
        executor.submit(print, "good morning", flush=True).result()
    assert capfd.readouterr() == ("", "good morning\n")


def test_ctrl_c_is_left_to_the_program(workers: WorkerProcesses) -> None:
    assert workers.submit(os.getsid, 0).result() != os.getsid(0)
    assert workers.submit(signal.pthread_sigmask, signal.SIG_BLOCK, []).result() == set()


def script(tmp_path: Path, text: str) -> subprocess.Popen[str]:
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(text))
    return subprocess.Popen([sys.executable, "-W", "ignore", path], stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_script_needs_no_guard_and_its_own_functions_are_known_to_workers(tmp_path: Path) -> None:
    text = """
        from planning.tools import tool
        from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
        from planning.workflow.executors import processes

        @tool
        def double(number: int) -> int:
            return number * FACTOR

        FACTOR = 2
        inputs = {"number": 4}
        step = WorkflowStep(step_id="1", description="Double", type="tool", name="double", inputs=inputs)
        with processes(1) as workers:
            result = run_workflow(Workflow(steps=(step,)), Capabilities(tools=[double]), executor=workers)
        print(dict(result.outputs), dict(result.errors))
    """
    with script(tmp_path, text) as program:
        assert program.communicate(timeout=60)[0] == "{'1': 8} {}\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    "then", ["os.kill(os.getpid(), signal.SIGKILL)", "os.fork() or os.close(1); time.sleep(20)"]
)
def test_a_worker_and_what_it_started_end_with_a_program_that_is_killed(then: str, tmp_path: Path) -> None:
    text = f"""
        import os, signal, subprocess, time
        from planning.workflow.executors import processes

        def begin():
            return os.getpid(), subprocess.Popen(["sleep", "60"]).pid

        pool = processes(1)
        print(*pool.submit(begin).result(), flush=True)
        pool.submit(time.sleep, 60)
        time.sleep(0.2)
        {then}
    """
    with script(tmp_path, text) as program:
        assert program.stdout is not None
        started = [int(each) for each in program.stdout.readline().split()]
        time.sleep(0.5)
        program.kill()
    try:
        assert soon(lambda: not any(map(is_running, started)))
    finally:
        for each in filter(is_running, started):
            os.kill(each, signal.SIGKILL)
