"""The loop of a worker process, and what keeps it from outliving its use."""

from __future__ import annotations

import _thread
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
from .frames import frame, read_frame

__all__ = ["GRACE", "Desk", "main"]

GRACE: Final = 1.0
"""Seconds after its time for an answer at which a worker ends itself, should nobody else do it."""

_LOOK: Final = 1_000
"""Milliseconds between two looks whether the parent process is still there."""
_IDLE: Final = 0.25


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
        except (EOFError, BrokenPipeError):
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


def main() -> None:  # pragma: no cover - the loop of a process of its own; what it calls is tested by itself
    """Answer requests until there are no more, or the other end has gone."""
    out = os.dup(1)
    with open(os.devnull, "r+b") as nowhere:  # noqa: PTH123 - pathlib is not loaded in a worker
        os.dup2(nowhere.fileno(), 1)
    gc.set_threshold(100_000)  # rows are many small lists, none of which is part of a cycle
    with suppress(RuntimeError):  # no memory for a thread: the alarm still ends this process
        _thread.start_new_thread(_end_with, (os.getppid(),))  # threading takes longer to load than all else

    def send(content: bytes) -> None:
        left = memoryview(content)
        while left:
            left = left[os.write(out, left) :]

    with suppress(EOFError, BrokenPipeError):
        path, paths = read_frame(0)
        desk = Desk(os.fsdecode(path), paths, _bound)
        while True:
            _await(desk)
            request = read_frame(0)
            _set_alarm(request[-1] + GRACE)
            desk.answer(request, send)
            _set_alarm(0)


def _end_with(parent: int) -> None:  # pragma: no cover - in a process of its own
    """End this process when its parent ends, also in the middle of a statement, where the GIL is released.

    The end of the parent closes the pipe at once, unless a process that it forked holds a copy of the other
    end: then this process has another parent by the next look. (A signal at the parent's death would come
    when the thread ends that started this process.)
    """
    if os.name != "posix":
        return  # a pipe cannot be waited for there, and the id of the parent never changes
    import select

    pipe = select.poll()
    pipe.register(0, 0)  # no event is asked for: a hang-up is reported all the same, a request is not
    while not pipe.poll(_LOOK) and os.getppid() == parent:
        pass
    os._exit(0)


def _await(desk: Desk) -> None:  # pragma: no cover - in a process of its own
    """Wait for a request, and let go of what others may wait for when there is none for a while."""
    if os.name != "posix":
        desk.rest()  # a pipe cannot be waited for there
        return
    import select

    if not select.select([0], [], [], _IDLE)[0]:
        desk.rest()


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
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
        signal.setitimer(signal.ITIMER_REAL, seconds)
        return
    import faulthandler

    if seconds:
        faulthandler.dump_traceback_later(seconds, exit=True)
    else:
        faulthandler.cancel_dump_traceback_later()
