"""What ``import planning`` costs a program that starts, beside 0.1.0, and what the command line does."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.harness import Check, Cost, Section, at_most, elapsed, fastest, no_slower, table
from benchmarks.peers.versions import NEW, OLD, PYTHONS

__all__ = ["measure"]

HEAVY = ("pydantic", "jsonschema_rs", "asyncio", "rich", "langgraph", "typer")
"""Modules that the public names of ``planning`` should not load."""
COUNTING = (
    "import sys; before = set(sys.modules); from planning import *; added = set(sys.modules) - before; "
    f"print(len(added), *sorted(added & set({HEAVY!r})))"
)
IMPORT, USED = "import planning", "from planning import PlanningToolsSection, Toolbox"
TIMING = "from time import process_time_ns as now; began = now(); {}; print(now() - began)"
BARE, HELP = "a bare interpreter", "planning --help"
IMPORT_MILLISECONDS, HELP_MILLISECONDS = 50.0, 250.0
METHOD = """\
Milliseconds, the lowest of several fresh interpreters: processor time for the import, and wall-clock time
for a whole process."""


def measure(rounds: int) -> Section:
    """Import ``planning`` of both versions in fresh interpreters in turn, and ask for help."""
    modules, *heavy = _run(
        sys.executable, "-c", COUNTING
    ).split()  # writes the bytecode, too, for later starts
    command = str(Path(sys.executable).with_name("planning"))
    runs: dict[str, Callable[[], float]] = {
        **{
            f"{statement}, {version}": partial(_imported, python, statement)
            for statement in (IMPORT, USED)
            for version, python in PYTHONS.items()
        },
        BARE: lambda: elapsed(lambda: _run(sys.executable, "-c", "pass")),
        HELP: lambda: elapsed(lambda: _run(command, "--help")),
    }
    figures = fastest(runs, 2 * rounds)
    milliseconds = {name: figure / 1_000 for name, figure in figures.items()}
    return Section(
        "Import",
        ("session-planning",),
        [
            METHOD,
            table(["what", "ms"], [[name, each] for name, each in milliseconds.items()]),
            f"All its public names load {modules} modules; heavy libraries: {', '.join(heavy) or 'none'}.",
        ],
        [
            at_most(IMPORT, milliseconds[f"{IMPORT}, {NEW}"], IMPORT_MILLISECONDS, "ms"),
            *(
                check
                for statement in (IMPORT, USED)
                for check in no_slower(
                    statement, figures[f"{statement}, {NEW}"], figures.get(f"{statement}, {OLD}")
                )
            ),
            at_most(HELP, milliseconds[HELP], HELP_MILLISECONDS, "ms"),
            Check(
                "the public names of planning load no heavy library", ", ".join(heavy) or "none", not heavy
            ),
        ],
        [
            *(Cost(each, figures[f"{each}, {NEW}"], BARE, figures[BARE]) for each in (IMPORT, USED)),
            Cost(HELP, figures[HELP], BARE, figures[BARE]),
        ],
    )


def _imported(python: str, statement: str) -> float:
    return int(_run(python, "-c", TIMING.format(statement))) / 1_000


def _run(*command: str) -> str:
    # From an empty folder: only what is installed can be imported.
    with tempfile.TemporaryDirectory() as folder:
        return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout
