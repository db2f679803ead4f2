"""The worker processes of one database.

Only a process can be stopped within a function call that never looks up, as one over two long texts in
SQLite.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

from planning.agent.sql.worker.failure import WORN
from planning.agent.sql.worker.frames import frame, unframed
from planning.workers.pool import Pool
from planning.workers.program import Program
from planning.workers.worker import (
    Unheard,
    Worker,
    WorkerBusy,
    WorkerDied,
    WorkerLate,
    WorkerUnavailable,
)

__all__ = ["Answer", "WorkerBusy", "WorkerDied", "WorkerLate", "WorkerUnavailable", "Workers"]

Answer = tuple[str, Any, list[list[Any]]]
"""How it ended, ``done`` or ``failed``, with what, and the rows that came before."""

_FOLDER: Final = str(Path(__file__).parent)
_MODULE: Final = "worker.serve"
_MOST_WORKERS: Final = 4
_GRACE: Final = 0.2


class Workers:
    """The processes that one database is read in; any thread may ask them."""

    def __init__(self, path: str) -> None:
        """Start nothing yet.

        Args:
            path: The file of the database.
        """
        self._pool = Pool(
            Program(_command, _FOLDER, _MODULE, lambda: frame((os.fsencode(path), sys.path)), is_silent=True),
            _MOST_WORKERS,
        )

    def ask(self, request: tuple[Any, ...], seconds: float) -> Answer:
        """Have a request answered.

        Args:
            request: What a worker is asked; see ``worker.serve``. The seconds that are left are added to it.
            seconds: How long it may take, the wait for a free worker included. The worker gives up then, and
                is ended a little later.

        Raises:
            WorkerLate: It gave up, or had to be ended.
            WorkerDied: It ended by itself.
            WorkerBusy: There was none in that time.
            WorkerUnavailable: There can be none.
        """
        until = monotonic() + seconds
        answer, waited = self._pool.ask(partial(_exchange, request, until), until)
        if answer[0] == "failed" and answer[1][0] == "timeout":
            raise WorkerLate(waited)
        return answer

    def close(self) -> None:
        """End the processes: those at work as soon as they are done. A later request starts new ones."""
        self._pool.close()


def _command() -> Sequence[str]:
    if not sys.executable:
        raise WorkerUnavailable("Python does not say where its program is")
    return [sys.executable, "-I", "-S", *(["-B"] if sys.dont_write_bytecode else [])]


def _exchange(request: tuple[Any, ...], until: float, worker: Worker) -> Answer:
    left = until - monotonic()
    if left <= 0:
        raise WorkerLate
    try:
        worker.send(frame((*request, left)), until + _GRACE)
        return _answer(worker, until + _GRACE)
    except WorkerDied as death:
        if death.status == WORN:
            raise Unheard from None
        if death.status == -signal.SIGALRM:
            raise WorkerLate from None  # by its own alarm: this process did not come to do it
        raise


def _answer(worker: Worker, until: float) -> Answer:
    rows: list[list[Any]] = []
    while True:
        kind, value = unframed(worker.receive(until))
        if kind == "rows":
            rows += map(list, value)
        elif kind == "again":
            rows = []
        else:
            return kind, value, rows
