"""Which file a database is, from a path or a URL."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import unquote

__all__ = ["locate"]

_SCHEMES: Final = {"sqlite": "sqlite", "duckdb": "duckdb"}
_DUCKDB_ENDINGS: Final = frozenset({".duckdb", ".ddb"})
_WANTED: Final = "give the path of a SQLite or DuckDB file, or sqlite:///PATH, or duckdb:///PATH"


def locate(source: object) -> tuple[str | None, str]:
    """The dialect of a database, None where its name does not tell, and the path of its file.

    The file is not opened: when it is closed again, this process would lose the locks that it has on it.

    Raises:
        ValueError: It is no such file, or none that a process of its own could read.
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
        dialect = _SCHEMES.get(scheme.lower())
        if dialect is None:
            raise ValueError(f"{scheme}:// is no database that can be read here; {_WANTED}")
        if "?" in rest:
            raise ValueError(f"{scheme}:// takes no options; leave out what follows the question mark")
        path = rest.removeprefix("/")
        if not rest.startswith("/") or not path:
            raise ValueError(
                f"a file's URL has three slashes, {scheme}:///PATH, four before an absolute path"
            )
    if path.strip().startswith(":memory:"):
        raise ValueError(f"a database in memory is seen by nobody else; {_WANTED}")
    if dialect is None and Path(path).suffix.lower() in _DUCKDB_ENDINGS:
        dialect = "duckdb"
    return dialect, path


def _file_uri(text: str) -> str:
    """The path in a URI as SQLite reads one."""
    path = text.removeprefix("file:").partition("#")[0]
    path, _, options = path.partition("?")
    if options not in {"", "mode=ro"}:
        raise ValueError("file: takes no options but mode=ro; leave out what follows the question mark")
    if path.startswith("//"):
        host, _, path = path[2:].partition("/")
        if host not in {"", "localhost"}:
            raise ValueError(f"file: is a file of this machine; {_WANTED}")
        path = "/" + path
    path = unquote(path)
    if not path.strip("/"):
        raise ValueError(f"there is no path in {text!r}; {_WANTED}")
    return path
