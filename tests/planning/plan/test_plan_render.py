"""A plan as text and as data, the replies to commands, and the difference of two plans."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from laws import work_of
from planning import (
    AddStep,
    MarkStep,
    NewPlanStep,
    Plan,
    PlanDiff,
    PlanStep,
    ReadPlan,
    RemoveStep,
    SetupPlan,
    UpdateStep,
    diff_plans,
    plan_text,
    plan_to_dict,
    register_plan,
)
from planning.plan.commands import MarkSteps, MoveStep
from planning.plan.diff import StepAdded, StepDetailed, StepMarked, StepMoved, StepNoted, StepRetitled
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


@pytest.mark.parametrize(
    ("before", "replaced"),
    [
        (None, ""),
        (plan("done", "done"), ""),
        (plan(status="abandoned"), ""),
        (plan("done", "pending", "blocked"), "It replaced a plan with 1 step done, 2 not done. "),
        (plan("done", "done", "pending"), "It replaced a plan with 2 steps done, 1 not done. "),
    ],
)
def test_a_setup_says_what_it_replaced(before: Plan | None, replaced: str) -> None:
    empty = f"Plan set, no steps yet. {replaced}Add them with planning_add_step."
    assert reply(SetupPlan("x"), plan(), before) == empty
    one = f"Plan set: S001. {replaced}Next: S001 Title 1"
    assert reply(SetupPlan("x", (NewPlanStep("a"),)), plan("pending"), before) == one


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


def test_what_a_policy_knows_is_shown_with_each_step() -> None:
    text = plan_text(plan("done", "pending", "blocked", "done"), KNOWN)
    assert text.split("\n")[1:] == [
        "S001 done, verified: Title 1",
        "S002 pending, after S009: Title 2",
        "S003 blocked, after S002, waits for approval: Title 3",
        "S004 done, reported with C4, C5, waits for approval: Title 4",
    ]


def test_a_plan_as_data_has_what_a_policy_knows_of_it_wherever_it_is(session: Session) -> None:
    register_plan(session)
    assert plan_to_dict(session) is plan_to_dict(None) is None
    look = PlanStep("S001", "Title 1", "Twice", "done", ("seen",))
    made = Plan("Fix the login bug", "active", (look, *plan("done", "pending", "blocked", "done").steps[1:]))
    session.dispatch(made)
    steps: list[dict[str, object]] = [
        {"step_id": "S001", "title": "Title 1", "details": "Twice", "status": "done", "notes": ["seen"]},
        {"step_id": "S002", "title": "Title 2", "details": None, "status": "pending", "notes": []},
        {"step_id": "S003", "title": "Title 3", "details": None, "status": "blocked", "notes": []},
        {"step_id": "S004", "title": "Title 4", "details": None, "status": "done", "notes": []},
    ]
    plain = {"objective": "Fix the login bug", "status": "active", "done": 2, "total": 4, "steps": steps}
    for source in (session, session.at(1), session.snapshot(), made):
        assert plan_to_dict(source) == plain
    session.dispatch(KNOWN)
    known: list[dict[str, object]] = [
        {"depends_on": ["S003"], "evidence": ["seen", "C2"], "proof": "verified"},
        {"depends_on": ["S001", "S009"], "evidence": ["C1"], "proof": "reported"},
        {"depends_on": ["S002", "S004"], "waits_for_approval": True},
        {"depends_on": ["S001"], "evidence": ["C4", "C5"], "proof": "reported", "waits_for_approval": True},
    ]
    assert plan_to_dict(session) == {
        **plain,
        "approval": "rejected",
        "reason": "too long",
        "steps": [step | more for step, more in zip(steps, known, strict=True)],
    }
    session.dispatch(PlanFacts(approval="waiting"))
    found = plan_to_dict(session)
    assert found is not None
    assert list(found) == ["objective", "status", "approval", "done", "total", "steps"]


ASK = "Ask the user to approve it first."
DONE = MarkStep("S001", "done")


@pytest.mark.parametrize(
    ("command", "after", "facts", "expected"),
    [
        (SetupPlan("x", (NewPlanStep("a"),) * 3), plan("pending", "pending", "pending"), None,
         "Plan set: S001 to S003. Next: S001 Title 1"),
        (AddStep((NewPlanStep("a"),)), plan("done", "pending"), None, "Added S002."),
        (ReadPlan(), plan("done", "pending"), None, plan_text(plan("done", "pending"))),
        (DONE, plan("done", "pending"), None, "S001 done. Next: S002 Title 2"),
        (MarkStep("S002", "done"), plan("in_progress", "done", "blocked", "pending"), None,
         "S002 done. Next: S004 Title 4"),
        (MarkStep("S001", "blocked"), plan("blocked", "done"), None,
         "S001 blocked. No other step is open."),
        (MarkStep("S009", "done"), plan("done", "pending"), None, "S009 done. Next: S002 Title 2"),
        (DONE, plan("done", "pending", "pending"), {"depends_on": {"S002": ("S003",)}},
         "S001 done. Next: S003 Title 3"),
        (MarkSteps((DONE,)), plan("done", "pending", "pending"), {"depends_on": {"S002": ("S003",)}},
         "S001 done. Next: S003 Title 3"),
        (DONE, plan("done", "pending"), {"depends_on": {"S002": ("S001", "S009")}},
         "S001 done. Next: S002 Title 2"),
        (DONE, plan("done", "pending"), {"waiting": ("S002",)}, "S001 done. No other step is open."),
        (RemoveStep("S001"), plan("pending"), {"depends_on": {"S002": ("S001",), "S003": ("S004",)}},
         "S001 removed. S002 no longer waits for it."),
        (RemoveStep("S001"), plan("pending"), {"depends_on": {"S002": ("S001",), "S003": ("S001",)}},
         "S001 removed. S002 to S003 no longer wait for it."),
        (RemoveStep("S001"), plan("done", status="completed"), {}, "S001 removed. Plan completed."),
        (RemoveStep("S001"), plan("done", status="completed"), None, "S001 removed. Plan completed."),
        (MoveStep("S001", 1), plan("done", "done"), {}, "S001 moved. Order: S001 to S002."),
    ],
)  # fmt: skip
def test_a_reply_says_what_was_done_and_what_comes_next_by_what_a_policy_knows(
    command: Any, after: Plan, facts: dict[str, Any] | None, expected: str
) -> None:
    assert reply(command, after, facts=None if facts is None else PlanFacts(**facts)) == expected


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (SetupPlan("x"), "Plan set: S001."),
        (AddStep((NewPlanStep("a"),)), "Added S001."),
        (UpdateStep("S001", "a"), "S001 updated."),
        (RemoveStep("S002"), "S002 removed."),
        (MoveStep("S001", 0), "S001 moved. Order: S001."),
    ],
)
def test_a_reply_asks_for_the_users_approval(command: Any, said: str) -> None:
    assert reply(command, plan("pending"), asks=True) == f"{said} {ASK}"


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


def test_of_a_plan_that_has_no_room_the_next_steps_are_shown_and_the_rest_counted() -> None:
    lines = plan_text(long_plan(20_000, done=5_000)).split("\n")
    assert lines[:3] == [
        "Ship it (active, 5000 of 20000 done)",
        "S001 to S5000 done",
        f"S5001 pending: {'x' * 100}",
    ]
    assert lines[-2:] == [
        f"S5361 pending: {'x' * 100}",
        "(14639 not shown: S5362 to S20000; mark steps done to see the next ones)",
    ]


def test_earlier_steps_are_shown_where_a_long_later_one_has_no_room() -> None:
    later = [PlanStep(f"S{number:03d}", "x", "y" * 3_000, "pending") for number in range(4, 30)]
    steps = (step(1, "a"), step(2, "b"), step(3, "c", "in_progress"), *later)
    lines = plan_text(of_steps(*steps)).split("\n")
    assert lines[1:4] == ["S001 pending: a", "S002 pending: b", "S003 in_progress: c"]


def test_a_long_plan_is_shown_around_the_step_that_is_in_progress() -> None:
    current = PlanStep("S19999", "Here", None, "in_progress")
    lines = plan_text(long_plan(20_000, S19999=current)).split("\n")
    assert lines[:3] == [
        "Ship it (active, 0 of 20000 done)",
        "(19641 not shown: S001 to S19641)",
        f"S19642 pending: {'x' * 100}",
    ]
    assert lines[-3:] == [
        f"S19998 pending: {'x' * 100}",
        "S19999 in_progress: Here",
        f"S20000 pending: {'x' * 100}",
    ]


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


def test_its_parts_are_typed() -> None:
    before = of_steps(step(1, "A"), step(2, "B"), step(3, "C"), step(4, "D"))
    after = of_steps(
        step(3, "C", "done", "Reproduced on 3.12"),
        step(1, "A+"),
        replace(step(2, "B"), details="More"),
        step(5, "E"),
    )
    diff = diff_plans(before, after)
    assert diff.apply(before) == after
    assert diff == PlanDiff(
        added=(StepAdded(step(5, "E"), 3),),
        removed=("S004",),
        moved=(StepMoved("S003", 0),),
        retitled=(StepRetitled("S001", "A", "A+"),),
        detailed=(StepDetailed("S002", None, "More"),),
        marked=(StepMarked("S003", "pending", "done"),),
        noted=(StepNoted("S003", ("Reproduced on 3.12",)),),
    )


ONE, TWO, THREE = step(1), step(2), step(3)


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (None, None, "Nothing changed."),
        (None, of_steps(ONE, TWO), "New plan: Fix the login bug. Added S001, S002."),
        (None, of_steps(), "New plan: Fix the login bug."),
        (of_steps(ONE), None, "Plan removed."),
        (of_steps(ONE, TWO), of_steps(status="abandoned"), "Plan abandoned."),
        (
            of_steps(ONE, TWO, THREE),
            of_steps(ONE, step(2, "Do it", "done", "Reproduced on 3.12"), THREE, step(4)),
            "S002 done: Reproduced on 3.12. Added S004.",
        ),
        (of_steps(ONE, TWO), of_steps(step(1, "Do it", "done"), step(2, "Do it", "done"), status="completed"),
         "S001, S002 done. Plan completed."),
        (of_steps(step(1, "Do it", "done"), status="completed"), of_steps(step(1, "Do it", "in_progress")),
         "S001 in_progress. Plan reopened."),
        (of_steps(ONE, status="abandoned"), of_steps(ONE), "Plan reopened."),
        (of_steps(status="abandoned"), of_steps(ONE, objective="Ship it"),
         "New objective: Ship it. Added S001."),
        (of_steps(ONE), of_steps(step(1, "Do it", "pending", "What\nnow?")), "S001 noted: What now?"),
        (of_steps(ONE), of_steps(step(1, "Do it", "pending", "n" * 228)), f"S001 noted: {'n' * 228}."),
        (of_steps(step(1, "Do it", "pending", "a", "b")), of_steps(step(1, "Do it", "pending", "a")),
         "Notes of S001 removed."),
        (of_steps(ONE), of_steps(step(1, "Think first")), "S001 retitled: Think first."),
        (of_steps(ONE), of_steps(replace(ONE, details="how")), "Details of S001 changed."),
        (of_steps(ONE, TWO, THREE), of_steps(TWO, THREE, ONE), "Moved S001."),
        (of_steps(ONE, TWO), of_steps(ONE), "S002 was removed."),
        (of_steps(ONE), of_steps(step(1, "Another"), objective="Ship it"), "New plan: Ship it. Added S001."),
        (of_steps(ONE), of_steps(ONE, objective="Ship it"), "New objective: Ship it."),
        (of_steps(), of_steps(*[step(number) for number in range(1, 13)]),
         "Added S001, S002, S003, S004, S005, S006, S007, S008 and 4 more."),
    ],
)  # fmt: skip
def test_it_reads_as_a_person_would_say_it(before: Plan | None, after: Plan | None, text: str) -> None:
    assert str(diff_plans(before, after)) == text


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
