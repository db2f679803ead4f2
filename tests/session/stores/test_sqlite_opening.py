"""A file is opened while another process writes it, or after one was killed while it did."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from session_records import Note, printed
from store_places import open_session

from session.stores import SqliteStore

PAGE = 4096  # bytes

WHILE_OTHERS_WRITE = """
import sys
from pathlib import Path
from session.stores import SqliteStore

path, names = Path(sys.argv[1]), sys.argv[2:]

def others_write(event, args):
    if event == "sqlite3.connect" and "immutable" in str(args[0]):
        while names:
            name = names.pop()
            path.with_name(f"new {name}").rename(path.with_name(name))

sys.addaudithook(others_write)
print([(str(each.session_id), each.version) for each in SqliteStore(path).sessions()], names)
"""


def write(path: Path, text: str) -> SqliteStore:
    store = SqliteStore(path)
    open_session(store).dispatch(Note(text))
    return store


def test_a_file_that_another_process_writes_is_not_called_damaged(path: Path) -> None:
    write(path, "before").close()
    before = path.read_bytes()
    store = write(path, "x" * 99_999)
    wal = path.with_name("plans.db-wal").read_bytes()
    store.close()
    # Another process begins its WAL, and its checkpoint has written the first page so far.
    path.with_name("new plans.db").write_bytes(path.read_bytes()[:PAGE] + before[PAGE:])
    path.with_name("new plans.db-wal").write_bytes(wal)
    path.write_bytes(before)
    assert printed(WHILE_OTHERS_WRITE, path, "plans.db", "plans.db-wal") == "[('run-7', 2)] []\n"


@pytest.mark.parametrize("pages", [0, 1, 3])
def test_a_process_that_is_killed_while_it_begins_a_file_leaves_one_that_the_next_begins(
    path: Path, pages: int
) -> None:
    SqliteStore(path).close()
    whole = path.read_bytes()
    with closing(sqlite3.connect(path.with_name("other.db"), isolation_level=None)) as other:
        other.execute("PRAGMA cache_size = 1")
        other.execute("BEGIN IMMEDIATE")
        other.execute("CREATE TABLE a (text TEXT)")
        other.execute("INSERT INTO a VALUES (?)", ("x" * 99 * PAGE,))  # more than stays in memory
        journal = path.with_name("other.db-journal").read_bytes()
    path.write_bytes(whole[: pages * PAGE])
    path.with_name("plans.db-journal").write_bytes(journal)
    write(path, "first").close()
    with closing(SqliteStore(path)) as store:
        assert ([each.version for each in store.sessions()], store.verify("run-7")) == ([1], 1)
    assert {each.name for each in path.parent.iterdir()} == {"plans.db", "other.db"}
