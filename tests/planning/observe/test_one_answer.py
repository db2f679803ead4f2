"""How a session, its plan, its run and each step are doing: every face gives the one answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import pytest
from cli_runs import printed, run
from page_data import a_workflow, embedded, plans_of, recorded, run_of, steps_of

from planning import Plan, PlanningToolsSection, PlanPolicy, RejectPlan, Toolbox, family_progress, health_of
from planning.observe.stores import open_session
from planning.plan.render import plan_to_dict
from planning.workflow.run import records as runs
from session import Session
from session.stores import SqliteStore

DEAD = re.sub(r"\.[0-9]+\.[0-9]+$", ".999999999.1", runs.new_token())


Build = Callable[[Session], object]


@attrs.frozen
class Answer:
    """What every face should find."""

    state: str | None
    plan: str | None = None
    run: str | None = None
    plan_steps: str = ""
    run_steps: str = ""


def planned(*marks: str, policy: PlanPolicy | None = None) -> Build:
    """A plan of three steps, after marks such as ``1 done``."""

    def build(session: Session) -> None:
        toolbox = Toolbox(PlanningToolsSection(session=session, policy=policy).tools(), session=session)
        toolbox.call("planning_setup_plan", {"objective": "Open", "initial_steps": ["One", "Two", "Three"]})
        for mark in marks:
            step_id, status = mark.split()
            toolbox.call("planning_mark_step", {"step_id": step_id, "status": status})

    return build


def ran(steps: dict[str, list[str]], *fails: str) -> Build:
    """A run, and once more for each further name of the step that fails."""
    return lambda session: [run_of(session, steps, each) for each in fails]


def left(token: str, **states: Any) -> Build:
    """A run of three steps that its process left so."""
    change = {name: (state, 0, {"attempt": 1}) for name, state in states.items()}
    return lambda session: recorded(session, a_workflow(CHAIN), change, token=token)


APPROVAL = PlanPolicy(approval=True)
THREE = "pending pending pending"
TWO = {"a": [], "b": ["a"]}
CHAIN = {**TWO, "c": ["b"]}
FAILING = {"a": [], "hard": ["a"], "c": ["hard"]}
TOLERANT = {"soft": [], "b": ["soft"], "c": []}
# What was done; the state of the session, its plan and its run; the steps of the plan, and those of the run.
HISTORIES: dict[str, tuple[Build | tuple[Build, ...], str, str, str]] = {
    "empty": (lambda _: None, "- - -", "", ""),
    "a plan that is begun": (
        planned("1 done", "2 in_progress"), "working active -", "done in_progress pending", ""),
    "a plan that waits": (planned(policy=APPROVAL), "waiting active -", THREE, ""),
    "a plan that is rejected": (
        (planned(policy=APPROVAL), lambda session: session.dispatch(RejectPlan("Too dear"))),
        "working active -", THREE, ""),
    "a plan that is done": (
        planned("1 done", "2 done", "3 done"), "finished completed -", "done done done", ""),
    "a plan that is blocked": (
        planned("1 done", "2 blocked", "3 blocked"), "stopped active -", "done blocked blocked", ""),
    "a plan that is abandoned": (
        (planned("1 done"), lambda session: session.dispatch(Plan("Open", "abandoned"))),
        "stopped abandoned -", "", ""),
    "a run that is complete": (
        ran(TWO, ""), "finished completed completed", "done done", "completed completed"),
    "a run that failed": (
        ran(FAILING, "hard"), "failed active failed", "done blocked blocked", "completed failed blocked"),
    "a run that tolerated a failure": (
        ran(TOLERANT, "soft"),
        "finished completed completed", "blocked blocked done", "failed skipped completed"),
    "a run that was resumed": (
        ran(FAILING, "hard", ""),
        "finished completed completed", "done done done", "completed completed completed"),
    "a run that was rewound": (
        (ran(FAILING, "hard"), lambda session: session.rewind(3)), "working active in_progress",
        "done in_progress pending", "completed in_progress pending"),
    "a run that works": (
        left(runs.new_token(), a="completed", b="in_progress"),
        "working - in_progress", "", "completed in_progress pending"),
    "a run whose process was killed": (
        left(DEAD, a="completed", b="in_progress"),
        "stopped - in_progress", "", "completed stopped pending"),
    "a run that waits": (
        (left(runs.new_token(), a="in_progress"), planned(policy=APPROVAL)),
        "waiting active in_progress", THREE, "in_progress pending pending"),
    "a run of an agent's tool": (
        (planned("1 in_progress"), left(DEAD, a="in_progress")),
        "stopped active in_progress", "in_progress pending pending", "stopped pending pending"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def by_python(session: Session) -> Answer:
    """The functions of the package, and the MCP resource, which is ``plan_to_dict``."""
    now = datetime.now(UTC)
    health, plan = health_of(session, now, began_at=now, changed_at=now), plan_to_dict(session)
    family = family_progress(session)
    assert family.status == (plan and plan["status"])
    steps = [] if plan is None else [step["status"] for step in plan["steps"]]
    assert (family.done, family.total) == (steps.count("done"), len(steps))
    state, status = None if health is None else health.state, None if plan is None else str(plan["status"])
    return Answer(state, status, None, " ".join(steps))


def by_the_lists(name: str) -> str | None:
    state: str | None = printed("sessions", "s.db", "--all", "--json")[0]["state"]
    assert state is None or f"{name}  {state}" in re.sub(" +", "  ", run("sessions", "s.db", "--all"))
    return state


def by_show(name: str) -> Answer:
    """``planning show`` as JSON has the statuses, as text the states of the steps."""
    shown, lines = printed("show", "s.db", name, "--json"), run("show", "s.db", name).splitlines()
    plan, flow_run = shown["plan"], shown["run"]
    states = {"running": "in_progress", "done": "completed"}
    state = flow_run and {"completed": "finished"}.get(flow_run["status"], flow_run["status"])
    label = {"waiting": "waiting for approval", "finished": "completed"}.get(str(state), state)
    assert label is None or lines[-1].startswith(f"{label}: ")
    ids = [] if flow_run is None else [step["step_id"] for step in flow_run["workflow"]["steps"]]
    told = {found[1]: found[2] for line in lines if (found := re.match(r"(\w+) +(\w+) +20\d\d", line))}
    return Answer(
        state,
        plan and plan["status"],
        flow_run and flow_run["workflow"]["status"],
        " ".join(step["status"] for step in plan["steps"]) if plan else "",
        " ".join(states.get(state, state) for state in (told.get(each, "pending") for each in ids)),
    )


def by_the_page(name: str) -> Answer:
    assert run("export", "s.db", name, "-o", "p.html") == "exit code 0\n"
    data = embedded(Path("p.html").read_bytes())["run"]
    version = max([data["from"], *(change["v"] for change in data["changes"])])
    plan, steps = plans_of(data)[version], steps_of(data)[version]
    graphs = [data["graph"], *(change["graph"] for change in data["changes"] if "graph" in change)]
    nodes = [] if not graphs[-1] else [node["id"] for node in graphs[-1]["nodes"]]
    states = [steps.get(each, {}).get("state", "pending") for each in nodes]
    if data["health"].get("cut"):
        states = [state.replace("in_progress", "stopped") for state in states]
    return Answer(
        data["health"].get("state"),
        plan and plan["status"],
        None,
        " ".join(step["status"] for step in plan["steps"]) if plan else "",
        " ".join(states),
    )


def by_the_history(name: str) -> str | None:
    """The plan's status after the last change of it."""
    plans = [each for each in printed("history", "s.db", name, "--json") if each["diff"] is not None]
    status: str | None = plans[-1]["plan"]["status"] if plans and plans[-1]["plan"] else None
    return status


