"""The ``planning`` command: check, draw and run workflows, replay transcripts, print prompts and tools."""

from __future__ import annotations

import io
import os
import signal
import sys

__all__ = ["main"]

_NEEDS_EXTRA = "planning: the command needs typer and rich; run pip install 'session-planning[cli]'\n"


def main() -> None:
    """Run the command with the arguments of this process, and leave with its exit code."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115, PTH123 - until the end
    try:
        try:
            import rich  # noqa: F401 - an extra: only the command needs it
            import typer  # noqa: F401 - the same extra
        except ModuleNotFoundError:
            sys.stderr.write(_NEEDS_EXTRA)
            sys.exit(2)
        from planning.cli.app import app

        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what is open is closed
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # what an encoding cannot hold is escaped
        app(prog_name="planning")
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        # What is read is checked where it is read: this is the output, on a full disk for one.
        sys.stderr.write(f"planning: cannot write the output: {error.strerror}\n")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
