"""A process that runs a workflow in the stored session of a folder, for tests that kill it.

    python stored_worker.py FOLDER

Each call of a tool is a line in FOLDER/calls, and each completed step that the session has published a line
in FOLDER/kept; both are on the disk before the process goes on. FOLDER/begun is there when a step runs.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from run_cases import called, flow

from planning.tools import Tool
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from planning.workflow.run.records import StepChanged
from session import Session
from session.stores import SqliteStore

SESSION = "nightly"
WIDTH = 4
ONCE = ("m0", "m1", "m2")


def append(path: Path, line: str) -> None:
    """Write a line, and wait until the disk has it."""
    file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.write(file, f"{line}\n".encode())
    os.fsync(file)
    os.close(file)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def workflow() -> Workflow:
    """Rows of steps, each of which needs the row before; some must not be called twice."""
    steps = list[WorkflowStep]()
    before: tuple[str, ...] = ()
    for row, once in enumerate(ONCE):
        ids = tuple(f"s{row}{place}" for place in range(WIDTH))
        for step_id in ids:
            inputs = {"step_id": step_id, "used": [f"${{{each}.output}}" for each in before]}
            steps.append(called(step_id, *before, inputs=inputs))
        steps.append(called(once, *before, tool="send", inputs={"step_id": once}, on_failure="continue"))
        before = ids
    return flow(*steps, goal="Work through the night")


def capabilities(folder: Path) -> Capabilities:
    def noting(text: str) -> Callable[..., str]:
        def call(step_id: str, used: list[str] | None = None) -> str:
            append(folder / "calls", step_id)
            (folder / "begun").touch()
            time.sleep(0.01)
            return f"{text} {step_id} {len(used or [])}"

        return call

    return Capabilities(
        tools=[Tool("work", "", noting("did")), Tool("send", "", noting("sent"), idempotent=False)]
    )


def main(folder: Path) -> None:
    session = Session(session_id=SESSION, store=SqliteStore(folder / "plans.db"))

    def keep(event: StepChanged) -> None:
        if event.record.status == "completed":
            append(folder / "kept", event.record.step_id)

    session.bus.subscribe(StepChanged, keep)
    run_workflow(workflow(), capabilities(folder), session=session, max_parallel=WIDTH + 1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
