"""Database files of every kind: wrong ones, odd ones, hostile ones."""

from __future__ import annotations

import ctypes
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from readonly_files import make

DAMAGED = (
    "@FILE@ is damaged, or not an SQLite or DuckDB database; check the file, use a backup of it, or write "
    "duckdb:///PATH for a DuckDB file"
)
UNFINISHED = "@FILE@ was left in the middle of a change; open it once with a program that may write to it"
EMPTY = "@FILE@ has no tables; check that it is the right file"
LOCKED = "@FILE@ is locked by another program; try again later"
MISSING = "there is no database at @FILE@; check the path"
DENIED = "@FILE@ may not be read; ask for permission to read it"
NO_FILE = "@FILE@ cannot be read (it is not a file); check the file and the disk it is on"
LOOP = "@FILE@ cannot be read (Too many levels of symbolic links); check the file and the disk it is on"

COUNT = "SELECT count(*), sum(id) FROM items"
COUNTED = [[3000, 4498500]]

_ANY_FILE = 0b110  # of Linux: what lets root read and search any file


def items(path: Path, *, logged: bool = False) -> Path:
    """A table of 3,000 rows over some 50 pages, in a file in WAL mode or not."""
    with closing(sqlite3.connect(path)) as connection:
        if logged:
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT)")
        connection.executemany(
            "INSERT INTO items VALUES (?, ?)", [(i, "x" * 60 + str(i)) for i in range(3000)]
        )
        connection.commit()
    return path


def rewritten(path: Path, statement: str, *values: Any) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA writable_schema = 1")
        connection.execute(statement, values)
    return path


def _patched(path: Path, start: int, end: int) -> Path:
    content = bytearray(items(path).read_bytes())
    content[start:end] = b"\xff" * (end - start)
    path.write_bytes(content)
    return path


def _cut(path: Path, size: int) -> Path:
    os.truncate(items(path), size)
    return path


def _bytes(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def _unfinished(path: Path) -> Path:
    change = (
        "import sqlite3, os; c = sqlite3.connect(os.sys.argv[1], isolation_level=None);"
        "c.execute('PRAGMA cache_size = 1'); c.execute('BEGIN');"
        "c.execute(\"UPDATE items SET name = name || 'more'\"); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", change, str(items(path))], check=True)
    return path


def _linked(path: Path, target: str) -> Path:
    path.symlink_to(target)
    return path


def _piped(path: Path) -> Path:
    os.mkfifo(path)
    return path


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


WRONG_FILES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "missing": (lambda path: path, MISSING),
    "in a missing folder": (lambda path: path / "a.db", MISSING),
    "a folder": (_folder, NO_FILE),
    "a link to nothing": (lambda path: _linked(path, "nothing.db"), MISSING),
    "a link to itself": (lambda path: _linked(path, path.name), LOOP),
    "a pipe": (_piped, NO_FILE),
    "a device": (lambda path: _linked(path, "/dev/zero"), NO_FILE),
    "any bytes": (lambda path: _bytes(path, bytes(range(7, 250)) * 200), DAMAGED),
    "a long text": (lambda path: _bytes(path, b"id,name\n1,Ada\n" * 1000), DAMAGED),
    "only the header": (lambda path: _cut(path, 100), DAMAGED),
    "cut within a page": (lambda path: _cut(path, 4096 * 20 + 77), DAMAGED),
    "a broken page": (lambda path: _patched(path, 4096 * 9, 4096 * 10), DAMAGED),
    "a broken list of tables": (lambda path: _patched(path, 100, 4096), DAMAGED),
    "a broken description": (
        lambda path: rewritten(items(path), "UPDATE sqlite_master SET sql = 'CREATE TABLE items (oops'"),
        DAMAGED,
    ),
    "a description with a function that may not be called": (
        lambda path: rewritten(
            items(path),
            "UPDATE sqlite_master SET sql = 'CREATE TABLE items (id, n AS (load_extension(''x'')))'",
        ),
        DAMAGED,
    ),
    "left in the middle of a change": (_unfinished, UNFINISHED),
}
EMPTY_FILES: dict[str, Callable[[Path], Path]] = {
    "no bytes": lambda path: _bytes(path, b""),
    "no tables, in WAL mode": lambda path: make(
        path, "PRAGMA journal_mode = WAL; CREATE TABLE a (b); DROP TABLE a"
    ),
    "only tables of SQLite itself": lambda path: make(
        path, "CREATE TABLE a (b INTEGER PRIMARY KEY AUTOINCREMENT); DROP TABLE a"
    ),
}
FILE_NAMES = (
    "a b.db", "a?b.db", "a#b.db", "a%20b.db", "a%00.db", "größe-表🙂.db", "a'b\".db", "a\nb.db", "-rf.db",
    "a;b.db", "x.sqlite?mode=rwc", "data", "~.db", "a\\b.db", "file.db-wal", "$HOME.db", "a&immutable=1",
)  # fmt: skip


def in_a_log(path: Path, folder: Path, *ends: str) -> Path:
    """A database whose last change is in its log only, as its writer left it; with the files that end so."""
    with closing(sqlite3.connect(items(path, logged=True))) as writer:
        writer.execute("INSERT INTO items VALUES (-1, 'in the log')")
        writer.commit()
        for end in ("", *ends):
            shutil.copy(f"{path}{end}", folder)
    return folder / path.name


@contextmanager
def unreadable(path: Path) -> Iterator[None]:
    """A file that this thread, and those that it starts, may not read, also where they are root's."""
    path.chmod(0)
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None)
        version, granted = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
        assert libc.capget(version, granted) == 0
        granted[0] &= ~_ANY_FILE
        assert libc.capset(version, granted) == 0
    try:
        yield
    finally:
        path.chmod(0o600)


def in_thread(call: Callable[[], Any]) -> Any:
    given: list[Any] = []
    thread = threading.Thread(target=lambda: given.append(call()))
    thread.start()
    thread.join()
    return given[0]
