"""Stores of sessions as the commands open them, and the sessions in them."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from planning.cli.kinds import SQLITE, refuse_other
from planning.cli.source import name_of
from planning.cli.usage import Refused, bad_option
from planning.errors import nearest, printable
from planning.view.stores import PastStore
from planning.view.text import line_of
from session import SessionError
from session.events import SessionId, session_id_of
from session.stores import Store

__all__ = ["known_session", "opened_store"]


_MOST_BYTES: Final = 100_000_000
"""How much of a file that is not a store is read to say what it is instead."""


@contextmanager
def opened_store(path: str, *, begins: bool = False) -> Iterator[PastStore]:
    """Open a store, and close it after the block.

    Args:
        path: The file.
        begins: Whether a file that does not exist is created.

    Raises:
        Refused: It cannot be opened; or the block raised an error of the store or a session.
    """
    scheme, separator, _ = path.partition("://")
    if separator:
        raise Refused(
            f"stores at {printable(scheme)}:// are not supported yet; give the path of a SQLite file"
        )
    if path == "-":
        raise Refused("a store cannot be read from standard input; give the path of a SQLite file")
    if not begins or Path(path).exists():
        _require_store(path)
    try:
        with closing(PastStore(path)) as store:
            yield store
    except SessionError as error:
        raise Refused(line_of(error)) from None


def known_session(store: Store, name: str) -> SessionId:
    """The id of a session that a store has.

    Raises:
        Refused: There is no such session.
        StoreError: The store cannot be read.
    """
    try:
        identity = session_id_of(name)
    except ValueError as error:
        raise bad_option("SESSION", error) from None
    if store.head(identity) is None:
        names = [str(each.session_id) for each in store.sessions()]
        near = nearest(name, names)
        hint = "list them with 'planning sessions'" if near is None else f"did you mean {printable(near)}?"
        raise Refused(f"the store holds no session '{printable(name)}'; {hint}")
    return identity


def _require_store(path: str) -> None:
    """Refuse a file that is not a store; opening it would begin one in an empty file.

    Raises:
        Refused: It is not, or cannot be read.
    """
    try:
        mode = Path(path).lstat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            return  # to read a pipe would wait for its writer; opening the store says what it is
        with Path(path).open("rb") as file:
            data = file.read(len(SQLITE))
            data += b"" if data == SQLITE else file.read(_MOST_BYTES)
    except (OSError, ValueError) as error:  # ValueError: a null character in a path
        reason = getattr(error, "strerror", None) or error
        raise Refused(f"cannot read {name_of(path)}: {reason}") from None
    refuse_other(data, path, "a store of sessions", "store")
    if not data.startswith(SQLITE):
        what = "it is not a SQLite file" if data else "it is empty"
        raise Refused(f"{name_of(path)} is not a store of sessions: {what}")
    if not _has_tables(path):
        raise Refused(f"{name_of(path)} is not a store of sessions: it is a SQLite file without tables")


def _has_tables(path: str) -> bool:
    """Whether a SQLite file has tables; where that cannot be read, opening it says why."""
    if Path(f"{path}-wal").exists():  # they may be there
        return True
    uri = f"{Path(path).absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            return bool(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    except sqlite3.Error:
        return True
