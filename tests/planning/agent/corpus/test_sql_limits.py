"""The limits hold for all that is done with a statement: also for what is told of it, and around it."""

# ruff: noqa: S608 - the statements are the subject of these tests

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from sql_bombs import LATE_MISTAKES
from sql_boundary import LIMIT, Shop, assert_failed, in_time, shop_alone

from planning.agent import SqlDatabase

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop_alone(tmp_path_factory) as shop:
        yield shop


@pytest.mark.parametrize("sql", LATE_MISTAKES, ids=["short", "long"])
def test_looking_for_what_was_meant_takes_no_longer_than_the_limit(shop: Shop, sql: str) -> None:
    with SqlDatabase(shop.path, timeout=LIMIT) as database:
        with in_time(2 * LIMIT + 2):
            answer = database.execute(sql)
        assert_failed(answer)
        assert database.execute("SELECT 1 AS a")["data"] == [[1]]


NUMBERS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
LARGE = {
    "many columns": f"SELECT {', '.join(['hex(zeroblob(3900000))'] * 1_900)}",
    "a column many times": f"SELECT {', '.join(['x'] * 1_900)} FROM (SELECT zeroblob(7900000) AS x)",
    "later rows": NUMBERS + "SELECT CASE WHEN x < 65 THEN 1 ELSE hex(zeroblob(3000000)) END FROM n",
    "sorted": NUMBERS + "SELECT hex(zeroblob(500000)) || x AS h FROM n ORDER BY h",
    "grouped": NUMBERS + "SELECT x, group_concat(hex(zeroblob(400000))) FROM n GROUP BY x % 100",
    "a window": NUMBERS + "SELECT max(h) OVER (ORDER BY x ROWS BETWEEN 100000 PRECEDING AND CURRENT ROW) "
    "FROM (SELECT x, hex(randomblob(100000)) AS h FROM n)",
}


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
