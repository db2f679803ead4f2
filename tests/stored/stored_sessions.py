"""The sessions that each release writes once into ``tests/stored``, for every later release to read."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import attrs

from planning import (
    ApprovePlan,
    Plan,
    PlanningToolsSection,
    PlanPolicy,
    RejectPlan,
    Toolbox,
    plan_text,
    plan_to_dict,
    register_plan,
    tool,
)
from planning.workflow import Capabilities, Workflow, run_workflow, validate_workflow
from planning.workflow.run.records import register_workflow
from session import Session, SessionEvent, append
from session.stores import Store

POLICY = PlanPolicy(evidence="required", approval=True, dependencies=True, batch_marks=True, agent_edits=True)
NAMES = ("plain", "plain:fork", "steered", "values", "run")
SETUP = {
    "objective": "Fix the login",
    "initial_steps": ["Reproduce it", {"title": "Fix it", "details": "In auth.py"}, "Test it"],
}
SEARCH = {"type": "tool", "name": "search", "inputs": {"query": "${user_prompt}"}}
FETCH = {"type": "tool", "name": "fetch", "inputs": {"url": "${find.output.pages[0]}"}}
DOCUMENT = {
    "schema_version": 2,
    "goal": "Report the news",
    "steps": [
        {"step_id": "find", "description": "Find pages", **SEARCH},
        {"step_id": "read", "description": "Read the first", "depends_on": ["find"], **FETCH},
    ],
}


class Colour(Enum):
    RED = "red"
    BLUE = ("b", 2)


@dataclass(frozen=True)
class Inner:
    name: str
    when: datetime | None = None


@dataclass(frozen=True)
class Sample:
    """A value of every kind that a store keeps."""

    text: str = 'é e\u0301 "quoted" \u2028'
    numbers: tuple[int | float, ...] = (0, -1, 10**30, 0.1, 1e300)
    truth: tuple[bool | None, ...] = (True, False, None)
    moments: tuple[date | time, ...] = (
        datetime(2026, 2, 28, 23, 59, 59, 999999, UTC),
        datetime(2026, 2, 28, 12, 0, tzinfo=timezone(timedelta(hours=-3, minutes=-30))),
        date(2026, 2, 28),
        time(23, 59),
    )
    decimal: Decimal = Decimal("1.10")
    uuid: UUID = UUID(int=7)
    colours: tuple[Colour, ...] = (Colour.RED, Colour.BLUE)
    inner: Inner = Inner("a", datetime(2026, 1, 1))
    sets: frozenset[str] = frozenset({"a", "b"})
    mapping: dict[str, Any] = field(default_factory=lambda: {"!": [1, (2, {"a": None})], "items": {"x"}})


@dataclass(frozen=True)
class Tally:
    total: int


@attrs.frozen
class Said(SessionEvent):
    """An event that changes no slice."""

    what: Any = None


def count(slice_: tuple[Tally, ...], tally: Tally) -> tuple[Tally, ...]:
    """A reducer that adds up."""
    return (Tally(tally.total + (slice_[-1].total if slice_ else 0)),)


@tool(idempotent=False)
def search(query: str) -> dict:  # type: ignore[type-arg]  # as a user writes it
    """Search the web."""
    return {"pages": ["https://example.org"], "query": query}


@tool
def fetch(url: str) -> str:
    """Read a page."""
    raise OSError(f"{url} does not answer")


def opened(store: Store | None, name: str) -> Session:
    """A session of the store, or in memory, with the reducers that it was written with."""
    session = Session(session_id=name, store=store, tags={"user": "ada"})
    register_plan(session, POLICY if name == "steered" else None)
    register_workflow(session)
    session.register_reducer(Sample, append)
    session.register_reducer(Tally, count)
    session.register_types(Said, Inner, Colour)
    return session


def toolbox_of(session: Session) -> Toolbox:
    policy = POLICY if session.session_id == "steered" else None
    return Toolbox([*PlanningToolsSection(session=session, policy=policy).tools(), search], session=session)


def write(store: Store) -> None:
    plain = opened(store, "plain")
    call = toolbox_of(plain).call
    call("planning_setup_plan", SETUP, context={"idempotency_key": "k1", "actor": "scout", "call_id": "c1"})
    done = {"step_id": "S001", "status": "done", "note": "twice"}
    call("planning_mark_step", done, context={"call_id": "c2"})
    call("planning_mark_step", {"step_id": "S009", "status": "done"})
    call("planning_read_plan", {})
    call("planning_add_step", {"steps": ["Release it"]})
    taken = plain.snapshot()
    plain.reset()
    plain.rollback(taken)
    call("planning_update_step", {"step_id": "S002", "title": "Fix it well"})
    call("planning_mark_step", {"step_id": "S002", "status": "done"}, context={"idempotency_key": "k2"})
    plain.rewind(2, actor="host")
    call("planning_mark_step", {"step_id": "S002", "status": "in_progress"})
    plain.publish(Said(Sample()))
    plain.claim("mailed the report")
    toolbox_of(plain.fork(5, session_id="plain:fork")).call("planning_clear_plan", {})

    steered = opened(store, "steered")
    call = toolbox_of(steered).call
    call("planning_setup_plan", {"objective": "Ship 2.1", "initial_steps": ["Look", "Test", "Ship"]})
    steered.dispatch(RejectPlan("Test it first"))
    call("planning_add_step", {"steps": ["Announce"]})
    steered.dispatch(ApprovePlan())
    call("search", {"query": "2.1"}, context={"call_id": "e1"})
    call("planning_mark_step", {"step_id": "S001", "status": "done", "evidence": ["e1"]})
    call("planning_add_step", {"steps": ["More"]})

    values = opened(store, "values")
    with values.transaction(actor="both", call_id="c9") as transaction:
        transaction.dispatch(Sample())
        transaction.publish(Said([Colour.BLUE, Inner("b")]))
    for total in range(70):  # a checkpoint is written on the way
        values.dispatch(Tally(total))

    run = opened(store, "run")
    workflow = validate_workflow(DOCUMENT, Capabilities(tools=[search, fetch])).workflow
    assert workflow is not None
    run_workflow(workflow, Capabilities(tools=[search, fetch]), session=run, user_prompt="What is new?")


def read(store: Store, name: str) -> dict[str, Any]:
    """All that is read of a session, as JSON has it."""
    assert store.verify(name) > 0
    session = opened(store, name)
    plans = [session.at(version).select_latest(Plan) for version in range(session.version + 1)]
    workflow = session.select_latest(Workflow)
    found: dict[str, Any] = {
        "tags": dict(session.tags),
        "plan": plan_to_dict(session),
        "plans": [plan and plan_text(plan) for plan in plans],
        "samples": [each == Sample() for each in session.select_all(Sample)],
        "tallies": [each.total for each in session.select_all(Tally)],
        "workflow": workflow and [[step.step_id, step.status] for step in workflow.steps],
        "history": [
            [change.version, change.actor, change.call_id, [type(event).__name__ for event in change.events]]
            for change in session.history()
        ],
    }
    return found
