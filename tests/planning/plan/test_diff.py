"""The difference of two plans: applied to the first it gives the second; its text reads as plain English."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laws import work_of
from planning import Plan, PlanDiff, PlanStep, diff_plans
from planning.plan.diff import StepAdded, StepDetailed, StepMarked, StepMoved, StepNoted, StepRetitled

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


def plan(*steps: PlanStep, status: str = "active", objective: str = "Fix the login bug") -> Plan:
    return Plan(objective, status, steps)  # type: ignore[arg-type]  # it is one


@given(PLANS, PLANS)
def test_applied_to_the_first_plan_it_gives_the_second(before: Plan | None, after: Plan | None) -> None:
    diff = diff_plans(before, after)
    assert diff.apply(before) == after
    assert bool(diff) is (before != after)
    assert (str(diff) == "Nothing changed.") is (before == after)


@given(PLANS, PLANS)
def test_it_names_no_step_that_is_the_same_in_both(before: Plan | None, after: Plan | None) -> None:
    diff = diff_plans(before, after)
    old = {each.step_id: each for each in (() if before is None else before.steps)}
    changes = [(each.step_id, each.before, each.after) for each in diff.retitled]
    changes += [(each.step_id, each.before or "", each.after or "") for each in diff.detailed]
    changes += [(each.step_id, each.before, each.after) for each in diff.marked]
    assert all(step_id in old and first != second for step_id, first, second in changes)


def test_its_parts_are_typed() -> None:
    before = plan(step(1, "A"), step(2, "B"), step(3, "C"), step(4, "D"))
    after = plan(
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
        (None, plan(ONE, TWO), "New plan: Fix the login bug. Added S001, S002."),
        (None, plan(), "New plan: Fix the login bug."),
        (plan(ONE), None, "Plan removed."),
        (plan(ONE, TWO), plan(status="abandoned"), "Plan abandoned."),
        (
            plan(ONE, TWO, THREE),
            plan(ONE, step(2, "Do it", "done", "Reproduced on 3.12"), THREE, step(4)),
            "S002 done: Reproduced on 3.12. Added S004.",
        ),
        (plan(ONE, TWO), plan(step(1, "Do it", "done"), step(2, "Do it", "done"), status="completed"),
         "S001, S002 done. Plan completed."),
        (plan(step(1, "Do it", "done"), status="completed"), plan(step(1, "Do it", "in_progress")),
         "S001 in_progress. Plan reopened."),
        (plan(ONE, status="abandoned"), plan(ONE), "Plan reopened."),
        (plan(status="abandoned"), plan(ONE, objective="Ship it"), "New objective: Ship it. Added S001."),
        (plan(ONE), plan(step(1, "Do it", "pending", "What\nnow?")), "S001 noted: What now?"),
        (plan(step(1, "Do it", "pending", "a", "b")), plan(step(1, "Do it", "pending", "a")),
         "Notes of S001 removed."),
        (plan(ONE), plan(step(1, "Think first")), "S001 retitled: Think first."),
        (plan(ONE), plan(replace(ONE, details="how")), "Details of S001 changed."),
        (plan(ONE, TWO, THREE), plan(TWO, THREE, ONE), "Moved S001."),
        (plan(ONE, TWO), plan(ONE), "S002 was removed."),
        (plan(ONE), plan(step(1, "Another"), objective="Ship it"), "New plan: Ship it. Added S001."),
        (plan(ONE), plan(ONE, objective="Ship it"), "New objective: Ship it."),
        (plan(), plan(*[step(number) for number in range(1, 13)]),
         "Added S001, S002, S003, S004, S005, S006, S007, S008 and 4 more."),
    ],
)  # fmt: skip
def test_it_reads_as_a_person_would_say_it(before: Plan | None, after: Plan | None, text: str) -> None:
    assert str(diff_plans(before, after)) == text


@pytest.mark.parametrize("other", [None, plan(TWO)])
def test_applied_to_another_plan_it_says_so(other: Plan | None) -> None:
    diff = diff_plans(plan(ONE), plan(step(1, "Do it", "done")))
    with pytest.raises(ValueError, match="the difference starts from") as caught:
        diff.apply(other)
    assert str(caught.value) == (
        "the difference starts from a plan, and there is none"
        if other is None
        else "the plan has no step S001: the difference starts from another plan"
    )


def test_the_work_grows_with_the_number_of_steps() -> None:
    def work(size: int) -> int:
        before = plan(*[step(number) for number in range(1, size + 1)])
        after = plan(*reversed(before.steps))
        assert diff_plans(before, after).apply(before) == after
        return work_of(lambda: diff_plans(before, after).apply(before))

    assert work(2_000) < 4.5 * work(500)
