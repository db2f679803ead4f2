"""What ``import planning`` costs a program that starts."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from statistics import median

__all__ = ["HEAVY", "ImportFigure", "measure_import"]

HEAVY = ("pydantic", "jsonschema_rs", "asyncio", "rich", "langgraph", "typer")
"""Modules that ``import planning`` should leave alone; which of them it loads is reported."""


@dataclass(frozen=True, slots=True)
class ImportFigure:
    """What one import costs.

    Attributes:
        milliseconds: The cumulative time that ``-X importtime`` reports for ``planning``; median of the runs.
        runs: How many fresh interpreters were started.
        modules: How many modules the import added.
        heavy: Which of ``HEAVY`` it loaded.
    """

    milliseconds: float
    runs: int
    modules: int
    heavy: tuple[str, ...]


def measure_import(*, runs: int) -> ImportFigure:
    """Import ``planning`` in fresh interpreters."""
    _run("-c", "import planning")  # writes the bytecode, which every later start finds
    cumulative = [_cumulative(_run("-X", "importtime", "-c", "import planning").stderr) for _ in range(runs)]
    counting = (
        "import sys; before = set(sys.modules); import planning; added = set(sys.modules) - before; "
        f"print(len(added), *sorted(added & set({HEAVY!r})))"
    )
    modules, *heavy = _run("-c", counting).stdout.split()
    return ImportFigure(median(cumulative), runs, int(modules), tuple(heavy))


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    # From an empty folder: nothing but what is installed can be imported.
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(
            [sys.executable, *arguments], cwd=folder, check=True, capture_output=True, text=True
        )


def _cumulative(report: str) -> float:
    """The milliseconds in the line of ``planning`` itself."""
    for line in report.splitlines():
        fields = line.removeprefix("import time:").split("|")
        if len(fields) == 3 and fields[2].strip() == "planning":
            return int(fields[1]) / 1_000
    raise RuntimeError("the interpreter reported no import of planning")
