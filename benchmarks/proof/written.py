"""The stored figures of the proof: as data, as a section of the results, and in the README."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.proof.measure import ProofFigures
from benchmarks.proof.report import HEADING, proof_section
from benchmarks.proof_picture import write_shown

__all__ = ["write_proof"]

FOLDER = Path(__file__).resolve().parent.parent


def write_proof(figures: ProofFigures) -> None:
    """Write the figures, their section in place of the one before, and what the README shows of them."""
    data = asdict(figures)
    (FOLDER / "proof.json").write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    write_shown(data)
    results = FOLDER / "RESULTS.md"
    before, _, rest = results.read_text(encoding="utf-8").partition(f"{HEADING}\n")
    behind = rest.partition("\n## ")
    section = "\n".join(proof_section(figures)) + "\n"
    after = f"\n## {behind[2]}" if behind[1] else ""
    results.write_text(f"{before.rstrip()}\n\n{section}{after}", encoding="utf-8")
