"""Version 0.1.0 and this one, each in a process of its own that times the same doors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import table

__all__ = ["NEW", "OLD", "PYTHONS", "compared", "doors"]

ROOT = Path(__file__).parents[2]
OLD, NEW = "0.1.0", "this version"
PYTHONS = {OLD: str(ROOT / ".venvs" / "bench-0.1.0" / "bin" / "python"), NEW: sys.executable}
"""The interpreter of each; ``benchmarks/run.py`` makes that of 0.1.0 where the repository has its commit."""
if not Path(PYTHONS[OLD]).exists():
    del PYTHONS[OLD]


class _Process:
    """A version that runs until its input ends."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, "-m", "benchmarks.peers.both"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def time(self, door: str, times: int) -> float:
        """Microseconds of one call of a door."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the process of a version has no pipes")
        self._process.stdin.write(f"{door} {times}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process of a version ended at {door!r}: see its error above")
        return float(answer)

    def close(self) -> None:
        self._process.communicate()


@contextmanager
def doors(times: Mapping[str, int]) -> Iterator[dict[tuple[str, str], Callable[[], float]]]:
    """The doors of both versions as runs: by version and door, with how many calls to time in a round."""
    processes = {version: _Process(python) for version, python in PYTHONS.items()}
    try:
        yield {
            (version, door): partial(process.time, door, each)
            for door, each in times.items()
            for version, process in processes.items()
        }
    finally:
        for process in processes.values():
            process.close()


def compared(figures: Mapping[tuple[str, Any], float], doors: Iterable[str]) -> str:
    """A table of the doors: microseconds in 0.1.0, where it could be measured, and now."""
    rows: list[list[str | float]] = []
    for door in doors:
        old, new = figures.get((OLD, door)), figures[NEW, door]
        rows.append([door, "" if old is None else old, new, "" if old is None else new / old])
    return table(["both versions", OLD, NEW, f"times {OLD}"], rows)
