"""A server over stdio as a fork of this process, which has all that it imports."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, Any, Self

from planning.cli import app, main, mcp_server
from planning.integrations.mcp import build_server, serve_stdio

__all__ = ["Forked"]

for _ in (app, mcp_server):  # what main() would import in each fork
    build_server()


class Forked:
    """The ``planning`` command, or a server of tools, in a fork with pipes for its standard streams."""

    def __init__(self, *arguments: str, serving: Sequence[Any] = ()) -> None:
        theirs_in, ours_in = os.pipe()
        ours_out, theirs_out = os.pipe()
        ours_errors, theirs_errors = os.pipe()
        ours, theirs = (ours_in, ours_out, ours_errors), (theirs_in, theirs_out, theirs_errors)
        self._pid = os.fork()
        if self._pid == 0:
            try:
                for number, pipe in enumerate(theirs):
                    os.dup2(pipe, number)
                for each in (*ours, *theirs):
                    os.close(each)
                code = _run(arguments, serving)
            except BaseException:  # noqa: BLE001 - a child must not return to the tests
                code = 99
            os._exit(code)
        for each in theirs:
            os.close(each)
        self.input: IO[bytes] = open(ours_in, "wb", buffering=0)  # noqa: SIM115, PTH123 - until the end
        self.output: IO[bytes] = open(ours_out, "rb")  # noqa: SIM115, PTH123 - the same
        self.errors: IO[bytes] = open(ours_errors, "rb")  # noqa: SIM115, PTH123 - the same
        self._code: int | None = None

    def send(self, data: bytes) -> None:
        """Write to its standard input, which it may have closed."""
        with suppress(BrokenPipeError):
            self.input.write(data)

    def signal(self, number: signal.Signals) -> None:
        os.kill(self._pid, number)

    def wait(self) -> int:
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._code

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._code is None:
            self.signal(signal.SIGKILL)
            self.wait()
        for each in (self.input, self.output, self.errors):
            each.close()


def _run(arguments: Sequence[str], serving: Sequence[Any]) -> int:
    """Be the process of the command, or of the server."""
    signal.alarm(60)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the end of the process closes them
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115 - the same
    sys.argv = ["planning", *arguments]
    try:
        asyncio.run(serve_stdio(build_server(serving))) if serving else main()
    except SystemExit as over:
        return over.code if isinstance(over.code, int) else 1
    return 0
