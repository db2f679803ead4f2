"""Worker processes keep what every executor promises, and fail one job at a time."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor, wait
from contextlib import suppress
from pathlib import Path
from typing import Any

import executor_tools as tools
import pytest
from pool_answers import children, has_ended

from planning.workers import worker
from planning.workers.worker import Worker
from planning.workflow.executors import processes
from planning.workflow.executors.jobs import NotStarted
from planning.workflow.failures import WorkerLost

pytestmark = pytest.mark.slow

Make = Callable[[int], Executor]


def left() -> tuple[set[str], int, int]:
    """What would be left behind: threads, processes and open files."""
    gc.collect()
    names = {each.name for each in threading.enumerate() if each.name == "workflow worker"}
    return names, len(children()), len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only how many


@pytest.fixture(autouse=True, scope="module")
def _warm() -> None:
    with processes(1) as executor:  # what multiprocessing starts once stays for good
        executor.submit(int).result()


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    before = left()
    yield
    assert soon(lambda: left() == before), (before, left())


def soon(condition: Callable[[], bool]) -> bool:
    """Whether something comes true within ten seconds."""
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


# What every executor promises


@pytest.fixture(params=[ThreadPoolExecutor, processes], ids=["threads", "processes"])
def make(request: pytest.FixtureRequest) -> Make:
    """Makes an executor."""
    made: Make = request.param
    return made


def test_results_and_errors_come_back_and_a_callback_hears_of_them(make: Make) -> None:
    heard: list[Any] = []
    with make(2) as executor:
        executor.submit(divmod, 7, 2).add_done_callback(lambda future: heard.append(future.result()))
        assert executor.submit(int, "11", base=2).result() == 3
        error = executor.submit(int, "x").exception()
        assert (type(error), str(error)) == (ValueError, "invalid literal for int() with base 10: 'x'")
        assert list(executor.map(pow, range(1000), [2] * 1000)) == [number**2 for number in range(1000)]
    assert heard == [(3, 1)]


def test_leaving_the_block_waits_for_what_was_submitted(make: Make) -> None:
    with make(1) as executor:
        futures = [executor.submit(time.sleep, 0.05) for _ in range(3)]
    assert [future.done() for future in futures] == [True, True, True]


def test_no_job_is_taken_after_the_shutdown(make: Make) -> None:
    executor = make(1)
    executor.shutdown()
    executor.shutdown()
    with pytest.raises(RuntimeError):
        executor.submit(int)


def test_a_waiting_job_can_be_cancelled_and_one_that_runs_cannot(make: Make) -> None:
    with make(1) as executor:
        first = executor.submit(time.sleep, 0.2)
        second, third = executor.submit(int), executor.submit(int)
        assert soon(first.running)
        assert (first.cancel(), second.cancel()) == (False, True)
        assert (first.result(), third.result()) == (None, 0)
        with pytest.raises(CancelledError):
            second.result()


def test_a_shutdown_can_cancel_what_waits(make: Make) -> None:
    executor = make(1)
    first = executor.submit(time.sleep, 0.2)
    others = [executor.submit(int) for _ in range(3)]
    assert soon(first.running)
    executor.shutdown(wait=False)
    executor.shutdown(cancel_futures=True)
    assert first.result(timeout=0) is None
    assert [each.cancelled() for each in others] == [True, True, True]
    wait(others, timeout=0)


def test_a_shutdown_that_does_not_wait_lets_everything_be_done(make: Make) -> None:
    executor = make(1)
    futures = [executor.submit(abs, -number) for number in range(5)]
    executor.shutdown(wait=False)
    assert [future.result() for future in futures] == [0, 1, 2, 3, 4]
    executor.shutdown()


def test_a_job_may_end_with_what_ends_programs(make: Make) -> None:
    with make(1) as executor:
        assert type(executor.submit(sys.exit, 3).exception()) is SystemExit
        assert executor.submit(abs, -1).result() == 1


def test_an_executor_that_nobody_uses_any_more_finishes_and_goes(make: Make) -> None:
    executor: Executor | None = make(1)
    assert executor is not None
    future, reference = executor.submit(abs, -1), weakref.ref(executor)
    executor = None
    assert future.result() == 1
    assert soon(lambda: gc.collect() >= 0 and reference() is None)


# What is said of worker processes alone


def test_jobs_run_in_as_many_processes_as_there_is_work_for(tmp_path: Path) -> None:
    with processes(3) as executor:
        first = executor.submit(tools.where.function).result()
        assert first != os.getpid()
        assert executor.submit(tools.where.function).result() == first  # it was free
        assert len(children()) == 1
        wait([executor.submit(time.sleep, 0.1) for _ in range(9)])
        assert len(children()) == 3


@pytest.mark.parametrize(("processors", "workers"), [(3, 3), (None, 1)])
def test_there_are_as_many_workers_as_processors_or_one_when_nobody_says(
    processors: int | None, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: processors)
    with processes() as executor:
        wait([executor.submit(time.sleep, 0.1) for _ in range(6)])
        assert len(children()) == workers


@pytest.mark.parametrize("number", [0, -1, True, 1.5, "2"])
def test_a_wrong_number_of_workers_is_refused(number: Any) -> None:
    with pytest.raises(ValueError, match=r"^workers must be a whole number of at least 1, got ") as caught:
        processes(number)
    assert str(caught.value).endswith(f"got {number!r}")


def test_workers_are_fresh_interpreters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(tools.times.__dict__, "mark", "of this process")
    assert tools.marked() == "of this process"
    with processes(1) as executor:
        assert executor.submit(tools.marked).result() is None


def test_a_worker_that_dies_fails_its_own_job_and_is_replaced(tmp_path: Path) -> None:
    with processes(2) as executor:
        long = executor.submit(time.sleep, 0.2)
        error = executor.submit(os._exit, 3).exception()
        assert (type(error), str(error)) == (WorkerLost, "the worker was lost")
        assert long.result() is None
        assert [executor.submit(abs, -number).result() for number in range(4)] == [0, 1, 2, 3]


def test_a_worker_that_died_between_two_jobs_costs_none() -> None:
    with processes(1) as executor:
        pid = executor.submit(os.getpid).result()
        os.kill(pid, signal.SIGKILL)
        assert soon(lambda: has_ended(pid))
        assert executor.submit(abs, -1).result() == 1


def test_what_cannot_be_pickled_is_refused_at_once_and_on_the_way_back() -> None:
    with processes(1) as executor:
        with pytest.raises(ValueError, match=r"^this stays here$"):
            executor.submit(abs, tools.Unwritable())
        assert str(executor.submit(tools.Unwritable).exception()) == "this stays here"
        assert str(executor.submit(tools.Unreadable).exception()) == "this does not come back"
        error = executor.submit(tools.refuse_sealed.function).exception()
        assert (type(error), str(error)) == (RuntimeError, "Sealed: nobody can carry this")
        assert executor.submit(abs, -1).result() == 1


@pytest.mark.parametrize("value", [tools.Ending, tools.Talking])
def test_a_value_that_ends_whoever_reads_or_writes_it_is_an_error_of_its_job(value: Any) -> None:
    with processes(1) as executor:
        assert type(executor.submit(value).exception()) is SystemExit
        assert executor.submit(abs, -1).result() == 1


def test_killing_ends_what_runs_and_cancels_what_waits() -> None:
    executor = processes(1)
    first, second = executor.submit(time.sleep, 30), executor.submit(int)
    assert soon(lambda: bool(children()) and first.running())
    executor.kill()
    assert type(first.exception(timeout=0)) is WorkerLost
    assert second.cancelled()
    executor.kill()
    executor.shutdown(cancel_futures=True)
    with pytest.raises(RuntimeError, match=r"^the worker processes were shut down; make new ones$"):
        executor.submit(int)


def test_killing_ends_a_worker_that_is_idle() -> None:
    executor = processes(1)
    assert executor.submit(int).result() == 0
    executor.kill()
    assert children() == set()


@pytest.mark.parametrize("moment", [0, 0.001, 0.01, 0.05])
def test_killing_at_any_moment_ends_everything(moment: float) -> None:
    executor = processes(2)
    futures = [executor.submit(time.sleep, 30) for _ in range(3)]
    time.sleep(moment)
    executor.kill()
    assert [future.done() for future in futures] == [True, True, True]


def test_a_job_that_raises_such_an_error_itself_ends_no_worker() -> None:
    with processes(1) as executor:
        pid = executor.submit(os.getpid).result()
        assert str(executor.submit(tools.fail_with, TimeoutError, "mine").exception()) == "mine"
        assert str(executor.submit(tools.fail_with, EOFError, "mine").exception()) == "mine"
        assert executor.submit(os.getpid).result() == pid


def test_a_process_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_INSIDE", "/no/such/program")
    with processes(1) as executor:
        error = executor.submit(int).exception()
        assert (type(error), str(error)) == (
            NotStarted,
            "a worker process ended before it was ready; let a script do its work under if __name__ == "
            "'__main__':",
        )
        monkeypatch.undo()
        assert executor.submit(int).result() == 0


def test_killing_while_a_process_starts_is_a_lost_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    executor = processes(1)
    begin = Worker.begin

    def killed_meanwhile(started: Worker, until: float | None) -> None:
        killing = threading.Thread(target=executor.kill)
        killing.start()
        begin(started, until)

    monkeypatch.setattr(Worker, "begin", killed_meanwhile)
    future = executor.submit(time.sleep, 30)
    assert type(future.exception()) is WorkerLost
    executor.shutdown()


def test_a_forked_process_has_workers_of_its_own() -> None:
    with processes(1) as executor:
        mine = executor.submit(os.getpid).result()
        child = os.fork()
        if child == 0:  # pragma: no cover - in another process
            with suppress(BaseException):
                good = executor.submit(os.getpid).result(30) != mine
                executor.kill()
                os._exit(0 if good else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
        assert executor.submit(os.getpid).result() == mine


def test_what_a_job_prints_is_there_with_its_result(capfd: pytest.CaptureFixture[str]) -> None:
    with processes(1) as executor:
        executor.submit(print, "good morning").result()
        assert capfd.readouterr().out == "good morning\n"


def test_leaving_the_block_lets_workers_do_what_they_do_at_their_end(tmp_path: Path) -> None:
    told = tmp_path / "told"
    with processes(1) as executor:
        executor.submit(atexit.register, told.write_text, "the end").exception()
    assert told.read_text() == "the end"


# What a worker does, seen from within


def test_ctrl_c_is_left_to_the_program() -> None:
    with processes(1) as executor:
        pid = executor.submit(os.getpid).result()
        running = executor.submit(time.sleep, 0.1)
        assert soon(running.running)
        os.kill(pid, signal.SIGINT)
        assert running.result() is None
        assert executor.submit(os.getpid).result() == pid


def script(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    """Run a script of its own."""
    path = tmp_path / "script.py"
    path.write_text(textwrap.dedent(text))
    return subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60, check=False)


def test_a_program_that_forgets_its_workers_ends_quietly(tmp_path: Path) -> None:
    done = script(
        tmp_path,
        """
        import time
        from planning.workflow.executors import processes
        if __name__ == "__main__":
            executor = processes(2)
            print(executor.submit(abs, -1).result())
            executor.submit(time.sleep, 30)
            executor.submit(time.sleep, 30)
            time.sleep(0.2)
        """,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_a_script_that_starts_itself_again_comes_to_an_end(tmp_path: Path) -> None:
    done = script(
        tmp_path,
        """
        from planning.workflow.executors import processes
        with processes(1) as executor:
            print(type(executor.submit(abs, -1).exception()).__name__)
        """,
    )
    assert (done.returncode, done.stdout.split()) == (0, ["NotStarted", "NoneType"])
