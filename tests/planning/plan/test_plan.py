"""A plan as data, the ids of its steps, the plans that a session can hold, and the reducers."""

from __future__ import annotations

import copy
import json
import pickle
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import fields
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from naive_plan import Call, reference, turns
from planning import (
    AddStep,
    ClearPlan,
    MarkStep,
    NewPlanStep,
    ReadPlan,
    SetupPlan,
    StepStatus,
    UpdateStep,
    ready_steps,
)
from planning.errors import cut
from planning.plan import commands as commands_of_a_plan
from planning.plan.commands import Command, MarkSteps, MoveStep, RemoveStep, RenumberSteps
from planning.plan.facts import PlanFacts
from planning.plan.model import STEP_STATUSES, Plan, PlanStatus, PlanStep, format_id, listed_ids, number_of
from planning.plan.reducers import REDUCERS, TRANSITIONS, allows, mark_step, mark_steps
from planning.plan.text import DETAILS, NOTE, OBJECTIVE, STEP_ID, TITLE, TextRule
from planning.suite.tools import planning_tools, register_plan
from planning.testing.strategies import any_plans, commands
from session import ReducerError, Session, Snapshot, SnapshotError

FIRST = PlanStep("S001", "Look", "Twice", "done", ("seen",))
SECOND = PlanStep("S002", "Fix", None, "pending")
PLAN = Plan("Fix the login bug", "active", (FIRST, SECOND))


# Data, and ids


@given(st.text() | st.from_regex(r"\A.?[0-9]{1,3}\Z"))
def test_the_number_of_a_text_is_that_of_the_digits_at_its_end(text: str) -> None:
    (digits,) = re.findall(r"[0-9]*\Z", text)[:1]
    assert number_of(text) == (int(digits) if digits else None)


def test_ids_in_an_unbroken_row_are_listed_as_one(snapshot: SnapshotAssertion) -> None:
    odd = " ".join(format_id(number) for number in range(1, 41, 2))
    rows = ["S001", "S001 S002", "S999 S1000", "S001 S003", "S001 S002 S004 S005 S006 end", "a b 7"]
    assert "\n".join(listed_ids(ids.split()) for ids in (*rows, odd, f"{odd} S043 S044")) == snapshot


def test_the_steps_that_can_begin_are_the_pending_ones_whose_prerequisites_are_done(session: Session) -> None:
    register_plan(session)
    assert ready_steps(session) == ()
    statuses: list[StepStatus] = ["done", "pending", "pending", "blocked", "pending", "in_progress"]
    steps = tuple(PlanStep(format_id(at), "x", None, status) for at, status in enumerate(statuses, 1))
    session.dispatch(Plan("x", "active", steps))
    everything = (steps[1], steps[2], steps[4])
    assert ready_steps(session) == ready_steps(Plan("x", "active", steps)) == everything
    session.dispatch(PlanFacts(depends_on={"S002": ("S001", "S009"), "S003": ("S002",), "S005": ("S004",)}))
    for source in (session, session.snapshot(), session.at(session.version)):
        assert ready_steps(source) == (steps[1],)


def test_a_plan_says_how_far_it_is_and_what_is_next() -> None:
    statuses: tuple[StepStatus, ...] = ("done", "blocked", "pending", "in_progress")
    steps = tuple(
        PlanStep(f"S{number:03}", "Do it", None, status, ()) for number, status in enumerate(statuses, 1)
    )
    plan = Plan("Fix it", "active", steps)
    assert (plan.progress, plan.next_step) == ((1, 4), steps[3])
    assert Plan("Fix it", "active", steps[:3]).next_step == steps[2]
    assert Plan("Fix it", "active", steps[:2]).next_step is None
    assert Plan("Fix it", "active").progress == (0, 0)


@given(commands() | any_plans())
def test_a_value_can_be_compared_hashed_copied_and_pickled(value: Command | Plan) -> None:
    for twin in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value), copy.copy(value)):  # noqa: S301 - its own pickle
        assert twin == value
        assert hash(twin) == hash(value)
        assert repr(twin) == repr(value)


# Plans that a session can hold, and no others


def held(*steps: Any, objective: Any = "x", status: Any = "active") -> Plan:
    """A plan, also with what type hints refuse."""
    return Plan(objective, status, steps)


step: Any = PlanStep


