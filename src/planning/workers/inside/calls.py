"""A worker that answers each request by calling one function, in a copy of the program's environment."""

from __future__ import annotations

import pickle
import signal
import sys
from contextlib import suppress
from multiprocessing import spawn

from .channel import Channel

__all__ = ["serve"]


def serve(channel: Channel, given: bytes) -> None:  # pragma: no cover - in a process of its own
    """Answer requests until there are no more.

    Args:
        channel: Where they come from.
        given: Two pickles in one: the environment as ``multiprocessing`` takes it to another process (its
            paths, its main module), and the pickle of the function, which can be read only there.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program ends its workers itself
    environment, function = pickle.loads(given)  # noqa: S301 - the program that started this process wrote it
    spawn.prepare(environment)
    answer = pickle.loads(function)  # noqa: S301 - as above
    channel.send(b"ready")
    while True:
        content = answer(channel.receive())
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):  # closed, or replaced by anything
                stream.flush()  # this process may be killed before it could do so at its end
        channel.send(content)
