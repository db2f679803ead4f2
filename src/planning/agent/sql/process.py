"""The worker processes of one database: started when they are needed, ended at the limit.

Only a process can be stopped within a function call that never looks up, as one over two long texts in
SQLite.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from time import monotonic
from typing import IO, Any, Final

from planning.agent.sql.worker.failure import WORN
from planning.agent.sql.worker.frames import HEAD, frame, length_of, unframed

__all__ = ["Answer", "WorkerBusy", "WorkerDied", "WorkerLate", "WorkerUnavailable", "Workers"]

Answer = tuple[str, Any, list[list[Any]]]
"""How it ended, ``done`` or ``failed``, with what, and the rows that came before."""

_PROGRAM: Final = str(Path(__file__).with_name("worker"))
_MOST_WORKERS: Final = 4
_GRACE: Final = 0.2
_CHUNK: Final = 1 << 20
_CAN_POLL: Final = hasattr(select, "poll")


class WorkerLate(Exception):
    """The time for a request is over.

    Attributes:
        waited: The seconds of it that passed before a worker was free.
    """

    def __init__(self, waited: float = 0.0) -> None:
        super().__init__(waited)
        self.waited = waited


class WorkerDied(Exception):
    """A worker ended by itself, or was ended by another program.

    Attributes:
        status: Its exit status, below 0 for a signal.
    """

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class WorkerUnavailable(Exception):
    """No worker can be started."""


class WorkerBusy(Exception):
    """All workers are busy, and stayed so."""


class Workers:
    """The processes that one database is read in; any thread may ask them."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._pool = _Pool()

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
        if self._pool.process_id != os.getpid():
            forgotten, self._pool = self._pool, _Pool()  # made before a fork: they are those of the parent
            forgotten.forget()
        pool, began = self._pool, monotonic()
        if not pool.places.acquire(timeout=seconds):
            raise WorkerBusy
        waited = monotonic() - began
        try:
            answer = self._ask(pool, request, began + seconds)
        except WorkerLate:
            raise WorkerLate(waited) from None
        finally:
            pool.places.release()
        if answer[0] == "failed" and answer[1][0] == "timeout":
            raise WorkerLate(waited)
        return answer

    def close(self) -> None:
        """End the processes: those at work as soon as they are done. A later request starts new ones."""
        ended, self._pool = self._pool, _Pool()
        if ended.process_id == os.getpid():
            ended.end()
        else:
            ended.forget()

    def _ask(self, pool: _Pool, request: tuple[Any, ...], until: float) -> Answer:
        while (left := until - monotonic()) > 0:
            worker = pool.take() or _Worker(self._path)
            try:
                worker.send(frame((*request, left)), until + _GRACE)
                answer = worker.receive(until + _GRACE)
            except _Unheard:
                worker.end()  # it was gone, or worn, before it began: another one is asked
                if not worker.was_used:
                    raise WorkerDied(worker.status) from None
                continue
            except BaseException:
                worker.end()  # also on Ctrl-C: what it would answer is the answer to this request
                raise
            pool.put(worker)
            return answer
        raise WorkerLate


class _Unheard(Exception):
    """A worker has not heard the request."""


class _Pool:
    """The workers that wait for work, in the process that started them."""

    def __init__(self) -> None:
        self.process_id = os.getpid()
        self.places = threading.BoundedSemaphore(_MOST_WORKERS)
        self._lock = threading.Lock()
        self._is_ended = False
        self._idle: list[_Worker] = []
        weakref.finalize(self, _end_all, self._idle, self.process_id)

    def take(self) -> _Worker | None:
        """A worker that waits, None where there is none."""
        while True:
            with self._lock:
                worker = self._idle.pop() if self._idle else None
            if worker is None or worker.is_alive():
                return worker
            worker.end()

    def put(self, worker: _Worker) -> None:
        """Keep a worker for the next request."""
        worker.was_used = True
        with self._lock:
            if not self._is_ended:
                self._idle.append(worker)
                return
        worker.end()

    def end(self) -> None:
        """End those that wait, and each other one when it is put back."""
        with self._lock:
            self._is_ended = True
            idle = self._idle[:]
            self._idle.clear()
        _end_all(idle, self.process_id)

    def forget(self) -> None:
        """Let go of what belongs to the process that this one was forked from."""
        for worker in self._idle:
            worker.forget()
        self._idle.clear()


