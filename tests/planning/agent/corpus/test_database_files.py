"""Files that are no database, or a damaged, locked, changing or odd one."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from database_files import (
    COUNT,
    COUNTED,
    DAMAGED,
    DENIED,
    EMPTY,
    EMPTY_FILES,
    FILE_NAMES,
    LOCKED,
    MISSING,
    WRONG_FILES,
    in_a_log,
    in_thread,
    items,
    unreadable,
)
from readonly_files import make, state

from planning.agent import SqlDatabase
from planning.tools import StorageUnavailable

LIMIT = 20.0


def told(database: SqlDatabase, path: Path) -> list[Any]:
    """What each door of a database says that cannot be read."""
    answer = database.execute(COUNT)
    with pytest.raises(StorageUnavailable) as raised:
        database.get_schema()
    named = [answer["error"], str(raised.value)]
    return [answer["code"], *(text.replace(str(path), "@FILE@") for text in named)]


@pytest.mark.parametrize("kind", WRONG_FILES)
def test_a_file_that_cannot_be_read_is_told_in_one_line(tmp_path: Path, kind: str) -> None:
    make, message = WRONG_FILES[kind]
    path = make(tmp_path / "items.db")
    before = state(tmp_path)
    with SqlDatabase(path, timeout=LIMIT) as database:
        assert told(database, path) == ["storage", message, message]
        assert told(database, path) == ["storage", message, message]
    assert state(tmp_path) == before


@pytest.mark.parametrize("kind", EMPTY_FILES)
def test_an_empty_database_says_so_where_tables_are_wanted(tmp_path: Path, kind: str) -> None:
    path = EMPTY_FILES[kind](tmp_path / "items.db")
    before = state(tmp_path)
    with SqlDatabase(path, timeout=LIMIT) as database:
        with pytest.raises(StorageUnavailable) as raised:
            database.get_schema()
        assert str(raised.value).replace(str(path), "@FILE@") == EMPTY
        assert database.execute("SELECT 1 AS a")["data"] == [[1]]
        answer = database.execute(COUNT)
        assert (answer["code"], answer["error"]) == ("parameter", "no such table: items")
    assert state(tmp_path) == before


@pytest.mark.parametrize("name", FILE_NAMES)
def test_a_file_of_any_name_is_read(tmp_path: Path, name: str) -> None:
    path = items(tmp_path / name)
    before = state(tmp_path)
    with SqlDatabase(path, timeout=LIMIT) as database:
        assert database.execute(COUNT)["data"] == COUNTED
        assert database.get_schema().startswith("SQLite, 1 table\n\nitems, 3,000 rows\n")
    assert state(tmp_path) == before


def test_a_file_that_may_not_be_read_is_told_until_it_may(tmp_path: Path) -> None:
    path = items(tmp_path / "items.db")

    def ask() -> list[Any]:
        with unreadable(path), SqlDatabase(path, timeout=LIMIT) as database:
            return told(database, path)

    assert in_thread(ask) == ["storage", DENIED, DENIED]
    with SqlDatabase(path, timeout=LIMIT) as database:
        assert database.execute(COUNT)["data"] == COUNTED


@pytest.mark.parametrize("logged", [False, True], ids=["journal", "log"])
def test_a_locked_file_is_told_until_it_is_free(
    tmp_path: Path, logged: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("planning.agent.databases.sqlite_file._BUSY", 0.05)
    path = items(tmp_path / "items.db", logged=logged)
    with SqlDatabase(path, timeout=20) as database:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("PRAGMA locking_mode = EXCLUSIVE")
            other.execute("BEGIN EXCLUSIVE")
            other.execute("DELETE FROM items WHERE id = 0")
            if logged:
                other.execute("COMMIT")
            assert told(database, path) == ["storage", LOCKED, LOCKED]
        assert database.execute("SELECT sum(id) FROM items")["data"] == [[4498500]]


@pytest.mark.parametrize("ends", [("-wal",), ("-wal", "-shm")], ids=["log alone", "log and index"])
def test_what_is_only_in_the_log_is_read(tmp_path: Path, ends: tuple[str, ...]) -> None:
    (tmp_path / "copy").mkdir()
    path = in_a_log(tmp_path / "items.db", tmp_path / "copy", *ends)
    before = path.read_bytes()
    with SqlDatabase(path, timeout=LIMIT) as database:
        assert database.execute(COUNT)["data"] == [[3001, 4498499]]
    assert path.read_bytes() == before


def test_a_database_in_wal_mode_is_left_as_it_is(tmp_path: Path) -> None:
    path = items(tmp_path / "items.db", logged=True)
    before = state(tmp_path)
    with SqlDatabase(path, timeout=LIMIT) as database:
        assert database.execute(COUNT)["data"] == COUNTED
        assert state(tmp_path) == before
    assert state(tmp_path) == before


def test_a_file_that_was_replaced_is_the_new_one_at_once(tmp_path: Path) -> None:
    path = items(tmp_path / "items.db")
    new = make(tmp_path / "new.db", "CREATE TABLE items (id INTEGER); INSERT INTO items VALUES (7)")
    with SqlDatabase(path, timeout=LIMIT) as database:
        assert database.execute(COUNT)["data"] == COUNTED
        new.replace(path)
        assert database.execute(COUNT)["data"] == [[1, 7]]
        assert database.get_schema().startswith("SQLite, 1 table\n\nitems, 1 row\n  id INTEGER: 7\n")


@pytest.mark.parametrize(
    ("damage", "message"),
    [(os.unlink, MISSING), (lambda path: path.write_bytes(b"\xff" * path.stat().st_size), DAMAGED)],
    ids=["deleted", "damaged"],
)
def test_a_file_that_is_deleted_or_damaged_while_it_is_open_is_told_until_it_is_mended(
    tmp_path: Path, damage: Callable[[Path], object], message: str
) -> None:
    path = items(tmp_path / "items.db")
    good = path.read_bytes()
    with SqlDatabase(path, timeout=LIMIT) as database:
        assert database.execute(COUNT)["data"] == COUNTED
        damage(path)
        is_there = path.exists()
        assert told(database, path) == ["storage", message, message]
        assert path.exists() is is_there
        path.write_bytes(good)
        assert database.execute(COUNT)["data"] == COUNTED


def test_a_copy_of_a_database_is_read_in_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "fixed").mkdir()
    path = shutil.copy(items(tmp_path / "items.db", logged=True), tmp_path / "fixed")
    os.chmod(path, 0o400)  # noqa: PTH101 - the path is a text here
    (tmp_path / "fixed").chmod(0o500)

    def ask() -> object:
        with unreadable(tmp_path / "items.db"), SqlDatabase(path, timeout=LIMIT) as database:
            return database.execute(COUNT)["data"]

    try:
        assert in_thread(ask) == COUNTED
    finally:
        (tmp_path / "fixed").chmod(0o700)
