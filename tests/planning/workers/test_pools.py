"""A pool of worker processes keeps what it promises, whatever happens to a worker."""

from __future__ import annotations

import errno
import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pool_answers import ask, children, has_ended, is_running, pool_of

from planning.workers.pool import Pool
from planning.workers.program import Program
from planning.workers.worker import (
    Worker,
    WorkerBusy,
    WorkerDied,
    WorkerLate,
    WorkerUnavailable,
    WorkerUnready,
)

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _nothing_is_left_behind() -> Iterator[None]:
    before, files = children(), open_files()
    yield
    gc.collect()
    assert children() <= before
    assert open_files() <= files


@pytest.fixture
def pool() -> Iterator[Pool]:
    """A pool of at most two workers."""
    made = pool_of(2)
    yield made
    made.close()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - only how many


def soon(seconds: float = 0.2) -> float:
    """The moment after so many seconds."""
    return time.monotonic() + seconds


def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = soon(10)
    while not condition():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.01)


# Requests and answers


def test_a_worker_is_used_again() -> None:
    pool = pool_of(3)
    assert len({ask(pool, "id") for _ in range(5)}) == 1
    pool.close()


def test_a_message_of_any_size_goes_there_and_back_whole(pool: Pool) -> None:
    for size in (0, 1, 70_000, 30_000_000):
        text = "x" * size
        assert ask(pool, f"echo {text}") == text


def test_no_more_workers_are_at_work_than_allowed_and_each_thread_gets_its_own_answer(pool: Pool) -> None:
    before = children()
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda number: ask(pool, f"echo {number}"), range(200)))
    assert answers == [str(number) for number in range(200)]
    assert len(children() - before) <= 2


def test_who_finds_no_free_worker_in_time_is_told(pool: Pool) -> None:
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(ask, pool, "sleep 0.5") for _ in range(2)]
        until(lambda: len(pool._crew._busy) == 2)
        with pytest.raises(WorkerBusy):
            ask(pool, "echo 1", soon(0.05))
        with pytest.raises(WorkerBusy):
            ask(pool, "echo 1", soon(-1))
    assert [each.result() for each in asked] == ["slept", "slept"]


def test_the_wait_for_a_free_worker_is_told_with_the_answer() -> None:
    pool = pool_of(1)
    assert pool.ask(lambda _: "at once")[1] < 0.1
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, pool, "sleep 0.5")
        until(lambda: bool(pool._crew._busy))
        answer, waited = pool.ask(lambda _: "later")
    assert (answer, asked.result(), waited > 0.1) == ("later", "slept", True)
    pool.close()


def test_what_a_worker_prints_is_there_with_its_answer_and_it_reads_nothing(
    pool: Pool, capfd: pytest.CaptureFixture[str]
) -> None:
    assert ask(pool, "speak good morning") == ""
    assert capfd.readouterr().out == "good morning\n"


def test_a_silent_program_prints_nowhere(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "talking.py").write_text(
        "import sys\n"
        "def serve(channel, given):\n"
        "    print('heard', flush=True)\n"
        "    print('heard', file=sys.stderr, flush=True)\n"
        "    channel.send(b'ready')\n"
        "    while True:\n"
        "        channel.send(given + channel.receive())\n"
    )
    pool = Pool(
        Program(lambda: [sys.executable, "-I", "-S"], str(tmp_path), "talking", lambda: b"given ", True), 1
    )
    assert ask(pool, "word") == "given word"
    pool.close()
    assert capfd.readouterr() == ("", "")


# Workers that die, hang, and cannot be started


def test_a_worker_that_dies_is_told_with_its_status_and_replaced(pool: Pool) -> None:
    assert ask(pool, "echo 1") == "1"
    with pytest.raises(WorkerDied) as died:
        ask(pool, "leave 3")
    assert died.value.status == 3
    assert ask(pool, "echo 2") == "2"


