"""The loop of a database's worker process."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, Final, Protocol

from .chunks import Send
from .dialects import DIALECTS, FILES
from .failure import Failure
from .frames import frame, unframed

__all__ = ["GRACE", "Desk", "serve"]

GRACE: Final = 1.0
"""Seconds after its time for an answer at which a worker ends itself, if no other process has ended it."""

_IDLE: Final = 0.25


class Channel(Protocol):
    """Messages from the program that started this process, and to it."""

    def receive(self) -> bytes:
        """The next message."""

    def send(self, content: bytes) -> None:
        """Send a message."""

    def has_message(self, seconds: float) -> bool:
        """Whether there is something to receive within so many seconds."""


class File(Protocol):
    """What a database is asked."""

    def run(self, sql: str, most_rows: int, seconds: float, send: Send) -> tuple[list[str], bool]:
        """Run a statement."""

    def facts(self, samples: int, budget: float, seconds: float) -> dict[str, Any]:
        """Say what is in it."""

    def rest(self) -> None:
        """Let go of what others may wait for."""

    def close(self) -> None:
        """Let go of everything."""


class Desk:
    """Answers the requests to one file."""

    def __init__(self, path: str, paths: list[str], bound: Callable[[str], object] = lambda _: None) -> None:
        """Take what all requests have in common.

        Args:
            path: The file.
            paths: Where libraries are, for a dialect that needs one.
            bound: Binds this process to the memory that a dialect may take.
        """
        self._path = path
        self._paths = paths
        self._bound = bound
        self._files: dict[str, File] = {}

    def answer(self, request: tuple[Any, ...], send: Send) -> None:
        """Answer a request: its verb, the dialect, what else it needs, and the seconds that it has.

        The verbs are ``dialect``, ``run`` with the SQL and the most rows, and ``facts`` with the number of
        samples and the seconds for values and counts.
        """
        verb, dialect, *given = request
        try:
            if verb == "dialect":
                send(frame(("done", self._dialect())))
            elif verb == "run":
                sql, most_rows, seconds = given
                send(frame(("done", self._file(dialect).run(sql, most_rows, seconds, send))))
            else:
                send(frame(("done", self._file(dialect).facts(*given))))
        except Failure as failure:
            send(frame(("failed", (failure.kind, failure.text))))
        except MemoryError:
            send(frame(("failed", ("memory", ""))))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise  # the other end has gone
        except Exception as error:  # noqa: BLE001 - a library may raise anything over what it cannot read
            send(frame(("failed", ("sql", f"{type(error).__name__}: {error}"))))

    def rest(self) -> None:
        """Let go of what others may wait for."""
        for file in self._files.values():
            file.rest()

    def _file(self, dialect: str) -> File:
        self._bound(dialect)
        if dialect not in self._files:
            self._files[dialect] = self._opened(dialect)
        return self._files[dialect]

    def _opened(self, dialect: str) -> File:
        row = DIALECTS[dialect]
        if row.library:
            sys.path.extend(each for each in self._paths if each not in sys.path)
        opened: File = import_module(f".{row.worker}", __package__).open_file(self._path)
        return opened

    def _dialect(self) -> str | None:
        """The dialect of the file, by how it begins; None where there is no file that could be read."""
        for file in self._files.values():
            file.close()  # to close a file in any way takes its locks from a connection
        try:
            if not os.path.isfile(self._path):  # noqa: PTH113 - pathlib is not loaded in a worker
                return None
            with open(self._path, "rb") as content:  # noqa: PTH123 - as above
                mark = content.read(12)[8:]
            return next(each.name for each in reversed(FILES) if each.mark in {mark, b""})
        except OSError:
            return None


def serve(channel: Channel, given: bytes) -> None:  # pragma: no cover - what it calls is tested by itself
    """Answer requests until there are no more.

    Args:
        channel: Where they come from.
        given: The file's path, and where libraries are.
    """
    gc.set_threshold(100_000)  # rows are many small lists, none of which is part of a cycle
    path, paths = unframed(given)
    desk = Desk(os.fsdecode(path), paths, _bound)
    channel.send(frame("ready"))
    while True:
        if not channel.has_message(_IDLE):
            desk.rest()
        request = unframed(channel.receive())
        _set_alarm(request[-1] + GRACE)
        desk.answer(request, channel.send)
        _set_alarm(0)


def _bound(dialect: str) -> None:  # pragma: no cover - in a process of its own
    """Take no more memory than is allowed, where a process can be bound so."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        limit = DIALECTS[dialect].memory
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _set_alarm(seconds: float) -> None:  # pragma: no cover - in a process of its own
    """End this process after so many seconds, also within a call that never returns; 0 takes that back."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.setitimer(signal.ITIMER_REAL, seconds)
