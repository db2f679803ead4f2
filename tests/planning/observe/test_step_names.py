"""A step of a workflow has its own id in each version of a session, and a step of another plan has not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from page_data import a_workflow, call, kept, of_memory, of_store, run_of

from planning import Plan, PlanDiff, PlanStep
from planning.observe.names import named_diff, named_facts, named_plan, names_in
from planning.plan.diff import StepAdded, StepDetailed, StepMarked, StepMoved, StepNoted, StepRetitled
from planning.plan.facts import PlanFacts, Proof
from planning.workflow import Capabilities, run_workflow


def names_of(data: Any) -> dict[int, Any]:
    """The names of the steps at each version, as the page has them."""
    found = {data["from"]: data["names"]}
    for change in data["changes"]:
        found[change["v"]] = change.get("names", found[change["v"] - 1])
    return found


def test_the_names_of_each_version_are_those_of_the_plan_and_the_run_there(tmp_path: Path) -> None:
    session, toolbox = kept(tmp_path / "plans.db")
    call(toolbox, "setup_plan", objective="Mine", initial_steps=["One", "Two"])
    call(toolbox, "clear_plan")
    run_of(session)
    call(toolbox, "add_step", steps=["Tell the team"])
    last = session.version
    session.rewind(1)
    session.rewind(last)
    edited = {"load": [], "S001": ["load"]}
    tools = {"load": lambda: "loaded", "S001": lambda: "done"}
    run_workflow(a_workflow(edited), Capabilities(tools=tools), session=session)
    call(toolbox, "setup_plan", objective="Else", initial_steps=["Look"])
    session.reset()
    wanted = {version: dict(names_in(session.at(version))) for version in range(session.version + 1)}
    assert names_of(of_store(tmp_path / "plans.db")) == names_of(of_memory(session)) == wanted
    fetch = {"S001": "fetch", "S002": "parse", "S003": "bad", "S004": "use", "S005": "say"}
    runs = [names for version, names in wanted.items() if version in {1, 2, last, last + 1, last + 2}]
    assert runs == [{}, {}, fetch, {}, fetch]
    assert {"S001": "load", "S002": "S001"} in wanted.values()
    assert wanted[session.version - 1] == wanted[session.version] == {}


NAMES = {"S001": "fetch", "S003": "parse"}


def step(step_id: str) -> PlanStep:
    return PlanStep(step_id, "Do it", None, "pending")


def plan_of(one: str) -> Plan:
    return Plan("Ship it", "active", (step(one), step("S002")))


def diff_of(one: str, three: str) -> PlanDiff:
    return PlanDiff(
        added=(StepAdded(step(three), 0), StepAdded(step("S004"), 1)),
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
