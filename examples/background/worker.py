"""A worker that keeps its plan in a store: killed and started again, it resumes where it was.

Run it as ``python worker.py plans.db``, and beside it ``planning watch plans.db report``.
"""

from __future__ import annotations

import sys
import time

from planning import Plan, PlanningToolsSection, Toolbox
from session import Session, select_latest
from session.stores import SqliteStore

STEPS = ["Collect the figures", "Compare them with last year", "Draw the chart", "Write the summary"]


def work(path: str) -> None:
    """Do what the plan says is next, until nothing is."""
    session = Session(session_id="report", store=SqliteStore(path))
    toolbox = Toolbox(PlanningToolsSection(session=session).tools())
    if select_latest(session, Plan) is None:
        toolbox.invoke("planning_setup_plan", {"objective": "Report on the year", "initial_steps": STEPS})
    while (plan := select_latest(session, Plan)) and (step := plan.next_step):
        if step.status == "pending":
            toolbox.invoke("planning_mark_step", {"step_id": step.step_id, "status": "in_progress"})
        time.sleep(0.2)  # here an agent would call a model and its tools
        toolbox.invoke("planning_mark_step", {"step_id": step.step_id, "status": "done"})


if __name__ == "__main__":
    work(sys.argv[1])
