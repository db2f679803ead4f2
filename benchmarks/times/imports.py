"""What ``import planning`` costs a program that starts."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from statistics import median

from benchmarks.harness import Check, Section, at_most

__all__ = ["measure"]

HEAVY = ("pydantic", "jsonschema_rs", "asyncio", "rich", "langgraph", "typer")
"""Modules that the public names of ``planning`` should not load."""
COUNTING = (
    "import sys; before = set(sys.modules); from planning import *; added = set(sys.modules) - before; "
    f"print(len(added), *sorted(added & set({HEAVY!r})))"
)
MILLISECONDS = 60.0


def measure(rounds: int) -> Section:
    """Import ``planning`` in fresh interpreters."""
    modules, *heavy = _run("-c", COUNTING).stdout.split()  # writes the bytecode, too, which later starts find
    took = median(
        _cumulative(_run("-X", "importtime", "-c", "import planning").stderr) for _ in range(2 * rounds)
    )
    text = (
        f"`import planning` takes {took:.1f} ms, the median of {2 * rounds} fresh interpreters. All its"
        f" public names load {modules} modules. Heavy libraries among them: {', '.join(heavy) or 'none'}."
    )
    return Section(
        "Import",
        ("session-planning",),
        [text],
        [
            at_most("import planning", took, MILLISECONDS, "ms"),
            Check("import planning loads no heavy library", ", ".join(heavy) or "none", not heavy),
        ],
    )


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    # From an empty folder: only what is installed can be imported.
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
