"""The file of a database: its path, from a path or a URL, its kind, and whether it has changed."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from time import time_ns
from typing import Final
from urllib.parse import unquote

from planning.agent.databases.sqlite_boundary import connect
from planning.agent.sql.dialects import FILE_KINDS, FILES
from planning.agent.sql.failures import Failure

__all__ = ["LOG_SIZE", "dialect_of", "is_settled", "locate", "stamp"]

LOG_SIZE: Final = 5
"""The place in a stamp of the size of the log."""

_NAMES: Final = {each.name for each in FILES}
_BY_ENDING: Final = {ending: each.name for each in FILES for ending in each.endings}
_URLS: Final = ", or ".join(f"{each.name}:///PATH" for each in FILES)
_WANTED: Final = f"give the path of a {FILE_KINDS} file, or {_URLS}"


def locate(source: object) -> tuple[str | None, str]:
    """The dialect of a database, None if its name does not show it, and the path of its file.

    Raises:
        ValueError: It does not name a file.
    """
    if not isinstance(source, (str, os.PathLike)):
        raise ValueError(  # noqa: TRY004 - whatever is wrong with a source is one kind of error
            f"a database is a path or a URL, got {type(source).__name__}; {_WANTED}"
        )
    text = os.fsdecode(source)
    if "\0" in text or not text.strip():
        raise ValueError(f"there is no path in {text!r}; {_WANTED}")
    scheme, found, rest = text.partition("://")
    dialect, path = None, text
    if text.startswith("file:"):
        dialect, path = "sqlite", _file_uri(text)
    elif found and scheme.replace("+", "").isalnum():
        dialect = scheme.lower()
        if dialect not in _NAMES:
            raise ValueError(f"unsupported database URL {scheme}://; {_WANTED}")
        if "?" in rest:
            raise ValueError(f"{scheme}:// takes no options; remove the part after the question mark")
        path = rest.removeprefix("/")
        if not rest.startswith("/") or not path:
            raise ValueError(
                f"a file's URL has three slashes, {scheme}:///PATH, four before an absolute path"
            )
    if path.strip().startswith(":memory:"):
        raise ValueError(f"a database in memory has no file; {_WANTED}")
    return dialect or _BY_ENDING.get(Path(path).suffix.lower()), path


def _file_uri(text: str) -> str:
    """The path in a URI as SQLite reads one."""
    path = text.removeprefix("file:").partition("#")[0]
    path, _, options = path.partition("?")
    if options not in {"", "mode=ro"}:
        raise ValueError("file: takes no options but mode=ro; remove the part after the question mark")
    if path.startswith("//"):
        host, _, path = path[2:].partition("/")
        if host not in {"", "localhost"}:
            raise ValueError(f"file: must name a file of this machine; {_WANTED}")
        path = "/" + path
    path = unquote(path)
    if not path.strip("/"):
        raise ValueError(f"there is no path in {text!r}; {_WANTED}")
    return path


def stamp(path: str, log: str) -> tuple[int, ...]:
    """What differs once a file was changed or replaced: its identity, size and times, and those of its log.

    A change in the same tick of the clock as the one before does not show.

    Args:
        path: The file.
        log: The ending that is added to the path for its log.

    Raises:
        Failure: There is no such file.
    """
    try:
        file = Path(path).resolve() if Path(path).is_symlink() else Path(path)  # logs are at the target
        found = file.stat()
        if not S_ISREG(found.st_mode):  # reading a pipe would wait for a writer
            raise Failure("folder") if S_ISDIR(found.st_mode) else Failure("unreadable", "it is not a file")
        known = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    except FileNotFoundError:
        raise Failure("missing") from None
    except PermissionError:
        raise Failure("denied") from None
    except OSError as error:
        raise Failure("unreadable", error.strerror or "") from None
    try:
        changes = Path(f"{file}{log}").stat()
    except OSError:
        return (*known, 0, 0)
    return (*known, changes.st_size, changes.st_mtime_ns if changes.st_size else 0)


def is_settled(known: tuple[int, ...], seconds: float) -> bool:
    """Whether the last change that a stamp shows is older than that: a later one would show."""
    return max(known[3], known[-1]) < time_ns() - seconds * 1e9


def dialect_of(path: str) -> str | None:
    """The dialect of a file, by how it begins; None if it cannot be read.

    SQLite reads it first, and only a file that is not SQLite's is opened in another way: closing it would end
    the locks that this process has on it.
    """
    try:
        stamp(path, "")
        with closing(connect(path, "nolock=1")) as connection:
            connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").close()
    except Failure:
        return None
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_NOTADB:
            with Path(path).open("rb") as content:
                mark = content.read(12)[8:]
            return next(each.name for each in reversed(FILES) if each.mark in {mark, b""})
    return FILES[0].name
