"""Random SQL, sent to a database that may only be read."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from examples.shop import create_database
from promises import demand, demand_readable

from planning.agent import SqlDatabase

CORPUS = (
    "SELECT count(*) AS n FROM customers",
    "SELECT \"name\", `city` FROM customers WHERE country = 'NO' -- comment\n;",
    "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t LIMIT 3) SELECT * FROM t",
    "SELECT a.*, min(b.total) FROM customers a JOIN orders b ON 1 GROUP BY 1 HAVING count(*) > 1 ORDER BY 2",
    "/* */ VALUES (1, 'DROP TABLE x'), (NULL, x'00')",
    "DROP TABLE customers",
    "WITH x AS (SELECT 1) DELETE FROM customers",
    "ATTACH 'y.db' AS y; SELECT 1",
    "PRAGMA writable_schema = 1",
    "SELECT printf('%.*c', 1000000000, 'x'), zeroblob(9), load_extension('x')",
)
WORDS = r"""
-- /* */ || == != <> SELECT FROM WHERE WITH AS RECURSIVE UNION ALL JOIN ON GROUP BY HAVING ORDER
LIMIT VALUES DISTINCT CASE WHEN THEN END CAST LIKE IN IS NULL NOT EXISTS OVER PARTITION INSERT
UPDATE DELETE DROP CREATE TABLE ATTACH DETACH PRAGMA VACUUM INTO REPLACE BEGIN COMMIT customers
orders name city country total min( max( count( sum( printf( replace( group_concat(
"""
TOKENS = (*"()[],.;'\"`*=<>-+%?:0129", *WORDS.split())


def check(text: str) -> None:
    """Send one statement.

    Raises:
        BrokenPromise: A promise is not kept.
    """
    database, file = _database()
    before = _seen(file)
    answer = database.execute(text)
    demand(_seen(file) == before, "a statement changes no file")
    demand(type(answer.get("success")) is bool, "an answer says whether it succeeded")
    if answer["success"]:
        demand(len(answer["columns"]) > 0, "only a query succeeds")
    else:
        demand_readable(answer["error"])
        demand("Traceback" not in answer["error"], "no traceback is shown")


def _seen(file: Path) -> list[tuple[str, int, int]]:
    """What is in the folder of the database."""
    return sorted((each.name, each.stat().st_size, each.stat().st_mtime_ns) for each in file.parent.iterdir())


@cache
def _database() -> tuple[SqlDatabase, Path]:
    folder = tempfile.TemporaryDirectory()
    os.chdir(folder.name)  # a file that a statement names would be made here
    file = Path(folder.name) / "shop.db"
    create_database(file)
    database = SqlDatabase(file, timeout=2)
    atexit.register(lambda: (database.close(), folder.cleanup()))
    return database, file


def corpus() -> Iterator[str]:
    """Queries, and statements that are not."""
    return iter(CORPUS)