def _end_all(workers: list[_Worker], process_id: int) -> None:
    if os.getpid() == process_id:
        for worker in workers:
            worker.end()


def _end(process: subprocess.Popen[bytes], process_id: int) -> None:
    if os.getpid() == process_id:
        process.kill()
        process.wait()
        _close(process)


def _close(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:  # pragma: no branch - both are pipes
            pipe.close()


class _Worker:
    """One process, which is ended with this object at the latest: Ctrl-C may come at any moment.

    Attributes:
        was_used: Whether it has answered before.
        end: Ends it, and waits until it has: it only reads, so nothing is lost.
    """

    def __init__(self, path: str) -> None:
        if not sys.executable:
            raise WorkerUnavailable("Python does not say where its program is")
        options = ["-I", "-S", *(["-B"] if sys.dont_write_bytecode else [])]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - this Python, and a program of this package
                [sys.executable, *options, _PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,  # Ctrl-C in a terminal is for this process, which ends the other
            )
        except OSError as error:
            raise WorkerUnavailable(error.strerror or str(error)) from None
        self.end = weakref.finalize(self, _end, self._process, os.getpid())
        self.was_used = False
        self._in: IO[bytes] = self._process.stdin  # type: ignore[assignment]  # it is a pipe
        self._out: IO[bytes] = self._process.stdout  # type: ignore[assignment]  # as above
        self._first = frame((os.fsencode(path), sys.path))
        if _CAN_POLL:  # pragma: no branch - pipes of Windows cannot be waited for
            os.set_blocking(self._in.fileno(), False)
            self._writable, self._readable = select.poll(), select.poll()
            self._writable.register(self._in.fileno(), select.POLLOUT)
            self._readable.register(self._out.fileno(), select.POLLIN)

    @property
    def status(self) -> int:
        """With what it ended."""
        return self._process.wait()

    def is_alive(self) -> bool:
        """Whether it has not ended by itself."""
        return self._process.poll() is None

    def send(self, content: bytes, until: float) -> None:
        """Ask.

        Raises:
            WorkerLate: It does not listen.
        """
        left = memoryview(self._first + content)
        self._first = b""
        while left:
            self._wait(self._writable if _CAN_POLL else None, until)
            try:
                left = left[os.write(self._in.fileno(), left) :]
            except BrokenPipeError:
                raise _Unheard from None

    def receive(self, until: float) -> Answer:
        """Wait for the answer.

        Raises:
            WorkerLate: It did not come in time.
            WorkerDied: It will not come.
        """
        rows: list[list[Any]] = []
        buffer = bytearray()
        while True:
            kind, value = self._frame(buffer, until)
            if kind == "rows":
                rows += map(list, value)
            elif kind == "again":
                rows = []
            else:
                return kind, value, rows

    def forget(self) -> None:
        """Let go of it without ending it."""
        self.end.detach()
        self._process.returncode = 0  # it is no child of this process, which cannot wait for it
        _close(self._process)

    def _frame(self, buffer: bytearray, until: float) -> tuple[str, Any]:
        while len(buffer) < HEAD:
            self._read(buffer, until)
        end = HEAD + length_of(buffer[:HEAD])
        while len(buffer) < end:
            self._read(buffer, until)
        value: tuple[str, Any] = unframed(memoryview(buffer)[HEAD:end].tobytes())
        del buffer[:end]
        return value

    def _read(self, buffer: bytearray, until: float) -> None:
        self._wait(self._readable if _CAN_POLL else None, until)
        content = os.read(self._out.fileno(), _CHUNK)
        if not content:
            status = self._process.wait()
            if status == WORN:
                raise _Unheard
            if _CAN_POLL and status == -signal.SIGALRM:
                raise WorkerLate  # by its own alarm: this process did not come to do it
            raise WorkerDied(status)
        buffer += content

    def _wait(self, poll: Any, until: float) -> None:
        """Wait until a pipe is ready; where pipes cannot be waited for, the worker's own alarm ends it."""
        if poll is not None and not poll.poll(max(0.0, until - monotonic()) * 1000):
            raise WorkerLate
