"""Values and events that the tests of a session use."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import attrs
import pytest

from session import EventBus, Session, SessionEvent, SessionView, Snapshot, ToolInvoked, Transaction, append


@dataclass(frozen=True, slots=True)
class Note:
    text: str


@dataclass(frozen=True, slots=True)
class Count:
    total: int


@dataclass(frozen=True)
class Thing:
    """A record whose field takes any value."""

    value: Any = None


@attrs.frozen
class Ping(SessionEvent):
    number: int = 0


@attrs.frozen
class LoudPing(Ping):
    """A subclass of an event."""


def ping(session: Session, number: int = 0) -> Ping:
    return Ping(number, session_id=session.session_id)


def numbers(events: tuple[Ping, ...]) -> list[int]:
    return [event.number for event in events]


def note_session(
    session_id: UUID | str | None = None, *, bus: EventBus | None = None, history: int | None = None
) -> Session:
    session = Session(session_id=session_id, bus=bus, history=history)
    session.register_reducer(Note, append)
    return session


def called(session: Session, value: object, name: str = "tool") -> ToolInvoked:
    return ToolInvoked(name, {}, None, value, session_id=session.session_id)


def in_child(work: Callable[[], object]) -> int:
    """The exit code of a forked child that does some work."""
    if pid := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    signal.alarm(30)  # what hangs ends
    try:
        work()
    except BaseException:  # noqa: BLE001 - it is printed, and the test fails
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def elsewhere(work: Callable[[], object]) -> list[object]:
    """What the work returns, or raises, in another thread; nothing when it is stuck there."""
    got: list[object] = []

    def run() -> None:
        try:
            got.append(work())
        except Exception as error:  # noqa: BLE001 - the tests look at it
            got.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(10)
    return got


def words_of(kind: type[Exception], work: Callable[..., object], *given: Any, **options: Any) -> str:
    """The message of the error that some work raises."""
    with pytest.raises(kind) as caught:
        work(*given, **options)
    return str(caught.value)


def printed(program: str, *arguments: object) -> str:
    """What another process prints, and its exit code if it fails."""
    options = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", program, *map(str, arguments)]
    done = subprocess.run(options, capture_output=True, text=True, check=False, timeout=600)
    return done.stdout + done.stderr + (f"exit code {done.returncode}" if done.returncode else "")


def collect_from_here() -> None:
    """Let garbage collections look at what is made from now on: over all that there is they take long."""
    gc.freeze()


def texts(session: Session | SessionView | Snapshot) -> list[str]:
    return [note.text for note in session.select_all(Note)]


class OnPurposeError(Exception):
    """Raised to give a transaction up, or by a subscriber or a bus."""


def give_up(session: Session, body: Callable[[Transaction], object]) -> None:
    with pytest.raises(OnPurposeError), session.transaction() as transaction:
        body(transaction)
        raise OnPurposeError
