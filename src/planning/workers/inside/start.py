"""The beginning of a worker process, and what keeps it from outliving its use."""

from __future__ import annotations

import _thread
import os
import sys
from contextlib import suppress
from importlib import import_module

from .channel import Channel

__all__ = ["main"]

_LOOK = 1.0
"""Seconds between two looks whether the parent process is still there."""


def main() -> None:  # pragma: no cover - in a process of its own
    """Serve the parent process until it is gone.

    The arguments of the process are the id of its parent, and a folder and a module in it whose
    ``serve(channel, given)`` answers requests, with the first message as ``given``.
    """
    parent, folder, module = sys.argv[1:]
    channel = Channel(os.dup(0))
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - pathlib takes long to load
        os.dup2(nothing.fileno(), 0)  # what reads from stdin must not read messages
    with suppress(RuntimeError):  # no memory for a thread
        _thread.start_new_thread(_end_with, (channel, int(parent)))  # threading takes long to load
    sys.path.insert(0, folder)
    serve = import_module(module).serve
    del sys.path[0]
    with suppress(EOFError, ConnectionError):
        serve(channel, channel.receive())


def _end_with(channel: Channel, parent: int) -> None:  # pragma: no cover - ends the process that runs it
    """End this process when its parent ends, also in the middle of a job, where the GIL is released."""
    channel.wait_for_end(parent, _LOOK)
    os._exit(0)
