"""Functions that workers answer requests with, and what the tests of pools share."""

from __future__ import annotations

import atexit
import os
import re
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from planning.workers.pool import Pool
from planning.workers.program import calling
from planning.workers.worker import Worker


def answer(request: bytes) -> bytes:
    """Do what a request says: a verb, and what else it needs."""
    verb, _, rest = request.partition(b" ")
    return VERBS[verb](rest)


def echo(rest: bytes) -> bytes:
    return rest


def process_id(_: bytes) -> bytes:
    return b"%d" % os.getpid()


def sleep(rest: bytes) -> bytes:
    time.sleep(float(rest))
    return b"slept"


def leave(rest: bytes) -> bytes:
    os._exit(int(rest))


def speak(rest: bytes) -> bytes:
    print(rest.decode())  # noqa: T201 - that it is seen is the test
    return sys.stdin.read().encode()


def fork_and_leave(rest: bytes) -> bytes:
    """End, and leave a process behind that holds what this one held; its id is in a file."""
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    Path(rest.decode()).write_text(str(child))
    os._exit(3)


def close_everything(_: bytes) -> bytes:
    os.closerange(3, 100)
    re.match("(a+)+$", "a" * 60 + "b")  # for ever, and no other thread runs meanwhile
    return b""


def write_at_the_end(rest: bytes) -> bytes:
    atexit.register(Path(rest.decode()).write_text, "the end")
    return b""


def interrupted(_: bytes) -> bytes:
    os.kill(os.getpid(), signal.SIGINT)
    return b"not interrupted"


VERBS = {
    b"echo": echo,
    b"id": process_id,
    b"sleep": sleep,
    b"leave": leave,
    b"speak": speak,
    b"fork": fork_and_leave,
    b"close": close_everything,
    b"at_end": write_at_the_end,
    b"interrupted": interrupted,
}


def pool_of(most: int) -> Pool:
    """A pool whose workers answer as above."""
    return Pool(calling(answer, "test worker"), most)


def ask(pool: Pool, request: str, until: float | None = None) -> str:
    """Ask a worker of a pool."""

    def exchange(worker: Worker) -> bytes:
        worker.send(request.encode(), until)
        return worker.receive(until)

    content, _ = pool.ask(exchange, until)
    return content.decode()


def children() -> set[int]:
    """The worker processes that this one has started and that run."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # the thread has just ended
            found |= {int(each) for each in (task / "children").read_text().split()}
    return {each for each in found if is_running(each) and is_worker(each)}


def is_worker(process: int) -> bool:
    """Whether a process is a worker, and no helper of the standard library."""
    try:
        return b"workers/inside" in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def is_running(process: int) -> bool:
    """Whether a process has not ended."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def has_ended(process: int) -> bool:
    """Whether a child of this process has ended, all of it: its main thread may do so before the others."""
    try:
        return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True
