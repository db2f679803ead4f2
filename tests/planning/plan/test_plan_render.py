"""A plan as text and as data, the replies to commands, and the difference of two plans."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from laws import work_of
from planning import Plan, PlanDiff, PlanStep, diff_plans, plan_text, plan_to_dict, register_plan
from planning.plan.commands import (
    AddStep,
    MarkStep,
    MarkSteps,
    MoveStep,
    NewPlanStep,
    ReadPlan,
    RemoveStep,
    SetupPlan,
    UpdateStep,
)
from planning.plan.facts import PlanFacts, Proof
from planning.plan.model import STEP_STATUSES, StepStatus
from planning.plan.render import reply
from planning.plan.text import as_data
from planning.testing.strategies import any_plans
from session import Session


def of_steps(*steps: PlanStep, status: str = "active", objective: str = "Fix the login bug") -> Plan:
    return Plan(objective, status, steps)  # type: ignore[arg-type]  # it is one


def plan(*statuses: StepStatus, status: str = "active") -> Plan:
    steps = (
        PlanStep(f"S{place:03d}", f"Title {place}", None, each) for place, each in enumerate(statuses, 1)
    )
    return of_steps(*steps, status=status)


def test_a_plan_is_its_objective_and_a_line_for_each_step(snapshot: SnapshotAssertion) -> None:
    steps = (
        PlanStep("S001", "Reproduce it", "On Firefox\n\tand Chrome", "done", ("Fails", "Since 1.2\nor so")),
        PlanStep("S002", "Write a test", None, "in_progress"),
        PlanStep("S1000", "Fix it", None, "blocked", ("No access",)),
    )
    assert plan_text(of_steps(*steps)) == snapshot


@given(any_plans())
def test_nothing_of_a_plan_is_lost_in_its_text(plan: Plan) -> None:
    rest = plan_text(plan)
    assert rest.isascii()
    parts = [as_data(plan.objective), plan.status, str(len(plan.steps))]
    for step in plan.steps:
        parts += [step.step_id, step.status, as_data(step.title), *(step.details or "").split("\n")]
        for note in step.notes:
            parts += ["- ", *note.split("\n")]
    for part in parts:
        before, found, rest = rest.partition(part) if part else ("", part, rest)
        assert found == part, (part, before)


KNOWN = PlanFacts(
    depends_on={"S001": ("S003",), "S002": ("S001", "S009"), "S003": ("S002", "S004"), "S004": ("S001",)},
    proofs={
        "S001": Proof(("seen", "C2"), verified=True),
        "S002": Proof(("C1",)),
        "S004": Proof(("C4", "C5")),
    },
    approval="rejected",
    reason="too long",
    waiting=("S003", "S004"),
)


def test_what_a_policy_knows_is_shown_with_each_step(snapshot: SnapshotAssertion) -> None:
    assert plan_text(plan("done", "pending", "blocked", "done"), KNOWN) == snapshot


def test_a_plan_as_data_has_what_a_policy_knows_of_it_wherever_it_is(
    session: Session, snapshot: SnapshotAssertion
) -> None:
    register_plan(session)
    assert plan_to_dict(session) is plan_to_dict(None) is None
    look = PlanStep("S001", "Title 1", "Twice", "done", ("seen",))
    made = Plan("Fix the login bug", "active", (look, *plan("done", "pending", "blocked", "done").steps[1:]))
    session.dispatch(made)
    plain = plan_to_dict(made)
    assert [plan_to_dict(source) for source in (session, session.at(1), session.snapshot())] == [plain] * 3
    session.dispatch(KNOWN)
    known = plan_to_dict(session)
    session.dispatch(PlanFacts(approval="waiting"))
    waiting = plan_to_dict(session)
    assert "\n".join(json.dumps(each, indent=1) for each in (plain, known, waiting)) == snapshot


DONE = MarkStep("S001", "done")
PENDING = plan("done", "pending", "pending")
WAITS: dict[str, Any] = {"facts": PlanFacts(depends_on={"S002": ("S003",)})}
SETUPS = [(SetupPlan("x"), plan()), (SetupPlan("x", (NewPlanStep("a"),)), plan("pending"))]
REPLACED = [
    *(plan("done", "done"), plan(status="abandoned"), plan("done", "pending", "blocked")),
    plan("done", "done", "pending"),
]
REPLIES: list[tuple[Any, Plan, dict[str, Any]]] = [
    *((command, after, {"before": before}) for command, after in SETUPS for before in (None, *REPLACED)),
    (SetupPlan("x", (NewPlanStep("a"),) * 3), plan("pending", "pending", "pending"), {}),
    (AddStep((NewPlanStep("a"),)), plan("done", "pending"), {}),
    (ReadPlan(), plan("done", "pending"), {}),
    (DONE, plan("done", "pending"), {}),
    (MarkStep("S002", "done"), plan("in_progress", "done", "blocked", "pending"), {}),
    (MarkStep("S001", "blocked"), plan("blocked", "done"), {}),
    (MarkStep("S009", "done"), plan("done", "pending"), {}),
    (DONE, PENDING, WAITS),
    (MarkSteps((DONE,)), PENDING, WAITS),
    (DONE, plan("done", "pending"), {"facts": PlanFacts(depends_on={"S002": ("S001", "S009")})}),
    (DONE, plan("done", "pending"), {"facts": PlanFacts(waiting=("S002",))}),
    *((RemoveStep("S001"), plan("pending"),
       {"facts": PlanFacts(depends_on={"S002": ("S001",), "S003": (other,)})}) for other in ("S004", "S001")),
    *((RemoveStep("S001"), plan("done", status="completed"), more) for more in ({"facts": PlanFacts()}, {})),
    (MoveStep("S001", 1), plan("done", "done"), {"facts": PlanFacts()}),
    *((command, plan("pending"), {"asks": True}) for command in (
        SetupPlan("x"), AddStep((NewPlanStep("a"),)), UpdateStep("S001", "a"), RemoveStep("S002"),
        MoveStep("S001", 0),
    )),
]  # fmt: skip


def test_a_reply_says_what_was_done_and_what_comes_next_by_what_a_policy_knows(
    snapshot: SnapshotAssertion,
) -> None:
    said = []
    for command, after, more in REPLIES:
        statuses = " ".join([after.status, *(step.status for step in after.steps)])
        said.append(f"{command}, then {statuses}\n{reply(command, after, **more)}\n")
    assert "\n".join(said) == snapshot


def long_plan(count: int, done: int = 0, **changes: PlanStep) -> Plan:
    """A plan of many steps with titles of 100 characters, the first of them done."""
    steps = [
        PlanStep(f"S{place:03d}", "x" * 100, None, "done" if place <= done else "pending")
        for place in range(1, count + 1)
    ]
    steps = [changes.get(step.step_id, step) for step in steps]
    return Plan("Ship it", "active", tuple(steps))


def test_a_plan_that_fits_into_a_message_is_shown_whole() -> None:
    details = Plan("Ship it", "active", (PlanStep("S001", "a", "x" * 49_947, "pending"),))
    assert plan_text(details) == f"Ship it (active, 0 of 1 done)\nS001 pending: a\n  {'x' * 49_947}"
    assert len(plan_text(details)) == 49_995


def test_done_steps_lose_their_details_and_notes_first(snapshot: SnapshotAssertion) -> None:
    notes = tuple(f"note {number}" for number in range(5))
    steps = (
        PlanStep("S001", "Look", "Where?", "done", ("x" * 512,) * 100),
        PlanStep("S002", "Fix", "How?", "in_progress", notes),
        PlanStep("S003", "Send", None, "pending", notes[:3]),
    )
    assert plan_text(of_steps(*steps)) == snapshot


def test_of_a_plan_that_has_no_room_the_steps_around_the_next_are_shown_and_the_rest_counted(
    snapshot: SnapshotAssertion,
) -> None:
    current = PlanStep("S19999", "Here", None, "in_progress")
    later = [PlanStep(f"S{number:03d}", "x", "y" * 3_000, "pending") for number in range(4, 30)]
    said = []
    for long in (
        long_plan(20_000, done=5_000),
        long_plan(20_000, S19999=current),
        of_steps(step(1, "a"), step(2, "b"), step(3, "c", "in_progress"), *later),
    ):
        lines = plan_text(long).split("\n")
        said += [*lines[:4], "", *lines[-3:], ""]
    assert "\n".join(said) == snapshot


@given(
    st.lists(st.sampled_from(STEP_STATUSES), min_size=1, max_size=40),
    st.integers(1, 500),
    st.integers(0, 60_000),
)
def test_any_plan_is_read_within_one_message(statuses: list[StepStatus], times: int, length: int) -> None:
    steps = tuple(
        PlanStep(f"S{place:03d}", "a", "b" * (length // times), status)
        for place, status in enumerate(statuses * times, 1)
    )
    text = plan_text(Plan("x" * length or "x", "active", steps))
    assert 0 < len(text) <= 50_000


def test_the_cost_of_reading_a_plan_grows_with_its_steps() -> None:
    def cost(count: int) -> int:
        plan = long_plan(count, done=count // 2)
        return work_of(lambda: plan_text(plan))

    assert cost(8_000) <= 2.2 * cost(4_000)


# The difference of two plans

STEPS = st.builds(
    PlanStep,
    st.sampled_from([f"S{number:03}" for number in range(1, 9)]),
    st.sampled_from(["Reproduce it", "Fix it"]),
    st.sampled_from([None, "details"]),
    st.sampled_from(["pending", "in_progress", "blocked", "done"]),
    st.lists(st.sampled_from(["a", "b"]), max_size=3).map(tuple),
)
PLANS = st.none() | st.builds(
    Plan,
    st.sampled_from(["Fix the login bug", "Ship it"]),
    st.sampled_from(["active", "completed", "abandoned"]),
    st.lists(STEPS, max_size=9).map(tuple),  # also with an id twice, which no session holds
)


def step(number: int, title: str = "Do it", status: str = "pending", *notes: str) -> PlanStep:
    return PlanStep(f"S{number:03}", title, None, status, notes)  # type: ignore[arg-type]  # it is one


@given(PLANS, PLANS)
def test_applied_to_the_first_plan_it_gives_the_second(before: Plan | None, after: Plan | None) -> None:
    diff = diff_plans(before, after)
    assert diff.apply(before) == after
    assert bool(diff) is (before != after)
    assert (str(diff) == "Nothing changed.") is (before == after)


@given(st.permutations(range(6)))
def test_no_step_is_said_to_have_moved_that_need_not(order: list[int]) -> None:
    before = of_steps(*[step(number) for number in range(6)])
    after = of_steps(*[step(number) for number in order])
    kept = max(
        len(some) for size in range(7) for some in combinations(order, size) if list(some) == sorted(some)
    )
    assert len(diff_plans(before, after).moved) == 6 - kept


def test_its_parts_are_typed(snapshot: SnapshotAssertion) -> None:
    before = of_steps(step(1, "A"), step(2, "B"), step(3, "C"), step(4, "D"))
    after = of_steps(
        step(3, "C", "done", "Reproduced on 3.12"),
        step(1, "A+"),
        replace(step(2, "B"), details="More"),
        step(5, "E"),
    )
    diff = diff_plans(before, after)
    assert diff.apply(before) == after
    assert "\n".join(f"{name}: {getattr(diff, name)}" for name in PlanDiff.__slots__) == snapshot


ONE, TWO, THREE = step(1), step(2), step(3)


DONE_ONE = step(1, "Do it", "done")
PAIRS: list[tuple[Plan | None, Plan | None]] = [
    (None, None),
    (None, of_steps(ONE, TWO)),
    (None, of_steps()),
    (of_steps(ONE), None),
    (of_steps(ONE, TWO), of_steps(status="abandoned")),
    (of_steps(ONE, TWO, THREE),
     of_steps(ONE, step(2, "Do it", "done", "Reproduced on 3.12"), THREE, step(4))),
    (of_steps(ONE, TWO), of_steps(DONE_ONE, step(2, "Do it", "done"), status="completed")),
    (of_steps(DONE_ONE, status="completed"), of_steps(step(1, "Do it", "in_progress"))),
    (of_steps(ONE, status="abandoned"), of_steps(ONE)),
    (of_steps(status="abandoned"), of_steps(ONE, objective="Ship it")),
    *((of_steps(ONE), of_steps(step(1, "Do it", "pending", note))) for note in ("What\nnow?", "n" * 228)),
    (of_steps(step(1, "Do it", "pending", "a", "b")), of_steps(step(1, "Do it", "pending", "a"))),
    (of_steps(ONE), of_steps(step(1, "Think first"))),
    (of_steps(ONE), of_steps(replace(ONE, details="how"))),
    (of_steps(ONE, TWO, THREE), of_steps(TWO, THREE, ONE)),
    (of_steps(ONE, TWO), of_steps(ONE)),
    (of_steps(ONE), of_steps(step(1, "Another"), objective="Ship it")),
    (of_steps(ONE), of_steps(ONE, objective="Ship it")),
    (of_steps(), of_steps(*[step(number) for number in range(1, 13)])),
]  # fmt: skip


def test_it_reads_as_a_person_would_say_it(snapshot: SnapshotAssertion) -> None:
    assert "\n".join(str(diff_plans(before, after)) for before, after in PAIRS) == snapshot


@pytest.mark.parametrize("other", [None, of_steps(TWO)])
def test_applied_to_another_plan_it_says_so(other: Plan | None) -> None:
    diff = diff_plans(of_steps(ONE), of_steps(step(1, "Do it", "done")))
    with pytest.raises(ValueError, match="the difference starts from") as caught:
        diff.apply(other)
    assert str(caught.value) == (
        "the difference starts from a plan, and there is none"
        if other is None
        else "the plan has no step S001: the difference starts from another plan"
    )


def test_the_work_grows_with_the_number_of_steps() -> None:
    def work(size: int) -> int:
        before = of_steps(*[step(number) for number in range(1, size + 1)])
        after = of_steps(*reversed(before.steps))
        assert diff_plans(before, after).apply(before) == after
        return work_of(lambda: diff_plans(before, after).apply(before))

    assert work(2_000) < 4.5 * work(500)
