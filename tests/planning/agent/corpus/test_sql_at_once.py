"""Many questions at once: threads, forks, tasks, and Ctrl-C."""

# ruff: noqa: S608 - the statements are the subject of these tests

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep
from traceback import walk_stack

import duckdb
import pytest
from interrupting import AGAIN, SHARE, drawn, interrupt, points, shown
from readonly_files import make
from sql_boundary import LATER, Shop, in_time, shop_alone

from planning import Toolbox
from planning.agent import SqlDatabase

LIMIT = 0.3
ENDLESS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
LATE = "the query took longer than 0.3 s and was stopped; ask for less, with WHERE or LIMIT"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop_alone(tmp_path_factory) as shop:
        yield shop


@pytest.fixture
def database(shop: Shop, _others: None) -> Iterator[SqlDatabase]:
    with SqlDatabase(shop.path, timeout=LIMIT) as database:
        yield database
    assert_gone()
    shop.assert_untouched()


def readers() -> set[int]:
    """The threads that read a database."""
    stacks = {thread: [*walk_stack(frame)] for thread, frame in sys._current_frames().items()}
    return {thread for thread, stack in stacks.items() if stack[-1][0].f_code.co_name == "_serve"}


OTHERS = set[int]()
"""The threads that tests before left behind, in calls that cannot be interrupted."""


@pytest.fixture(autouse=True)
def _others() -> None:
    OTHERS.clear()
    OTHERS.update(readers())


def assert_gone() -> None:
    """No thread reads a database any more: those at work may take until their limit to end."""
    until = monotonic() + LATER
    while readers() - OTHERS:
        assert monotonic() < until, readers()
        sleep(0.01)


def test_more_endless_statements_than_threads_all_end(database: SqlDatabase) -> None:
    with ThreadPoolExecutor(16) as threads, in_time(2 * LATER):
        answers = list(threads.map(database.execute, [ENDLESS] * 16))
    assert {answer["success"] for answer in answers} == {False}
    assert {answer["code"] for answer in answers} <= {"timeout", "storage"}
    assert sum(answer["error"] == LATE for answer in answers) >= 8
    database.timeout = 20.0
    assert database.execute("SELECT 1 AS a")["data"] == [[1]]


def test_a_database_that_nobody_closes_ends_with_its_last_reference(shop: Shop) -> None:
    assert SqlDatabase(shop.path).execute("SELECT 1 AS a")["data"] == [[1]]
    gc.collect()
    assert_gone()


@pytest.mark.slow
@pytest.mark.parametrize("is_at_work", [False, True], ids=["idle", "at work"])
@pytest.mark.parametrize("name", ["shop.db", "shop.duckdb"])
def test_a_program_ends_whatever_its_threads_do(tmp_path: Path, name: str, is_at_work: bool) -> None:
    path = tmp_path / name
    make(path) if path.suffix == ".db" else duckdb.connect(str(path)).close()
    program = (
        "import os, sys, threading; from planning.agent import SqlDatabase\n"
        "for _ in range(6):\n"  # the moment at which a thread is when its program ends is another each time
        "    if not os.fork():\n"
        "        database = SqlDatabase(sys.argv[1], timeout=60)\n"
        "        database.execute('SELECT 1')\n"
        "        for sql in sys.argv[2:]:\n"
        "            threading.Thread(target=database.execute, args=(sql,), daemon=True).start()\n"
        "        def end(): database.close()\n"  # which keeps it until the last
        "        sys.exit()\n"
        "print(*(os.wait()[1] for _ in range(6)))"
    )
    command = [sys.executable, "-c", program, str(path), *[ENDLESS] * is_at_work]
    done = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == (b"0 0 0 0 0 0\n", b"")


@pytest.mark.slow
def test_a_forked_process_starts_threads_of_its_own(database: SqlDatabase) -> None:
    assert database.execute("SELECT 1 AS a")["data"] == [[1]]
    child = os.fork()
    if child == 0:  # pragma: no cover - in another process
        good = database.execute("SELECT 2 AS a")["data"] == [[2]] and "customers" in database.get_schema()
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert database.execute("SELECT 3 AS a")["data"] == [[3]]


def test_a_task_that_is_cancelled_interrupts_its_statement(shop: Shop) -> None:
    async def ask(toolbox: Toolbox) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(toolbox.acall("execute_sql", {"sql": ENDLESS}), 0.1)

    with SqlDatabase(shop.path, timeout=60) as database:
        asyncio.run(ask(Toolbox(database.tools())))
        with in_time(5):
            database.close()
            assert_gone()


@pytest.mark.slow
@pytest.mark.interrupting
@pytest.mark.parametrize("is_first", [False, True], ids=["later", "first"])
def test_ctrl_c_at_any_bytecode_leaves_nothing_at_work_and_no_old_answer(shop: Shop, is_first: bool) -> None:
    database, ask = SqlDatabase(shop.path, timeout=5), "SELECT 'another' AS a"

    def ask_another() -> object:
        return database.execute(ask)

    assert database.execute("SELECT 1 AS a")["data"] == [[1]]
    if is_first:
        database.close()
    struck = 0
    for point, time in drawn(points(ask_another), max(0.4, SHARE), str(is_first)):
        if is_first:
            database.close()
        struck += isinstance(interrupt(ask_another, point, time).error, KeyboardInterrupt)
        with in_time(1):
            told = f"{shown(point, time)}, {AGAIN}"
            assert database.execute(f"SELECT {struck} AS a")["data"] == [[struck]], told
    assert struck > 50
    database.close()
    assert_gone()


NUMBERS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
LARGE = {
    "many columns": f"SELECT {', '.join(['hex(zeroblob(3900000))'] * 1_900)}",
    "later rows": NUMBERS + "SELECT CASE WHEN x < 65 THEN 1 ELSE hex(zeroblob(3000000)) END FROM n",
    "sorted": NUMBERS + "SELECT hex(zeroblob(500000)) || x AS h FROM n ORDER BY h",
    "a window": NUMBERS + "SELECT max(h) OVER (ORDER BY x ROWS BETWEEN 100000 PRECEDING AND CURRENT ROW) "
    "FROM (SELECT x, hex(randomblob(100000)) AS h FROM n)",
}


@pytest.mark.slow
def test_rows_and_sorts_that_are_large_take_a_bounded_memory(shop: Shop) -> None:
    program = (
        "import sys; from pathlib import Path; from planning.agent import SqlDatabase\n"
        "with SqlDatabase(sys.argv[1], timeout=1) as database:\n"
        "    for sql in sys.argv[2:]: database.execute(sql)\n"
        "status = Path('/proc/self/status').read_text()\n"  # ru_maxrss has what the parent took
        "print(int(status.partition('VmHWM:')[2].split()[0]) // 1024)"
    )
    command = [sys.executable, "-c", program, str(shop.path), *LARGE.values()]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert int(done.stdout) < 300, "megabytes"
