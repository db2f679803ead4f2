"""What changes made of the plan: the plans that the page makes are those of the session."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from page_data import call, kept, of_memory, of_store, plan_at, plans_of

from planning import Plan, PlanStep
from planning.observe.deltas import applied, delta_of, plan_fields
from planning.plan.facts import PlanFacts, Proof
from planning.suite.tools import register_plan
from planning.testing.strategies import any_plans as plans
from planning.testing.strategies import commands
from session import Session

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
def test_a_delta_makes_the_second_plan_of_the_first(
    data: st.DataObject, before: Plan | None, after: Plan | None
) -> None:
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
    assert delta_of(before, after) == {
        "steps": {"S003": {"details": None, "notes": [1]}},
        "order": [1, "S003", "S001"],
    }
    assert delta_of(after, None) == 0
