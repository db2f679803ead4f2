"""Random snapshots, read and restored."""

from __future__ import annotations

from collections.abc import Iterator

from promises import demand, demand_readable

from planning import Plan, PlanningToolsSection, Toolbox
from session import Session, Snapshot, SnapshotError, select_latest

WORDS = r"""
null true false NaN 1e999 -1e999 "version" "session_id" "created_at" "tags" "slices" "steps"
"planning.model:Plan" "objective" "status" "step_id" "title" "details" "notes" "active" "S001"
"subprocess:Popen" "2026-01-01T00:00:00+00:00" "run-7" "__class__"
"""
TOKENS = (*'[]{},:"\\0-1', *WORDS.split())


def check(text: str) -> None:
    """Read one snapshot, and restore it where it is one.

    Raises:
        BrokenPromise: A promise is not kept.
    """
    try:
        snapshot = Snapshot.from_json(text)
    except SnapshotError as error:
        demand_readable(str(error))
        demand(len(str(error)) <= 1_000, "a refusal of a snapshot is short")
        return
    demand(
        Snapshot.from_json(snapshot.to_json()) == snapshot, "what was read is written, and reads back equal"
    )
    session = Session()
    section = PlanningToolsSection(session=session)
    try:
        session.rollback(snapshot)
    except SnapshotError as error:
        demand_readable(str(error))
        demand(select_latest(session, Plan) is None, "a snapshot that is refused changes nothing")
        return
    plan = select_latest(session, Plan)
    demand(len(session.select_all(Plan)) <= 1, "a session has one plan at most")
    if plan is not None:
        ids = [step.step_id for step in plan.steps]
        demand(len(set(ids)) == len(ids), "an id is given to one step")
    result = Toolbox(section.tools()).call("planning_read_plan")
    demand(result.success is (plan is not None), "a plan that was restored can be read")
    demand_readable(result.message)


def corpus() -> Iterator[str]:
    """What sessions write."""
    session = Session(tags={"agent": "triage"})
    section = PlanningToolsSection(session=session)
    toolbox = Toolbox(section.tools())
    yield session.snapshot().to_json()
    toolbox.call("planning_setup_plan", {"objective": "Goal", "initial_steps": ["One", "Two"]})
    toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done", "note": "seen\nit"})
    yield session.snapshot().to_json()
    yield session.snapshot().to_json(indent=1).replace("S002", "S001")
