"""All counts of the proof."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.conversations import hold_conversations
from benchmarks.machine import describe_machine
from benchmarks.proof.crashes import CrashFigures, measure_crashes
from benchmarks.proof.repairs import RepairFigures, measure_repairs
from benchmarks.proof.rewinds import RewindFigures, measure_rewinds
from benchmarks.proof.threads import Threaded, measure_threads

__all__ = ["ProofFigures", "measure_proof"]

PACKAGES = (
    "bfcl-eval",
    "jsonschema",
    "langchain",
    "pydantic-ai-harness",
    "session-planning",
    "weakincentives",
)


@dataclass(frozen=True, slots=True)
class ProofFigures:
    """Everything that was counted.

    Attributes:
        measured: The date, the interpreter, the versions, and the commit of the source.
        repairs: Broken calls, refused.
        characters: By tools, the characters through a model for a plan of 20 steps taken to its end.
        rewinds: Earlier plans, restored.
        crashes: Acknowledged changes, kept.
        threads: The same of four threads, in memory.
    """

    measured: dict[str, str]
    repairs: RepairFigures
    characters: dict[str, int]
    rewinds: RewindFigures
    crashes: CrashFigures
    threads: dict[str, Threaded]


def measure_proof() -> ProofFigures:
    """Count everything."""
    return ProofFigures(
        {**describe_machine(PACKAGES), "commit": _commit()},
        measure_repairs(),
        {talk.name: talk.total for talk in hold_conversations()},
        measure_rewinds(),
        measure_crashes(),
        measure_threads(),
    )


def _commit() -> str:
    """The last commit that changed what is measured."""
    run = subprocess.run(
        ["git", "log", "-1", "--format=%h", "--abbrev=9", "--", "src"],  # noqa: S607 - the git on the path
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout.strip() or "unknown"
