"""Answers a question over the annual reports of five companies: runs ``workflow.json``, and then once more.

The SQLite file is made in a temporary directory and is gone at the end.
"""

from __future__ import annotations

import sys
import tempfile
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # the repository, from wherever it is run

from examples.filings.facts import create_database
from examples.filings.tools import agents, filings_tools, handlers
from planning.workflow import (
    Capabilities,
    WorkflowResult,
    WorkflowStep,
    run_workflow,
    validate_workflow,
)
from session import Session

QUESTION = (
    "How much of its revenue did Apple spend on research in 2022, and how does that compare with its peers?"
)
WORKFLOW = Path(__file__).with_name("workflow.json")


def main(folder: Path) -> None:
    """Make the file, check the plan, run it twice in one session, and print the outcome."""
    create_database(folder / "filings.db")
    capabilities = Capabilities(filings_tools(folder / "filings.db"), handlers, agents)
    report = validate_workflow(WORKFLOW.read_bytes(), capabilities)
    if report.workflow is None or not report.ok:
        raise SystemExit(report.render())

    session = Session()
    print(f"Question: {QUESTION}\n")
    first = run_workflow(report.workflow, capabilities, session=session, user_prompt=QUESTION)
    print(f"The plan has {len(first.workflow.steps)} steps. The first run: {first.status}.")
    for step in first.workflow.steps:
        state, why = outcome(step, first)
        print(f"  {step.step_id:<13} {state:<9} {why}")
    if first.status == "failed":
        raise SystemExit("No answer: a step failed that it depends on.")
    print("\nAnswer:", *textwrap.wrap(first.memory["answer"], 100), sep="\n  ")

    again = run_workflow(report.workflow, capabilities, session=session, user_prompt=QUESTION)
    same = "the same answer" if again.memory["answer"] == first.memory["answer"] else "another answer"
    print(f"\nThe second run, in the same session: {again.status}, with {same}.")
    states = {step.step_id: outcome(step, again)[0] for step in again.workflow.steps}
    for state in dict.fromkeys(states.values()):
        print(f"  {state:<13} {', '.join(step_id for step_id in states if states[step_id] == state)}")


def outcome(step: WorkflowStep, result: WorkflowResult) -> tuple[str, str]:
    """How a step ended, and what is to be said of it."""
    if step.step_id in result.errors:
        return "failed", result.errors[step.step_id].message
    if step.status == "pending":
        lacking = [each for each in step.depends_on if each not in result.outputs]
        return "left out", f"needs {' and '.join(lacking)}"
    if step.skipped:
        return "skipped", f"{step.expected_key} is in the memory"
    return "done", step.description


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder))
