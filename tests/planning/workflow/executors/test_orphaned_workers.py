"""A worker does not outlive the program that it works for."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pool_answers import is_running

pytestmark = pytest.mark.slow

_LEAVING = """
import os, signal, time
from planning.workflow.executors import processes

if __name__ == "__main__":
    pool = processes(1)
    print(pool.submit(os.getpid).result(), flush=True)
    pool.submit(time.sleep, 30)
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_worker_ends_with_the_program_that_was_killed_also_in_the_midst_of_a_job(tmp_path: Path) -> None:
    script = tmp_path / "leaving.py"
    script.write_text(_LEAVING)
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout is not None
        worker = int(program.stdout.readline())
    until = time.monotonic() + 10
    while is_running(worker) and time.monotonic() < until:
        time.sleep(0.02)
    assert not is_running(worker)


_FORKED = """
import os, time
from planning.workflow.executors import processes

if __name__ == "__main__":
    pool = processes(1)
    worker = pool.submit(os.getpid).result()
    pool.submit(time.sleep, 60)
    fork = os.fork()  # it has copies of the pipes
    if fork:
        print(worker, fork, flush=True)
    else:
        os.close(1)
    time.sleep(60)
"""


def test_a_fork_of_the_program_does_not_keep_its_workers_alive(tmp_path: Path) -> None:
    script = tmp_path / "forked.py"
    script.write_text(_FORKED)
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", str(script)], stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        worker, fork = map(int, program.stdout.readline().split())
        program.kill()
    until = time.monotonic() + 10
    while is_running(worker) and time.monotonic() < until:
        time.sleep(0.02)
    try:
        assert not is_running(worker)
    finally:
        os.kill(fork, signal.SIGKILL)
