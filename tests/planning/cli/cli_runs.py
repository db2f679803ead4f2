"""Runs of the command, terminals to run it in, and transcripts to run it on."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import shlex
import signal
import struct
import subprocess
import sys
import termios
import warnings
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from plan_findings import stored_text
from rich.console import Console, RenderableType
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from planning.cli.app import app
from planning.workflow.run.records import StepRecord

ROOT = Path(__file__).parents[3]
ERASED_LINE = "\x1b[2K"
ROWS = 40  # of a terminal
TRIAGE = ROOT / "examples" / "triage.jsonl"
TRIAGE_ANTHROPIC = ROOT / "examples" / "triage-anthropic.jsonl"


def run(*arguments: str, stdin: str | bytes | None = None) -> str:
    """What a run of the command shows: its exit code and both of its outputs."""
    result = CliRunner().invoke(app, arguments, input=stdin, prog_name="planning", catch_exceptions=False)
    shown = f"exit code {result.exit_code}\n"
    if result.stderr:
        shown += f"--- stderr\n{result.stderr}"
    return shown + (f"--- stdout\n{result.stdout}" if result.stdout else "")


def refused(reason: str) -> str:
    """What a run shows that is refused."""
    return f"exit code 2\n--- stderr\nplanning: {reason}\n"


def printed(*arguments: str, stdin: str | bytes | None = None) -> Any:
    """The JSON that a run prints, and nothing else."""
    shown = run(*arguments, stdin=stdin)
    assert shown.startswith("exit code 0\n--- stdout\n"), shown
    return json.loads(shown.removeprefix("exit code 0\n--- stdout\n"))


def runs(commands: Iterable[str], before: str = "") -> str:
    """What several commands show, each below its line."""
    return "".join(f"-- {each}\n{run(*shlex.split(before + each))}" for each in commands)


def commands_in(snapshot: SnapshotAssertion) -> list[str]:
    """The commands of a stored snapshot, each above what it shows: see ``stored_text``."""
    lines = stored_text(snapshot).splitlines()
    return [line.removeprefix("-- ") for line in lines if line.startswith("-- ")]


_PIPES: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def in_process(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """A run of the command as a process."""
    command = [sys.executable, "-m", "planning", *arguments]
    return subprocess.run(command, check=False, **(_PIPES | options))


def started(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """The command as a process that ends at Ctrl-C, its outputs in pipes."""

    def heed_interrupts() -> None:  # where the tests run in the background, a shell has them ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    command = [sys.executable, "-m", "planning", *arguments]
    return subprocess.Popen(command, preexec_fn=heed_interrupts, **(_PIPES | options))  # noqa: PLW1509 - it does nothing else


def written_in_terminal(columns: int, *arguments: str, typed: str = "", **environment: str) -> str:
    """What the command writes in a terminal of so many columns; it succeeds, or refuses the plan."""
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    child = _forked(arguments, theirs, {"PATH": os.environ["PATH"], "TERM": "xterm", **environment})
    os.close(theirs)
    written = b""
    try:
        while read := os.read(ours, 65_536):
            written += read
    except OSError:  # that is how a terminal says that the other end is closed
        os.close(ours)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) in {0, 1, 2}, written
    return written.decode().replace("\r\n", "\n")


def _forked(arguments: tuple[str, ...], terminal_end: int, environment: dict[str, str]) -> int:
    """Run the command in a fork of this process, which has imported it already; returns its process id."""
    with warnings.catch_warnings(action="ignore"):  # of the other threads, which the fork leaves behind
        child = os.fork()
    if child:
        return child
    code, encoding = 70, environment.get("PYTHONIOENCODING", "utf-8")
    try:
        os.environ.clear()
        os.environ.update(environment)
        for stream in range(3):
            os.dup2(terminal_end, stream)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(stream, mode, encoding=encoding) for stream, mode in enumerate("rww")
        )
        sys.argv = ["planning", *arguments]
        from planning.cli import main

        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def in_terminal(columns: int, *arguments: str, **environment: str) -> str:
    """The same, with what acts on the terminal spelled out."""
    return written_in_terminal(columns, *arguments, **environment).replace("\x1b", "<ESC>")


def terminal(file: io.StringIO, width: int, height: int = 24) -> Console:
    """A terminal without colours that keeps what is written to it in a file."""
    options: Any = {"force_terminal": True, "color_system": None, "legacy_windows": False, "_environ": {}}
    return Console(file=file, width=width, height=height, **options)


def plain(text: str) -> str:
    """A text without the terminal's own sequences, and without the blanks that fill its lines."""
    for sequence in ("\x1b[?25l", "\x1b[?25h", ERASED_LINE, "\x1b[1A", "\r"):
        text = text.replace(sequence, "")
    return "".join(f"{line.rstrip()}\n" for line in text.split("\n")).rstrip() + "\n"


def left_in(text: str) -> str:
    """What a terminal shows at the end of a text: all behind the last line that was erased."""
    return plain(text.rsplit(ERASED_LINE, 1)[-1])


def drawn(renderable: RenderableType, width: int = 80, height: int = 24) -> str:
    """What a terminal shows of something."""
    file = io.StringIO()
    terminal(file, width, height).print(renderable)
    return plain(file.getvalue())


class Clock:
    """A time that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 2, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def go_on(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def record(self, step_id: str, status: str, **fields: object) -> StepRecord:
        """A change of a step of a run at this time."""
        at = self.now.isoformat()
        return StepRecord(run_id="r", step_id=step_id, status=status, at=at, **fields)  # type: ignore[arg-type] # the tests know the words


def said(*calls: tuple[str, object]) -> dict[str, Any]:
    """An assistant's message in the chat-completions form, with calls as (tool, arguments)."""
    functions = [
        {"name": name, "arguments": given if isinstance(given, str) else json.dumps(given)}
        for name, given in calls
    ]
    sent = [
        {"id": f"call_{number}", "type": "function", "function": function}
        for number, function in enumerate(functions, start=1)
    ]
    return {"role": "assistant", "content": None, "tool_calls": sent}


def lines(*messages: object) -> str:
    """Messages as a transcript, one a line."""
    return "".join(json.dumps(message) + "\n" for message in messages)