NO_NOTES: list[Any] = [[], ("a", "n" * 600), ("a", 7)]
NOT_HELD = [
    *(held(objective=objective) for objective in ("o" * 241, " ", 7)),
    held(status=None),
    Plan("x", "active", [FIRST]),  # type: ignore[arg-type]  # what is refused
    held(FIRST, "a"),
    held(FIRST, FIRST),
    *(held(step(step_id, "a", None, "done")) for step_id in ("S" * 65, 7)),
    *(held(step("S001", title, None, "done")) for title in ("t" * 161, "a\nb", 7)),
    *(held(step("S001", "a", details, "done")) for details in ("", "d" * 513, 7)),
    held(step("S001", "a", None, 7)),
    *(held(step("S001", "a", None, "done", notes)) for notes in NO_NOTES),
]


def test_a_plan_with_parts_of_other_types_or_lengths_is_refused_when_it_is_dispatched(
    session: Session, snapshot: SnapshotAssertion
) -> None:
    register_plan(session)
    said = []
    for plan in NOT_HELD:
        with pytest.raises(ReducerError) as caught:
            session.dispatch(plan)
        said.append(str(caught.value))
    assert session.select_all(Plan) == ()
    assert "\n".join(said) == snapshot


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda plans: plans.append(plans[0]), "a session has one plan, got 2"),
        (lambda plans: plans[0].update(objective=""), "objective: blank; send 1 to 240 characters"),
    ],
)
def test_an_invalid_plan_is_refused(spoil: Callable[[Any], None], message: str, session: Session) -> None:
    register_plan(session)
    session.dispatch(PLAN)
    document = json.loads(session.snapshot().to_json())
    spoil(document["slices"]["planning.model:Plan"])
    with pytest.raises(SnapshotError) as caught:
        Snapshot.from_json(json.dumps(document))
    assert str(caught.value) == f"Plan: {message}"


# Reducers


def reduced(plan: Plan | None, command: Command | RenumberSteps) -> Plan | None:
    """The plan after a command; with no change, the slice is the same object."""
    slice_ = () if plan is None else (plan,)
    after = REDUCERS[type(command)](slice_, command)
    assert type(after) is tuple
    assert len(after) <= 1
    assert (after is slice_) is (after == slice_ and (not after or after[0] is plan))
    return after[0] if after else None


def with_ids(*step_ids: str) -> Plan:
    return Plan("x", "active", tuple(PlanStep(step_id, "x", None, "pending") for step_id in step_ids))


def ids_after(plan: Plan, added: int) -> list[str]:
    after = reduced(plan, AddStep((NewPlanStep("x"),) * added))
    assert after is not None
    return [step.step_id for step in after.steps[len(plan.steps) :]]


ODD_IDS: list[list[str]] = [
    *([], ["S999"], ["S007", "S003"], ["intro", "S004", "end"], ["intro"], ["X41"], ["S0009"]),
    *(["phase2-3", "17", "S-5"], ["S1a", "S 2 ", "S\u0663", "S\u00b2"]),
    ["S" + "9" * 4_001, "S" + "9" * 100_000, "S007"],
]


def test_ids_continue_from_the_highest_number(snapshot: SnapshotAssertion) -> None:
    said = [f"{cut(ascii(ids), 60)} then {ids_after(with_ids(*ids), 2)}" for ids in ODD_IDS]
    assert "\n".join(said) == snapshot


def test_an_id_is_not_given_out_twice_when_its_number_is_too_long_to_count() -> None:
    longest = "S" + "9" * 4_000
    (first,) = ids_after(with_ids(longest), 1)
    assert first == "S1" + "0" * 4_000
    assert number_of(first) is None
    assert ids_after(with_ids(longest, first), 1) == ["S1" + "0" * 3_999 + "1"]


@pytest.mark.parametrize(
    ("step_ids", "command", "after"),
    [
        (["S001", "S002"], RenumberSteps(2, 5), ["S005", "S006"]),
        (["S001", "S002", "S003"], RenumberSteps(2, 3), ["S001", "S003", "S004"]),
        (["S001", "S005", "S003"], RenumberSteps(2, 5), ["S001", "S005", "S006"]),
        (["S001", "S005", "S006"], RenumberSteps(2, 5), ["S001", "S005", "S006"]),
    ],
)
def test_the_last_steps_are_numbered_from_another_number(
    step_ids: list[str], command: RenumberSteps, after: list[str]
) -> None:
    assert reduced(with_ids(*step_ids), command) == with_ids(*after)


def test_a_slice_of_several_plans_is_left_with_one_built_from_the_newest() -> None:
    after = REDUCERS[ClearPlan]((Plan("old", "active"), Plan("new", "active")), ClearPlan())
    assert after == (Plan("new", "abandoned"),)


# Laws, for any plan and any command

