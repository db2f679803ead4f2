"""Measure parts and print them: what ``benchmarks/run.py`` starts in the benchmarks' environment.

A part is a module with ``measure(rounds)``, which returns the ``Section`` of the results that it fills.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from benchmarks import guard, machine, picture
from benchmarks.harness import QUICK_ROUNDS, ROUNDS, Section

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "RESULTS.md"
PROOF = ("refusals", "characters", "rewinds", "crashes", "threads")
"""Parts that count, without a clock; README and docs show them."""
TIMES = (
    "marks",
    "calls",
    "documents",
    "workflows",
    "questions",
    "stores",
    "servers",
    "server",
    "frameworks",
    "imports",
    "sql",
)
PARTS = {part: f"benchmarks.proof.{part}" for part in PROOF} | {
    part: f"benchmarks.times.{part}" for part in TIMES
}
HEAD = """\
# Benchmarks

Each section names its date, commit and versions. To repeat one, run `python benchmarks/run.py PART`; `make
bench` runs all. Times are processor times unless a section says otherwise. They depend on the machine and
its load, so compare figures only within a section. Several tables name a floor: the least that the same
work takes without this library, measured in the same run.
"""


def main() -> int:
    """Measure the chosen parts. A target that is missed is reported; only ``--check`` fails for a loss."""
    options = _options()
    if options.check:
        before = guard.kept()
        if not before:
            print("No figures of a release are kept: run with --keep.", file=sys.stderr)
            return 2
        compared, is_held = guard.guarded(
            [part for part in options.parts if part in TIMES],
            lambda part: _measured(part, is_quick=options.quick).costs,
            before,
        )
        print(compared)
        return 0 if is_held else 1
    sections: dict[str, Section] = {}
    if options.write and options.parts == list(PARTS):
        RESULTS.write_text(HEAD, encoding="utf-8")  # a section whose part is gone goes, too
    for part in options.parts:
        section = _measured(part, is_quick=options.quick)
        text = section.render(machine.measured(section.packages))
        print(text, flush=True)
        if (options.write or options.keep) and section.costs:
            guard.keep(part, section.costs)
        if options.write:
            sections[part] = section
            RESULTS.write_text(replaced(RESULTS.read_text(encoding="utf-8"), text), encoding="utf-8")
    if sections.keys() >= set(PROOF):
        _write_proof({part: sections[part].data for part in PROOF if sections[part].data is not None})
    return 0


def _measured(part: str, *, is_quick: bool) -> Section:
    print(f"measuring {part} ...", file=sys.stderr)
    section: Section = import_module(PARTS[part]).measure(QUICK_ROUNDS if is_quick else ROUNDS)
    return section


def replaced(page: str, section: str) -> str:
    """The page with a section in the place of the one with its heading, or behind the last."""
    _, *old = page.split("\n## ")
    new = section.removeprefix("## ").rstrip()
    heading = new.partition("\n")[0]
    headings = [each.partition("\n")[0] for each in old]
    if heading in headings:
        old[headings.index(heading)] = new
    else:
        old.append(new)
    return "\n## ".join([HEAD, *(f"{each.rstrip()}\n" for each in old)])


def _write_proof(data: Mapping[str, object]) -> None:
    """Keep the figures that README and docs show, and draw and quote them."""
    figures = {"measured": {"date": machine.today(), "commit": machine.commit()}, **data}
    (FOLDER / "proof.json").write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    picture.write_shown(figures)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks/run.py", description="Measure this project beside its peers."
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"proof, {', '.join(PARTS)}; all unless named"
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds, for a rough look")
    parser.add_argument(
        "--write",
        action="store_true",
        help="write the sections into benchmarks/RESULTS.md (proof: README and docs, too); --keep is implied",
    )
    parser.add_argument("--keep", action="store_true", help="keep each figure beside its floor for --check")
    parser.add_argument(
        "--check",
        action="store_true",
        help="fail where a figure beside its floor is over 1.25 times the kept one",
    )
    options = parser.parse_args()
    named = [part for name in options.parts for part in (PROOF if name == "proof" else [name])]
    if unknown := [part for part in named if part not in PARTS]:
        parser.error(f"unknown part {unknown[0]}: use proof, {', '.join(PARTS)}")
    if (options.write or options.keep) and (options.quick or options.check):
        parser.error("--write and --keep are for the figures of a full run: use neither --quick nor --check")
    options.parts = list(dict.fromkeys(named)) or list(PARTS)
    return options


if __name__ == "__main__":
    sys.exit(main())
