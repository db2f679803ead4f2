"""The file of a database, from a path or a URL."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from planning.agent.sql.worker.dialects import FILE_KINDS, FILES

__all__ = ["locate"]

_NAMES: Final = {each.name for each in FILES}
_BY_ENDING: Final = {ending: each.name for each in FILES for ending in each.endings}
_URLS: Final = ", or ".join(f"{each.name}:///PATH" for each in FILES)
_WANTED: Final = f"give the path of a {FILE_KINDS} file, or {_URLS}"


def locate(source: object) -> tuple[str | None, str]:
    """The dialect of a database, None if its name does not show it, and the path of its file.

    The file is not opened: closing it would end the locks that this process has on it.

    Raises:
        ValueError: It does not name a file that a separate process could read.
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
        raise ValueError(f"a database in memory cannot be read by another process; {_WANTED}")
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
