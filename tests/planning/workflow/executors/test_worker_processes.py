"""Worker processes keep what every executor promises, fail one job at a time, and end with their program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from run_cases import refusal

from planning.workflow.executors import processes
from planning.workflow.executors.workers import WorkerProcesses
from planning.workflow.failures import WorkerLost


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
