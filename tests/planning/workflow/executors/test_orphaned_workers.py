"""A worker does not outlive the program that it works for."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

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


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # a process that ended, and that nobody has asked for yet
