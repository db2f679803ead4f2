"""Workers whose program was killed: none runs on, whatever its statement does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from readonly_files import ENDLESS, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc"),
]

PROGRAM = """
import os, sys, threading, time
from planning.agent import SqlDatabase

database = SqlDatabase(sys.argv[1], timeout=600)
database.get_schema()
worker = database._workers._pool._crew._idle[0].process_id
if sys.argv[2] == "statement":
    threading.Thread(target=database.execute, args=(sys.argv[3],)).start()
fork = 0
if sys.argv[4] == "forked":
    fork = os.fork()  # it has copies of the pipes, as a process of multiprocessing has
    if not fork:
        os.close(1)
        time.sleep(60)
print(worker, fork, flush=True)
time.sleep(60)
"""
CROSS = "SELECT count(*) FROM range(10000000) a, range(10000000) b WHERE a.range + b.range < 0"


def duckdb_file(folder: Path) -> Path:
    duckdb = pytest.importorskip("duckdb")
    path = folder / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t (a INTEGER)")
    return path


def has_ended(process_id: int) -> bool:
    entry = Path(f"/proc/{process_id}/stat")
    try:
        return ") Z " in entry.read_text()
    except FileNotFoundError:
        return True


def ticks(process_id: int) -> int:
    """The time that a process has computed for, in hundredths of a second."""
    return int(Path(f"/proc/{process_id}/stat").read_text().rpartition(") ")[2].split()[11])


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
@pytest.mark.parametrize("work", ["statement", "nothing"])
@pytest.mark.parametrize("fork", ["forked", "alone"])
def test_a_worker_ends_when_its_program_is_killed(
    shop_path: Path, dialect: str, work: str, fork: str
) -> None:
    path, sql = (shop_path, ENDLESS) if dialect == "sqlite" else (duckdb_file(shop_path.parent), CROSS)
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, path, work, sql, fork], stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        worker, forked = map(int, program.stdout.readline().split())
        try:
            if work == "statement":
                before = ticks(worker)
                until(lambda: ticks(worker) > before + 20, 30.0)
            assert not has_ended(worker)
            program.kill()
            until(partial(has_ended, worker))
        finally:
            program.kill()
            for process_id in filter(None, (worker, forked)):
                if not has_ended(process_id):
                    os.kill(process_id, signal.SIGKILL)
