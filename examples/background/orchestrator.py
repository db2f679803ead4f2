"""Watches the plan of a worker in another process, kills the worker half-way, and starts it again.

The worker resumes where it was: a change of its plan is in the store before the call that makes it returns.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from planning import Plan, PlanChanged, PlanningToolsSection
from session import Session, select_latest
from session.stores import SqliteStore

WORKER = Path(__file__).with_name("worker.py")


def main(path: Path) -> None:
    """Print each change of the worker's plan, until the plan is completed."""
    store = SqliteStore(path)
    session = Session(session_id="report", store=store)
    PlanningToolsSection(session=session)  # registers what the plan is made of
    session.bus.subscribe(PlanChanged, lambda event: print(f"  {event.version:>2}  {event.diff}"))

    worker, is_first = start(path), True
    for _ in store.watch("report", after=0):
        session.refresh()  # takes over the change, which publishes it on the bus
        plan = select_latest(session, Plan)
        if plan is not None and plan.status == "completed":
            break
        if is_first and plan is not None and plan.steps[2].status == "in_progress":
            worker.kill()
            worker.wait()
            done, total = plan.progress
            print(f"The worker is killed with SIGKILL: {done} of {total} steps are done.")
            worker, is_first = start(path), False
    worker.wait()
    print(f"The plan is completed, after {session.version} changes.")


def start(path: Path) -> subprocess.Popen[bytes]:
    """Start the worker in a process of its own."""
    print("The worker starts.")
    return subprocess.Popen([sys.executable, str(WORKER), str(path)])  # noqa: S603 - this interpreter, our file


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(folder) / "plans.db")
