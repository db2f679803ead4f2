"""The messages for a database that could not answer, for any statement."""

from __future__ import annotations

from typing import Final

from planning.agent.sql.guard import ONLY_READING
from planning.errors import printable
from planning.tools import ErrorKind

_STORAGE: Final = {
    "missing": "there is no database at {path}; check the path",
    "denied": "{path} may not be read; ask for permission to read it",
    "locked": "{path} is locked by another program; try again later",
    "corrupt": (
        "{path} is damaged, or not an SQLite or DuckDB database; check the file, use a backup of it, or"
        " write duckdb:///PATH for a DuckDB file"
    ),
    "unfinished": (
        "{path} was left in the middle of a change; open it once with a program that may write to it"
    ),
    "unreadable": "{path} cannot be read ({text}); check the file and the disk it is on",
    "sql": "the contents of {path} cannot be read ({text}); check its tables and views",
    "empty": "{path} has no tables; check that it is the right file",
    "busy": "too many queries are running on {path}; try again later",
    "unavailable": "cannot start a thread that reads {path} ({text}); check this machine's memory",
    "settings": "{path} is open in this program with other settings; close it there first",
    "server": "{path} cannot be read: {text}",
    "library": "reading {path} needs {text}",
}
_QUERY: Final = {
    "memory": "the query needs more memory than it may use; ask for less, with WHERE, LIMIT or an aggregate",
    "large": "a value in it is too large for an answer; ask for its length, or a part of it with substr",
    "expanded": "{text} would be expanded too often; read each table of the WITH fewer times",
    "broken": "the database failed on it; write the query in another way",
    "refused": "{text} " + ONLY_READING,
}


class Failure(Exception):
    """A question to a database that has no answer.

    Attributes:
        kind: ``sql`` (the statement is wrong), ``timeout``, or a key of the messages in this module.
        text: The error of the database, or the name of the refused action.
    """

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(kind, text)
        self.kind = kind
        self.text = text


def explain(failure: Failure, path: str, seconds: float) -> tuple[str, ErrorKind]:
    """The message for a failure, and its code.

    Args:
        failure: The failure.
        path: The file as the user named it.
        seconds: The time limit.
    """
    if failure.kind == "timeout":
        remedy = "ask for less, with WHERE or LIMIT"
        return f"the query took longer than {seconds:g} s and was stopped; {remedy}", ErrorKind.TIMEOUT
    if failure.kind in _QUERY:
        return _QUERY[failure.kind].format(text=failure.text), ErrorKind.PARAMETER
    text = failure.text or "no reason given"
    return _STORAGE[failure.kind].format(path=printable(path), text=text), ErrorKind.STORAGE