MAY_CHANGE: dict[type[Any], tuple[set[str], set[str]]] = {
    AddStep: ({"steps"}, set()),
    UpdateStep: ({"steps"}, {"title", "details"}),
    MarkStep: ({"status", "steps"}, {"status", "notes"}),
    ClearPlan: ({"status", "steps"}, set()),
}


@given(st.data(), st.none() | any_plans())
def test_a_reducer_is_pure_keeps_to_the_table_and_changes_what_its_command_names_alone(
    data: st.DataObject, plan: Plan | None
) -> None:
    command = data.draw(commands(plan).filter(lambda command: type(command) is not ReadPlan))
    twin_plan, twin_command = copy.deepcopy(plan), copy.deepcopy(command)
    after = reduced(plan, command)
    assert (plan, command) == (twin_plan, twin_command)
    assert reduced(twin_plan, twin_command) == after
    if after is plan:
        return
    assert allows(plan, type(command))
    assert after is not None
    assert after.status in TRANSITIONS[None if plan is None else plan.status, type(command)]
    if plan is None or isinstance(command, SetupPlan):
        return
    of_plan, of_step = MAY_CHANGE[type(command)]
    assert names_of_changes(plan, after) <= of_plan
    others = [(old, new) for old, new in zip(plan.steps, after.steps, strict=False) if old is not new]
    assert {old.step_id for old, _ in others} <= {getattr(command, "step_id", None)}
    assert {name for old, new in others for name in names_of_changes(old, new)} <= of_step


def names_of_changes(old: Any, new: Any) -> set[str]:
    """The fields that are another object."""
    return {field.name for field in fields(old) if getattr(new, field.name) is not getattr(old, field.name)}


@given(any_plans(), st.data())
def test_several_marks_make_what_they_make_one_after_the_other(plan: Plan, data: st.DataObject) -> None:
    ids = [step.step_id for step in plan.steps]
    marks = data.draw(
        st.lists(
            st.builds(
                MarkStep,
                st.sampled_from(ids) if ids else st.nothing(),
                st.sampled_from(STEP_STATUSES),
                st.none() | st.just("seen"),
            ),
            max_size=6 if ids else 0,
        )
    )
    slice_: tuple[Plan, ...] = (plan,)
    assert mark_steps(slice_, MarkSteps(tuple(marks))) == reduce(mark_step, marks, slice_)


# The naive plan


def test_the_tools_do_what_the_model_does() -> None:
    reached = Counter[str]()

    @settings(max_examples=max(500, 3 * settings().max_examples))
    @given(turns())
    def check(history: list[list[Call]]) -> None:
        reference([call for turn in history for call in turn], reached)

    check()
    names = [tool.name for tool in planning_tools(Session())]
    calls = [f"{name} {verdict}" for name in names for verdict in ("accepted", "refused")]
    kinds = ["became active", "became completed", "became abandoned", "changed nothing"]
    texts = ["a text too long", "a text of another language", "the longest text", "JSON that was repaired"]
    assert [each for each in (*calls, *kinds, *texts) if not reached[each]] == []


# Commands that are dispatched without a handler

of: Any = commands_of_a_plan  # also what type hints refuse
LONG = "x" * 513
NOT_TAKEN: list[Any] = [
    of.MarkStep(5, "done"),
    of.MarkStep("S001", "done", LONG),
    of.MarkSteps((of.MarkStep(["S001"], "done"),)),
    MarkSteps((MarkStep("S001", "done", "a"), MarkStep("S002", "done", LONG))),
    of.SetupPlan(" "),
    of.SetupPlan("x", 7),
    of.SetupPlan("x", (NewPlanStep("a"), NewPlanStep("b" * 161))),
    of.AddStep((NewPlanStep("a"), "b")),
    of.AddStep((NewPlanStep("a", LONG),)),
    of.UpdateStep(None, "a"),
    of.UpdateStep("S001", "a\nb"),
    *(of.UpdateStep("S001", None, details) for details in (LONG, "a\0")),
    of.RemoveStep(7),
    of.MoveStep(7, 0),
    *(of.MoveStep("S001", index) for index in (-1, True, "1")),
]


def test_what_no_plan_can_hold_is_refused_when_it_is_dispatched(
    session: Session, snapshot: SnapshotAssertion
) -> None:
    register_plan(session)
    session.dispatch(PLAN)
    said = []
    for command in NOT_TAKEN:
        with pytest.raises(ReducerError) as refused:
            session.dispatch(command)
        said.append(str(refused.value))
    assert session.select_all(Plan) == (PLAN,)
    assert "\n".join(said) == snapshot


