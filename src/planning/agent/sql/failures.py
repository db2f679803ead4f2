"""Why a database could not answer, in plain words: whatever the statement was."""

from __future__ import annotations

import signal
from typing import Final

from planning.agent.sql.guard import ONLY_READING
from planning.tools import ErrorKind

__all__ = ["LATE_SCHEMA", "explain"]

LATE_SCHEMA: Final = (
    "reading the schema took longer than {seconds:g} s and was stopped; try again, or allow more seconds"
)
_STORAGE: Final = {
    "missing": "there is no database at {path}; check the path",
    "folder": "{path} is a folder, not a database; give the path of the file",
    "denied": "{path} may not be read; ask for permission to read it",
    "locked": "{path} is locked by another program; try again later",
    "corrupt": "{path} is damaged or no {name} database; check the file, or use a backup of it",
    "unfinished": "{path} was left in the middle of a change; open it once with what may write to it",
    "unreadable": "{path} cannot be read ({text}); check the file and the disk it is on",
    "sql": "what is in {path} cannot be told ({text}); check its tables and views",
    "empty": "{path} holds no table; check that it is the right file",
    "busy": "as many queries as can run at once are running on {path}; try again later",
    "unavailable": "no process can be started that reads {path} ({text}); check this machine's memory",
    "library": "reading {path} needs duckdb: pip install 'session-planning[duckdb]'",
}
_QUERY: Final = {
    "memory": "the query needs more memory than it may take; ask for less, with WHERE, LIMIT or an aggregate",
    "large": "a value in it is too large for an answer; ask for its length, or a part of it with substr",
    "broken": "the database broke down on it; write the query in another way",
    "refused": "{text} " + ONLY_READING,
}


def explain(kind: str, text: str, path: str, seconds: float) -> tuple[str, ErrorKind]:
    """The message for a failure, and its code.

    Args:
        kind: What kind of failure it is; see ``worker.failure``.
        text: What more is known of it.
        path: The file, as it was given.
        seconds: The time limit.
    """
    if kind == "timeout":
        told = f"the query took longer than {seconds:g} s and was stopped; ask for less, with WHERE or LIMIT"
        return told, ErrorKind.TIMEOUT
    if kind == "died":
        if int(text) < 0:
            return _death(-int(text)), ErrorKind.PARAMETER
        kind, text = "unavailable", f"it ended with status {text}"
    shown = path if path.isprintable() else ascii(path)
    if kind in _QUERY:
        return _QUERY[kind].format(text=text), ErrorKind.PARAMETER
    return _STORAGE[kind].format(
        path=shown, text=text or "no reason given", name="SQLite or DuckDB"
    ), ErrorKind.STORAGE


def _death(number: int) -> str:
    if number == getattr(signal, "SIGKILL", 9):
        return _QUERY["memory"]  # the system takes its memory back so
    return f"the database broke down on it (signal {number}); write the query in another way"
