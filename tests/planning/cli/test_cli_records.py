"""The records of a replay, and the lines that they become."""

from __future__ import annotations

import json

from cli_runs import said
from hypothesis import given
from hypothesis import strategies as st

from planning import ClearPlan, Plan, PlanningToolsSection
from planning.cli.messages import Call, calls_of
from planning.cli.printable import one_line, printable
from planning.cli.replay import Changed, replay
from planning.cli.view_plain import record_lines
from session import Session

SETUP = ("planning_setup_plan", {"objective": "Fix the login", "initial_steps": ["Reproduce it", "Fix it"]})


def test_a_call_is_carried_out_when_its_record_is_asked_for() -> None:
    section = PlanningToolsSection(session=Session())
    coming = replay(
        calls_of(
            said(
                SETUP,
                ("planning_mark_step", {"step_id": "S001", "status": "done"}),
                ("planning_clear_plan", {}),
            )
        ),
        section,
    )
    statuses = []
    for _ in coming:
        plan = section.session.select_latest(Plan)
        assert plan is not None
        statuses.append((plan.status, len(plan.steps)))
    assert statuses == [("active", 2), ("active", 2), ("abandoned", 0)]


def test_a_clear_of_a_plan_from_nowhere_shows_what_it_became() -> None:
    plan = Plan("Fix the login", "abandoned")
    assert list(record_lines(Changed(ClearPlan(), None, plan))) == [
        "plan     abandoned               Fix the login"
    ]


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
