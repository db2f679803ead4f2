"""Many at once: threads, forks, copies, tasks, and a hand on Ctrl-C."""

# ruff: noqa: S608 - the statements are the subject of these tests

from __future__ import annotations

import asyncio
import gc
import signal
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from time import sleep
from typing import Any

import pytest
from sql_boundary import LATER, Shop, assert_gone, children, in_time, shop_alone

from planning import Toolbox
from planning.agent import SqlDatabase

pytestmark = [pytest.mark.slow, pytest.mark.interrupting]

LIMIT = 0.3
ENDLESS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
ONE_CALL = "SELECT instr(zeroblob(8000000), zeroblob(4000000) || x'01')"
LATE = "the query took longer than 0.3 s and was stopped; ask for less, with WHERE or LIMIT"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop_alone(tmp_path_factory) as shop:
        yield shop


@pytest.fixture
def database(shop: Shop) -> Iterator[SqlDatabase]:
    before = children()
    with SqlDatabase(shop.path, timeout=LIMIT) as database:
        yield database
    assert_gone(before)
    shop.assert_untouched()


@contextmanager
def interrupted(seconds: float) -> Iterator[None]:
    """What Ctrl-C does, after so many seconds."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def question(thread: int, number: int) -> tuple[str, object]:
    """A statement, and what it has to be answered with."""
    if (thread, number) in {(0, 10), (1, 30)}:
        return ENDLESS, LATE
    if (thread, number) == (2, 20):
        return ONE_CALL, LATE
    if number % 10 == 7:
        return f"SELECT x{thread}_{number} FROM cities", f"no such column: x{thread}_{number}"
    rows = number % 5 + 1
    sql = f"WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {rows}) "
    sql += f"SELECT {thread}, {number}, x FROM n"
    return sql, [[thread, number, x] for x in range(1, rows + 1)]


def test_each_of_many_threads_gets_the_answers_to_its_own_questions(database: SqlDatabase) -> None:
    most = []

    def ask(thread: int) -> list[tuple[object, object]]:
        found = []
        for number in range(50):
            sql, right = question(thread, number)
            answer = database.execute(sql)
            most.append(len(children()))
            given = answer["data"] if answer["success"] else str(answer["error"])
            if isinstance(given, str) and given.startswith("no such column"):
                given = given.partition(";")[0]
            found.append((given, right))
        return found

    before = len(children())
    with ThreadPoolExecutor(8) as threads, in_time(30):
        for found in threads.map(ask, range(8)):
            assert [given for given, _ in found] == [right for _, right in found]
    assert max(most) - before <= 8  # four at work, and those that are just being ended


def test_more_endless_statements_than_processes_all_end(database: SqlDatabase) -> None:
    with ThreadPoolExecutor(8) as threads, in_time(2 * LATER):
        answers = list(threads.map(database.execute, [ENDLESS, ONE_CALL] * 4))
    assert {answer["success"] for answer in answers} == {False}
    assert {answer["code"] for answer in answers} <= {"timeout", "storage"}
    assert sum(answer["error"] == LATE for answer in answers) >= 4
    assert database.execute("SELECT 1 AS a")["data"] == [[1]]


def test_closing_ends_the_processes_that_are_at_work_too(shop: Shop) -> None:
    before = children()
    database = SqlDatabase(shop.path, timeout=LIMIT)
    assert database.execute("SELECT 1 AS a")["data"] == [[1]]
    with ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(database.execute, ENDLESS) for _ in range(2)]
        while len(children() - before) < 2:
            sleep(0.005)
        database.close()
        answers = [each.result(LATER) for each in asked]
    assert {answer["success"] for answer in answers} == {False}
    assert_gone(before)


def test_tasks_ask_through_a_toolbox(database: SqlDatabase) -> None:
    database.timeout = 3.0  # the wait for one of four processes is a part of it
    toolbox = Toolbox(database.tools())

    async def ask() -> list[Any]:
        calls = [toolbox.acall("execute_sql", {"sql": f"SELECT {number} AS a"}) for number in range(20)]
        calls.append(toolbox.acall("execute_sql", {"sql": ENDLESS}))
        calls.append(toolbox.acall("execute_sql", {"sql": "DELETE FROM customers"}))
        calls.append(toolbox.acall("get_schema", {}))
        return list(await asyncio.gather(*calls))

    *answers, late, refused, schema = asyncio.run(ask())
    assert [answer.value["data"] for answer in answers] == [[[number]] for number in range(20)]
    assert (late.success, str(late.code)) == (False, "timeout")
    assert (refused.success, str(refused.code)) == (False, "parameter")
    assert schema.success


def test_a_task_that_is_cancelled_leaves_no_process_behind(database: SqlDatabase) -> None:
    toolbox = Toolbox(database.tools())

    async def ask() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(toolbox.acall("execute_sql", {"sql": ENDLESS}), 0.05)

    asyncio.run(ask())
    assert database.execute("SELECT 1 AS a")["data"] == [[1]]


@pytest.mark.parametrize("sql", [ENDLESS, ONE_CALL], ids=["counting", "one call"])
def test_ctrl_c_passes_and_the_next_answer_is_the_right_one(shop: Shop, sql: str) -> None:
    before = children()
    with SqlDatabase(shop.path, timeout=20) as database:
        assert database.execute("SELECT 1 AS a")["data"] == [[1]]
        with pytest.raises(KeyboardInterrupt), in_time(), interrupted(0.2):
            database.execute(sql)
        assert_gone(before)
        assert database.execute("SELECT 2 AS a")["data"] == [[2]]
    assert_gone(before)


# Within a weak reference's callback, as any set of weak references has, Python itself drops it.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_at_any_moment_leaves_nothing_at_work_and_no_answer_to_another_question(shop: Shop) -> None:
    before, threads = children(), threading.active_count()
    counting = "SELECT count(*) FROM customers AS a, customers AS b, customers AS c"
    with warnings.catch_warnings(), SqlDatabase(shop.path, timeout=20) as database:
        warnings.simplefilter("ignore", ResourceWarning)  # Popen's own, when it was half made
        for step in range(30):
            with suppress(KeyboardInterrupt), interrupted(0.0005 + step * 0.001):
                for _ in range(20):
                    database.execute(counting)
            assert database.execute(f"SELECT {step} AS a")["data"] == [[step]]
        database.close()
        gc.collect()
        assert_gone(before)
    assert threading.active_count() == threads
