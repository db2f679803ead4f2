"""Measure, print, and keep the figures: what ``benchmarks/run.py`` starts in the benchmarks' environment."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from benchmarks.agent_costs import measure_agent
from benchmarks.conversations import hold_conversations
from benchmarks.figures import Figures
from benchmarks.framework_costs import measure_frameworks
from benchmarks.imports import measure_import
from benchmarks.machine import describe_machine
from benchmarks.marks import measure_marks
from benchmarks.peers import ALL_DOORS
from benchmarks.plan_checks import measure_plans
from benchmarks.proof.measure import measure_proof
from benchmarks.proof.written import write_proof
from benchmarks.report import render
from benchmarks.session_costs import measure_events, measure_memory, measure_select_latest
from benchmarks.store_costs import measure_stores
from benchmarks.tool_calls import measure_calls
from benchmarks.workflow_runs import measure_workflows

RESULTS = Path(__file__).resolve().parent / "RESULTS.md"
PARTS = (
    "marks",
    "calls",
    "plans",
    "session",
    "stores",
    "import",
    "characters",
    "proof",
    "agent",
    "frameworks",
    "workflows",
)


def main() -> int:  # noqa: PLR0912 - a branch for each part
    """Run the chosen parts. A target that is missed is reported and does not fail the run."""
    options = _options()
    parts = options.only or PARTS
    packages = {door.package for door in ALL_DOORS if door.package} | {
        "pydantic-ai-slim",
        "jsonschema",
        "json-repair",
        "bfcl-eval",
        "prefect",
        "sqlglot",
    }
    figures = Figures(machine=describe_machine(packages), quick=options.quick)
    if "marks" in parts:
        figures.marks = measure_marks(
            ALL_DOORS,
            rounds=3 if options.quick else 9,
            most_marks=50 if options.quick else 200,
            seconds_per_block=0.1 if options.quick else 0.4,
            tell=_tell,
        )
    if "calls" in parts:
        _tell("calls")
        figures.calls = measure_calls(rounds=3 if options.quick else 9, calls=300 if options.quick else 2_000)
    if "plans" in parts:
        _tell("plans")
        figures.plans = measure_plans(
            rounds=3 if options.quick else 9, small_times=20 if options.quick else 100
        )
    if "session" in parts:
        _tell("session")
        figures.events = measure_events(sessions=1 if options.quick else 5)
        figures.select_latest = measure_select_latest(repeats=3 if options.quick else 9)
        figures.memory = measure_memory()
    if "stores" in parts:
        _tell("stores")
        figures.stores = measure_stores(
            rounds=3 if options.quick else 9, marks=100 if options.quick else 1_000
        )
    if "import" in parts:
        _tell("import")
        figures.imports = measure_import(runs=5 if options.quick else 21)
    if "characters" in parts:
        _tell("characters")
        figures.conversations = hold_conversations()
    if "proof" in parts:
        _tell("proof")
        figures.proof = measure_proof()
    if "agent" in parts:
        _tell("agent")
        figures.agent = measure_agent(rounds=3 if options.quick else 9, times=30 if options.quick else 100)
    if "frameworks" in parts:
        _tell("frameworks")
        figures.frameworks = measure_frameworks(rounds=3 if options.quick else 9, calls=40)
    if "workflows" in parts:
        # The last part: a peer's threads stay behind.
        _tell("workflows")
        figures.workflows = measure_workflows(
            rounds=3 if options.quick else 9,
            shape_rounds=3 if options.quick else 5,
            work_rounds=3 if options.quick else 5,
            prefect_steps=200 if options.quick else 1_000,
        )
    report = render(figures)
    print(report, end="")
    if options.json:
        Path(options.json).write_text(json.dumps(figures.as_json(), indent=2) + "\n", encoding="utf-8")
    if options.write:
        if not options.only:
            RESULTS.write_text(report, encoding="utf-8")
        if figures.proof is not None:
            write_proof(figures.proof)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="benchmarks/run.py", description="Measure this project beside its peers."
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds and marks, for a rough look")
    parser.add_argument("--json", metavar="PATH", help="also write all figures as JSON")
    parser.add_argument(
        "--write", action="store_true", help="rewrite benchmarks/RESULTS.md, and the figures of the proof"
    )
    parser.add_argument("--only", nargs="+", choices=PARTS, help="measure these parts only")
    options = parser.parse_args()
    if options.write and (options.quick or options.only not in (None, ["proof"])):
        parser.error("--write keeps the figures of a full run, or of --only proof: leave the rest out")
    return options


def _tell(what: str) -> None:
    print(f"measuring {what} ...", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
