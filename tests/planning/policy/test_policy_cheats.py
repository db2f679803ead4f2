"""Conversations in which a scripted agent cheats: what the policy stops, and what the model reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from planning import ApprovePlan, Plan, PlanningToolsSection, PlanPolicy, RejectPlan, Toolbox, plan_to_dict
from planning.tools import tool
from session import Session

STEPS = ("Write the parser", "Test the parser", "Ship it")
PROVEN = PlanPolicy(evidence="required")


@tool
def edit(file: str) -> str:
    """Edit a file."""
    return f"{file} edited"


@tool
def run_tests() -> dict[str, Any]:
    """Run the tests, which fail."""
    return {"success": False, "error": "2 tests failed"}


@tool(read_only=True)
def search(text: str) -> str:
    """Search."""
    return f"nothing about {text}"


class Conversation:
    """Records each call of an agent beside what it reads."""

    def __init__(self, policy: PlanPolicy) -> None:
        self.session = Session()
        self.section = PlanningToolsSection(session=self.session, policy=policy)
        tools = [*self.section.tools(), edit, run_tests, search]
        self.toolbox = Toolbox(tools, session=self.session)
        self.lines: list[str] = []

    def call(self, name: str, /, **arguments: Any) -> None:
        known = name if name in self.toolbox.tools else f"planning_{name}"
        result = self.toolbox.call(known, arguments)
        said = "ok" if result.success else "no"
        self.lines.append(f"{name} {json.dumps(arguments)}\n  {said}: {result.message}")

    def setup(self, *steps: Any) -> None:
        self.call("setup_plan", objective="Ship the parser", initial_steps=list(steps or STEPS))

    def mark(self, step_id: Any, status: str, *evidence: str) -> None:
        more = {"evidence": list(evidence)} if evidence else {}
        self.call("mark_step", step_id=step_id, status=status, **more)

    def host(self, command: Any) -> None:
        self.session.dispatch(command)
        self.lines.append(f"(the host: {command})")

    def done(self) -> list[str]:
        plan = self.session.select_latest(Plan)
        return [step.step_id for step in plan.steps if step.status == "done"] if plan else []


def claims_without_work(talk: Conversation) -> None:
    talk.setup()
    for step_id in ("S001", "2", 3):
        talk.mark(step_id, "done")


def cites_a_failed_call(talk: Conversation) -> None:
    talk.setup()
    talk.call("run_tests")
    talk.mark(2, "done", "C1")
    talk.mark(2, "done", "c1", "C001")


def cites_a_call_from_before(talk: Conversation) -> None:
    talk.setup()
    talk.call("edit", file="parser.py")
    talk.mark(2, "in_progress")
    talk.mark(2, "done", "C1")
    talk.mark(2, "done", "C2")


def cites_the_call_of_another_step(talk: Conversation) -> None:
    talk.setup()
    talk.call("edit", file="parser.py")
    talk.mark(1, "done", "C1")
    talk.mark(2, "done", "C1")


def cites_a_call_of_an_abandoned_branch(talk: Conversation) -> None:
    talk.setup()
    version = talk.session.version
    talk.call("edit", file="parser.py")
    talk.session.rewind(version)
    talk.lines.append("(the host rewinds to the version before the edit)")
    talk.mark(1, "done", "C1")


def marks_ahead(talk: Conversation) -> None:
    steps = [{"title": title, "depends_on": [at] if at else []} for at, title in enumerate(STEPS)]
    talk.setup(*steps)
    talk.mark("s3", "in_progress")
    talk.call("mark_step", marks=[{"step_id": each, "status": "done"} for each in ("S003", "S002", "S001")])
    talk.call("mark_step", marks=[{"step_id": each, "status": "in_progress"} for each in ("S001", "S002")])


def drops_open_steps_by_a_new_plan(talk: Conversation) -> None:
    talk.setup()
    talk.mark(1, "done")
    talk.setup("Ship it")


def clears_and_works(talk: Conversation) -> None:
    talk.setup()
    talk.call("clear_plan")
    talk.call("edit", file="parser.py")
    talk.call("search", text="parsers")
    talk.setup("Only edit")
    talk.call("edit", file="parser.py")
    talk.host(RejectPlan("keep the tests"))
    talk.call("edit", file="parser.py")


def begins_what_was_not_approved(talk: Conversation) -> None:
    talk.setup("Write the parser")
    talk.host(ApprovePlan())
    talk.call("add_step", steps=["Rewrite everything"])
    talk.mark("s2", "in_progress")
    talk.mark(2, "done")
    talk.call("update_step", step_id=1, title="Rewrite everything")
    talk.mark(1, "in_progress")


def finishes_early_and_renumbers(talk: Conversation) -> None:
    talk.setup()
    talk.mark(1, "done")
    talk.call("remove_step", step_id="S003")
    talk.call("add_step", steps=["Ship it later"])
    for _ in range(3):
        finish = talk.section.may_finish()
        talk.lines.append(f"(it stops: ok={finish.ok} {finish.message})")


CHEATS: list[tuple[Callable[[Conversation], None], PlanPolicy, list[str]]] = [
    (claims_without_work, PROVEN, []),
    (cites_a_failed_call, PROVEN, []),
    (cites_a_call_from_before, PROVEN, []),
    (cites_the_call_of_another_step, PlanPolicy(evidence="unique"), ["S001"]),
    (cites_a_call_of_an_abandoned_branch, PROVEN, []),
    (marks_ahead, PlanPolicy(dependencies=True, batch_marks=True, most_in_progress=1), []),
    (drops_open_steps_by_a_new_plan, PlanPolicy(replace="refuse_unfinished"), ["S001"]),
    (clears_and_works, PlanPolicy(approval=True), []),
    (begins_what_was_not_approved, PlanPolicy(approval=True), []),
    (finishes_early_and_renumbers, PlanPolicy(finish_gate=2, agent_edits=True), ["S001"]),
]


@pytest.mark.parametrize(("cheat", "policy", "done"), CHEATS, ids=[each[0].__name__ for each in CHEATS])
def test_a_cheat_is_stopped(
    cheat: Callable[[Conversation], None], policy: PlanPolicy, done: list[str], snapshot: SnapshotAssertion
) -> None:
    talk = Conversation(policy)
    cheat(talk)
    assert talk.done() == done
    plan = json.dumps(plan_to_dict(talk.session), indent=1)
    assert "\n".join([*talk.lines, plan]) + "\n" == snapshot
