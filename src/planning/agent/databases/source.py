"""The place of a database, from a path or a URL, and whether its file has changed."""

from __future__ import annotations

import os
from pathlib import Path
from stat import S_ISREG
from time import monotonic, time_ns
from typing import Final

from planning.agent.sql.guard import Failure
from session.address import is_address, show_address

LOG_SIZE: Final = 5
"""The place in a stamp of the size of the log."""

_KINDS: Final = frozenset({"sqlite", "duckdb"})
_OF_DUCKDB: Final = frozenset({".duckdb", ".ddb"})
_LOGS: Final = {"sqlite": "-wal", "duckdb": ".wal"}
_KEPT: Final = 60
"""The seconds that the schema of a server, whose changes do not show, is kept."""

_SERVERS: Final = ("postgresql://", "postgres://")
_WANTED: Final = (
    "give postgresql://HOST/DATABASE, the path of an SQLite or DuckDB file, or sqlite:///PATH, or "
    "duckdb:///PATH"
)


def locate(source: str | os.PathLike[str]) -> tuple[str, str]:
    """The dialect of a database, ``sqlite``, ``duckdb`` or ``postgres``, and the path of its file or its URL.

    Raises:
        ValueError: It does not name a database.
    """
    if not isinstance(source, (str, os.PathLike)):
        raise ValueError(  # noqa: TRY004 - whatever is wrong with a source is one kind of error
            f"a database is a path or a URL, got {type(source).__name__}; {_WANTED}"
        )
    path = os.fsdecode(source)
    if path.startswith(_SERVERS) and "\0" not in path:
        return "postgres", path
    dialect, _, rest = path.partition("://")
    if is_address(path):
        path = rest.removeprefix("/")
        if dialect not in _KINDS or path == rest or "?" in rest:
            shown = source if dialect in _KINDS and "@" not in rest else show_address(os.fsdecode(source))
            raise ValueError(f"unsupported database URL {shown}; {_WANTED}, four slashes if it is absolute")
    else:
        dialect = "duckdb" if Path(path).suffix.lower() in _OF_DUCKDB else "sqlite"
    if "\0" in path or not path.strip() or path.startswith((":memory:", "file:")):
        raise ValueError(f"{path!r} is not the path of a file; {_WANTED}")
    return dialect, path


def stamp(path: str, dialect: str) -> tuple[int, ...]:
    """What differs once a file was changed or replaced: its identity, size and times, and those of its log.

    A change in the same tick of the clock as the one before does not show.

    Raises:
        Failure: There is no such file.
    """
    if dialect == "postgres":
        return (int(monotonic() / _KEPT),) * (LOG_SIZE + 1)
    try:
        file = Path(path).resolve() if Path(path).is_symlink() else Path(path)  # logs are at the target
        found = file.stat()
    except FileNotFoundError:
        raise Failure("missing") from None
    except PermissionError:
        raise Failure("denied") from None
    except OSError as error:
        raise Failure("unreadable", error.strerror or "") from None
    if not S_ISREG(found.st_mode):  # reading a pipe would wait for a writer
        raise Failure("unreadable", "it is not a file")
    known = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    try:
        changes = Path(f"{file}{_LOGS[dialect]}").stat()
    except OSError:
        return (*known, 0, 0)
    return (*known, changes.st_size, changes.st_mtime_ns if changes.st_size else 0)


def is_settled(known: tuple[int, ...], seconds: float) -> bool:
    """Whether the last change that a stamp shows is older than that: a later one would show."""
    return max(known[3], known[-1]) < time_ns() - seconds * 1e9
