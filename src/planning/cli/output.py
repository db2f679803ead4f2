"""Where output goes during a run: the command's own, and what tools and their processes print."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Final, TextIO

__all__ = ["own_stdout", "passing_lines"]

_PATIENCE: Final = 0.1  # seconds after which a line without an end is passed on as it is
_CHUNK: Final = 65_536


@contextmanager
def own_stdout() -> Iterator[TextIO]:
    """Keep standard output for the command: it writes to what this yields.

    Whatever else is printed there, by tools, by the processes that they start, or by worker processes, goes
    to standard error meanwhile.
    """
    stdout = sys.stdout
    number = _number(stdout)
    if number is None:  # not a file: the command is called from a program
        with open(os.devnull, "w", encoding="utf-8") as nowhere, redirect_stdout(sys.stderr or nowhere):  # noqa: PTH123 - no path to speak of
            yield stdout or nowhere
        return
    stdout.flush()
    kept = os.dup(number)
    own = open(os.dup(number), "w", buffering=1, encoding=stdout.encoding, errors="backslashreplace")  # noqa: SIM115, PTH123 - closed below
    try:
        _lead(number, _number(sys.stderr))
        yield own
    finally:
        try:
            stdout.flush()
        finally:
            os.dup2(kept, number)
            os.close(kept)
            with suppress(OSError):  # the writer has flushed it, and knows
                own.close()


def _lead(number: int, target: int | None) -> None:
    """Let a descriptor lead where another does; None for nowhere."""
    if target is not None:
        os.dup2(target, number)
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def _number(stream: TextIO | None) -> int | None:
    try:
        return None if stream is None else stream.fileno()
    except (OSError, ValueError):
        return None


@contextmanager
def passing_lines(streams: Sequence[TextIO], take: Callable[[str], object]) -> Iterator[None]:
    """Pass on what is printed on streams meanwhile, line by line, from a thread.

    Args:
        streams: Open files, such as ``sys.stdout``.
        take: Called with each line, without its end.
    """
    numbers = [number for stream in streams if (number := _number(stream)) is not None]
    reading, writing = os.pipe()
    kept = {number: os.dup(number) for number in numbers}
    over = threading.Event()
    thread = threading.Thread(target=_pass_on, args=(reading, over, take), name="printed lines", daemon=True)
    try:
        for number in numbers:
            os.dup2(writing, number)
        os.close(writing)
        thread.start()
        yield
    finally:
        for stream in streams:
            stream.flush()
        for number, old in kept.items():
            os.dup2(old, number)
            os.close(old)
        over.set()  # not the end of the pipe: a process that a tool has started may hold it open
        thread.join()
        os.close(reading)


def _pass_on(reading: int, over: threading.Event, take: Callable[[str], object]) -> None:
    rest = b""
    while True:
        was_over = over.is_set()
        if select.select([reading], [], [], 0 if was_over else _PATIENCE)[0]:
            chunk = os.read(reading, _CHUNK)
            if chunk:
                *whole, rest = (rest + chunk).split(b"\n")
                for line in whole:
                    take(_text(line))
                continue
            was_over = True
        if rest:
            take(_text(rest))
            rest = b""
        if was_over:
            return


def _text(line: bytes) -> str:
    return line.rstrip(b"\r").decode(errors="replace")
