"""The audit of a plan's history: what careful, careless and cheating agents leave, and what it finds."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_data import run_of
from syrupy.assertion import SnapshotAssertion

from laws import work_of
from planning import ClearPlan, MarkStep, NewPlanStep, PlanningToolsSection, PlanPolicy, SetupPlan, Toolbox
from planning.observe.audit import FINDINGS, STALE_AFTER, Audit, audit_plan
from planning.observe.timeline import Recent
from planning.plan.model import STEP_STATUSES, Plan
from planning.tools import ToolResult
from planning.workflow.run.records import WorkflowRun
from session import Session, ToolFailed, ToolInvoked

Act = Callable[[Session, Toolbox], object]


def planning(name: str, **arguments: Any) -> Act:
    return lambda _session, toolbox: toolbox.call(f"planning_{name}", arguments, context={"actor": "model"})


def set_up(steps: int) -> Act:
    return planning("setup_plan", objective="Goal", initial_steps=[f"Step {n}" for n in range(steps)])


def mark(number: int, status: str) -> Act:
    return planning("mark_step", step_id=f"S{number:03}", status=status)


def call(session: Session, _toolbox: Toolbox) -> None:
    session.dispatch(ToolInvoked("search", {"query": "secret"}, "secret"))


def fail(session: Session, _toolbox: Toolbox) -> None:
    session.dispatch(ToolFailed("search", "secret"))


def rewind(version: int) -> Act:
    return lambda session, _toolbox: session.rewind(version)


def host(*commands: object) -> Act:
    def act(session: Session, _toolbox: Toolbox) -> None:
        for command in commands:
            session.dispatch(command)

    return act


BATCH = PlanPolicy(batch_marks=True)


def audited(*acts: Act, policy: PlanPolicy = BATCH) -> Audit:
    session = Session()
    section = PlanningToolsSection(session=session, policy=policy)
    toolbox = Toolbox(section.tools(), session=session)
    for act in acts:
        act(session, toolbox)
    return audit_plan(Recent(session).new())


def said(found: Audit) -> list[tuple[str, int, str]]:
    return [(finding.code, finding.version, finding.message) for finding in found.findings]


def plan(steps: int) -> SetupPlan:
    return SetupPlan("Goal", tuple(NewPlanStep(f"Step {n}") for n in range(steps)))


def run(*fails: str) -> Act:
    """Run a workflow of three steps, once for each name of the step that fails in it."""
    steps = {"hard": [], "soft": [], "open": ["hard"]}
    return lambda session, _toolbox: [run_of(session, steps, each) for each in fails]


WORK = (call, mark(1, "done"), call, mark(2, "done"))
MORE = planning("add_step", steps=[{"title": "More"}])
S1, S2, S3 = (mark(number, "done") for number in (1, 2, 3))


def restored(session: Session, toolbox: Toolbox) -> None:
    """Let an agent work on a plan of its own, then restore the one before."""
    before = session.snapshot()
    for act in (host(ClearPlan()), set_up(1), call, S1):
        act(session, toolbox)
    session.rollback(before)


CLEAN: dict[str, Sequence[Act]] = {
    "nothing at all": (),
    "each step after its call": (set_up(2), *WORK),
    "each step begun, worked on and done": (set_up(1), mark(1, "in_progress"), call, S1),
    "a step that is blocked at the end": (set_up(1), call, mark(1, "blocked")),
    "a plan that is replaced when it is done": (set_up(2), *WORK, set_up(1), call, S1),
    "work before the plan's change of mind": (
        set_up(2), call, S1, MORE, call, S2, call, S3,
    ),
    "a call that fails, then one that does not": (set_up(1), fail, call, S1),
    "a run that failed and was resumed": (run("hard", ""),),
    "a run that tolerated a failure": (run("soft"),),
    "a run again, which sets the plan up again": (run("", ""),),
    "calls before there is a plan": (*[call] * STALE_AFTER, set_up(1), call, S1),
    "a host that marks steps": (host(plan(3), MarkStep("S002", "done"), MarkStep("S001", "done")), host(
        MarkStep("S002", "pending"), MarkStep("S002", "done"), MarkStep("S003", "done"))),
    "a plan of the host that is restored": (
        host(plan(1)), restored, *[call] * STALE_AFTER, host(MarkStep("S001", "done")),
    ),
    "a plan that the host replaces": (host(plan(2)), host(plan(1), MarkStep("S001", "done"))),
    "a step that the host begins and the agent ends": (
        host(plan(1), MarkStep("S001", "in_progress")), call, S1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("acts", CLEAN.values(), ids=CLEAN)
def test_a_run_without_fault_has_no_findings(acts: Sequence[Act]) -> None:
    assert said(audited(*acts)) == []


def marks(*numbers: int, **more: Any) -> Act:
    each = [{"step_id": f"S{number:03}", "status": "done", **more} for number in numbers]
    return planning("mark_step", marks=each)


FAILED = ToolResult(False, "no", None, "no", None, 0.1)
BLANK = planning("setup_plan", objective="", initial_steps=[""] * 9)
FAULTS: dict[str, Sequence[Act]] = {
    "done before a call": (set_up(2), S1, call, S2),
    "called before it began": (set_up(1), call, mark(1, "in_progress"), S1),
    "two done after one call": (set_up(2), call, S1, S2),
    "another step done than the one begun": (set_up(1), mark(1, "in_progress"), call, MORE, S2, S1),
    "a plan of the host done by the agent": (host(plan(1)), S1),
    "done after failed calls": (set_up(1), fail, fail, S1),
    "done after a call that says it failed": (set_up(1), host(ToolInvoked("search", {}, FAILED)), S1),
    "done at once": (set_up(2), call, marks(1, 2)),
    "begun and done at once": (set_up(2), mark(1, "in_progress"), mark(2, "in_progress"), call, marks(1, 2)),
    "in another order": (set_up(2), call, S2, call, S1),
    "one left out": (set_up(3), call, S1, call, S3),
    "given up": (set_up(3), call, S1, mark(2, "in_progress")),
    "a plan of the host not begun": (host(plan(1)),),
    "replaced": (set_up(2), call, S1, set_up(1), call, S1),
    "abandoned": (set_up(2), planning("clear_plan")),
    "a run that failed": (run("hard"),),
    "a run that failed twice, after a plan": (set_up(2), *WORK, run("hard", "hard")),
    "reopened": (set_up(1), call, S1, mark(1, "in_progress"), call, S1),
    "put back": (set_up(3), call, S1, call, S2, mark(1, "pending"), call, S3),
    "three begun": (set_up(3), *(mark(n, "in_progress") for n in (1, 2, 3)), call, S1, S2, S3),
    "stale": (set_up(1), *[call] * STALE_AFTER, S1),
    "stale, with a read and a refusal": (
        set_up(1), *[call] * 6, planning("read_plan"), mark(9, "done"), *[call] * 6,
    ),
    "refused twice": (set_up(1), mark(7, "done"), mark(1, "finished"), call, S1),
    "refused for many reasons": (set_up(1), BLANK, call, S1),
}  # fmt: skip


def test_each_fault_is_a_finding(snapshot: SnapshotAssertion) -> None:
    found = {name: audited(*acts) for name, acts in FAULTS.items()}
    assert "secret" not in repr(found)
    assert snapshot == "".join(
        "".join(
            [f"-- {name}\n", *(f"version {version}: {code}: {text}\n" for code, version, text in said(each))]
        )
        for name, each in found.items()
    )


def test_evidence_that_a_policy_accepted_is_no_finding_and_is_counted() -> None:
    policy = PlanPolicy(evidence="required", batch_marks=True, verify=lambda _step, text: text == "seen")
    found = audited(set_up(3), call, marks(1, 2, evidence=["C1"]), marks(3, evidence=["seen"]), policy=policy)
    assert said(found) == []
    assert (found.totals["verified"], found.totals["reported"]) == (1, 2)


def test_totals_are_of_the_whole_history_and_abandoned_branches_are_named() -> None:
    found = audited(set_up(2), call, S2, mark(5, "done"), rewind(1), *WORK)
    assert found.abandoned == ((2, 4),)
    totals = dict(found.totals)
    assert totals.pop("characters") > 300
    assert totals == {
        "changes": 9, "calls": 3, "planning_calls": 5, "refused": 1,
        "steps": 2, "done": 2, "verified": 0, "reported": 0,
    }  # fmt: skip


def test_each_event_of_a_change_counts() -> None:
    def at_once(session: Session, toolbox: Toolbox) -> None:
        with session.transaction():
            for act in (fail, call, mark(1, "done"), fail, mark(9, "done"), call, mark(2, "done")):
                act(session, toolbox)

    found = audited(set_up(2), at_once)
    assert [code for code, _, _ in said(found)] == ["refused", "done_at_once"]
    counted = ("calls", "planning_calls", "refused", "done")
    assert [found.totals[name] for name in counted] == [4, 4, 1, 2]


ANY = st.sampled_from([
    *[mark(number, status) for number in (1, 2, 3) for status in STEP_STATUSES],
    *[planning("clear_plan"), planning("read_plan"), planning("add_step", steps=[{"title": "More"}])],
    *[set_up(3), call, fail, host(MarkStep("S001", "done"))],
])  # fmt: skip


@given(st.lists(ANY, max_size=12), st.lists(ANY, min_size=1, max_size=6), st.lists(ANY, max_size=12))
def test_what_was_rewound_is_not_judged(before: list[Act], abandoned: list[Act], after: list[Act]) -> None:
    def kinds(found: Audit) -> list[tuple[str, tuple[str, ...]]]:
        return [(finding.code, finding.steps) for finding in found.findings]

    versions: list[int] = []
    there: Act = lambda session, _toolbox: versions.append(session.version)  # noqa: E731 - an act like others
    back: Act = lambda session, _toolbox: session.rewind(versions[0])  # noqa: E731 - likewise
    assert kinds(audited(*before, there, *abandoned, back, *after)) == kinds(audited(*before, *after))


def test_without_a_history_a_plan_and_a_run_are_judged_by_their_ends() -> None:
    session = Session()
    PlanningToolsSection(session=session)
    session.dispatch(plan(2))
    found = said(audit_plan((), session.select_latest(Plan)))
    assert found == [("unfinished", 0, "Open at the end: S001 to S002.")]
    run("hard")(session, Toolbox(()))
    found = said(audit_plan((), run=session.select_latest(WorkflowRun)))
    assert found == [("run_failed", 0, "The workflow run failed; 'planning show' says why.")]


def test_the_work_grows_with_the_changes_alone() -> None:
    def work(steps: int) -> int:
        session = Session()
        toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
        set_up(steps)(session, toolbox)
        for number in range(1, steps + 1):
            for act in (mark(number, "in_progress"), call, mark(number, "done")):
                act(session, toolbox)
        moments = list(Recent(session).new())
        assert not audit_plan(moments).findings
        return work_of(lambda: audit_plan(moments))

    assert work(400) < 4.2 * work(100)


def test_the_table_of_the_page_has_each_finding_of_an_example_as_the_code_has_it() -> None:
    text = (Path(__file__).parents[3] / "docs" / "howto" / "audit-a-run.md").read_text()
    found = {finding.code for acts in FAULTS.values() for finding in audited(*acts).findings}
    assert found == FINDINGS.keys()
    assert re.findall(r"^\| `(\w+)` \| (\w+) \| (.+) \| (.+) \|$", text, re.MULTILINE) == [
        (code, rule.severity, rule.meaning, f"`{rule.prevented_by}`" if rule.prevented_by else "no setting")
        for code, rule in FINDINGS.items()
    ]
    for rule in FINDINGS.values():  # a policy takes the setting as it is written
        written = ast.parse(f"PlanPolicy({rule.prevented_by or ''})", mode="eval").body
        assert isinstance(written, ast.Call)
        PlanPolicy(**{str(each.arg): ast.literal_eval(each.value) for each in written.keywords})