def test_a_worker_that_was_killed_while_it_waited_costs_no_request(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = int(ask(pool, "id"))
    os.kill(killed, signal.SIGKILL)
    until(lambda: has_ended(killed))
    assert int(ask(pool, "id")) != killed


def test_a_worker_that_dies_between_the_look_and_the_request_costs_no_request(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed = int(ask(pool, "id"))
    with monkeypatch.context() as patched:
        patched.setattr(Worker, "is_alive", lambda _: True)
        os.kill(killed, signal.SIGKILL)
        until(lambda: has_ended(killed))
        assert int(ask(pool, "id")) != killed


def test_a_new_worker_that_hears_nothing_is_told_and_not_tried_for_ever(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(worker: Worker) -> str:
        worker._process.kill()
        worker._process.wait()
        worker.send(b"echo 1", None)
        return "sent"

    with pytest.raises(WorkerDied) as died:
        pool.ask(gone)
    assert died.value.status == -signal.SIGKILL


def test_a_dead_worker_whose_channel_another_process_holds_is_noticed(pool: Pool, tmp_path: Path) -> None:
    told = tmp_path / "child"
    with pytest.raises(WorkerDied) as died:
        ask(pool, f"fork {told}")
    os.kill(int(told.read_text()), signal.SIGKILL)
    assert died.value.status == 3
    assert ask(pool, "echo 1") == "1"


def test_a_worker_that_lives_on_without_its_channel_is_killed(pool: Pool) -> None:
    with pytest.raises(WorkerDied) as died:
        ask(pool, "close")
    assert died.value.status == -signal.SIGKILL
    assert ask(pool, "echo 1") == "1"


def test_a_worker_that_takes_too_long_is_killed_and_replaced(pool: Pool) -> None:
    late = int(ask(pool, "id"))
    with pytest.raises(WorkerLate):
        ask(pool, "sleep 30", soon())
    assert not is_running(late)
    assert int(ask(pool, "id")) != late


@pytest.mark.parametrize("size", [10, 3_000_000])
def test_a_worker_that_does_not_listen_is_killed_in_time(pool: Pool, size: int) -> None:
    stopped = int(ask(pool, "id"))
    os.kill(stopped, signal.SIGSTOP)
    with pytest.raises(WorkerLate):
        ask(pool, f"echo {'x' * size}", soon())
    assert not is_running(stopped)


def test_an_exchange_that_raises_ends_its_worker_and_no_other(pool: Pool) -> None:
    ended = int(ask(pool, "id"))
    with pytest.raises(ZeroDivisionError):
        pool.ask(lambda _: 1 / 0)
    assert not is_running(ended)
    assert ask(pool, "echo 1") == "1"


def test_an_interpreter_that_is_not_there_is_told() -> None:
    pool = Pool(Program(lambda: ["/no/such/python"], "/", "nothing", lambda: b""), 1)
    with pytest.raises(WorkerUnavailable) as caught:
        ask(pool, "echo 1")
    assert str(caught.value) == "No such file or directory"


@pytest.mark.parametrize("what", ["socketpair", "Popen"])
def test_a_machine_without_room_for_a_process_is_told(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    with monkeypatch.context() as patched:
        patched.setattr(socket if what == "socketpair" else subprocess, what, full)
        with pytest.raises(WorkerUnavailable) as caught:
            ask(pool, "echo 1")
    assert str(caught.value) == "Resource temporarily unavailable"
    assert ask(pool, "echo 1") == "1"


def test_a_program_that_ends_before_it_is_ready_is_told_with_its_status(tmp_path: Path) -> None:
    (tmp_path / "ending.py").write_text("raise SystemExit(7)")
    pool = Pool(Program(lambda: [sys.executable, "-I"], str(tmp_path), "ending", lambda: b""), 1)
    with pytest.raises(WorkerUnready) as caught:
        ask(pool, "echo 1")
    assert caught.value.status == 7


def test_a_program_that_is_not_ready_in_time_is_ended(tmp_path: Path) -> None:
    (tmp_path / "idle.py").write_text("import time\ndef serve(channel, given):\n    time.sleep(60)\n")
    pool = Pool(Program(lambda: [sys.executable, "-I"], str(tmp_path), "idle", lambda: b""), 1)
    with pytest.raises(WorkerLate):
        ask(pool, "echo 1", soon())


# The end of workers


def test_ctrl_c_is_left_to_the_program(pool: Pool) -> None:
    assert ask(pool, "interrupted") == "not interrupted"
    assert os.getsid(int(ask(pool, "id"))) != os.getsid(0)


def test_closing_kills_who_waits_and_lets_who_works_answer(pool: Pool) -> None:
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, pool, "sleep 0.3")
        until(lambda: bool(pool._crew._busy))
        waiting = int(ask(pool, "id"))
        before = children()
        pool.close()
        assert not is_running(waiting)
        assert asked.result() == "slept"
    assert len(children() & before) == 0
    assert int(ask(pool, "id")) != waiting


def test_killing_ends_who_waits_and_who_works_for_good(pool: Pool) -> None:
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(ask, pool, "sleep 30")
        until(lambda: bool(pool._crew._busy))
        waiting = int(ask(pool, "id"))
        pool.kill()
        error = asked.exception()
    assert isinstance(error, WorkerDied)
    assert error.status == -signal.SIGKILL
    until(lambda: not is_running(waiting))
    with pytest.raises(WorkerDied) as died:
        ask(pool, "echo 1")
    assert died.value.status == -signal.SIGKILL


def test_killing_while_a_worker_starts_ends_it(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Worker.begin

    def killed_meanwhile(worker: Worker, until: float | None) -> None:
        threading.Thread(target=pool.kill).start()
        begin(worker, until)

    monkeypatch.setattr(Worker, "begin", killed_meanwhile)
    with pytest.raises(WorkerDied) as died:
        ask(pool, "sleep 30")
    assert died.value.status == -signal.SIGKILL


def test_a_retired_worker_does_what_it_does_at_its_end(pool: Pool, tmp_path: Path) -> None:
    told = tmp_path / "told"
    ask(pool, f"at_end {told}")
    pool.retire()
    pool.retire()
    assert told.read_text() == "the end"


def test_workers_end_with_their_pool() -> None:
    pool = pool_of(1)
    process = int(ask(pool, "id"))
    del pool
    gc.collect()
    assert not is_running(process)


def test_a_forked_process_has_workers_of_its_own_and_leaves_the_others_alone(pool: Pool) -> None:
    mine = ask(pool, "id")
    child = os.fork()
    if child == 0:  # pragma: no cover - in another process
        with suppress(BaseException):
            good = ask(pool, "id") != mine and ask(pool, "echo 1") == "1"
            pool.close()
            os._exit(0 if good else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert ask(pool, "id") == mine


def test_closing_in_a_forked_process_leaves_the_workers_of_the_other_alone(pool: Pool) -> None:
    mine = ask(pool, "id")
    child = os.fork()
    if child == 0:  # pragma: no cover - in another process
        with suppress(BaseException):
            pool.close()
            pool.kill()
            os._exit(0)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert ask(pool, "id") == mine


@pytest.mark.interrupting
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # what was half made
def test_ctrl_c_at_any_moment_costs_no_place_and_gives_no_answer_to_another_request() -> None:
    pool = pool_of(1)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for step in range(30):
            ask(pool, "echo 0")
            with suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, 0.0001 + step * 0.00005)
                for number in range(50):
                    assert ask(pool, f"echo {number}") == str(number)
            signal.setitimer(signal.ITIMER_REAL, 0)
            if step % 10 == 0:
                assert ask(pool, f"echo {step}", soon(20)) == str(step)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    pool.close()


def test_a_place_that_nobody_holds_any_more_is_free() -> None:
    pool = pool_of(1)
    for _ in range(3):
        pool._crew._place(1)
    assert ask(pool, "echo 1", soon(20)) == "1"
    pool.close()
