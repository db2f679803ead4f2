"""A change in words, as JSON and as the page has it: what was done, its calls, what it did to the plan."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from page_data import call, kept, of_memory, of_store, plan_at, plans_of
from syrupy.assertion import SnapshotAssertion

from planning import (
    MarkStep,
    NewPlanStep,
    Plan,
    PlanChanged,
    PlanPolicy,
    PlanStep,
    RejectPlan,
    SetupPlan,
    StepStatus,
)
from planning.observe.calls import calls_of, characters_of
from planning.observe.deltas import applied, delta_of, plan_fields
from planning.observe.fact_words import facts_words, plan_facts, step_facts
from planning.observe.stores import PastStore, open_store
from planning.observe.text import fitted, one_line, shortened
from planning.observe.timeline import Changes, Moment, Recent, Timeline, between, fields_of_moment, words_of
from planning.plan.diff import diff_plans
from planning.plan.facts import PlanFacts, Proof
from planning.plan.render import plan_to_dict
from planning.policy.reducers import AskToFinish, RequestApproval, TakeNotice
from planning.suite.events import FrameworkChange
from planning.suite.tools import register_plan
from planning.testing.strategies import any_plans as plans
from planning.testing.strategies import commands
from planning.tools import ToolResult
from planning.workflow import Workflow, WorkflowStep
from planning.workflow.run.memory import MemoryItem
from planning.workflow.run.records import RunChanged, StepChanged, StepRecord, WorkflowRun, register_workflow
from session import Session, ToolFailed, ToolInvoked, append

SETUP = SetupPlan("Ship it", (NewPlanStep("Look"), NewPlanStep("Pack")))
REFUSED = ToolResult(False, "Refused, nothing changed. steps: empty", None, "empty", None, 0.1)
FAILED = ToolResult(False, "search failed. Call it again.", None, "broken", None, 0.1)
FLOW = Workflow(goal="Open", steps=(WorkflowStep(step_id="rent", description="Rent a room"),))
NOT_ALLOWED = "The agent was not allowed to finish with S001 to S002 open."
AT = "2026-01-02T03:04:05+00:00"


@dataclass(frozen=True)
class Seen:
    """An event of other code."""

    text: str


@pytest.fixture
def session() -> Session:
    """A session with a plan, whose first change is made."""
    session = Session(session_id="s")
    register_plan(session, PlanPolicy(approval=True))
    register_workflow(session)
    session.register_reducer(Seen, append)
    session.register_reducer(MemoryItem, append)
    session.dispatch(SETUP)
    return session


def newest(session: Session) -> Moment:
    return list(Recent(session).new())[-1]


def run(status: Any, goal: str | None) -> RunChanged:
    flow = Workflow(goal=goal or "", steps=FLOW.steps)
    return RunChanged(WorkflowRun(run_id="r", workflow=flow, status=status, token="", started_at=AT))


def step(status: Any) -> StepChanged:
    return StepChanged(StepRecord("r", "rent", status, AT, 1, called=True))


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (MarkStep("S001", "done", "seen"), "S001 done: seen."),
        (MarkStep("S001", "pending"), "MarkStep."),
        (ToolInvoked("planning_mark_step", None, None, MarkStep("S001", "done")), "S001 done."),
        (ToolInvoked("mark", None, None, MarkStep("S001", "pending")), "Called mark."),
        (ToolInvoked("search", {}, "found"), "Called search."),
        (ToolFailed("planning_add_step", REFUSED), "planning_add_step refused: steps: empty"),
        (ToolFailed("search", FAILED), "search failed: Call it again."),
        (ToolFailed("search", "broken"), "search failed: "),
        (AskToFinish(("S001", "S002"), let_go=False), NOT_ALLOWED),
        (AskToFinish(("S001",), let_go=True), "The agent finished with S001 open."),
        (RequestApproval(), "The plan waits for approval."),
        (RequestApproval(("S002",)), "S002 waits for approval."),
        (RejectPlan("too\nlong"), "The host rejected the plan: too | long"),
        (TakeNotice(), "The agent was reminded that the plan has not changed."),
        (run("in_progress", "Open"), "Run in progress: Open."),
        (run("failed", None), "Run failed."),
        (step("in_progress"), "Step rent in progress."),
        (step("completed"), "Step rent completed."),
        (MemoryItem(type="input", key="rent", value="a room", step_id=None, created_at=AT), "nothing"),
        (Seen("x"), "Seen."),
        (FrameworkChange(place="langchain:a", at="1", version=2, start=0), "nothing"),
        (Plan("Ship it", "abandoned"), "Plan abandoned."),
    ],
)  # fmt: skip
def test_a_change_is_said_in_words(session: Session, event: Any, words: str) -> None:
    session.dispatch(event)
    assert words_of(newest(session)) == words


def test_changes_as_json_have_the_plan_and_the_events(session: Session, snapshot: SnapshotAssertion) -> None:
    first = session.snapshot()
    with session.transaction(actor="ann", call_id="call-1") as transaction:
        transaction.dispatch(MarkStep("S001", "done", "seen"))
        transaction.dispatch(Seen("x"))
        transaction.dispatch(Seen("y"))
        transaction.dispatch(ToolInvoked("search", {}, "found"))
    assert fields_of_moment(newest(session))["plan"] == plan_to_dict(session)
    session.rewind(0)
    session.rollback(first)
    session.reset()
    session.dispatch(ToolFailed("search", "broken"))
    shown = ""
    for moment in list(Recent(session).new())[1:]:
        fields = fields_of_moment(moment)
        assert fields.pop("at") == moment.change.at.isoformat()
        shown += json.dumps(fields, indent=2).replace(first.created_at.isoformat(), "AT") + "\n"
    assert shown == snapshot


def test_what_differs_between_two_versions_has_the_plan_and_what_a_policy_knows(
    session: Session, snapshot: SnapshotAssertion
) -> None:
    session.dispatch(MarkStep("S001", "done"))
    session.dispatch(RequestApproval())
    pairs = [(1, 1), (2, 3), (1, 3)]
    found = [between(*(session.at(version) for version in pair)) for pair in pairs]
    assert "\n".join(map(json.dumps, found)) == snapshot


def test_a_stored_session_has_the_changes_that_one_in_memory_has(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "plans.db"))
    stored, memory = Session(session_id="s", store=store), Session(session_id="s")
    published = list[PlanChanged]()
    memory.bus.subscribe(PlanChanged, published.append)
    for each in (stored, memory):
        register_plan(each, PlanPolicy(approval=True))

    def change(*commands: object) -> None:
        for command in commands:
            stored.dispatch(command)
            memory.dispatch(command)

    def read(changes: Changes) -> list[tuple[int, str, str | None]]:
        told = [(moment, str(moment.diff)) for moment in changes.new()]
        return [(moment.change.version, words_of(moment), diff) for moment, diff in told]

    statuses: list[StepStatus] = ["in_progress", "blocked", "pending"]
    marks = [MarkStep("S001", status) for status in statuses]
    change(SETUP, RequestApproval(), *marks * 12, TakeNotice())  # more than are read at once
    head = store.newest("s")
    assert head is not None
    timelines, recent = [Timeline(store.another(), head, after) for after in (0, 5)], Recent(memory)
    wanted = read(recent)
    assert [read(each) for each in timelines] == [wanted, wanted[5:]]
    change(RejectPlan("no"), MarkStep("S002", "done"))
    wanted = read(recent)
    assert [read(each) for each in timelines] == [wanted, wanted]
    assert [moment.plan for moment in Recent(memory).new() if moment.plan] == published
    for changes in (*timelines, recent):
        assert (changes.plan, changes.facts) == (memory.select_latest(Plan), memory.select_latest(PlanFacts))
        assert (read(changes), changes.is_deleted) == ([], False)
    store.delete("s")
    assert (read(timelines[0]), timelines[0].is_deleted) == ([], True)


def test_the_stamp_of_a_file_differs_with_each_change_also_of_its_log(tmp_path: Path) -> None:
    path, log = tmp_path / "plans.db", tmp_path / "plans.db-wal"
    _, toolbox = kept(path)
    call(toolbox, "setup_plan", objective="Ship it", initial_steps=["Look"])
    store = PastStore(path)

    def stamp() -> object:
        for file in (path, log):
            os.utime(file, (1, 1))
        return store.stamp()

    first = stamp()
    assert stamp() == first is not None
    call(toolbox, "read_plan")  # it is in the log alone
    assert stamp() != first
    for file in (path, log):
        file.touch()
        assert store.stamp() is None  # a change of the same moment would have the same stamp
        stamp()
    for file in (log, path):
        file.rename(tmp_path / "away")
        assert (store.stamp() is None) is (file is path)


REPORTED, VERIFIED = Proof(("C4",), tools={"C4": "run_tests"}), Proof(("all green", "C5"), verified=True)
THREE = Plan("Fix it", "active", tuple(PlanStep(f"S00{n}", "Do it", None, "pending", ()) for n in (1, 2, 3)))
TWO = Plan("Fix it", "active", THREE.steps[1:])
OTHER = Plan("Else", "active", (PlanStep("S001", "Other", None, "pending", ()),))
DEPENDS = {"S003": ("S001", "S002"), "S002": ("S001",)}
REJECTED = {"approval": "rejected", "reason": "too long"}
CASES: list[tuple[dict[str, Any], dict[str, Any], Plan]] = [
    ({}, {}, THREE),
    ({}, {"calls": 7, "highest": 3, "began": {"S001": 2}, "asked": 1}, THREE),
    ({}, {"proofs": {"S001": REPORTED}}, THREE),
    ({"proofs": {"S001": REPORTED}}, {"proofs": {"S001": REPORTED, "S002": VERIFIED}}, THREE),
    ({"proofs": {"S001": REPORTED}}, {}, THREE),
    ({}, {"depends_on": DEPENDS}, THREE),
    ({"depends_on": {**DEPENDS, "S001": ("S009",)}}, {"depends_on": {"S003": ("S002",)}}, TWO),
    ({"depends_on": {"S001": ("S002",)}}, {"depends_on": {"S001": ("S002",)}}, THREE),
    ({"depends_on": {"S003": ("S001",)}, "approval": "approved"}, {"calls": 1}, OTHER),
    ({}, {"approval": "waiting"}, THREE),
    ({"approval": "waiting"}, {"approval": "approved"}, THREE),
    ({"approval": "waiting"}, REJECTED, THREE),
    (REJECTED, {**REJECTED, "reason": "too short"}, THREE),
    ({"approval": "approved"}, {"approval": "approved", "waiting": ("S003",)}, THREE),
    ({"approval": "approved", "waiting": ("S001", "S002", "S003")}, {"approval": "approved"}, TWO),
    ({}, {"is_noticed": True}, THREE),
    ({}, {"proofs": {f"S{n:03}": REPORTED for n in range(1, 11)}}, THREE),
]


def test_a_difference_is_said_in_sentences(snapshot: SnapshotAssertion) -> None:
    said = ""
    for before, after, plan in CASES:
        words = facts_words(PlanFacts(**before), PlanFacts(**after), diff_plans(THREE, plan))
        said += "\n    ".join([f"{before} then {after}", *words]) + "\n"
    assert said == snapshot


def test_the_page_has_the_same_as_fields(snapshot: SnapshotAssertion) -> None:
    facts = PlanFacts(
        proofs={"S001": REPORTED, "S002": VERIFIED}, depends_on={"S001": (), "S002": ("S001",)},
        waiting=("S001",), approval="rejected", reason="too long",
    )  # fmt: skip
    shown = [plan_facts(each) for each in (facts, PlanFacts(approval="waiting"), PlanFacts())]
    shown += [step_facts(step_id, facts) for step_id in ("S001", "S002", "S003")]
    assert "\n".join(map(json.dumps, shown)) == snapshot


# The calls in a change, and text that is cut

FOUND = ToolResult(True, "found", None, None, None, 0.0123456)
MARK = MarkStep("S001", "done")
NOT_CALLED = ToolResult(False, "Refused, nothing changed. no", None, "no", None, float("nan"))


def result(message: str, **more: Any) -> ToolResult:
    return ToolResult(True, message, None, None, None, 0.5, **more)


CALLS: list[ToolInvoked | ToolFailed] = [
    ToolInvoked("search", {"q": "a", "x": None}, FOUND),
    ToolInvoked("search", {}, "found"),
    ToolInvoked("search", "all", {"n": 1, "m": None}),
    ToolInvoked("search", None, None),
    ToolInvoked("search", {"q": "a"}, result("found", is_private=True)),
    ToolFailed("search", NOT_CALLED),
    ToolFailed("search", "it broke"),
    ToolInvoked("planning_mark_step", MARK, result("S001 done."), MARK),
]


def test_a_call_is_shown_with_what_it_got_and_said(snapshot: SnapshotAssertion) -> None:
    session = Session()
    for event in CALLS:
        session.dispatch(event)
    shown = [call for change in session.history() for call in calls_of(change)]
    assert "\n".join(map(str, shown)) == snapshot
    untimed = [{name: each for name, each in call.items() if name != "ms"} for call in shown]
    assert [each for change in session.history() for each in calls_of(change, is_timed=False)] == untimed


def test_only_the_characters_of_planning_calls_are_counted() -> None:
    session = Session()
    setup = SetupPlan("x")
    with session.transaction() as transaction:
        transaction.dispatch(ToolInvoked("search", {"q": "a"}, FOUND))
        transaction.dispatch(ToolInvoked("planning_setup_plan", setup, result("Plan set."), setup))
        transaction.dispatch(ToolFailed("planning_mark_step", "no"))
    (change,) = session.history()
    planned = sum(each["characters"] for each in calls_of(change)[1:])
    assert (characters_of(change), planned > 20) == (planned, True)


def test_a_text_that_is_too_long_is_cut_with_a_sign() -> None:
    assert [shortened("abc", limit) for limit in (4, 3, 2)] == ["abc", "abc", "a\u2026"]


PERSIAN = "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("\u6d4b\u8bd5\u6d4b\u8bd5", 8, "\u6d4b\u8bd5\u6d4b\u8bd5"),
        ("\u6d4b\u8bd5\u6d4b\u8bd5", 7, "\u6d4b\u8bd5\u6d4b\u2026"),
        ("e\u0301" * 8, 8, "e\u0301" * 8),
        ("e\u0301" * 9, 8, "e\u0301" * 7 + "\u2026"),
        ("e" + "\u0301" * 40, 8, "e" + "\u0301" * 31 + "\u2026"),
        (PERSIAN, 7, PERSIAN),
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467", 4, "\U0001f468\u2026"),
        ("a\u202eb", 20, "a\\u202eb"),
    ],
)
def test_a_text_is_cut_by_its_columns(text: str, columns: int, expected: str) -> None:
    assert fitted(text, columns) == expected


def test_a_line_keeps_the_joiners_and_blanks_of_a_language() -> None:
    assert one_line("\u5168\u3000\u89d2 \u0645\u06cc\u200c\u062e\n\u202e\x1b") == (
        "\u5168\u3000\u89d2 \u0645\u06cc\u200c\u062e | \\u202e\\x1b"
    )


# What changes made of the plan: the plans that the page makes are those of the session

moves = st.lists(commands() | plans() | st.floats(0, 1), max_size=12)


def carried_out(session: Session, given: list[Any]) -> None:
    """Change the plan, also in ways that a model cannot; a number rewinds to that part of the versions."""
    register_plan(session)
    for each in given:
        if isinstance(each, float):
            session.rewind(int(each * session.version))
        else:
            session.dispatch(each)


def versions(session: Session) -> dict[int, Any]:
    return {version: plan_at(session, version) for version in range(session.version + 1)}


@st.composite
def facts_of(draw: st.DrawFn, plan: Plan | None) -> PlanFacts:
    """What a policy may know of a plan."""
    ids = [step.step_id for step in plan.steps] if plan is not None else []
    some = st.sets(st.sampled_from(ids)) if ids else st.just(set[str]())
    proof = st.builds(Proof, st.just(("C1",)), st.booleans(), st.just({"C1": "edit"}))
    return PlanFacts(
        depends_on={each: tuple(draw(some)) for each in draw(some)},
        proofs={each: draw(proof) for each in draw(some)},
        waiting=tuple(draw(some)),
        approval=draw(st.sampled_from(["none", "waiting", "approved", "rejected"])),
        reason=draw(st.none() | st.just("too long")),
    )


@given(data=st.data(), before=st.none() | plans(), after=st.none() | plans())
def test_a_delta_makes_the_second_plan(data: st.DataObject, before: Plan | None, after: Plan | None) -> None:
    known, facts = data.draw(facts_of(before)), data.draw(facts_of(after))
    old = None if before is None else plan_fields(before, known)
    new = None if after is None else plan_fields(after, facts)
    delta = json.loads(json.dumps(delta_of(before, after, known, facts)))
    assert applied(old, delta) == new
    assert (delta is None) is (old == new)


@settings(max_examples=30)
@given(moves=moves)
def test_the_page_makes_the_plan_of_each_version_of_a_session_in_a_store(moves: list[Any]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "plans.db")
        session, toolbox = kept(path)
        call(toolbox, "setup_plan", objective="Look into it", initial_steps=["Look", "Fix", "Tell"])
        carried_out(session, moves)
        assert plans_of(of_store(path)) == versions(session)
        assert session.store is not None
        session.store.close()


@given(moves=moves, limit=st.integers(1, 12))
def test_what_is_folded_away_leaves_the_plans_after_it_as_they_are(moves: list[Any], limit: int) -> None:
    session = Session()
    carried_out(session, moves)
    data, plans = of_memory(session, limit=limit), versions(session)
    first = max(0, session.version - limit)
    told = f"The oldest {first} changes are not shown; the page begins at version {first}." if first else None
    assert (data["from"], data["omitted"]) == (first, told)
    assert plans_of(data) == {version: plan for version, plan in plans.items() if version >= first}


def test_steps_that_moved_went_or_lost_their_details_are_told() -> None:
    steps = tuple(PlanStep(f"S00{number}", "Do", "so", "pending", ("a", "b")) for number in range(4))
    before = Plan("Move", "active", steps)
    after = Plan("Move", "active", (steps[0], PlanStep("S003", "Do", None, "pending", ("a",)), steps[1]))
    delta = delta_of(before, after)
    assert delta == {"steps": {"S003": {"details": None, "notes": [1]}}, "order": [1, "S003", "S001"]}
    assert applied(plan_fields(before), delta) == plan_fields(after)
    assert delta_of(after, None) == 0
