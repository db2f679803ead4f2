"""A process with an open store that forks, in rounds; each round says how many writes must be there after it.

``python forking.py ROUNDS WRITES FILE PLACE...`` fails where one is not there.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import served_calls
from session_records import Note

from session import Session, TransactionError, append
from session.stores import Store

Work = Callable[[], object]


def opened(place: list[str], session_id: str) -> Session:
    session = Session(session_id=session_id, store=served_calls.opened(place, 30))
    session.register_reducer(Note, append)
    return session


def write(session: Session, name: str, count: int) -> None:
    for number in range(count):
        session.dispatch(Note(f"{name} {number}"))


def ended(*waits: Work) -> None:
    for wait in waits:
        wait()


def store_of(session: Session) -> Store:
    assert session.store is not None
    return session.store


def help_out(writes: int, go: Path, name: str, place: list[str]) -> None:
    """What the process beside does: it writes, and closes its store."""
    session = opened(place, name)
    go.touch()
    write(session, "process", writes)
    store_of(session).close()


class Forking:
    """What a round has: a session with one note, another one, and a process beside."""

    name: str
    session: Session
    other: Session

    def __init__(self, writes: int, go: Path, place: list[str]) -> None:
        self.writes, self.go, self.place = writes, go, place
        self._is_beside = False

    def begin(self, name: str) -> None:
        self.go.unlink(missing_ok=True)
        self._is_beside = False
        self.name = name
        self.session, self.other = self.opened(), opened(self.place, f"{name}-other")
        self.session.dispatch(Note("before"))

    def opened(self) -> Session:
        return opened(self.place, self.name)

    def beside(self) -> Work:
        """Let the other process write at the same time; returns what waits for its end."""
        self._is_beside = True
        words = ("help", str(self.writes), str(self.go), self.name, *self.place)
        process = subprocess.Popen([sys.executable, __file__, *words])

        def wait() -> None:
            assert process.wait() == 0

        return wait

    def fork(self, work: Work | None = None) -> Work:
        pid = os.fork()
        if not pid:
            signal.alarm(60)  # what hangs ends
            try:
                (work or self.child)()
            except BaseException:  # noqa: BLE001 - it is printed, and the round fails
                traceback.print_exc()
                os._exit(1)
            os._exit(0)

        def wait() -> None:
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0

        return wait

    def child(self) -> None:
        while self._is_beside and not self.go.exists():
            time.sleep(0.001)
        self.write("child")
        write(self.other, "child", 1)

    def write(self, name: str = "parent") -> None:
        write(self.session, name, self.writes)


def closed(here: Forking) -> int:
    store_of(here.other).close()
    child = here.fork()
    store_of(here.session).close()
    ended(here.beside(), child)
    return 2 * here.writes


def another_thread_writes(here: Forking) -> int:
    stop, written = threading.Event(), list[int]()

    def write_on() -> None:
        while not stop.is_set():
            here.session.dispatch(Note("thread"))
            written.append(1)

    thread = threading.Thread(target=write_on)
    thread.start()
    ended(here.beside(), *(here.fork() for _ in range(3)))
    stop.set()
    thread.join()
    return 4 * here.writes + len(written)


def another_thread_is_in_a_transaction(here: Forking) -> int:
    begun, go = threading.Event(), threading.Event()

    def hold() -> None:
        with here.session.transaction() as transaction:
            transaction.dispatch(Note("held"))
            begun.set()
            go.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    begun.wait()
    child = here.fork()  # waits for the lock, which is still the thread's
    time.sleep(0.05)
    go.set()
    thread.join()
    ended(here.beside(), child)
    return 2 * here.writes + 1


def its_own_transaction(here: Forking) -> int:
    def refused() -> None:
        try:
            transaction.__exit__(None, None, None)
        except TransactionError as error:
            expected = "this process was forked inside the transaction, which is its parent's"
            assert str(error) == expected, error
        else:
            raise AssertionError("the child committed what is its parent's")
        here.child()

    transaction = here.session.transaction()
    transaction.__enter__().dispatch(Note("parent"))
    child = here.fork(refused)
    transaction.__exit__(None, None, None)
    child()
    return 1 + here.writes


def children_of_children(here: Forking) -> int:
    def child_and_grandchild() -> None:
        here.child()
        grandchild = here.fork()
        here.write("child")
        grandchild()

    child = here.fork(child_and_grandchild)
    here.write()
    child()
    return 4 * here.writes


def a_daemon_whose_parent_ends(here: Forking) -> int:
    def daemon() -> None:
        time.sleep(0.05)
        here.child()

    read, written = os.pipe()
    if not os.fork():
        os.close(read)
        here.write()
        here.fork(daemon)
        sys.exit()  # with all that an interpreter closes at its end
    os.close(written)
    ended(here.beside())
    assert os.read(read, 1) == b""  # the daemon has ended
    os.close(read)
    return 3 * here.writes


KINDS = (
    *(closed, another_thread_writes, another_thread_is_in_a_transaction),
    *(its_own_transaction, children_of_children, a_daemon_whose_parent_ends),
)


def main(rounds: int, writes: int, go: Path, place: list[str]) -> None:
    here = Forking(writes, go, place)
    for number in range(rounds):
        for kind in KINDS:
            here.begin(f"{kind.__name__}-{number}")
            expected = 1 + kind(here)
            session = here.opened()
            there = len(session.select_all(Note))
            assert there == session.version == expected, (here.name, there, session.version, expected)
            assert store_of(session).verify(here.name) == expected


if __name__ == "__main__":
    first, number, file, *where = sys.argv[1:]
    if first == "help":
        help_out(int(number), Path(file), where[0], where[1:])
    else:
        main(int(first), int(number), Path(file), where)