IN_ANY_LANGUAGE = "\u4fee\u590d"
TAKEN: list[Any] = [
    MarkStep("S009", "done", "seen"),
    MarkStep("S001", "blocked", IN_ANY_LANGUAGE),
    of.AddStep([NewPlanStep(IN_ANY_LANGUAGE, "a\n\tb")]),
    AddStep(()),
    MarkSteps((MarkStep("S002", "blocked"),), is_last=True),
    MarkSteps(()),
    MarkSteps((MarkStep("S001", "done"), MarkStep("S002", "done"))),
    MarkSteps((MarkStep("S002", "done"), MarkStep("S009", "done"))),
    MarkSteps((MarkStep("S002", "done"), of.MarkStep("S001", "finished"))),
    UpdateStep("S001", IN_ANY_LANGUAGE),
    UpdateStep("S001", None, ""),
    *(MoveStep(*to) for to in (("S001", 9), ("S002", 0), ("S002", 1), ("S009", 0))),
    *(RemoveStep(step_id) for step_id in ("S001", "S002", "S009", "S" + "9" * 9_999)),
    UpdateStep("", "a"),
]


def test_what_a_plan_can_hold_is_carried_out_when_it_is_dispatched(
    session: Session, snapshot: SnapshotAssertion
) -> None:
    register_plan(session)
    said = []
    for command in TAKEN:
        session.dispatch(PLAN)
        session.dispatch(command)
        (after,) = session.select_all(Plan)
        said.append(f"{cut(str(command), 120)}\n    {'is the same' if after == PLAN else after}\n")
    assert "\n".join(said) == snapshot


@pytest.mark.parametrize(
    ("before", "gone", "after"),
    [
        ("active pending", "S001", "active"),
        ("active done pending", "S002", "completed done"),
        ("active done pending pending", "S003", "active done pending"),
        ("completed done done", "S001", "completed done"),
        ("completed done", "S001", "active"),
        ("completed done blocked", "S001", "completed blocked"),
        ("abandoned pending", "S001", "abandoned pending"),
    ],
)
def test_without_an_open_step_left_a_plan_is_completed(before: str, gone: str, after: str) -> None:
    status, *statuses = before.split()
    steps = tuple(PlanStep(f"S{n:03}", "x", None, each) for n, each in enumerate(statuses, 1))  # type: ignore[arg-type] # a table
    now = reduced(Plan("x", status, steps), RemoveStep(gone))  # type: ignore[arg-type]  # a status of the table
    assert now is not None
    assert " ".join([now.status, *(step.status for step in now.steps)]) == after


# The tables of specs/PLANNING.md say what the code does

SPEC = Path(__file__).parents[3] / "specs" / "PLANNING.md"


def table(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, its head first."""
    _, _, below = SPEC.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    lines = below.split("\n## ")[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    assert [cell.strip("-") for cell in rows[1]] == [""] * len(rows[0])
    return [rows[0], *rows[2:]]


def test_the_lifecycle_table_is_the_one_of_the_code() -> None:
    head, *rows = table("Lifecycle")
    commands: dict[str, type[Command]] = {command.__name__: command for _, command in TRANSITIONS}
    heads: tuple[PlanStatus | None, ...] = (None, "active", "completed", "abandoned")
    assert head == ["command", *(status or "no plan" for status in heads)]
    assert [row[0].strip("`") for row in rows] == list(commands)
    shown = {
        (status, commands[row[0].strip("`")]): cell.strip("`")
        for row in rows
        for status, cell in zip(heads, row[1:], strict=True)
    }
    assert shown == {key: " / ".join(statuses) or "refused" for key, statuses in TRANSITIONS.items()}
    plans = {status: None if status is None else Plan("x", status) for status in heads}
    taken = {key: allows(plans[key[0]], key[1]) for key in shown}
    assert taken == {key: cell != "refused" for key, cell in shown.items()}


def test_the_text_table_has_the_limits_of_the_code() -> None:
    def row(name: str, rule: TextRule) -> list[str]:
        if rule.blank_is_none:
            return [name, f"at most {rule.limit}", "several" if rule.multiline else "one", "`None`"]
        return [name, f"1 to {rule.limit}", "several" if rule.multiline else "one", "refused"]

    rules = {"objective": OBJECTIVE, "title": TITLE, "details": DETAILS, "note": NOTE, "step_id": STEP_ID}
    head = ["text", "characters", "lines", "blank"]
    assert table("Text") == [head, *(row(*each) for each in rules.items())]


def test_the_tools_table_has_the_tools_and_commands_of_the_code() -> None:
    rows = table("Commands and tools")[1:]
    shown = [(row[0].strip("`"), row[1].strip("`").partition("(")[0]) for row in rows]
    assert shown == [(tool.name, tool.parameters.__name__) for tool in planning_tools(Session())]
