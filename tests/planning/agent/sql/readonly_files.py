"""Databases for the tests, and what a folder holds, so that a test can tell that nothing was written."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

SHOP = Path(__file__).with_name("shop.sql").read_text(encoding="utf-8")
COUNTING = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"


def make(path: Path, script: str = SHOP) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
    return path


def rewritten(path: Path, statement: str, *values: object) -> Path:
    """A file whose own list of its tables a statement has changed."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = 1")
        connection.execute(statement, values)
    return path


def settle(path: Path) -> None:
    """Make a file as old as files usually are."""
    os.utime(path, (1_700_000_000, 1_700_000_000))


def state(folder: Path) -> dict[str, tuple[bytes, int]]:
    """What a folder holds: the content of each file, and when it was written."""
    return {
        str(path.relative_to(folder)): (hashlib.sha256(path.read_bytes()).digest(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to be"
        time.sleep(0.01)


def descriptors() -> int:
    return sum(1 for _ in Path("/dev/fd").iterdir())
