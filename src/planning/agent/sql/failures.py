"""The messages for a database that could not answer, whatever the statement was."""

from __future__ import annotations

from typing import Final

from planning.agent.sql.guard import ONLY_READING
from planning.agent.sql.worker.dialects import FILE_KINDS
from planning.errors import printable
from planning.tools import ErrorKind

__all__ = ["explain", "late"]

_KILLED: Final = 9
_NOTICED: Final = 0.5
"""The part of its time that a query must have waited for others for the message to blame the wait."""

_STORAGE: Final = {
    "missing": "there is no database at {path}; check the path",
    "folder": "{path} is a folder, not a database; give the path of the file",
    "denied": "{path} may not be read; ask for permission to read it",
    "locked": "{path} is locked by another program; try again later",
    "corrupt": "{path} is damaged, or not a {name} database; check the file, or use a backup of it",
    "unfinished": (
        "{path} was left in the middle of a change; open it once with a program that may write to it"
    ),
    "unreadable": "{path} cannot be read ({text}); check the file and the disk it is on",
    "sql": "the contents of {path} cannot be read ({text}); check its tables and views",
    "empty": "{path} has no tables; check that it is the right file",
    "busy": (
        "as many queries as can run at once are running on {path}, and this one waited {seconds:g} s for its"
        " turn; try again later"
    ),
    "killed": (
        "the process that read {path} was killed (signal 9), by the system or by another program;"
        " try again, and ask for less if that fails too"
    ),
    "unavailable": "no process can be started that reads {path} ({text}); check this machine's memory",
    "library": "reading {path} needs duckdb: pip install 'session-planning[duckdb]'",
}
_QUERY: Final = {
    "memory": "the query needs more memory than it may use; ask for less, with WHERE, LIMIT or an aggregate",
    "large": "a value in it is too large for an answer; ask for its length, or a part of it with substr",
    "broken": "the database failed on it; write the query in another way",
    "refused": "{text} " + ONLY_READING,
}


def late(what: str, waited: str, seconds: float, remedy: str) -> str:
    """The message for a request that took too long; it says so if most of that was a wait for others.

    Args:
        what: The request.
        waited: The seconds of the wait, as text.
        seconds: The time limit.
        remedy: What to do if there was no wait.
    """
    passed = round(float(waited or 0), 1)
    if passed and passed >= seconds * _NOTICED:
        return (
            f"{what} waited {passed:g} of its {seconds:g} s for other queries to end, and was stopped;"
            " try again later"
        )
    return f"{what} took longer than {seconds:g} s and was stopped; {remedy}"


def explain(kind: str, text: str, path: str, seconds: float) -> tuple[str, ErrorKind]:
    """The message for a failure, and its code.

    Args:
        kind: The kind of failure; see ``worker.failure``.
        text: What the database says.
        path: The file as the user named it.
        seconds: The time limit.
    """
    if kind == "timeout":
        return late("the query", text, seconds, "ask for less, with WHERE or LIMIT"), ErrorKind.TIMEOUT
    if kind == "died":
        number = -int(text)
        if number > 0 and number != _KILLED:
            message = f"the database failed on it (signal {number}); write the query in another way"
            return message, ErrorKind.PARAMETER
        kind, text = ("killed", "") if number > 0 else ("unavailable", f"it ended with status {text}")
    if kind in _QUERY:
        return _QUERY[kind].format(text=text), ErrorKind.PARAMETER
    return _STORAGE[kind].format(
        path=printable(path),
        text=text or "no reason given",
        name=FILE_KINDS,
        seconds=seconds,
    ), ErrorKind.STORAGE