def by_a_picture(session: Session) -> str:
    """The states in Mermaid, of a snapshot: nothing works on one."""
    Path("s.json").write_text(session.snapshot().to_json())
    shown = run("graph", "s.json", "--format", "mermaid").split("--- stdout\n")[1]
    lines = [line for line in shown.splitlines() if '"' in line]
    states = [found[1] if (found := re.search(r":::(\w+)$", line)) else "pending" for line in lines]
    return " ".join(states)


KIN = [("a plan that is begun", "forked"), ("a run that failed", "forked"), ("a run that failed", "a child")]


@pytest.mark.parametrize(("history", "kin"), [*((each, "alone") for each in HISTORIES), *KIN])
def test_every_face_gives_the_same_answer(history: str, kin: str) -> None:
    build, statuses, plan_steps, run_steps = HISTORIES[history]
    of_session, of_plan, of_run = (None if each == "-" else each for each in statuses.split())
    wanted = Answer(of_session, of_plan, of_run, plan_steps, run_steps)
    store = SqliteStore("s.db")
    parent = Session(session_id="parent", store=store) if kin == "a child" else None
    session = Session(session_id="one", store=store, parent=parent)
    for each in build if isinstance(build, tuple) else (build,):
        each(session)
    if kin == "forked":
        session = session.fork(session_id="two")
    name = str(session.session_id)
    seen = open_session(SqliteStore("s.db"), session.session_id)
    assert by_python(seen) == attrs.evolve(wanted, run=None, run_steps="")
    if seen.version:
        assert by_the_lists(name) == wanted.state
        assert by_show(name) == attrs.evolve(wanted, state=wanted.run and wanted.state)
        assert by_the_page(name) == attrs.evolve(wanted, run=None)
        assert by_the_history(name) == wanted.plan
        totals = printed("audit", "s.db", name, "--json")["totals"]
        steps = wanted.plan_steps.split()
        assert (totals["done"], totals["steps"]) == (steps.count("done"), len(steps))
    if wanted.run is not None:
        assert by_a_picture(seen) == wanted.run_steps.replace("in_progress", "stopped")
