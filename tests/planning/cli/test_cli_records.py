"""The records of a replay, and the lines that they become."""

from __future__ import annotations

import json

from cli_runs import said
from hypothesis import given
from hypothesis import strategies as st

from planning import ClearPlan, MarkStep, Plan, PlanningToolsSection
from planning.cli.messages import Call, calls_of
from planning.cli.printable import one_line, printable
from planning.cli.replay import Changed, PassedOver, Read, Record, Refused, Tally, replay
from planning.cli.view_plain import record_lines
from session import Session

SETUP = ("planning_setup_plan", {"objective": "Fix the login", "initial_steps": ["Reproduce it", "Fix it"]})


def records(*calls: tuple[str, object]) -> list[Record]:
    section = PlanningToolsSection(session=Session())
    return list(replay(calls_of(said(*calls)), section))


def shown(*calls: tuple[str, object]) -> list[str]:
    """The lines of the last of some calls."""
    return list(record_lines(records(*calls)[-1]))


def mark(step_id: str, status: str, note: str | None = None) -> tuple[str, object]:
    return ("planning_mark_step", {"step_id": step_id, "status": status, "note": note})


def test_each_call_becomes_a_record_of_what_became_of_it() -> None:
    setup, read, refused, passed_over = records(
        SETUP, ("planning_read_plan", {}), mark("S009", "done"), ("run_tests", {})
    )
    assert isinstance(setup, Changed)
    assert setup.before is None
    assert read == Read(setup.plan)
    assert refused == Refused(
        "planning_mark_step", "step_id: the plan has no step S009; its steps are S001 to S002"
    )
    assert passed_over == PassedOver("run_tests")


def test_a_record_holds_the_plan_before_and_after() -> None:
    setup, marked = records(SETUP, mark("S001", "done"))
    assert isinstance(setup, Changed)
    assert isinstance(marked, Changed)
    assert (marked.before, marked.command) == (setup.plan, MarkStep("S001", "done"))
    assert [step.status for step in marked.plan.steps] == ["done", "pending"]


def test_a_call_is_carried_out_when_its_record_is_asked_for() -> None:
    section = PlanningToolsSection(session=Session())
    coming = replay(calls_of(said(SETUP, mark("S001", "done"), ("planning_clear_plan", {}))), section)
    statuses = []
    for _ in coming:
        plan = section.session.select_latest(Plan)
        assert plan is not None
        statuses.append((plan.status, len(plan.steps)))
    assert statuses == [("active", 2), ("active", 2), ("abandoned", 0)]


def test_the_tally_counts_every_kind_of_record() -> None:
    tally = Tally()
    for record in records(SETUP, mark("S9", "done"), ("planning_read_plan", {}), ("a", {}), ("b", {})):
        tally = tally.after(record)
    assert tally == Tally(carried_out=2, refused=1, passed_over=2)
    assert str(tally) == "3 planning calls: 2 carried out, 1 refused. Passed over 2 calls to other tools."
    assert str(Tally(carried_out=1)) == "1 planning call: 1 carried out, 0 refused."


def test_a_new_plan_is_a_line_and_one_for_each_step() -> None:
    assert shown(SETUP) == [
        "plan     set, 2 steps            Fix the login",
        "S001     new                     Reproduce it",
        "S002     new                     Fix it",
    ]


def test_an_update_is_a_line_for_each_field() -> None:
    update = {"step_id": "S002", "title": "Fix it well", "details": "In login.py\nand in session.py"}
    assert shown(SETUP, ("planning_update_step", update)) == [
        "S002     title                   Fix it well",
        "S002     details                 In login.py | and in session.py",
    ]


def test_a_mark_is_a_line_with_both_statuses_and_one_for_the_note() -> None:
    assert shown(SETUP, mark("S001", "in_progress", "Fails on empty names")) == [
        "S001     pending -> in_progress  Reproduce it",
        "S001     note                    Fails on empty names",
    ]


def test_a_mark_with_the_status_that_a_step_has_shows_it_once() -> None:
    assert shown(SETUP, mark("S001", "pending")) == ["S001     pending                 Reproduce it"]


def test_the_plans_own_status_has_its_line_when_it_changes() -> None:
    done = (mark("S001", "done"), mark("S002", "done"))
    assert shown(SETUP, *done)[-1] == "plan     active -> completed     Fix the login"
    assert (
        shown(SETUP, *done, mark("S001", "blocked"))[-1] == "plan     completed -> active     Fix the login"
    )
    assert shown(SETUP, ("planning_clear_plan", {})) == ["plan     active -> abandoned     Fix the login"]


def test_a_clear_of_a_plan_from_nowhere_shows_what_it_became() -> None:
    plan = Plan("Fix the login", "abandoned")
    assert list(record_lines(Changed(ClearPlan(), None, plan))) == [
        "plan     abandoned               Fix the login"
    ]


def test_a_reading_shows_how_far_the_plan_is() -> None:
    assert shown(SETUP, mark("S001", "done"), ("planning_read_plan", {})) == [
        "plan     read                    active, 1 of 2 done"
    ]


def test_a_refusal_with_several_problems_is_one_line() -> None:
    assert shown(SETUP, mark("S009", "finished")) == [
        "refused  planning_mark_step      2 problems: step_id: the plan has no step S009; its steps are S001"
        " to S002 | status: 'finished' is unknown; did you mean done?"
        " send one of pending, in_progress, blocked, done"
    ]


def test_a_call_to_another_tool_shows_nothing() -> None:
    assert shown(("run_tests", {})) == []


def test_what_does_not_print_is_escaped() -> None:
    assert printable("\x1b[31mred\u202e\ud800\x9b") == "\\x1b[31mred\\u202e\\ud800\\x9b"
    assert printable("plain [red] caf\u00e9") == "plain [red] caf\u00e9"
    assert one_line("a\n\tb\x07") == "a |  b\\x07"


texts = st.text(max_size=12) | st.sampled_from(["S001", "S002", "done", "\x1b[2J", "[red]", "\x9b", "\u202e"])
names = st.sampled_from([SETUP[0], "planning_mark_step", "planning_add_step", "planning_update_step"])
fields = st.sampled_from(
    ["objective", "initial_steps", "steps", "step_id", "status", "note", "title", "details"]
)
arguments = texts | st.dictionaries(fields | texts, texts | st.lists(texts, max_size=2), max_size=4)


@given(st.lists(st.tuples(names | texts.map("planning_".__add__), arguments), max_size=5))
def test_whatever_a_model_sends_every_line_is_printable(calls: list[tuple[str, object]]) -> None:
    section = PlanningToolsSection(session=Session())
    sent = [Call(name, given if isinstance(given, str) else json.dumps(given)) for name, given in calls]
    for record in replay([Call(SETUP[0], json.dumps(SETUP[1])), *sent], section):
        assert all(line.isprintable() for line in record_lines(record))
