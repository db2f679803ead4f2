"""The ``planning`` command: check plans, replay transcripts, print schemas, prompts and tool definitions."""

from __future__ import annotations

import io
import os
import signal
import sys

__all__ = ["main"]

_NEEDS_EXTRA = "planning: the command needs typer and rich; run pip install 'session-planning[cli]'\n"


def main() -> None:
    """Run the command with the arguments of this process, and leave with its exit code."""
    try:
        import rich  # noqa: F401 - an extra: only the command needs it
        import typer  # noqa: F401 - the same extra
    except ModuleNotFoundError:
        sys.stderr.write(_NEEDS_EXTRA)
        sys.exit(2)
    try:
        from planning.cli.app import app

        _tame_streams()
        app(prog_name="planning")
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        # What is read is checked where it is read: this is the output, on a full disk for one.
        sys.stderr.write(f"planning: the output could not be written: {error.strerror}\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _tame_streams() -> None:
    """End quietly when the reader of a pipe is gone; escape what an output's encoding cannot hold."""
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # safe here: the command opens no sockets
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
