"""Ctrl-C while the ``planning`` command is loaded: exit code 130 and no traceback, as later.

Nothing is loaded before this, and it loads nothing.
"""

import os
import sys


def leave_quietly(kind: type[BaseException], *error: object) -> None:
    """Be the ``sys.excepthook`` of the command."""
    if issubclass(kind, KeyboardInterrupt):
        os._exit(130)
    sys.__excepthook__(kind, *error)  # type: ignore[arg-type]  # the rest is passed on as it is


_program = "".join(sys.argv[:1])  # "-m" until the module of python -m is loaded
if _program.endswith("/planning") or (_program == "-m" and " -m planning" in " ".join(sys.orig_argv)):
    sys.excepthook = leave_quietly
