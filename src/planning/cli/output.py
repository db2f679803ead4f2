"""Where output goes during a run: the command's own, and what tools and their processes print."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TextIO

from planning.cli.terminal import can_redraw

__all__ = ["own_stdout"]


@contextmanager
def own_stdout() -> Iterator[TextIO]:
    """Keep standard output for the command: it writes to what this yields.

    Whatever else is printed there, by tools or by processes that they start, goes to standard error
    meanwhile. A terminal is left as it is: there, what tools print appears above the steps.
    """
    stdout = sys.stdout
    if can_redraw(stdout):
        yield stdout
        return
    try:
        number, target = stdout.fileno(), sys.stderr.fileno()
    except (OSError, ValueError, AttributeError):  # not a file: the command is called from a program
        with redirect_stdout(sys.stderr):
            yield stdout
        return
    stdout.flush()
    kept = os.dup(number)
    own = os.fdopen(os.dup(number), "w", buffering=1, encoding=stdout.encoding, errors="backslashreplace")
    os.dup2(target, number)
    try:
        yield own
    finally:
        try:
            stdout.flush()
        finally:
            os.dup2(kept, number)
            os.close(kept)
            with suppress(OSError):  # the writer has flushed it, and knows
                own.close()
