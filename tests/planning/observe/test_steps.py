"""The steps of a run and of a plan: when each was in progress, and its name in each version of a session."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from page_data import call, kept, of_memory, of_store, run_of, steps_of
from syrupy.assertion import SnapshotAssertion

from planning import Plan, PlanChanged, PlanDiff, PlanStep, StepStatus
from planning.observe.names import named_diff, named_facts, named_plan, names_in
from planning.observe.steps import PlanSteps, RunSteps, plan_steps
from planning.plan.diff import StepAdded, StepDetailed, StepMarked, StepMoved, StepNoted, StepRetitled
from planning.plan.facts import PlanFacts, Proof
from planning.view.document import RunData
from planning.workflow import StepFailure, Workflow, WorkflowStep
from planning.workflow.run.records import StepRecord

START = datetime(2026, 1, 2, tzinfo=UTC)
FLOW = Workflow(goal="Look", steps=(WorkflowStep(step_id="a", description="Do it"),))


def take(steps: RunSteps, second: float, status: Any, attempt: int) -> None:
    at = (START + timedelta(seconds=second)).isoformat()
    error = StepFailure("no") if status == "failed" else None
    steps.take(StepRecord("r", "a", status, at, attempt, called=True, error=error))


def after(*changes: tuple[float, Any, int]) -> RunSteps:
    """A step after records, each at a second with a status and the number of an attempt."""
    steps = RunSteps(FLOW)
    for change in changes:
        take(steps, *change)
    return steps


BEGUN = (0, "in_progress", 1)
AGAIN = (100, "in_progress", 1), (103, "completed", 1)
RUNS: dict[str, list[tuple[float, Any, int]]] = {
    "at once": [BEGUN, (2, "completed", 1)],
    "tried again": [BEGUN, (2, "in_progress", 2), (5, "completed", 2)],
    "failed and resumed": [BEGUN, (2, "failed", 1), *AGAIN],
    "killed and resumed": [BEGUN, *AGAIN],
    "stopped": [BEGUN, (4, "pending", 0)],
    "without a call": [(0, "completed", 0)],
    "in progress": [BEGUN],
}


def test_the_time_of_a_step_is_that_of_its_attempts(snapshot: SnapshotAssertion) -> None:
    said = ""
    for name, changes in RUNS.items():
        step = after(*changes).steps["a"]
        spans = [((each.began - START).total_seconds(), each.state, each.attempt) for each in step.spans]
        said += f"{name}: {spans}, {step.seconds()} s\n"
    assert said == snapshot


def test_a_step_in_progress_has_begun_with_its_first_attempt_and_lasts_until_now() -> None:
    step = after((0, "in_progress", 1), (2, "in_progress", 2)).steps["a"]
    assert (step.at, step.attempt) == (START, 2)
    assert step.seconds(START + timedelta(seconds=7)) == 7
    for ended in ((0, "in_progress", 1), (2, "failed", 1)):  # killed, or failed, and resumed
        resumed = after((0, "in_progress", 1), ended, (100, "in_progress", 1)).steps["a"]
        assert resumed.at == START + timedelta(seconds=100)
    steps = RunSteps(FLOW)
    steps.take(StepRecord("r", "a", "in_progress", START.isoformat(), 1))  # it waits for its turn
    for second in (3, 50):  # it is called, killed and called again
        take(steps, second, "in_progress", 1)
    assert [each.state for each in steps.steps["a"].spans] == ["stopped", "in_progress"]


def test_what_was_in_progress_when_its_run_stopped_is_stopped_and_can_be_resumed() -> None:
    steps = after((0, "in_progress", 1))
    (cut,) = steps.stop(START + timedelta(seconds=3))
    assert (cut.state, cut.seconds(), steps.states) == ("stopped", 3, {"a": "stopped"})
    assert steps.stop() == []
    take(steps, 10, "in_progress", 1)
    assert steps.states == {"a": "in_progress"}


@pytest.mark.parametrize("at", ["yesterday", "", "2026-01-02T03:04:05"])
def test_a_time_that_is_none_leaves_the_state(at: str) -> None:
    steps = RunSteps(FLOW)
    step = steps.take(StepRecord("r", "a", "completed", at, 1, called=True))
    assert step is not None
    assert (step.state, step.at, step.spans, step.seconds()) == ("completed", None, (), None)


def changed(before: Plan | None, after: Plan | None) -> PlanChanged:
    return PlanChanged(before, after, 1, None, None, "session", "s")


def planned(*statuses: StepStatus) -> Plan:
    steps = (PlanStep(f"S00{n}", "Do it", "So", status, ("a",)) for n, status in enumerate(statuses, 1))
    return Plan("Look", "active", tuple(steps))


def test_the_steps_of_a_plan_have_what_is_known_and_when_they_were_in_progress(
    snapshot: SnapshotAssertion,
) -> None:
    plans = [
        planned("pending", "in_progress", "blocked", "done"),
        planned("in_progress", "blocked", "blocked", "pending"),
        planned("done", "in_progress", "blocked", "pending"),
    ]
    facts = PlanFacts(proofs={"S001": Proof(("C1",))}, depends_on={"S004": ("S002",)}, waiting=("S002",))
    steps = PlanSteps()
    for second, (before, after) in enumerate(pairwise([None, *plans])):
        steps.take(START + timedelta(seconds=second), changed(before, after), facts)

    assert "\n".join(map(str, steps.steps)) == snapshot
    assert plan_steps(plans[-1], facts, steps.steps[:3]) == steps.steps
    steps.take(START, changed(plans[-1], None), facts)
    assert steps.steps == []


# The names of the steps


def names_of(data: Any) -> dict[int, Any]:
    """The names of the steps at each version, as the page has them."""
    found = {data["from"]: data["names"]}
    for change in data["changes"]:
        found[change["v"]] = change.get("names", found[change["v"] - 1])
    return found


def test_names_and_steps_of_each_version_are_those_of_the_plan_and_the_run_there(tmp_path: Path) -> None:
    session, toolbox = kept(tmp_path / "plans.db")
    call(toolbox, "setup_plan", objective="Mine", initial_steps=["One", "Two"])
    call(toolbox, "clear_plan")
    run_of(session)
    call(toolbox, "add_step", steps=["Tell the team"])
    last = session.version
    session.rewind(1)
    session.rewind(last)
    run_of(session, {"load": [], "S001": ["load"]})
    call(toolbox, "setup_plan", objective="Else", initial_steps=["Look"])
    session.reset()
    wanted = {version: dict(names_in(session.at(version))) for version in range(session.version + 1)}
    data = of_store(tmp_path / "plans.db")
    assert names_of(data) == names_of(of_memory(session)) == wanted
    assert steps_of(data) == {version: RunData(RunSteps.of(session.at(version))).fields for version in wanted}
    fetch = {"S001": "fetch", "S002": "parse", "S003": "bad", "S004": "use", "S005": "say"}
    runs = [names for version, names in wanted.items() if version in {1, 2, last, last + 1, last + 2}]
    assert runs == [{}, {}, fetch, {}, fetch]
    assert {"S001": "load", "S002": "S001"} in wanted.values()
    assert wanted[session.version - 1] == wanted[session.version] == {}


NAMES = {"S001": "fetch", "S003": "parse"}


def a_step(step_id: str) -> PlanStep:
    return PlanStep(step_id, "Do it", None, "pending")


def plan_of(one: str) -> Plan:
    return Plan("Ship it", "active", (a_step(one), a_step("S002")))


def diff_of(one: str, three: str) -> PlanDiff:
    return PlanDiff(
        added=(StepAdded(a_step(three), 0), StepAdded(a_step("S004"), 1)),
        removed=(one, "S002"),
        moved=(StepMoved(one, 2), StepMoved("S002", 3)),
        retitled=(StepRetitled(one, "a", "b"),),
        detailed=(StepDetailed(three, None, "b"),),
        marked=(StepMarked(one, "pending", "done"),),
        noted=(StepNoted(one, ("a",)),),
    )


def facts_of(one: str, three: str) -> PlanFacts:
    return PlanFacts(
        depends_on={one: (three, "S002"), "S002": (one,)},
        proofs={one: Proof(("C1",)), "S002": Proof(("C2",))},
        waiting=(one, "S002"),
        approval="approved",
    )


def test_a_plan_a_difference_and_facts_have_the_names_of_their_steps() -> None:
    for names, one, three in ((NAMES, "fetch", "parse"), ({}, "S001", "S003")):
        assert named_plan(plan_of("S001"), names) == plan_of(one)
        assert named_diff(diff_of("S001", "S003"), names) == diff_of(one, three)
        assert named_facts(facts_of("S001", "S003"), names) == facts_of(one, three)
